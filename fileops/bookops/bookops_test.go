package bookops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/bookops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// find returns an engine with mobitool.
func find(t testing.TB) *bookops.Engine {
	t.Helper()
	e, err := bookops.New(t.Context(), bookops.Options{Sandbox: engine.NewSandbox()})
	systest.NoError(t, err)
	for _, d := range e.Dependencies() {
		systest.NoError(t, d.Err)
	}
	return e
}

var toEPUB = fileops.Args{"convert_to": "epub"}

// convert converts a book.
func convert(t testing.TB, in *fileops.File) (out []byte, warnings []fileops.Warning, err error) {
	t.Helper()
	r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	err = r.Run(t.Context(), find(t).Convert(), toEPUB, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := f.ReadAll(1 << 30)
		out = bytes.Clone(b)
		return err
	}), in)
	return out, warnings, err
}

func TestConformance(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{
		Action:  find(t).Convert(),
		Fixture: specimen.Of,
	})
}

// files returns the content of the files of a book. All pages must be well-formed XML.
func files(t testing.TB, book []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(book), int64(len(book)))
	systest.NoError(t, err)
	if f := z.File[0]; f.Name != "mimetype" || f.Method != zip.Store {
		t.Errorf("the first file is %s", f.Name)
	}
	out := make(map[string]string)
	for _, f := range z.File {
		r, err := f.Open()
		systest.NoError(t, err)
		b, err := io.ReadAll(r)
		systest.NoError(t, err)
		out[f.Name] = string(b)
		switch path.Ext(f.Name) {
		case ".html", ".opf", ".ncx", ".xml":
			d := xml.NewDecoder(bytes.NewReader(b))
			d.Entity = nil
			for err == nil {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v\n%s", f.Name, err, b)
			}
		}
	}
	return out
}

func TestBooks(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.MOBI, format.AZW3} {
		out, warnings, err := convert(t, specimen.Of(t, f))
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %v, %v", f, warnings, err)
		}
		all := files(t, out)
		page := all["OEBPS/part00000.html"]
		for _, want := range []string{specimen.Heading, specimen.Text, specimen.Scripts, `src="resource00000.png"`} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", f, want, page)
			}
		}
		if p := all["OEBPS/resource00000.png"]; !strings.HasPrefix(p, "\x89PNG") {
			t.Errorf("%s: picture %.10q", f, p)
		}
		if opf := all["OEBPS/content.opf"]; !strings.Contains(opf, "<dc:title>"+specimen.Heading+"</dc:title>") || !strings.Contains(opf, "<dc:creator>Filewright</dc:creator>") {
			t.Errorf("%s: %s", f, opf)
		}
		// A program of somebody else reads it.
		file := filepath.Join(t.TempDir(), "a.epub")
		systest.NoError(t, os.WriteFile(file, out, 0o600))
		if text := systest.Run(t, "pandoc", "-f", "epub", "-t", "plain", "--wrap=none", file); !strings.Contains(text, specimen.Text) {
			t.Errorf("%s: pandoc reads %q", f, text)
		}
	}
}

