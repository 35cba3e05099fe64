package pdfops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, tools.Merge(), nil, pdf("a.pdf", rich("alpha")), pdf("b ü.pdf", simple("beta")), pdf("a.pdf", rich("gamma")), pdf("d.pdf", rich("delta")))
			if out.Name() != "merged.pdf" {
				t.Errorf("name %q", out.Name())
			}
			sound(t, out)
			got := summarize(t, out)
			want := summary{Pages: 7, Outlines: 4 + 6, Links: 6, Widgets: 3, Fields: 3, Attachments: 3, Labels: 4, Tagged: true}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			txt := text(t, out)
			order := regexp.MustCompile(`alpha|beta|gamma|delta`).FindAllString(txt, -1)
			order = slices.Compact(order)
			if !slices.Equal(order, []string{"alpha", "beta", "gamma", "delta"}) {
				t.Errorf("order of pages: %v", order)
			}
			if strings.Contains(txt, "hidden") {
				t.Error("a hidden layer is shown")
			}

			p := save(t, out)
			var v struct {
				Outlines []struct {
					Title string
					Page  int `json:"destpageposfrom1"`
					Kids  []struct {
						Page int `json:"destpageposfrom1"`
					}
				}
				Acroform struct {
					Fields []struct {
						Fullname string
						Value    string
						Page     int `json:"pageposfrom1"`
					}
				}
				Pagelabels []struct {
					Index int
					Label map[string]any
				}
				Attachments map[string]any
			}
			systest.NoError(t, json.Unmarshal([]byte(shell(t, "qpdf", "--json=2", p)), &v))
			var titles []string
			for i, o := range v.Outlines {
				titles = append(titles, o.Title)
				first := []int{1, 3, 4, 6}[i]
				if o.Page != first {
					t.Errorf("bookmark %q leads to page %d, want %d", o.Title, o.Page, first)
				}
			}
			if want := []string{"a.pdf", "b ü.pdf", "a.pdf", "d.pdf"}; !slices.Equal(titles, want) {
				t.Errorf("titles %q, want %q", titles, want)
			}
			var fields []string
			for _, f := range v.Acroform.Fields {
				fields = append(fields, fmt.Sprint(f.Fullname, " ", f.Value, " ", f.Page))
			}
			if want := []string{"field u:alpha 1", "field-2 u:gamma 4", "field-3 u:delta 6"}; !slices.Equal(fields, want) {
				t.Errorf("fields %q, want %q", fields, want)
			}
			var labels []string
			for _, l := range v.Pagelabels {
				labels = append(labels, fmt.Sprint(l.Index, l.Label["/S"], l.Label["/St"]))
			}
			if want := []string{"0/r1", "2/D3", "3/r1", "5/r1"}; !slices.Equal(labels, want) {
				t.Errorf("labels %q, want %q", labels, want)
			}
			for name, want := range map[string]string{"note.txt": "note of alpha", "note.txt-2": "note of gamma", "note.txt-3": "note of delta"} {
				if got := shell(t, "qpdf", "--show-attachment="+name, p); got != want {
					t.Errorf("attachment %s is %q", name, got)
				}
			}
			// Every input has one named destination of each kind. Each leads to the
			// input's own second page. poppler follows them.
			dests := shell(t, "pdfinfo", "-dests", p)
			for _, want := range []string{`2 [^\n]*"two"`, `5 [^\n]*"two-2"`, `7 [^\n]*"two-3"`, `2 [^\n]*"old"`, `5 [^\n]*"old-2"`, `7 [^\n]*"old-3"`} {
				if !regexp.MustCompile(`(?m)^ *` + want).MatchString(dests) {
					t.Errorf("destinations lack %s:\n%s", want, dests)
				}
			}
			// The links and bookmarks use the new names.
			q := shell(t, "qpdf", "--qdf", "--object-streams=disable", p, "-")
			for _, want := range []string{`/Dest /old-2`, `/Dest /old-3`} {
				if !strings.Contains(q, want) {
					t.Errorf("no link has %s", want)
				}
			}
			for _, name := range []string{"two", "two-2", "two-3"} {
				if n := strings.Count(q, fmt.Sprintf("/Dest (%s)", name)); n != 2 { // a link and a bookmark
					t.Errorf("%d uses of %s, want 2", n, name)
				}
				if n := strings.Count(q, fmt.Sprintf("/D (%s)", name)); n != 1 {
					t.Errorf("%d actions use %s, want 1", n, name)
				}
			}
		})
	}
}

