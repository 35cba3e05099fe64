package standard_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// letter is the text of the scan: 44 paragraphs, more than one page.
func letter() string {
	stems := strings.Fields("Bürger Größe Türme Sturm über Dächer weil Wasser gegen Straße oder Körbe Äpfel Mühle früher Häuser Schüler Brücke schöne Garten Fenster zwölf Hafen Winter öffnen Theater")
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range 44 {
		fmt.Fprintf(&b, "Absatz %d", i+1)
		for range 3 + rng.IntN(8) {
			b.WriteString(" " + stems[rng.IntN(len(stems))])
		}
		b.WriteString(".\n\n")
	}
	return b.String()
}

// run runs an action of the registry and returns its results.
func run(t testing.TB, name string, args fileops.Args, in ...*fileops.File) (out []*fileops.File, err error) {
	t.Helper()
	var formats []format.Format
	for _, f := range in {
		formats = append(formats, f.Format())
	}
	a, params, err := registry(t, set).Resolve(name, formats, args)
	systest.NoError(t, err)
	r := fileops.Runner{TempDir: t.TempDir()}
	err = r.Do(t.Context(), a, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = append(out, fileops.Bytes(f.Name(), b))
		return err
	}), in...)
	return out, err
}

func mustRun(t testing.TB, name string, args fileops.Args, in ...*fileops.File) []*fileops.File {
	t.Helper()
	out, err := run(t, name, args, in...)
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

// scan returns the letter, printed and scanned: one picture for each page.
func scan(t testing.TB) []*fileops.File {
	pdf := mustRun(t, "convert", fileops.Args{"convert_to": "pdf"}, fileops.Bytes("letter.txt", []byte(letter())))
	return mustRun(t, "convert", fileops.Args{"convert_to": "png", "dpi": 200}, pdf[0])
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func recall(want, got string) float64 {
	count := make(map[string]int)
	for _, w := range words(got) {
		count[w]++
	}
	hit, all := 0, words(want)
	for _, w := range all {
		if count[w] > 0 {
			count[w]--
			hit++
		}
	}
	return float64(hit) / float64(len(all))
}

func TestScannedPDF(t *testing.T) {
	t.Parallel()
	pages := scan(t)
	if len(pages) < 2 {
		t.Fatalf("%d pages", len(pages))
	}
	pdf := mustRun(t, "merge", nil, pages...)[0]
	for to, read := range map[string]func(b []byte) string{
		"txt":  func(b []byte) string { return string(b) },
		"html": func(b []byte) string { return string(b) },
	} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := mustRun(t, "convert", fileops.Args{"convert_to": to, "ocr_language": "deu"}, pdf)
			b, _ := out[0].Bytes()
			if r := recall(letter(), read(b)); r < 0.98 {
				t.Errorf("recall %.3f: %s", r, read(b))
			}
		})
	}
	t.Run("one page", func(t *testing.T) {
		t.Parallel()
		out := mustRun(t, "convert", fileops.Args{"convert_to": "odt", "ocr_language": "deu", "pages": "2"}, pdf)
		b, _ := out[0].Bytes()
		if s := xmlText(t, b, "content.xml"); strings.Contains(s, "Absatz 1 ") || !strings.Contains(s, "Absatz 44") {
			t.Errorf("page 2 is %s", s)
		}
	})
}

