package pdfops_test

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// revisions maps names of encryption revisions to qpdf's arguments.
var revisions = map[string][]string{
	"R2 RC4 40": {"40"}, "R3 RC4 128": {"128", "--use-aes=n"}, "R4 RC4": {"128", "--force-V4"}, "R4 AES": {"128", "--use-aes=y"},
	"R5 AES 256": {"256", "--force-R5"}, "R6 AES 256": {"256"},
}

// hexFile encrypts with passwords given as bytes.
func hexFile(t *testing.T, plain []byte, user, owner string, kind ...string) []byte {
	t.Helper()
	return encryptedWith(t, plain, []string{"--password-mode=hex-bytes"}, append([]string{fmt.Sprintf("%x", user), fmt.Sprintf("%x", owner)}, kind...)...)
}

func encryptedWith(t *testing.T, plain []byte, before []string, args ...string) []byte {
	t.Helper()
	in, out := save(t, pdf("in.pdf", plain)), filepath.Join(t.TempDir(), "out.pdf")
	all := append(append(append(before, "--allow-weak-crypto", "--encrypt"), args...), "--", in, out)
	shell(t, "qpdf", all...)
	b := systest.ReadFile(t, out)
	return b
}

// The password opens a file in every revision and in every encoding of the
// password, with qpdf and without. No other password does.
func TestPasswords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 20)
	for i, tt := range []struct {
		name        string
		user, owner string   // as bytes in the file
		typed       []string // what users type
		wrong       []string
		modern      bool // only since revision 5
		old         bool // only up to revision 4
	}{
		{name: "one for both", user: "same", owner: "same", typed: []string{"same"}, wrong: []string{"", "same "}},
		{name: "owner alone", owner: "boss", typed: []string{"", "boss"}, wrong: []string{"x"}},
		{name: "user alone", user: "me", owner: "", typed: []string{"me"}, wrong: []string{"you", "m"}},
		{name: "UTF-8", user: "grün", owner: "10 €", typed: []string{"grün", "10 €", "gru\u0308n"}, wrong: []string{"grun", "gr?n"}},
		{name: "decomposed", user: "cafe\u0301", owner: "o", typed: []string{"cafe\u0301"}, wrong: []string{"cafe"}},
		{name: "prepared", user: "café fine x", owner: "o", typed: []string{"cafe\u0301 \ufb01ne\u00a0x", "café ﬁne x", "ca\u00adfé fine x"}, wrong: []string{"cafe fine x"}, modern: true},
		{name: "PDFDocEncoding", user: "gr\xfcn \xa0", owner: "\x93x", typed: []string{"grün €", "\ufb01x"}, wrong: []string{"grün"}, old: true},
		{name: "Latin-1", user: "na\xefve", owner: "o", typed: []string{"naïve", "nai\u0308ve"}, wrong: []string{"naive"}, old: true},
		{name: "Cyrillic", user: "пароль", owner: "ключ", typed: []string{"пароль", "ключ"}, wrong: []string{"??????", "Пароль"}},
		{name: "emoji", user: "key 🔑", owner: "👪", typed: []string{"key 🔑", "👪"}, wrong: []string{"key", "key ?"}},
		{name: "punctuation", user: `--"'$(x)@`, owner: "@file", typed: []string{`--"'$(x)@`, "@file"}, wrong: []string{"x"}},
		{name: "32 bytes count", user: long[:32], owner: "o", typed: []string{long[:32], long[:40]}, wrong: []string{long[:31]}, old: true},
		{name: "127 bytes count", user: long[:127], owner: "o", typed: []string{long[:127], long[:150]}, wrong: []string{long[:126]}, modern: true},
	} {
		kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(revisions)), func(kind string) bool {
			modern := revisions[kind][0] == "256"
			return modern && tt.old || !modern && tt.modern
		})
		for j, kind := range kinds {
			if !cell(i, j, len(kinds)) {
				continue
			}
			args := revisions[kind]
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				if tt.owner == "" && args[0] == "256" {
					args = append(args[:len(args):len(args)], "--allow-insecure")
				}
				in := pdf("locked.pdf", hexFile(t, simple("hello"), tt.user, tt.owner, args...))
				for name, tools := range variants(t) {
					for i, p := range tt.typed {
						out := run(t, tools.Unlock(), fileops.Args{"password": p}, in)
						if i > 0 {
							continue // same result
						}
						if show := shell(t, "qpdf", "--show-encryption", save(t, out)); !strings.Contains(show, "File is not encrypted") {
							t.Errorf("%s, %q: %s", name, p, show)
						}
						if got := text(t, out); !strings.Contains(got, "hello") {
							t.Errorf("%s, %q: text %q", name, p, got)
						}
					}
					for _, p := range tt.wrong {
						fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": p}, in)
					}
					fails(t, fileops.ErrWrongPassword, tools.ResetPassword(), fileops.Args{"old_password": tt.wrong[0], "new_password": "new"}, in)
					reset := run(t, tools.ResetPassword(), fileops.Args{"old_password": tt.typed[0], "new_password": "new"}, in)
					if show, err := withPassword(t, reset, "new", "--show-encryption"); err != nil || !strings.Contains(show, "R = 6\n") {
						t.Errorf("%s: after reset: %v\n%s", name, err, show)
					}
					if got := text(t, reset, "-upw", "new"); !strings.Contains(got, "hello") {
						t.Errorf("%s: after reset: text %q", name, got)
					}
				}
			})
		}
	}
}