func TestMergeOne(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", rich("alpha"))
	out := run(t, pdfops.Merge(), nil, in)
	if out.Name() != "merged.pdf" || !bytes.Equal(content(t, out), content(t, in)) {
		t.Errorf("%s: a single file is changed", out.Name())
	}
	fails(t, fileops.ErrPasswordRequired, pdfops.Merge(), nil, pdf("a.pdf", encrypted(t, simple("x"), "u", "o", "256")))
}

func TestMergeEncrypted(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locked := encrypted(t, simple("x"), "secret", "owner", "256")
			msg := fails(t, fileops.ErrPasswordRequired, tools.Merge(), nil, pdf("a.pdf", simple("a")), pdf("locked.pdf", locked))
			if !strings.Contains(msg, "locked.pdf") {
				t.Errorf("message %q does not name the file", msg)
			}
			with := fileops.Args{"password": "secret"}
			out := run(t, tools.Merge(), with, pdf("a.pdf", simple("a")), pdf("locked.pdf", locked))
			sound(t, out)
			if got := summarize(t, out).Pages; got != 2 {
				t.Errorf("%d pages, want 2", got)
			}
			one := run(t, tools.Merge(), with, pdf("locked.pdf", locked))
			fails(t, fileops.ErrPasswordRequired, tools.Merge(), nil, pdf("locked.pdf", locked))
			if again := run(t, tools.Merge(), nil, one); again.Size() != one.Size() {
				t.Error("a single file is still encrypted")
			}
			msg = fails(t, fileops.ErrWrongPassword, tools.Merge(), fileops.Args{"password": "no"}, pdf("a.pdf", simple("a")), pdf("locked.pdf", locked))
			if !strings.Contains(msg, "locked.pdf") {
				t.Errorf("message %q does not name the file", msg)
			}
		})
	}
}

func TestMergeDamaged(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			msg := fails(t, fileops.ErrCorruptInput, tools.Merge(), nil, pdf("a.pdf", simple("a")), pdf("broken.pdf", []byte("%PDF-1.4\nrubbish\n%%EOF")))
			if !strings.Contains(msg, "broken.pdf") {
				t.Errorf("message %q does not name the file", msg)
			}
		})
	}
	t.Run("no cross-reference", func(t *testing.T) {
		t.Parallel()
		b := rich("lost")
		b = b[:bytes.LastIndex(b, []byte("xref\n0"))]
		b = append(b, "trailer<</Root 1 0 R/Size 21>>\n"...)
		out := run(t, pdfops.Tools{QPDF: findQPDF(t)}.Merge(), nil, pdf("a.pdf", simple("a")), pdf("lost.pdf", b))
		if s := summarize(t, out); s.Pages != 3 || s.Fields != 1 || s.Attachments != 1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("huge object number", func(t *testing.T) {
		t.Parallel()
		b := bytes.Replace(simple("x"), []byte("/Size 6"), []byte("/Size 2147483647"), 1)
		b = append(b, "\n2147483646 0 obj\nnull\nendobj\n"...)
		fails(t, fileops.ErrCorruptInput, pdfops.Merge(), nil, pdf("a.pdf", simple("a")), pdf("b.pdf", b))
		run(t, pdfops.Tools{QPDF: findQPDF(t)}.Merge(), nil, pdf("a.pdf", simple("a")), pdf("b.pdf", b))
	})
	t.Run("page tree with a loop", func(t *testing.T) {
		t.Parallel()
		b := handmade("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R]/Count 1>>")
		fails(t, fileops.ErrCorruptInput, pdfops.Merge(), nil, pdf("a.pdf", simple("a")), pdf("loop.pdf", b))
	})
}

// PDF 2.0 files with associated files, in different versions.
func TestMergeVersions(t *testing.T) {
	t.Parallel()
	two := bytes.Replace(rich("two"), []byte("%PDF-1.7"), []byte("%PDF-2.0"), 1)
	for _, order := range [][]*fileops.File{
		{pdf("2.pdf", two), pdf("1.pdf", simple("one"))},
		{pdf("1.pdf", simple("one")), pdf("2.pdf", two)},
	} {
		out := run(t, pdfops.Merge(), nil, order...)
		sound(t, out)
		if !bytes.HasPrefix(content(t, out), []byte("%PDF-2.0")) {
			t.Errorf("version %q", content(t, out)[:8])
		}
		q := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, out), "-")
		if !strings.Contains(q, "/AF [") {
			t.Error("the associated files are lost")
		}
	}
}

