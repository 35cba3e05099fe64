package archiveops_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// zipped packs a folder with 7-Zip as a ZIP archive.
func zipped(t testing.TB, dir string, args ...string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.zip")
	tool(t, "7z", append(append([]string{"a", "-bd", "-tzip"}, args...), path, dir+"/.")...)
	b := systest.ReadFile(t, path)
	return fileops.Bytes("in.zip", b)
}

// extracted returns the content of an encrypted archive, unpacked by 7-Zip.
func extracted(t testing.TB, f *fileops.File, password string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	tool(t, "7z", "x", "-bd", "-p"+password, "-o"+dir, save(t, f))
	out := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[name], err = os.ReadFile(path)
		return err
	})
	systest.NoError(t, err)
	return out
}

var secret = map[string][]byte{"a/b.txt": prose(200000), "noise.bin": noise(70000), "Äpfel 日本.txt": prose(900), "empty": {}, "one": []byte("1")}

func TestLock(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"x", "correct horse", "Pässwörd 日本 😀"} {
		in := zipped(t, tree(t, secret))
		out := mustRun(t, archiveops.Lock(nil), fileops.Args{"password": password}, in)
		if out.Name() != in.Name() {
			t.Errorf("the result is %s", out.Name())
		}
		same(t, extracted(t, out, password), secret)
		if msg, err := exec.CommandContext(t.Context(), "7z", "t", "-pwrong", save(t, out)).CombinedOutput(); err == nil || !bytes.Contains(msg, []byte("Wrong password")) {
			t.Errorf("7z takes another password: %v", err)
		}
		_, before := inspect(t, in)
		_, after := inspect(t, out, "encrypted")
		for i, e := range after {
			if b := before[i]; e.Name != b.Name || e.Size != b.Size || fmt.Sprint(e.Time) != fmt.Sprint(b.Time) || e.External != b.External {
				t.Errorf("%+v became %+v", b, e)
			}
			if !strings.HasSuffix(e.Name, "/") && (e.Method != 99 || e.Flags&1 == 0) {
				t.Errorf("%s is not encrypted", e.Name)
			}
		}
		if _, err := run(t.Context(), archiveops.Lock(nil), fileops.Args{"password": "y"}, out); !errors.Is(err, fileops.ErrPasswordRequired) {
			t.Errorf("locked twice: %v", err)
		}
		back := mustRun(t, archiveops.Unlock(nil), fileops.Args{"password": password}, out)
		same(t, unpacked(t, back), secret) // Info-ZIP verifies all checksums
		if back.Size() != in.Size() && back.Size() > in.Size()+1000 {
			t.Errorf("%d bytes became %d", in.Size(), back.Size())
		}
	}
}

