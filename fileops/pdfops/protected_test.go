package pdfops_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
)

// plainly fails the test if f is encrypted, and returns its text.
func plainly(t *testing.T, f *fileops.File) string {
	t.Helper()
	sound(t, f)
	if show := shell(t, "qpdf", "--show-encryption", save(t, f)); !strings.Contains(show, "File is not encrypted") {
		t.Errorf("%s is encrypted:\n%s", f.Name(), show)
	}
	return text(t, f)
}

// A file that opens without a password is compressed and merged like any other,
// regardless of its restrictions. The result is not encrypted.
func TestNoPasswordNeeded(t *testing.T) {
	t.Parallel()
	plain := rich("hello")
	// Uncompressed streams leave something to save.
	protect := func(args ...string) []byte {
		return encryptedWith(t, plain, []string{"--compress-streams=n", "--object-streams=disable"}, args...)
	}
	for i, kind := range slices.Sorted(maps.Keys(revisions)) {
		args := revisions[kind]
		for name, own := range map[string]struct {
			owner string
			args  []string
		}{
			"owner":   {owner: "boss", args: []string{"--modify=none", "--extract=n"}},
			"neither": {},
		} {
			all := append([]string{"", own.owner}, args...)
			if args[0] == "40" && own.args != nil {
				own.args = []string{"--modify=n", "--extract=n"}
			}
			if args[0] == "256" && own.owner == "" {
				all = append(all, "--allow-insecure")
			}
			in := pdf("in.pdf", protect(append(all, own.args...)...))
			direct := pdf("in.pdf", inlineEncrypt(t, protect(append(all, own.args...)...)))
			for j, with := range []string{"pure", "qpdf"} {
				if !cell(i, j, 2) {
					continue
				}
				tools := variants(t)[with]
				t.Run(fmt.Sprint(kind, "/", name, "/", with), func(t *testing.T) {
					t.Parallel()
					for _, f := range []*fileops.File{in, direct} {
						out := run(t, tools.Compress(), nil, f)
						if got := plainly(t, out); !strings.Contains(got, "hello") {
							t.Errorf("compressed: text %q", got)
						}
						if got, want := summarize(t, out), summarize(t, pdf("p.pdf", plain)); got != want {
							t.Errorf("compressed: %+v, want %+v", got, want)
						}
						if got := plainly(t, run(t, tools.Merge(), nil, f)); !strings.Contains(got, "hello") {
							t.Errorf("merged alone: text %q", got)
						}
						if got := plainly(t, run(t, tools.Merge(), nil, f, pdf("b.pdf", simple("second")))); !strings.Contains(got, "hello") || !strings.Contains(got, "second") {
							t.Errorf("merged: text %q", got)
						}
					}
				})
			}
		}
	}
	t.Run("repaired", func(t *testing.T) {
		t.Parallel()
		b := encrypted(t, simple("hello"), "", "boss", "128", "--use-aes=y")
		b = b[:bytes.LastIndex(b, []byte("startxref"))] // pdfcpu cannot read this
		tools := variants(t)["qpdf"]
		if got := plainly(t, run(t, tools.Merge(), nil, pdf("a.pdf", b))); !strings.Contains(got, "hello") {
			t.Errorf("text %q", got)
		}
		locked := encrypted(t, simple("hello"), "user", "boss", "128", "--use-aes=y")
		locked = locked[:bytes.LastIndex(locked, []byte("startxref"))]
		fails(t, fileops.ErrPasswordRequired, tools.Merge(), nil, pdf("a.pdf", locked))
	})
	t.Run("certificates", func(t *testing.T) {
		t.Parallel()
		b := bytes.Replace(simple("x"), []byte("/Root 1 0 R"), []byte("/Root 1 0 R/Encrypt<</Filter/Adobe.PubSec/V 4/Length 128/SubFilter/adbe.pkcs7.s5>>/ID[<00><00>]"), 1)
		for _, tools := range variants(t) {
			fails(t, fileops.ErrUnsupportedInput, tools.Compress(), nil, pdf("a.pdf", b))
			fails(t, fileops.ErrUnsupportedInput, tools.Merge(), nil, pdf("a.pdf", b))
		}
	})
}

