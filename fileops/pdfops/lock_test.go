package pdfops_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// withPassword returns qpdf's output for a file and a password.
func withPassword(t *testing.T, f *fileops.File, password string, args ...string) (string, error) {
	t.Helper()
	p := save(t, f)
	key := filepath.Join(t.TempDir(), "key")
	systest.NoError(t, os.WriteFile(key, []byte(password), 0o600))
	return systest.Output(t, "qpdf", append([]string{"--password-file=" + key, p}, args...)...)
}

func text(t *testing.T, f *fileops.File, args ...string) string {
	t.Helper()
	return shell(t, "pdftotext", append(args, save(t, f), "-")...)
}

func TestLock(t *testing.T) {
	t.Parallel()
	passwords := map[string]string{
		"plain": "s3cret", "space": "correct horse battery", "dashes": "--help", "accents": "pässwörd é",
		"cyrillic": "пароль", "emoji": "key 🔑", "line break": "a\nb", "long": strings.Repeat("x", 127),
	}
	for i, name := range []string{"pure", "qpdf"} {
		tools := variants(t)[name]
		for j, label := range slices.Sorted(maps.Keys(passwords)) {
			if !cell(i, j, 2) {
				continue
			}
			password := passwords[label]
			t.Run(name+"/"+label, func(t *testing.T) {
				t.Parallel()
				in := pdf("my report.pdf", rich("hello"))
				out := run(t, tools.Lock(), fileops.Args{"password": password}, in)
				if out.Name() != "my report.pdf" {
					t.Errorf("name %q", out.Name())
				}
				fails(t, fileops.ErrPasswordRequired, tools.Lock(), fileops.Args{"password": "x"}, out)
				plain := run(t, tools.Unlock(), fileops.Args{"password": password}, out)
				sound(t, plain)
				if got, want := summarize(t, plain), summarize(t, in); got != want {
					t.Errorf("after unlocking: %+v, want %+v", got, want)
				}
				if strings.Contains(password, "\n") {
					return // qpdf reads a single line
				}
				show, err := withPassword(t, out, password, "--show-encryption")
				systest.NoError(t, err)
				for _, want := range []string{
					"R = 6\n", "Supplied password is user password\n", "modify anything: allowed", "extract for any purpose: allowed",
					"print high resolution: allowed", "stream encryption method: AESv3", "string encryption method: AESv3",
				} {
					if !strings.Contains(show, want) {
						t.Errorf("--show-encryption lacks %q:\n%s", want, show)
					}
				}
				if _, err := withPassword(t, out, password, "--check"); err != nil {
					t.Error(err)
				}
				for _, wrong := range []string{"", password + "x"} {
					if _, err := withPassword(t, out, wrong[:min(len(wrong), 126)], "--check"); err == nil {
						t.Errorf("opens with %q", wrong)
					}
				}
				if len(password) > 32 {
					return // pdftotext takes no longer password
				}
				if got := text(t, out, "-upw", password); !strings.Contains(got, "hello") {
					t.Errorf("poppler reads %q", got)
				}
			})
		}
	}
}

func TestLockPrepares(t *testing.T) {
	t.Parallel()
	// The same password, typed with a combining accent, a ligature and a no-break
	// space. It must also open for users who type it plainly, and in programs that
	// do not normalize passwords.
	const odd, plain = "cafe\u0301 \ufb01ne\u00a0x", "café fine x"
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, tools.Lock(), fileops.Args{"password": odd}, pdf("a.pdf", simple("x")))
			for _, pw := range []string{odd, plain} {
				if _, err := withPassword(t, out, pw, "--check"); err != nil {
					t.Errorf("%q: %v", pw, err)
				}
				run(t, tools.Unlock(), fileops.Args{"password": pw}, out)
			}
			// A file that was locked without normalization opens too.
			raw := encrypted(t, simple("x"), odd, "owner", "256")
			run(t, tools.Unlock(), fileops.Args{"password": odd}, pdf("a.pdf", raw))
		})
	}
}