// Pages become well-formed XML whatever they contain, and scripts do not stay.
func TestPages(t *testing.T) {
	t.Parallel()
	book := func(body string) *fileops.File {
		return fileops.Bytes("a.mobi", specimen.Book(format.MOBI, "<html><head></head><body>"+body+"</body></html>", "A & B < C", []byte("\x89PNG\r\n\x1a\n"), specimen.PlainBook))
	}
	for in, want := range map[string]string{
		"<p>one<br>two<p>three":                           "<p>one<br/>two</p><p>three</p>",
		"<p onclick=\"x()\" class=a\"b>a &amp; b &nbsp;c": "<p class=\"a&quot;b\">a &amp; b \u00a0c</p>",
		"<idx:entry>word</idx:entry><mbp:pagebreak/>next": "word<div style=\"page-break-before: always\"></div>next",
		"<p>a\x01b<b><i>c</b>d</i>":                       "<p>ab<b><i>c</i></b><i>d</i></p>",
		"text<img src=\"resource00007.png\"><img recindex=\"00001\"><video src=\"none.mp4\">a video</video>": "text<img src=\"resource00000.png\"/><video>a video</video>",
		"text<script>alert(1)</script>":                         "text",
		"<svg viewBox=\"0 0 1 1\"><path d=\"M0 0\"/></svg>text": "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" viewBox=\"0 0 1 1\"><path d=\"M0 0\"></path></svg>text",
	} {
		out, warnings, err := convert(t, book(in))
		systest.NoError(t, err)
		all := files(t, out)
		if page := all["OEBPS/part00000.html"]; !strings.Contains(page, "<body>"+want+"</body>") || !strings.Contains(page, "<title>") {
			t.Errorf("%q became %q", in, page)
		}
		if strings.Contains(in, "script") != (len(warnings) == 1) {
			t.Errorf("%q: warnings %v", in, warnings)
		}
		if !strings.Contains(all["OEBPS/content.opf"], "A &amp; B &lt; C") {
			t.Errorf("title: %s", all["OEBPS/content.opf"])
		}
	}
}

// Old books leave elements open, thousands of them. HTML has no slash that closes one.
func TestOpenElements(t *testing.T) {
	t.Parallel()
	for part, breaks := range map[string]int{"<idx:entry>word ": 0, "<mbp:pagebreak/>word ": 3000, "<mbp:pagebreak>word ": 0} {
		out, _, err := convert(t, fileops.Bytes("a.mobi", specimen.Book(format.MOBI, "<html><body>"+strings.Repeat(part, 3000)+"</body></html>", "t", nil, specimen.PlainBook)))
		systest.NoError(t, err)
		page := files(t, out)["OEBPS/part00000.html"]
		if n := strings.Count(page, "word"); n != 3000 {
			t.Errorf("%q: %d words: %.300s", part, n, page)
		}
		if n := strings.Count(page, "page-break-before"); n != breaks {
			t.Errorf("%q: %d page breaks: %.300s", part, n, page)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	whole, _ := specimen.Of(t, format.MOBI).Bytes()
	for name, c := range map[string]struct {
		in   []byte
		code string
		says string
	}{
		"protected":    {specimen.Book(format.AZW3, "<p>secret</p>", "t", nil, specimen.LockedBook), "unsupported_input", "DRM"},
		"old kind":     {specimen.Book(format.MOBI, "<p>secret</p>", "t", nil, 1), "unsupported_input", "DRM"},
		"header":       {whole[:79], "corrupt_input", "damaged"},
		"first record": {whole[:200], "corrupt_input", "damaged"},
		"half":         {whole[:len(whole)/2], "corrupt_input", "damaged"},
		"empty":        {specimen.Book(format.MOBI, "<html><body> </body></html>", "t", nil, specimen.PlainBook), "corrupt_input", "neither text nor pictures"},
	} {
		out, _, err := convert(t, fileops.Bytes("a.mobi", c.in))
		if fileops.Code(err) != c.code || !strings.Contains(fileops.Message(err), c.says) || out != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without mobitool there are no actions, and the dependency says what to install. Another
// process gets the findings.
func TestFindings(t *testing.T) {
	t.Parallel()
	none, err := bookops.New(t.Context(), bookops.Options{Mobitool: engine.None})
	systest.NoError(t, err)
	if d := none.Dependencies()[0]; d.Err == nil || len(none.Actions()) > 0 || len(d.Packages) == 0 {
		t.Errorf("without mobitool: %+v", d)
	}
	for _, e := range []*bookops.Engine{none, find(t)} {
		again, err := bookops.New(t.Context(), bookops.Options{Probed: e.Probed()})
		systest.NoError(t, err)
		if len(again.Actions()) != len(e.Actions()) || again.Dependencies()[0].Version != e.Dependencies()[0].Version {
			t.Errorf("probed %s: %+v", e.Probed(), again.Dependencies())
		}
	}
	if _, err := bookops.New(t.Context(), bookops.Options{Probed: "x"}); err == nil {
		t.Error("invalid findings")
	}
}
