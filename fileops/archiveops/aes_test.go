package archiveops_test

import (
	stdzip "archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/internal/systest"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"empty.txt": {}, "one.txt": []byte("x"), "fifteen.txt": []byte("123456789012345"), "sixteen.txt": []byte("1234567890123456"),
		"prose.txt": prose(3<<20 + 5), "noise.bin": noise(2<<20 + 1), "block.txt": prose(1 << 20), "small.bin": noise(40001), "Äpfel 日本.txt": prose(5000),
	}
	var in []*fileops.File
	for name, b := range files {
		in = append(in, fileops.Bytes(name, b))
	}
	for name, password := range map[string]string{
		"ascii": "correct horse!", "one byte": "x", "unicode": "Pässwörd 日本 😀", "long": strings.Repeat("0123456789a", 9),
	} {
		for _, level := range []string{"store", "default"} {
			t.Run(name+" "+level, func(t *testing.T) {
				t.Parallel()
				out := mustRun(t, archiveops.Zip(), fileops.Args{"password": password, "level": level}, in...)
				path := save(t, out)
				tool(t, "7z", "t", "-p"+password, path)
				dir := t.TempDir()
				tool(t, "7z", "x", "-p"+password, "-o"+dir, path)
				for name, want := range files {
					if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %d bytes, want %d (%v)", name, len(got), len(want), err)
					}
				}
				if msg, err := exec.CommandContext(t.Context(), "7z", "t", "-p"+password+"?", path).CombinedOutput(); err == nil || !bytes.Contains(msg, []byte("Wrong password")) {
					t.Errorf("7z takes another password: %v\n%s", err, msg)
				}
				if listing := tool(t, "7z", "l", "-slt", path); strings.Count(listing, "AES-256") != len(files) || strings.Count(listing, "Encrypted = +") != len(files) {
					t.Errorf("not all are encrypted:\n%s", listing)
				}
				// Python compares the local headers with the directory.
				_, entries := inspect(t, out, "encrypted")
				for i, e := range entries {
					if e.Name != in[i].Name() || e.Method != 99 || e.Flags&1 == 0 || e.Size != in[i].Size() {
						t.Errorf("%+v", e)
					}
				}
				b, _ := out.Bytes()
				zr, err := stdzip.NewReader(bytes.NewReader(b), int64(len(b)))
				systest.NoError(t, err)
				for _, f := range zr.File {
					// AE-2 and 256 bits; a checksum would reveal the content.
					if f.CRC32 != 0 || f.ReaderVersion != 51 || !bytes.Contains(f.Extra, []byte("\x01\x99\x07\x00\x02\x00AE\x03")) {
						t.Errorf("%s: checksum %08x, version %d, extra field %x", f.Name, f.CRC32, f.ReaderVersion, f.Extra)
					}
				}
				if bytes.Contains(b, noise(64)) {
					t.Error("content is readable")
				}
			})
		}
	}
}

// TestPasswordDamage changes a byte of the content. The authentication code must
// detect it.
func TestPasswordDamage(t *testing.T) {
	t.Parallel()
	out := mustRun(t, archiveops.Zip(), fileops.Args{"password": "secret"}, fileops.Bytes("a.bin", noise(5000)))
	b, _ := out.Bytes()
	b = bytes.Clone(b)
	b[3000] ^= 1
	if msg, err := exec.CommandContext(t.Context(), "7z", "t", "-psecret", save(t, fileops.Bytes("a.zip", b))).CombinedOutput(); err == nil {
		t.Errorf("7z finds nothing:\n%s", msg)
	}
}

func TestPasswordSaltsDiffer(t *testing.T) {
	t.Parallel()
	same := fileops.Bytes("a.bin", noise(1000))
	b, _ := mustRun(t, archiveops.Zip(), fileops.Args{"password": "secret"}, same, same).Bytes()
	zr, err := stdzip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	var raw [2][]byte
	for i, f := range zr.File {
		r, err := f.OpenRaw()
		systest.NoError(t, err)
		if raw[i], err = io.ReadAll(r); err != nil || len(raw[i]) != 1028 {
			t.Fatalf("%d bytes, %v", len(raw[i]), err)
		}
	}
	if bytes.Equal(raw[0][:16], raw[1][:16]) || bytes.Equal(raw[0][18:34], raw[1][18:34]) {
		t.Error("two entries have the same salt or key")
	}
}

func TestPasswordLength(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", strings.Repeat("x", 100)} {
		var bad *fileops.ParamError
		if _, err := run(t.Context(), archiveops.Zip(), fileops.Args{"password": password}, fileops.Bytes("a", nil)); !errors.As(err, &bad) || bad.Param != "password" {
			t.Errorf("%d bytes: %v", len(password), err)
		}
	}
}

// TestCompressKeepsEncrypted checks that compress copies entries that it cannot
// read.
func TestCompressKeepsEncrypted(t *testing.T) {
	t.Parallel()
	in := mustRun(t, archiveops.Zip(), fileops.Args{"password": "secret", "level": "store"}, fileops.Bytes("a.txt", prose(90000)))
	tool(t, "7z", "t", "-psecret", save(t, mustRun(t, archiveops.Compress(nil), nil, in)))
}

func BenchmarkZipPassword(b *testing.B) {
	var in []*fileops.File
	var size int64
	for i := range 20 {
		in = append(in, fileops.Bytes(fmt.Sprintf("%d.bin", i), noise(2<<20)))
		size += 2 << 20
	}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := run(b.Context(), archiveops.Zip(), fileops.Args{"password": "secret"}, in...); err != nil {
			b.Fatal(err)
		}
	}
}