// The files have different inherited page attributes.
func TestMergeInherited(t *testing.T) {
	t.Parallel()
	turned := handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 7/Rotate 90/MediaBox 5 0 R>>",
		"<</Type/Pages/Parent 2 0 R/Kids[4 0 R]/Count 1/Resources<<>>>>",
		"<</Type/Page/Parent 3 0 R>>",
		"[0 0 100 50]")
	out := run(t, pdfops.Merge(), nil, pdf("a.pdf", simple("a")), pdf("b.pdf", turned))
	sound(t, out)
	info := shell(t, "pdfinfo", "-l", "2", save(t, out))
	for _, want := range []string{`Page +1 size: +300 x 200`, `Page +2 size: +100 x 50`, `Page +2 rot: +90`} {
		if !regexp.MustCompile(want).MatchString(info) {
			t.Errorf("no %q in:\n%s", want, info)
		}
	}
}

func TestMergeMany(t *testing.T) {
	t.Parallel()
	var in []*fileops.File
	for i := range 100 {
		in = append(in, pdf(fmt.Sprintf("%d.pdf", i), simple(fmt.Sprintf("number %d", i))))
	}
	out := run(t, pdfops.Merge(), nil, in...)
	sound(t, out)
	for i, got := range pageTexts(t, out) {
		if want := fmt.Sprintf("number %d", i); got != want {
			t.Errorf("page %d is %q, want %q", i+1, got, want)
		}
	}
	if s := summarize(t, out); s.Pages != 100 || s.Outlines != 100 {
		t.Errorf("%+v", s)
	}
}

// Files are opened before they are needed: the result keeps the order of all inputs, and the first
// input that cannot be opened is the one that the error names.
func TestMergeTogether(t *testing.T) {
	t.Parallel()
	toPDF := fileops.Func(fileops.Spec{
		Name: "convert", Summary: "Sets a text.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "convert_to", Doc: "The format.", Enum: []string{"pdf"}, Required: true}}}},
	}, func(_ context.Context, job *fileops.Job) error {
		b, err := io.ReadAll(job.Input().Reader())
		if err != nil {
			return err
		}
		return job.WriteFile(fileops.ResultName(job.Input(), format.PDF), func(path string) error { return os.WriteFile(path, simple(string(b)), 0o600) })
	})
	var in []*fileops.File
	for i := range 30 {
		name := fmt.Sprintf("number %d", i)
		if i%4 == 1 {
			in = append(in, fileops.Bytes(name+".txt", []byte(name)))
		} else {
			in = append(in, pdf(name+".pdf", simple(name)))
		}
	}
	for i, got := range pageTexts(t, run(t, pdfops.Merge(toPDF), nil, in...)) {
		if want := fmt.Sprintf("number %d", i); got != want {
			t.Errorf("page %d is %q, want %q", i+1, got, want)
		}
	}
	for _, i := range []int{11, 12, 20} {
		in[i] = pdf(fmt.Sprintf("broken %d.pdf", i), []byte("%PDF-1.4\nrubbish\n%%EOF"))
	}
	if msg := fails(t, fileops.ErrCorruptInput, pdfops.Merge(toPDF), nil, in...); !strings.Contains(msg, "broken 11.pdf") {
		t.Errorf("message %q does not name the first damaged file", msg)
	}
}