func TestLockOwner(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, tools.Lock(), fileops.Args{"password": "user", "owner_password": "boss", "permissions": "print"}, pdf("a.pdf", simple("x")))
			show, err := withPassword(t, out, "boss", "--show-encryption")
			systest.NoError(t, err)
			for _, want := range []string{
				"Supplied password is owner password", "modify anything: not allowed", "extract for any purpose: not allowed",
				"print high resolution: allowed", "extract for accessibility: allowed",
			} {
				if !strings.Contains(show, want) {
					t.Errorf("lacks %q:\n%s", want, show)
				}
			}
			run(t, tools.Unlock(), fileops.Args{"password": "boss"}, out)
		})
	}
}

// A small file is locked without qpdf. qpdf repairs a stream that is longer than its Length, so
// that no content is lost.
func TestLockSmall(t *testing.T) {
	t.Parallel()
	missing := pdfops.Tools{QPDF: &engine.Program{Name: "qpdf", Path: filepath.Join(t.TempDir(), "qpdf")}}
	run(t, missing.Lock(), fileops.Args{"password": "x"}, pdf("a.pdf", simple("hello")))

	tools := variants(t)["qpdf"]
	lying := bytes.Replace(simple("hello"), []byte("/Length 35"), []byte("/Length 12"), 1)
	if !bytes.Contains(lying, []byte("/Length 12")) {
		t.Fatal("the file has no length")
	}
	if _, err := try(t.Context(), t, missing.Lock(), fileops.Args{"password": "x"}, pdf("a.pdf", lying)); err == nil {
		t.Error("a damaged file was locked without qpdf")
	}
	if got := text(t, run(t, tools.Lock(), fileops.Args{"password": "x"}, pdf("a.pdf", lying)), "-upw", "x"); !strings.Contains(got, "hello") {
		t.Errorf("text %q", got)
	}
}

// unlock and reset_password do without qpdf for a sound file in AES-256. They run it once for an older
// encryption, and find out more about damaged files.
func TestRunsOfQPDF(t *testing.T) {
	t.Parallel()
	sound := encrypted(t, simple("hello"), "user", "owner", "256")
	older := encrypted(t, simple("hello"), "user", "owner", "128", "--use-aes=y")
	damaged := bytes.Replace(sound, []byte("startxref"), []byte("startxxxx"), 1)
	for name, action := range map[string]func(pdfops.Tools) (fileops.Action, fileops.Args){
		"unlock": func(tools pdfops.Tools) (fileops.Action, fileops.Args) {
			return tools.Unlock(), fileops.Args{"password": "user"}
		},
		"reset": func(tools pdfops.Tools) (fileops.Action, fileops.Args) {
			return tools.ResetPassword(), fileops.Args{"old_password": "user", "new_password": "new"}
		},
	} {
		for _, tt := range []struct {
			name        string
			file        []byte
			least, most int // runs of qpdf
		}{{"sound", sound, 0, 0}, {"older", older, 1, 1}, {"damaged", damaged, 2, 10}} {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				log, script := filepath.Join(dir, "log"), filepath.Join(dir, "qpdf")
				systest.WriteScript(t, script, "#!/bin/sh\necho run >> '"+log+"'\nexec qpdf \"$@\"\n")
				a, args := action(pdfops.Tools{QPDF: &engine.Program{Name: "qpdf", Path: script}})
				out := run(t, a, args, pdf("a.pdf", tt.file))
				if got := text(t, out, "-upw", "new"); !strings.Contains(got, "hello") {
					t.Errorf("text %q", got)
				}
				b, err := os.ReadFile(log)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if n := bytes.Count(b, []byte("run")); n < tt.least || n > tt.most {
					t.Errorf("qpdf ran %d times, want %d to %d", n, tt.least, tt.most)
				}
			})
		}
	}
}

