package pdfread_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

func Example() {
	ctx := context.Background()
	e, err := pdfread.New(ctx, pdfread.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	pdf := pages(
		pdfPage{content: lines("F1", 24, 72, 720, 30, "First page")},
		pdfPage{content: lines("F1", 24, 72, 720, 30, "Second page")},
	)
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		fmt.Println(f.Name())
		if f.Format() == "txt" {
			text, err := io.ReadAll(f.Reader())
			fmt.Printf("%q\n", text)
			return err
		}
		return nil
	})
	in := fileops.Bytes("letter.pdf", pdf)
	for _, args := range []fileops.Args{
		{"convert_to": "png", "dpi": 72},
		{"convert_to": "txt", "pages": "2"},
		{"convert_to": "docx"},
	} {
		if err := fileops.Run(ctx, e.Convert(), args, show, in); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// letter-001.png
	// letter-002.png
	// letter.txt
	// "Second page\n\f"
	// letter.docx
}