// Resetting a password keeps the restrictions, even those of an old revision
// with fewer permission bits.
func TestResetKeepsPermissions(t *testing.T) {
	t.Parallel()
	for kind, args := range revisions {
		forbid := []string{"--modify=none", "--extract=n"}
		if kind == "R2 RC4 40" {
			forbid = []string{"--modify=n", "--extract=n"}
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			in := pdf("a.pdf", encrypted(t, simple("x"), append(append([]string{"user", "owner"}, args...), forbid...)...))
			for name, tools := range variants(t) {
				out := run(t, tools.ResetPassword(), fileops.Args{"old_password": "user", "new_password": "new"}, in)
				show, err := withPassword(t, out, "new", "--show-encryption")
				systest.NoError(t, err)
				for _, want := range []string{"R = 6\n", "extract for any purpose: not allowed", "modify other: not allowed", "modify document assembly: not allowed", "print low resolution: allowed"} {
					if !strings.Contains(show, want) {
						t.Errorf("%s: lacks %q:\n%s", name, want, show)
					}
				}
			}
		})
	}
}

// Files encrypted by other programs open too.
func TestPasswordsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	files := make(map[string]*fileops.File)
	// An embedding program may use pdfcpu itself while our actions run. If both
	// read the same global variable, the race detector reports it.
	api.DisableConfigDir()
	for name, conf := range map[string]*model.Configuration{
		"pdfcpu AES 256": model.NewAESConfiguration("user", "owner", 256), "pdfcpu AES 128": model.NewAESConfiguration("user", "owner", 128),
		"pdfcpu RC4 128": model.NewRC4Configuration("user", "owner", 128), "pdfcpu RC4 40": model.NewRC4Configuration("user", "owner", 40),
	} {
		var b bytes.Buffer
		if err := api.Encrypt(bytes.NewReader(simple("hello")), &b, conf); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files[name] = pdf("a.pdf", b.Bytes())
	}
	b := officeExport(t, "a.txt", "hello", `"EncryptFile":{"type":"boolean","value":"true"},"DocumentOpenPassword":{"type":"string","value":"user"},`+
		`"RestrictPermissions":{"type":"boolean","value":"true"},"PermissionPassword":{"type":"string","value":"owner"}`)
	files["LibreOffice"] = pdf("a.pdf", b)
	for name, in := range files {
		for label, tools := range variants(t) {
			for _, p := range []string{"user", "owner"} {
				if got := text(t, run(t, tools.Unlock(), fileops.Args{"password": p}, in)); !strings.Contains(got, "hello") {
					t.Errorf("%s, %s, %s: text %q", name, label, p, got)
				}
			}
			fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": ""}, in)
			fails(t, fileops.ErrPasswordRequired, tools.Lock(), fileops.Args{"password": "new"}, in)
		}
	}
}