func TestMergeConverts(t *testing.T) {
	t.Parallel()
	a := pdfops.Merge(pdfops.FromImages())
	if got := a.Spec().Accepts[0].Formats; !slices.Equal(got, []format.Format{format.PDF, format.JPG, format.PNG}) {
		t.Errorf("accepts %v", got)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "photo.jpg")
	b, _ := fileopstest.Sample(t, format.JPG).Bytes()
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	out := run(t, a, nil, fileopstest.Sample(t, format.PNG), pdf("a.pdf", simple("text")), fileops.Path(path))
	sound(t, out)
	if s := summarize(t, out); s.Pages != 3 || s.Outlines != 3 {
		t.Errorf("%+v", s)
	}
	list := shell(t, "pdfimages", "-list", save(t, out))
	if n := len(strings.Split(strings.TrimSpace(list), "\n")); n != 4 {
		t.Errorf("images:\n%s", list)
	}
	msg := fails(t, fileops.ErrCorruptInput, a, nil, pdf("a.pdf", simple("text")), fileops.Bytes("cut.jpg", b[:len(b)/2]))
	if !strings.Contains(msg, "cut.jpg") {
		t.Errorf("message %q", msg)
	}
}

// A stream that is longer than its Length keeps its content. Without qpdf, a warning says that content may be missing.
func TestShortLength(t *testing.T) {
	t.Parallel()
	lying := bytes.Replace(simple("hello"), []byte("/Length 35"), []byte("/Length 12"), 1)
	if !bytes.Contains(lying, []byte("/Length 12")) {
		t.Fatal("the file has no length")
	}
	in := pdf("a.pdf", lying)
	for name, tools := range variants(t) {
		for action, perform := range map[string]func() ([]*fileops.File, []string){
			"merge": func() ([]*fileops.File, []string) {
				return []*fileops.File{run(t, tools.Merge(), nil, in, in)}, warned(t, tools.Merge(), nil, in, in)
			},
			"rotate": func() ([]*fileops.File, []string) {
				args := fileops.Args{"angle": 90}
				return []*fileops.File{run(t, tools.Rotate(), args, in)}, warned(t, tools.Rotate(), args, in)
			},
		} {
			out, warnings := perform()
			if got := text(t, out[0]); !strings.Contains(got, "hello") && len(warnings) == 0 {
				t.Errorf("%s, %s: text %q without a warning", name, action, got)
			} else if name == "qpdf" && !strings.Contains(got, "hello") {
				t.Errorf("%s: text %q, warnings %v", action, got, warnings)
			}
		}
	}
}

// So does such a stream of an encrypted file, whether it needs a password or not.
func TestShortLengthEncrypted(t *testing.T) {
	t.Parallel()
	plain := simple("hello")
	for kind, args := range map[string][]string{"RC4": {"128", "--use-aes=n"}, "AES 128": {"128", "--use-aes=y"}, "AES 256": {"256"}} {
		for _, user := range []string{"", "user"} {
			whole := encryptedWith(t, plain, []string{"--stream-data=preserve"}, append([]string{user, "owner"}, args...)...)
			length, short := "/Length 64", "/Length 32" // with the initialization vector and padding
			if kind == "RC4" {
				length, short = "/Length 35", "/Length 12"
			}
			lying := bytes.Replace(whole, []byte(length+" "), []byte(short+" "), 1)
			if bytes.Equal(lying, whole) {
				t.Fatalf("%s: the file has no %s", kind, length)
			}
			params := fileops.Args{"angle": 90}
			if user != "" {
				params["password"] = user
			}
			for name, tools := range variants(t) {
				var lost []bool
				for _, content := range [][]byte{whole, lying} {
					in := pdf("a.pdf", content)
					dropped := slices.Contains(warned(t, tools.Rotate(), params, in), fileops.WarnContentDropped)
					kept := strings.Contains(text(t, run(t, tools.Rotate(), params, in)), "hello")
					if kept == dropped {
						t.Errorf("%s, user password %q, %s: text kept: %v, warning: %v", kind, user, name, kept, dropped)
					}
					lost = append(lost, dropped)
				}
				if lost[0] || lost[1] != (name == "pure") {
					t.Errorf("%s, user password %q, %s: content dropped: %v", kind, user, name, lost)
				}
			}
		}
	}
}
