package archiveops_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// filtered compresses with the usual program for the extension of name.
func filtered(t testing.TB, name string, b []byte, args ...string) *fileops.File {
	t.Helper()
	program := map[string]string{".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".lz4": "lz4", ".lzma": "lzma", ".lz": "lzip"}[filepath.Ext(name)]
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-c"}, args...)...)
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	systest.NoError(t, err)
	return fileops.Bytes(name, out)
}

// sevenZip packs a folder with 7-Zip.
func sevenZip(t testing.TB, dir string, args ...string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.7z")
	tool(t, "7z", append(append([]string{"a", "-bd"}, args...), path, dir+"/.")...)
	b := systest.ReadFile(t, path)
	return fileops.Bytes("in.7z", b)
}

// rar builds a RAR 5 archive without compression (RAR 5.0 archive format),
// because no free program writes RAR.
func rar(files map[string][]byte) []byte {
	out := []byte("Rar!\x1a\x07\x01\x00")
	out = append(out, rarBlock(1, 0, nil, 0)...)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		var f []byte
		f = append(f, 2|4) // has a time and a checksum
		f = binary.AppendUvarint(f, uint64(len(b)))
		f = binary.AppendUvarint(f, 0o100644)
		f = binary.LittleEndian.AppendUint32(f, 1700000000)
		f = binary.LittleEndian.AppendUint32(f, crc32.ChecksumIEEE(b))
		f = append(f, 0, 1) // stored, Unix
		f = binary.AppendUvarint(f, uint64(len(name)))
		f = append(f, name...)
		out = append(out, rarBlock(2, 2, b, f...)...)
	}
	return append(out, rarBlock(5, 0, nil, 0)...)
}

func rarBlock(kind, flags byte, data []byte, fields ...byte) []byte {
	h := []byte{kind, flags}
	if flags&2 != 0 {
		h = binary.AppendUvarint(h, uint64(len(data)))
	}
	h = append(h, fields...)
	h = append(binary.AppendUvarint(nil, uint64(len(h))), h...)
	return append(append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h)), h...), data...)
}

// TestConvertSevenZip covers the compression methods of 7-Zip.
func TestConvertSevenZip(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a/b.txt": prose(300000), "Ä/日本.bin": noise(100000), "empty": {}, "script.sh": []byte("#!/bin/sh\n")}
	for name, args := range map[string][]string{
		"lzma2": nil, "lzma": {"-m0=lzma"}, "ppmd": {"-m0=ppmd"}, "bzip2": {"-m0=bzip2"}, "deflate": {"-m0=deflate"}, "copy": {"-m0=copy"},
		"not solid": {"-ms=off"}, "bcj2": {"-m0=bcj2", "-m1=lzma"}, "plain header": {"-mhc=off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, files)
			systest.NoError(t, os.Chmod(filepath.Join(dir, "script.sh"), 0o755))
			out := mustRun(t, archiveops.Convert(nil), toZIP(), sevenZip(t, dir, args...))
			same(t, unpacked(t, out), files)
			_, entries := inspect(t, out)
			executable := 0
			for _, e := range entries {
				if e.External>>16&0o100 != 0 && !strings.HasSuffix(e.Name, "/") {
					executable++
				}
			}
			if executable != 1 {
				t.Errorf("%d files are executable", executable)
			}
		})
	}
}

func TestConvertEncryptedArchives(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a.txt": prose(50000), "b.bin": noise(5000)}
	for name, args := range map[string][]string{"content": {"-psesame"}, "content and names": {"-psesame", "-mhe=on"}, "stored": {"-psesame", "-m0=copy"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := sevenZip(t, tree(t, files), args...)
			with := func(pw string) fileops.Args { return fileops.Args{"convert_to": "zip", "password": pw} }
			same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), with("sesame"), in)), files)
			if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), in); !errors.Is(err, fileops.ErrPasswordRequired) {
				t.Errorf("without a password: %v", err)
			}
			if _, err := run(t.Context(), archiveops.Convert(nil), with("open"), in); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("with another password: %v", err)
			}
		})
	}
	// A RAR archive with encrypted contents.
	in := specimen.Locked(t, format.RAR, "sesame")
	want := make(map[string][]byte)
	for _, e := range specimen.ArchiveEntries() {
		want[e[0]] = []byte(e[1])
	}
	with := func(pw string) fileops.Args { return fileops.Args{"convert_to": "zip", "password": pw} }
	same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), with("sesame"), in)), want)
	if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), in); !errors.Is(err, fileops.ErrPasswordRequired) {
		t.Errorf("rar without a password: %v", err)
	}
	if _, err := run(t.Context(), archiveops.Convert(nil), with("open"), in); !errors.Is(err, fileops.ErrWrongPassword) {
		t.Errorf("rar with another password: %v", err)
	}
	// A RAR archive with encrypted headers.
	locked := append([]byte("Rar!\x1a\x07\x01\x00"), rarBlock(4, 0, nil, append([]byte{0, 0, 10}, make([]byte, 16)...)...)...)
	locked = append(locked, noise(64)...)
	if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes("in.rar", locked)); !errors.Is(err, fileops.ErrPasswordRequired) {
		t.Errorf("rar: %v", err)
	}
}

func TestConvertRAR(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a/b.txt": prose(30000), "../../etc/passwd": []byte("x"), "c:\\d.txt": []byte("y"), "empty": {}}
	out := mustRun(t, archiveops.Convert(nil), toZIP(), fileops.Bytes("in.rar", rar(files)))
	same(t, unpacked(t, out), map[string][]byte{"a/b.txt": files["a/b.txt"], "etc/passwd": []byte("x"), "d.txt": []byte("y"), "empty": {}})
	_, entries := inspect(t, out)
	if len(entries) != 4 || entries[0].Time[0] != 2023 {
		t.Errorf("entries %+v", entries)
	}
	broken := rar(files)
	broken[len(broken)/2] ^= 1
	if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes("in.rar", broken)); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("damaged: %v", err)
	}
}