// xmlText returns the text of a part of a package, with spaces in place of elements.
func xmlText(t testing.TB, b []byte, part string) string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	f, err := z.Open(part)
	systest.NoError(t, err)
	defer f.Close()
	x, err := io.ReadAll(f)
	systest.NoError(t, err)
	var out strings.Builder
	tag := false
	for _, r := range strings.NewReplacer("</w:p>", " ", "</text:p>", " ", "<text:s/>", " ").Replace(string(x)) {
		switch {
		case r == '<':
			tag = true
		case r == '>':
			tag = false
		case !tag:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func TestScannedPicture(t *testing.T) {
	t.Parallel()
	page := scan(t)[0]
	first, _, _ := strings.Cut(letter(), "Absatz 12 ")
	heic := mustRun(t, "convert", fileops.Args{"convert_to": "heic", "quality": 60}, page)[0]
	for _, tt := range []struct {
		in *fileops.File
		to string
	}{{heic, "txt"}, {page, "docx"}} {
		out := mustRun(t, "convert", fileops.Args{"convert_to": tt.to, "ocr_language": "de"}, tt.in)
		b, _ := out[0].Bytes()
		s := string(b)
		if tt.to == "docx" {
			s = xmlText(t, b, "word/document.xml")
		}
		if r := recall(first, s); r < 0.98 || format.Parse(out[0].Name()) != format.Format(tt.to) {
			t.Errorf("%s to %s: recall %.3f: %s", tt.in.Name(), out[0].Name(), r, s)
		}
	}
}

// Without Tesseract nothing offers character recognition, and the set reports what is
// missing.
func TestWithoutTesseract(t *testing.T) {
	t.Parallel()
	s := standard.Probe(t.Context(), &standard.Options{FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Tesseract: standard.None, CacheDir: systest.CodeCache()})
	defer s.Close()
	i := slices.IndexFunc(s.Dependencies(), func(e fileops.Dependency) bool { return e.Name == "tesseract" })
	if i < 0 || s.Dependencies()[i].Err == nil || s.Dependencies()[i].Hint == "" {
		t.Error("tesseract is not reported as missing")
	}
	m := capability.New(registry(t, s), nil)
	for e := range m.Entries() {
		for _, p := range e.Params {
			if p.Name == "ocr_language" || p.Name == "convert_to" && e.Format.Family() == format.Image && slices.Contains(p.Enum, "txt") {
				t.Errorf("%s offers %s %v for %s", e.Engine, p.Name, p.Enum, e.Format)
			}
		}
	}
}

// ocr adds the text of scans and of pictures, and nothing else changes.
func TestSearchable(t *testing.T) {
	t.Parallel()
	page := scan(t)[0]
	first, _, _ := strings.Cut(letter(), "Absatz 12 ")
	photo := mustRun(t, "convert", fileops.Args{"convert_to": "jpg", "quality": 80}, page)[0]
	jpeg, _ := photo.Bytes()
	// The orientation of a camera (Exif 2.3, tag 274) turns the page, so that its text runs
	// downwards.
	exif := "\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	turned := fileops.Bytes("turned.jpg", slices.Concat(jpeg[:2], []byte(exif), jpeg[2:]))
	sideways := mustRun(t, "rotate", fileops.Args{"angle": 90}, mustRun(t, "convert", fileops.Args{"convert_to": "pdf"}, page)...)[0]
	webp := mustRun(t, "convert", fileops.Args{"convert_to": "webp", "quality": 80}, page)[0]
	for name, in := range map[string]*fileops.File{"JPEG": photo, "turned": turned, "sideways": sideways, "WebP": webp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := mustRun(t, "ocr", fileops.Args{"ocr_language": "deu"}, in)[0]
			b, _ := out.Bytes()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.pdf")
			systest.NoError(t, os.WriteFile(path, b, 0o600))
			if r := recall(first, systest.Run(t, "pdftotext", path, "-")); r < 0.98 {
				t.Errorf("recall %.3f", r)
			}
			if in.Format() == format.JPG {
				got, _ := in.Bytes()
				systest.Run(t, "pdfimages", "-all", path, filepath.Join(dir, "p"))
				if own := systest.ReadFile(t, filepath.Join(dir, "p-000.jpg")); !bytes.Equal(own, got) {
					t.Error("the picture was encoded again")
				}
			}
			// All pages have text now.
			again := mustRun(t, "ocr", fileops.Args{"ocr_language": "deu"}, out)[0]
			if c, _ := again.Bytes(); !bytes.Equal(b, c) {
				t.Error("a second run changes the file")
			}
		})
	}
}