func TestLockEncrypted(t *testing.T) {
	t.Parallel()
	free := encrypted(t, simple("x"), "", "owner", "128", "--use-aes=y")
	restricted := encrypted(t, simple("x"), "", "owner", "256", "--modify=none")
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, tools.Lock(), fileops.Args{"password": "new"}, pdf("a.pdf", free))
			show, err := withPassword(t, out, "new", "--show-encryption")
			if err != nil || !strings.Contains(show, "R = 6") {
				t.Errorf("%v\n%s", err, show)
			}
			// Restrictions stay, in addition to new ones.
			out = run(t, tools.Lock(), fileops.Args{"password": "new"}, pdf("a.pdf", restricted))
			both := run(t, tools.Lock(), fileops.Args{"password": "new", "permissions": "print"}, pdf("a.pdf", restricted))
			for f, want := range map[*fileops.File][]string{
				out:  {"R = 6", "user password", "modify anything: not allowed", "extract for any purpose: allowed", "print high resolution: allowed"},
				both: {"R = 6", "user password", "modify anything: not allowed", "extract for any purpose: not allowed", "print high resolution: allowed"},
			} {
				show, err := withPassword(t, f, "new", "--show-encryption")
				systest.NoError(t, err)
				for _, line := range want {
					if !strings.Contains(show, line) {
						t.Errorf("lacks %q:\n%s", line, show)
					}
				}
			}
		})
	}
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	kinds := map[string][]string{
		"R2 RC4 40":        {"40"},
		"R3 RC4 128":       {"128", "--use-aes=n"},
		"R4 RC4":           {"128", "--force-V4"},
		"R4 AES":           {"128", "--use-aes=y"},
		"R4 AES plain XMP": {"128", "--use-aes=y", "--cleartext-metadata"},
		"R5 AES 256":       {"256", "--force-R5"},
		"R6 AES 256":       {"256"},
		"R6 plain XMP":     {"256", "--cleartext-metadata"},
	}
	passwords := map[string][2]string{
		"ascii": {"user", "owner"}, "space": {"my user", "my owner"}, "latin": {"grün", "blåbær"},
		"euro": {"10 €", "20 €"}, "no user": {"", "owner"},
	}
	for name, tools := range variants(t) {
		for i, kind := range slices.Sorted(maps.Keys(kinds)) {
			for j, pw := range slices.Sorted(maps.Keys(passwords)) {
				if !cell(i, j, len(passwords)) {
					continue
				}
				args, both := kinds[kind], passwords[pw]
				t.Run(name+"/"+kind+"/"+pw, func(t *testing.T) {
					t.Parallel()
					plain := rich("hello")
					in := pdf("locked.pdf", encrypted(t, plain, append([]string{both[0], both[1]}, args...)...))
					for _, p := range both {
						out := run(t, tools.Unlock(), fileops.Args{"password": p}, in)
						sound(t, out)
						if show := shell(t, "qpdf", "--show-encryption", save(t, out)); !strings.Contains(show, "File is not encrypted") {
							t.Errorf("result: %s", show)
						}
						if got, want := summarize(t, out), summarize(t, pdf("p.pdf", plain)); got != want {
							t.Errorf("%+v, want %+v", got, want)
						}
						if got := text(t, out); !strings.Contains(got, "hello") {
							t.Errorf("text %q", got)
						}
						if got := shell(t, "qpdf", "--show-attachment=note.txt", save(t, out)); got != "note of hello" {
							t.Errorf("attachment %q", got)
						}
					}
					fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": "wrong"}, in)
					if both[0] != "" {
						fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": ""}, in)
					}
				})
			}
		}
		t.Run(name+"/plain", func(t *testing.T) {
			t.Parallel()
			fails(t, fileops.ErrNotEncrypted, tools.Unlock(), fileops.Args{"password": "x"}, pdf("a.pdf", simple("x")))
			fails(t, fileops.ErrNotEncrypted, tools.ResetPassword(), fileops.Args{"old_password": "x", "new_password": "y"}, pdf("a.pdf", simple("x")))
		})
		t.Run(name+"/certificates", func(t *testing.T) {
			t.Parallel()
			b := bytes.Replace(simple("x"), []byte("/Root 1 0 R"), []byte("/Root 1 0 R/Encrypt<</Filter/Adobe.PubSec/V 4/Length 128/SubFilter/adbe.pkcs7.s5>>/ID[<00><00>]"), 1)
			fails(t, fileops.ErrUnsupportedInput, tools.Unlock(), fileops.Args{"password": "x"}, pdf("a.pdf", b))
		})
		t.Run(name+"/damaged", func(t *testing.T) {
			t.Parallel()
			b := []byte("%PDF-1.4\nnothing to see here\n%%EOF\n")
			fails(t, fileops.ErrCorruptInput, tools.Unlock(), fileops.Args{"password": "x"}, pdf("a.pdf", b))
			fails(t, fileops.ErrCorruptInput, tools.Lock(), fileops.Args{"password": "x"}, pdf("a.pdf", b))
		})
	}
}

