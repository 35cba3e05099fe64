package pdfpack_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/pdfpack"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// tagged returns the text of a file with a page and many small objects.
func tagged() []byte {
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R/StructTreeRoot 7 0 R/Lang(en\\)>> endobj)>>",
		"<</Type /Pages /Kids[ 3 0 R ]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F1 6 0 R>>>>% a comment >>\n>>",
		"<</Length 5 0 R /Note(stream (nested) \\( )/Hex<3e3e>>>\nstream\nBT /F1 12 Tf 20 50 Td (endstream endobj) Tj ET\nendstream",
		"47",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	}
	const n = 1000
	kids := make([]string, n)
	for i := range kids {
		kids[i] = fmt.Sprintf("%d 0 R", 8+i)
	}
	objects = append(objects, "<</Type/StructTreeRoot/K["+strings.Join(kids, " ")+"]>>")
	for i := range n {
		objects = append(objects, fmt.Sprintf("<</Type/StructElem/S/P/P 7 0 R/Pg 3 0 R/K %d>>", i))
	}
	return tinypdf.File("1.4", objects...)
}

// plain returns the objects of a file as qpdf reads them.
func plain(t *testing.T, b []byte) string {
	path := filepath.Join(t.TempDir(), "a.pdf")
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	systest.Run(t, "qpdf", "--check", path)
	text := systest.Run(t, "qpdf", "--qdf", "--object-streams=disable", "--static-id", "--min-version=1.5", path, "-")
	return text
}

func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	n, err := pdfpack.Write(&out, bytes.NewReader(b), int64(len(b)))
	if err == nil && n != int64(out.Len()) {
		err = fmt.Errorf("%d bytes reported, %d written", n, out.Len())
	}
	return out.Bytes(), err
}

func TestWrite(t *testing.T) {
	t.Parallel()
	in := tagged()
	for name, in := range map[string][]byte{
		"as written":      in,
		"a newer version": bytes.Replace(in, []byte("%PDF-1.4"), []byte("%PDF-1.7"), 1),
	} {
		out, err := pack(in)
		systest.NoError(t, err)
		if len(out) > len(in)/5 {
			t.Errorf("%s: %d of %d bytes", name, len(out), len(in))
		}
		if got, want := plain(t, out), plain(t, in); got != want {
			t.Errorf("%s: the objects differ:\n%.2000s\nwant\n%.2000s", name, got, want)
		}
	}
}

// Files of another kind are left as they are.
func TestUnknown(t *testing.T) {
	t.Parallel()
	in := tagged()
	replace := func(old, with string) []byte {
		t.Helper()
		if !bytes.Contains(in, []byte(old)) {
			t.Fatalf("no %q", old)
		}
		return bytes.Replace(in, []byte(old), []byte(with), 1)
	}
	packed, err := pack(in)
	systest.NoError(t, err)
	for name, b := range map[string][]byte{
		"empty":                    {},
		"text":                     []byte("%PDF-1.4 but nothing else"),
		"packed already":           packed,
		"encrypted":                replace("/Root 1 0 R", "/Encrypt 9 0 R/Root 1 0 R"),
		"changed by an update":     replace("/Root 1 0 R", "/Prev 9/Root 1 0 R"),
		"hybrid":                   replace("/Root 1 0 R", "/XRefStm 9/Root 1 0 R"),
		"another generation":       replace(" 00000 n", " 00001 n"),
		"a wrong number":           replace("\n2 0 obj", "\n9 0 obj"),
		"a wrong length":           replace("\n47\n", "\n30\n"),
		"a length beyond the file": replace("\n47\n", "\n999999\n"),
		"an unfinished string":     replace("(en\\)>> endobj)", "(en\\)>> endobj\\)"),
		"an unfinished dictionary": replace("/Count 1>>", "/Count 1> "),
		"cut":                      in[:len(in)-100],
	} {
		path := filepath.Join(t.TempDir(), "a.pdf")
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		if changed, err := pdfpack.File(path); changed || err != nil {
			t.Errorf("%s: changed %t, error %v", name, changed, err)
		}
		if !bytes.Equal(systest.ReadFile(t, path), b) {
			t.Errorf("%s: other bytes", name)
		}
		if files := systest.Regular(t, filepath.Dir(path)); len(files) != 1 {
			t.Errorf("%s: files %q", name, files)
		}
	}
}

func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.pdf")
	b := tagged()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	changed, err := pdfpack.File(path)
	info, _ := os.Stat(path)
	fmt.Println(changed, err, len(b)/int(info.Size()) > 5)
	// Output: true <nil> true
}

func FuzzWrite(f *testing.F) {
	in := tagged()
	f.Add(in)
	f.Add(tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>", tinypdf.Stream("", "0 0 10 10 re f")))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := pack(b)
		if err != nil {
			if !errors.Is(err, pdfpack.ErrUnknown) {
				t.Fatal(err)
			}
			return
		}
		// What is packed is packed only once.
		if _, err := pack(out); !errors.Is(err, pdfpack.ErrUnknown) {
			t.Errorf("packed again: %v", err)
		}
	})
}
