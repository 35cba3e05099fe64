package archiveops_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"fmt"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
)

func ExampleZip() {
	list := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		r, err := zip.NewReader(f.Reader(), f.Size())
		if err != nil {
			return err
		}
		fmt.Println(f.Name())
		for _, e := range r.File {
			fmt.Println("-", e.Name, e.UncompressedSize64)
		}
		return nil
	})
	err := fileops.Run(context.Background(), archiveops.Zip(), nil, list,
		fileops.Bytes("report.txt", []byte("first")),
		fileops.Bytes("Report.txt", []byte("another")))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// files.zip
	// - report.txt 5
	// - Report (2).txt 7
}

func ExampleConvert() {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"docs/a.txt", "../../etc/passwd"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	list := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		r, err := zip.NewReader(f.Reader(), f.Size())
		if err != nil {
			return err
		}
		fmt.Println(f.Name())
		for _, e := range r.File {
			fmt.Println("-", e.Name)
		}
		return nil
	})
	err := fileops.Run(context.Background(), archiveops.Convert(nil), fileops.Args{"convert_to": "zip"}, list,
		fileops.Bytes("backup.tar", b.Bytes()))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// backup.zip
	// - docs/a.txt
	// - etc/passwd
}

func ExampleEntryNames() {
	fmt.Printf("%q\n", archiveops.EntryNames([]string{"a.txt", "A.txt", `..\b:c.txt`, "nul.txt"}))
	// Output: ["a.txt" "A (2).txt" "b_c.txt" "_nul.txt"]
}