// A damaged encryption dictionary is reported as an error of the file.
func TestDamagedEncryption(t *testing.T) {
	t.Parallel()
	entry := func(key, with string) func([]byte) []byte {
		return func(b []byte) []byte {
			return regexp.MustCompile(key+` ?(<[0-9a-f]*>|\((\\.|[^\\)])*\)|-?[0-9]+)`).ReplaceAll(b, []byte(with))
		}
	}
	changes := map[string]func([]byte) []byte{
		"no owner entry": entry("/O", ""), "short owner entry": entry("/O", "/O <00>"), "short user entry": entry("/U", "/U <0011>"),
		"revision 0": entry("/R", "/R 0"), "revision 99": entry("/R", "/R 99"), "no revision": entry("/R", ""),
		"a reference to nothing": func(b []byte) []byte {
			return regexp.MustCompile(`/Encrypt \d+ 0 R`).ReplaceAll(b, []byte("/Encrypt 9999 0 R"))
		},
	}
	kinds := map[string][]string{"R3": {"128", "--use-aes=n"}, "R6": {"256"}}
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		for j, kind := range slices.Sorted(maps.Keys(kinds)) {
			if !cell(i, j, len(kinds)) {
				continue
			}
			change, args := changes[name], kinds[kind]
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				whole := encrypted(t, simple("whole"), append([]string{"user", "owner"}, args...)...)
				b := change(whole)
				if bytes.Equal(b, whole) {
					t.Fatal("not changed")
				}
				for label, tools := range variants(t) {
					for _, a := range []fileops.Action{tools.Unlock(), tools.ResetPassword(), tools.Lock(), tools.Compress(), tools.Merge()} {
						call := map[string]fileops.Args{
							"unlock": {"password": "user"}, "reset_password": {"old_password": "user", "new_password": "x"}, "lock": {"password": "x"},
						}[a.Spec().Name]
						in := []*fileops.File{pdf("a.pdf", b)}
						if a.Spec().Joint {
							in = append(in, pdf("b.pdf", simple("y")))
						}
						out, err := try(t.Context(), t, a, call, in...)
						if err == nil && a.Spec().Name != "lock" { // this password does not need the damaged part
							if got := text(t, out[0], "-upw", "x"); !strings.Contains(got, "whole") {
								t.Errorf("%s %s: text %q", label, a.Spec().Name, got)
							}
							continue
						}
						switch code := fileops.Code(err); code {
						case "corrupt_input", "unsupported_input", "wrong_password", "password_required":
						default:
							t.Errorf("%s %s: %v (%s)", label, a.Spec().Name, err, code)
						}
					}
				}
			})
		}
	}
}

// A new password must not exceed the significant length.
func TestPasswordTooLong(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", simple("x"))
	for _, a := range []fileops.Action{pdfops.Lock(), pdfops.ResetPassword()} {
		for _, p := range []string{strings.Repeat("x", 128), strings.Repeat("é", 64), strings.Repeat("🔑", 32)} {
			args := fileops.Args{"password": p}
			if a.Spec().Name == "reset_password" {
				args = fileops.Args{"old_password": "x", "new_password": p}
			}
			if _, err := try(t.Context(), t, a, args, in); err == nil || fileops.Code(err) == "limit_exceeded" {
				t.Errorf("%s with %d bytes: %v", a.Spec().Name, len(p), err)
			}
		}
	}
}