// Later parts of a multi-part archive of RAR 4, and archives without entries, are not damaged.
func TestConvertNotDamaged(t *testing.T) {
	t.Parallel()
	// A block of RAR 4: checksum, type, flags, size, fields (RAR technote.txt, 2006).
	block := func(kind byte, flags uint16, fields ...byte) []byte {
		b := binary.LittleEndian.AppendUint16([]byte{kind}, flags)
		b = append(binary.LittleEndian.AppendUint16(b, uint16(7+len(fields))), fields...)
		return append(binary.LittleEndian.AppendUint16(nil, uint16(crc32.ChecksumIEEE(b))), b...)
	}
	part := append([]byte("Rar!\x1a\x07\x00"), block(0x73, 0x11, make([]byte, 6)...)...)
	fields := append([]byte{1, 0, 0, 0, 9, 0, 0, 0, 2}, make([]byte, 8)...) // sizes, system, checksum, time
	fields = append(fields, 20, 0x30, 1, 0, 0, 0, 0, 0, 'a')                // version, stored, name
	part = append(part, block(0x74, 0x8001, fields...)...)                  // continues from the part before
	part = append(append(part, 'x'), block(0x7b, 0)...)
	empty := append([]byte("7z\xbc\xaf\x27\x1c\x00\x04"), binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(make([]byte, 20)))...)
	empty = append(empty, make([]byte, 20)...)
	for message, in := range map[string]*fileops.File{
		"one part of a multi-part archive": fileops.Bytes("in.rar", part),
		"has no files":                     fileops.Bytes("in.7z", empty),
	} {
		_, err := run(t.Context(), archiveops.Convert(nil), toZIP(), in)
		if !errors.Is(err, fileops.ErrUnsupportedInput) || !strings.Contains(fileops.Message(err), message) {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// TestConvertListedLimits applies the limits to archives with correct and with
// wrong directories.
func TestConvertListedLimits(t *testing.T) {
	t.Parallel()
	bomb := sevenZip(t, tree(t, map[string][]byte{"zeros": make([]byte, 40<<20)}))
	many := map[string][]byte{}
	for i := range 30 {
		many[strings.Repeat("x", i+1)] = []byte("y")
	}
	for name, tt := range map[string]struct {
		in     *fileops.File
		limits *archiveops.Limits
	}{
		"ratio":      {bomb, nil},
		"size":       {bomb, &archiveops.Limits{Unpacked: 1 << 20, Ratio: 1 << 30}},
		"entries":    {sevenZip(t, tree(t, many)), &archiveops.Limits{Entries: 20}},
		"rar":        {fileops.Bytes("in.rar", rar(many)), &archiveops.Limits{Entries: 20}},
		"bz2":        {filtered(t, "in.bz2", make([]byte, 40<<20)), nil},
		"xz":         {filtered(t, "in.xz", make([]byte, 40<<20)), nil},
		"zst":        {filtered(t, "in.zst", make([]byte, 40<<20)), nil},
		"xz memory":  {filtered(t, "in.xz", prose(1000), "--lzma2=dict=512MiB"), nil},
		"zst memory": {fileops.Bytes("in.zst", []byte("\x28\xb5\x2f\xfd\x00\xb0\x01\x00\x00x")), nil}, // a window of 4 GiB
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), archiveops.Convert(tt.limits), toZIP(), tt.in)
			if !errors.Is(err, fileops.ErrLimit) && (name != "zst memory" || !errors.Is(err, fileops.ErrCorruptInput)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestConvertDamagedListed truncates and changes archives. Every error must report a
// damaged input.
func TestConvertDamagedListed(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a.txt": prose(20000), "b.bin": noise(2000)}
	for _, in := range []*fileops.File{
		sevenZip(t, tree(t, files)), filtered(t, "in.tar.xz", mustBytes(t, gnuTar(t, "in.tar", tree(t, files)))),
		filtered(t, "in.zst", files["a.txt"]), filtered(t, "in.bz2", files["a.txt"]), fileops.Bytes("in.rar", rar(files)),
	} {
		b := mustBytes(t, in)
		for i := range 12 {
			cut := b[:len(b)*(i+1)/13]
			flipped := bytes.Clone(b)
			flipped[20+(len(b)-20)*i/12] ^= 0x55
			for _, bad := range [][]byte{cut, flipped} {
				_, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes(in.Name(), bad))
				if err != nil && fileops.Code(err) == "internal_error" {
					t.Errorf("%s, %d: %v", in.Name(), i, err)
				}
				if err == nil && len(bad) < len(b) && in.Name() != "in.rar" {
					t.Errorf("%s of %d bytes is taken for one of %d", in.Name(), len(bad), len(b))
				}
			}
		}
	}
}

// FuzzListed runs the readers of 7z, rar and xz on damaged archives.
func FuzzListed(f *testing.F) {
	f.Add("7z", mustBytes(f, sevenZip(f, tree(f, map[string][]byte{"a": []byte("abcabcabc")}))))
	f.Add("rar", rar(map[string][]byte{"a": []byte("abc"), "b/c": {}}))
	f.Add("xz", mustBytes(f, filtered(f, "in.xz", []byte("abc"))))
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		if ext != "7z" && ext != "rar" && ext != "xz" {
			return
		}
		_, err := run(t.Context(), archiveops.Convert(&archiveops.Limits{Unpacked: 1 << 20}), toZIP(), fileops.Bytes("in."+ext, data))
		if err != nil && fileops.Code(err) == "internal_error" {
			t.Error(err)
		}
	})
}