// TestUnlock opens archives locked by other programs.
// A locked archive is readable: an entry whose sizes or checksum are wrong is reported before.
func TestDamagedEntries(t *testing.T) {
	t.Parallel()
	packed := bytes.Repeat([]byte("x"), 12) // of no compression, in the first and only entry
	for name, change := range map[string]func(h *zip.FileHeader){
		"stored, longer": func(h *zip.FileHeader) { h.Method, h.UncompressedSize64 = zip.Store, 13 },
		"checksum":       func(h *zip.FileHeader) { h.Method, h.CRC32 = zip.Store, 1 },
		"deflated":       func(h *zip.FileHeader) { h.Method = zip.Deflate },
	} {
		h := &zip.FileHeader{Name: "a.txt", CompressedSize64: 12, UncompressedSize64: 12, CRC32: crc32.ChecksumIEEE(packed)}
		change(h)
		var b bytes.Buffer
		zw := zip.NewWriter(&b)
		w, err := zw.CreateRaw(h)
		if err == nil {
			_, err = w.Write(packed)
		}
		if err = errors.Join(err, zw.Close()); err != nil {
			t.Fatal(err)
		}
		for action, a := range map[string]fileops.Action{"lock": archiveops.Lock(nil), "compress": archiveops.Compress(nil)} {
			args := fileops.Args{}
			if action == "lock" {
				args["password"] = "sesame"
			}
			if _, err := run(t.Context(), a, args, fileops.Bytes("in.zip", b.Bytes())); !errors.Is(err, fileops.ErrCorruptInput) {
				t.Errorf("%s %s: %v", action, name, err)
			}
		}
	}
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	dir := tree(t, secret)
	infoZIP := func(args ...string) *fileops.File {
		path := filepath.Join(t.TempDir(), "in.zip")
		cmd := exec.CommandContext(t.Context(), "zip", append(append([]string{"-qr"}, args...), path, ".")...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b := systest.ReadFile(t, path)
		return fileops.Bytes("in.zip", b)
	}
	for name, in := range map[string]*fileops.File{
		"aes 256":           zipped(t, dir, "-psesame", "-mem=AES256"),
		"aes 192":           zipped(t, dir, "-psesame", "-mem=AES192"),
		"aes 128, stored":   zipped(t, dir, "-psesame", "-mem=AES128", "-mx=0"),
		"traditional":       zipped(t, dir, "-psesame", "-mem=ZipCrypto"),
		"Info-ZIP":          infoZIP("-P", "sesame"),
		"Info-ZIP, stored":  infoZIP("-0", "-P", "sesame"),
		"own":               mustRun(t, archiveops.Lock(nil), fileops.Args{"password": "sesame"}, zipped(t, dir)),
		"bzip2 traditional": zipped(t, dir, "-psesame", "-mem=ZipCrypto", "-mm=bzip2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := mustRun(t, archiveops.Unlock(nil), fileops.Args{"password": "sesame"}, in)
			same(t, unpacked(t, out), secret)
			if _, entries := inspect(t, out); len(entries) < len(secret) {
				t.Errorf("%d entries", len(entries))
			}
			for _, pw := range []string{"open", "", "Sesame"} {
				if _, err := run(t.Context(), archiveops.Unlock(nil), fileops.Args{"password": pw}, in); !errors.Is(err, fileops.ErrWrongPassword) {
					t.Errorf("password %q: %v", pw, err)
				}
			}
			again := mustRun(t, archiveops.ResetPassword(nil), fileops.Args{"old_password": "sesame", "new_password": "neu"}, in)
			same(t, extracted(t, again, "neu"), secret)
			if listing := tool(t, "7z", "l", "-slt", save(t, again)); strings.Count(listing, "AES-256") != len(secret) {
				t.Errorf("not all is under AES-256:\n%s", listing)
			}
			if _, err := run(t.Context(), archiveops.ResetPassword(nil), fileops.Args{"old_password": "x", "new_password": "neu"}, in); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("reset with a wrong password: %v", err)
			}
		})
	}
}

// TestUnlockOldCodePage opens an archive of a program without Unicode.
func TestUnlockOldCodePage(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string][]byte{"a.txt": prose(3000)})
	path := filepath.Join(t.TempDir(), "in.zip")
	cmd := exec.CommandContext(t.Context(), "zip", "-qr", "-P", "gr\x81n", path, ".") // "grün" in code page 437
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := mustRun(t, archiveops.Unlock(nil), fileops.Args{"password": "grün"}, fileops.Path(path))
	same(t, unpacked(t, out), map[string][]byte{"a.txt": prose(3000)})
}

func TestUnlockRefuses(t *testing.T) {
	t.Parallel()
	plain := zipped(t, tree(t, secret))
	locked := mustRun(t, archiveops.Lock(nil), fileops.Args{"password": "sesame"}, plain)
	args := fileops.Args{"password": "sesame"}
	for _, a := range []fileops.Action{archiveops.Unlock(nil), archiveops.ResetPassword(nil)} {
		in := args
		if a.Spec().Name == "reset_password" {
			in = fileops.Args{"old_password": "sesame", "new_password": "x"}
		}
		if _, err := run(t.Context(), a, in, plain); !errors.Is(err, fileops.ErrNotEncrypted) {
			t.Errorf("%s: %v", a.Spec().Name, err)
		}
	}
	// Every byte of the content is authenticated.
	b := mustBytes(t, locked)
	for i := range 5 {
		bad := bytes.Clone(b)
		bad[400+i*16000] ^= 1
		if _, err := run(t.Context(), archiveops.Unlock(nil), args, fileops.Bytes("in.zip", bad)); !errors.Is(err, fileops.ErrCorruptInput) {
			t.Errorf("damaged at %d: %v", 400+i*16000, err)
		}
	}
	bomb := mustRun(t, archiveops.Lock(nil), args, zipped(t, tree(t, map[string][]byte{"zeros": make([]byte, 60<<20)})))
	if _, err := run(t.Context(), archiveops.Unlock(nil), args, bomb); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("bomb: %v", err)
	}
	if _, err := run(t.Context(), archiveops.Unlock(&archiveops.Limits{Unpacked: 1000}), args, locked); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too large: %v", err)
	}
}

func TestLockConformance(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{
		Action: archiveops.Lock(nil), Args: map[string]any{"password": "sesame"},
		Fixture: func(t testing.TB, _ format.Format) *fileops.File { return zipped(t, tree(t, secret)) },
	})
}