// A direct encryption dictionary is allowed, though rare.
func TestUnlockDirectDictionary(t *testing.T) {
	t.Parallel()
	b := encrypted(t, simple("direct"), "user", "owner", "128", "--use-aes=y")
	b = inlineEncrypt(t, b)
	for name, tools := range variants(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, tools.Unlock(), fileops.Args{"password": "user"}, pdf("a.pdf", b))
			if got := text(t, out); !strings.Contains(got, "direct") {
				t.Errorf("text %q", got)
			}
			fails(t, fileops.ErrPasswordRequired, tools.Compress(), nil, pdf("a.pdf", b))
		})
	}
}

// inlineEncrypt moves the encryption dictionary into the trailer.
func inlineEncrypt(t *testing.T, b []byte) []byte {
	t.Helper()
	ref := bytes.Index(b, []byte("/Encrypt "))
	end := ref + bytes.Index(b[ref:], []byte(" R")) + 2
	nr := bytes.Fields(b[ref:end])[1]
	obj := bytes.Index(b, append(append([]byte("\n"), nr...), []byte(" 0 obj\n")...))
	if ref < 0 || obj < 0 {
		t.Fatal("no encryption dictionary")
	}
	start := obj + bytes.Index(b[obj:], []byte("<<"))
	stop := obj + bytes.Index(b[obj:], []byte("endobj"))
	dict := bytes.TrimSpace(b[start:stop])
	out := append([]byte{}, b[:ref]...)
	out = append(append(out, "/Encrypt "...), dict...)
	return append(out, b[end:]...)
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		for kind, args := range map[string][]string{
			"R3": {"128", "--use-aes=n", "--modify=none", "--extract=n"},
			"R6": {"256", "--modify=none", "--extract=n"},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				in := pdf("a.pdf", encrypted(t, rich("hi"), append([]string{"old user", "old owner"}, args...)...))
				for _, old := range []string{"old user", "old owner"} {
					out := run(t, tools.ResetPassword(), fileops.Args{"old_password": old, "new_password": "new", "owner_password": "chief"}, in)
					show, err := withPassword(t, out, "new", "--show-encryption")
					systest.NoError(t, err)
					for _, want := range []string{"R = 6", "modify anything: not allowed", "extract for any purpose: not allowed", "print high resolution: allowed"} {
						if !strings.Contains(show, want) {
							t.Errorf("lacks %q:\n%s", want, show)
						}
					}
					if _, err := withPassword(t, out, "chief", "--check"); err != nil {
						t.Error(err)
					}
					if _, err := withPassword(t, out, old, "--check"); err == nil {
						t.Error("the old password still opens the file")
					}
				}
				fails(t, fileops.ErrWrongPassword, tools.ResetPassword(), fileops.Args{"old_password": "nope", "new_password": "new"}, in)
			})
		}
	}
}

func TestLockParams(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", simple("x"))
	for name, args := range map[string]fileops.Args{
		"none": nil, "empty": {"password": ""}, "too long": {"password": strings.Repeat("é", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := try(t.Context(), t, pdfops.Lock(), args, in); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// A trailer with /Encrypt is found wherever it is in a file, however the name is written.
func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"/Encrypt 5 0 R": true, "<</Encrypt<<": true, "/Encrypt": true, "/#45ncrypt ": true, "/Enc#72#79pt 1": true, "/#45#6e#63#72#79#70#74": true, "//Encrypt": true,
		"": false, "/": false, "Encrypt": false, "/Encryp": false, "/encrypt": false, "/#45#6e#63#72#79#70#7": false, "/#45ncryp#75": false, "/Enc#zzrypt": false, "/Root/Encry/pt": false,
	} {
		for _, before := range []int{0, 1, 64<<10 - 30, 64<<10 - 12, 64<<10 - 5, 64<<10 - 1, 64 << 10, 200_000} {
			all := strings.Repeat("/x", before)[:before] + " " + text
			for _, r := range []io.Reader{strings.NewReader(all), iotest.HalfReader(strings.NewReader(all + strings.Repeat(" /Size", 30_000)))} {
				if got, err := pdfops.Mentions(r, "Encrypt"); err != nil || got != want {
					t.Errorf("%d bytes and %q: %v, %v, want %v", before, text, got, err, want)
				}
			}
		}
	}
}