// All actions agree on whether a file is encrypted, even where qpdf does not
// notice: in two concatenated files, of which the second is encrypted.
func TestEncryptedTail(t *testing.T) {
	t.Parallel()
	locked := encrypted(t, simple("hello"), "user", "boss", "128", "--use-aes=n")
	open := encrypted(t, simple("hello"), "", "boss", "128", "--use-aes=n")
	both := func(b []byte) *fileops.File { return pdf("a.pdf", append(simple("before it"), b...)) }
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, fileops.ErrPasswordRequired, tools.Compress(), nil, both(locked))
			fails(t, fileops.ErrPasswordRequired, tools.Merge(), nil, both(locked))
			fails(t, fileops.ErrPasswordRequired, tools.Lock(), fileops.Args{"password": "x"}, both(locked))
			fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": "x"}, both(locked))
			for _, out := range []*fileops.File{
				run(t, tools.Unlock(), fileops.Args{"password": "user"}, both(locked)),
				run(t, tools.Unlock(), fileops.Args{"password": ""}, both(open)),
				run(t, tools.Merge(), nil, both(open)),
			} {
				if got := plainly(t, out); !strings.Contains(got, "hello") {
					t.Errorf("text %q", got)
				}
			}
			reset := run(t, tools.ResetPassword(), fileops.Args{"old_password": "user", "new_password": "new"}, both(locked))
			if got := text(t, reset, "-upw", "new"); !strings.Contains(got, "hello") {
				t.Errorf("after reset: text %q", got)
			}
		})
	}
}

// An attached encrypted PDF file does not make its container encrypted.
func TestEncryptedAttachment(t *testing.T) {
	t.Parallel()
	inner := encrypted(t, simple("inner"), "user", "boss", "128", "--use-aes=y")
	outer := handmade("1.7",
		"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles<</Names[(a.pdf) 5 0 R]>>>>>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Resources<<>>>>",
		stream("/Type/EmbeddedFile", string(inner)),
		"<</Type/Filespec/F(a.pdf)/UF(a.pdf)/EF<</F 4 0 R>>>>")
	in := pdf("outer.pdf", outer)
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, fileops.ErrNotEncrypted, tools.Unlock(), fileops.Args{"password": "user"}, in)
			for _, a := range []fileops.Action{tools.Compress(), tools.Merge()} {
				out := run(t, a, nil, in)
				if got := shell(t, "qpdf", "--show-attachment=a.pdf", save(t, out)); got != string(inner) {
					t.Errorf("%s: an attachment of %d bytes, want %d", a.Spec().Name, len(got), len(inner))
				}
			}
		})
	}
}

// The size of an attachment is in bytes and not a number of objects.
func TestLargeAttachment(t *testing.T) {
	t.Parallel()
	attachment := pdf("large.bin", bytes.Repeat([]byte("0123456789abcdef"), 9<<20/16))
	in, out := save(t, pdf("in.pdf", simple("hello"))), save(t, pdf("out.pdf", nil))
	shell(t, "qpdf", in, "--add-attachment", save(t, attachment), "--key=large.bin", "--", out)
	f := fileops.Path(out)
	want := string(content(t, attachment))
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for action, made := range map[string]*fileops.File{
				"compress": run(t, tools.Compress(), nil, f),
				"merge":    run(t, tools.Merge(), nil, f, pdf("b.pdf", simple("second"))),
				"lock":     run(t, tools.Lock(), fileops.Args{"password": "p"}, f),
			} {
				if got, err := withPassword(t, made, "p", "--show-attachment=large.bin"); err != nil || got != want {
					t.Errorf("%s: an attachment of %d bytes, want %d: %v", action, len(got), len(want), err)
				}
			}
		})
	}
}
