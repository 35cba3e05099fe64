package standard_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
)

// few are options of a set without external programs, which starts quickly.
func few(t testing.TB) *standard.Options {
	return &standard.Options{
		FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
		TempDir: t.TempDir(), Isolate: true,
	}
}

// waiting returns what the processes that wait in dir have mapped into memory.
func waiting(t *testing.T, dir string) (maps [][]byte) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, cwd := range all {
		to, err := os.Readlink(cwd)
		if err != nil || filepath.Dir(filepath.Dir(filepath.Dir(to))) != dir {
			continue
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(cwd), "maps"))
		if err != nil {
			t.Fatal(err)
		}
		maps = append(maps, b)
	}
	return maps
}

// Nothing is started by looking for engines; after Ready processes wait, without
// the libraries that only plug-ins of libvips need, and a picture for which a plug-in
// is needed is read and written all the same.
func TestReady(t *testing.T) {
	t.Parallel()
	o := few(t)
	s := standard.Probe(t.Context(), o)
	defer s.Close()
	if got := waiting(t, o.TempDir); len(got) != 0 {
		t.Errorf("%d processes before Ready", len(got))
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := waiting(t, o.TempDir)
	if len(got) == 0 {
		t.Error("no process waits after Ready")
	}
	for _, m := range got {
		if bytes.Contains(m, []byte("/vips-modules")) || bytes.Contains(m, []byte("libMagick")) {
			t.Error("a process has plug-ins before it needs one")
		}
	}
	reg := registry(t, s)
	for _, to := range []format.Format{format.AVIF, format.JXL, format.PNG} {
		for _, way := range [][2]format.Format{{format.PNG, to}, {to, format.WebP}} {
			in := fileopstest.Sample(t, way[0])
			a, params, err := reg.Resolve("convert", []format.Format{way[0]}, fileops.Args{"convert_to": string(way[1])})
			if way[0] == way[1] {
				continue
			}
			if err != nil {
				t.Errorf("%v: %v", way, err)
				continue
			}
			sink := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
				if got := format.Sniff(f.Reader(), f.Size()); got != way[1] {
					t.Errorf("%v: the result is %s", way, got)
				}
				return nil
			})
			if err := (&fileops.Runner{TempDir: t.TempDir()}).Do(t.Context(), a, params, sink, in); err != nil {
				t.Errorf("%v: %v", way, err)
			}
		}
	}
	in := standard.Probe(t.Context(), &standard.Options{
		FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
	})
	defer in.Close()
	if err := in.Ready(t.Context()); err != nil {
		t.Errorf("without Isolate: %v", err)
	}
}

// A program that reads files of strangers in processes of their own: its first line is
// the one that these processes stop at. (Here that is in TestMain.)
func ExampleMain() {
	// func main() {
	standard.Main()
	ctx := context.Background()
	set := standard.Probe(ctx, &standard.Options{Isolate: true, LibreOffice: standard.None, Chromium: standard.None})
	defer set.Close()
	if err := set.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	zip, params, err := reg.Resolve("zip", []format.Format{format.TXT}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = new(fileops.Runner).Do(ctx, zip, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		fmt.Println(f.Name(), strconv.Quote(string(b[:2])))
		return err
	}), fileops.Bytes("note.txt", []byte("text")))
	if err != nil {
		fmt.Println(err)
	}
	// Output: files.zip "PK"
}
