package zipstream_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/internal/zipstream"
	"github.com/filewright/filewright/internal/systest"
)

var modified = time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)

// content is the content of a file; it counts the bytes that were read and the open contents.
type content struct {
	io.ReaderAt
	c *counts
}

type counts struct{ read, open int64 }

func (c content) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.c.read += int64(n)
	return n, err
}

func (c content) Close() error { c.c.open--; return nil }

func file(name string, r io.ReaderAt, size int64, c *counts) zipstream.File {
	return zipstream.File{Name: name, Key: name, Size: size, Modified: modified, Open: func(context.Context) (zipstream.Content, error) {
		c.open++
		return content{r, c}, nil
	}}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// samples has empty and small files, and one whose checksum follows it.
func samples(c *counts) (files []zipstream.File, want map[string][]byte) {
	want = map[string][]byte{"empty": nil, "Grüße.txt": []byte("hello"), "large.bin": random(8<<20 + 1), "last": random(1000)}
	for _, name := range []string{"empty", "Grüße.txt", "large.bin", "last"} {
		files = append(files, file(name, bytes.NewReader(want[name]), int64(len(want[name])), c))
	}
	return files, want
}

func archive(t *testing.T, files []zipstream.File, sums *zipstream.Sums) *zipstream.Archive {
	t.Helper()
	a, err := zipstream.New(t.Context(), files, sums)
	systest.NoError(t, err)
	return a
}

func TestArchive(t *testing.T) {
	t.Parallel()
	var c counts
	files, want := samples(&c)
	a := archive(t, files, new(zipstream.Sums))
	all, err := io.ReadAll(a)
	systest.NoError(t, err)
	systest.NoError(t, a.Close())
	if c.open != 0 || int64(len(all)) != a.Size() {
		t.Errorf("%d bytes of %d, %d open files", len(all), a.Size(), c.open)
	}
	z, err := zip.NewReader(bytes.NewReader(all), int64(len(all)))
	systest.NoError(t, err)
	if len(z.File) != len(want) {
		t.Errorf("%d files", len(z.File))
	}
	for _, f := range z.File {
		r, err := f.Open()
		systest.NoError(t, err)
		b, err := io.ReadAll(r) // checks the checksum
		if err != nil || !bytes.Equal(b, want[f.Name]) || !f.Modified.Equal(modified) || f.Mode() != 0o644 || f.NonUTF8 {
			t.Errorf("%s: %d bytes, %+v, %v", f.Name, len(b), f.FileHeader, err)
		}
	}
	// Other programs agree.
	path := filepath.Join(t.TempDir(), "a.zip")
	systest.NoError(t, os.WriteFile(path, all, 0o600))
	for _, cmd := range [][]string{{"unzip", "-tq", path}, {"7z", "t", path}, {"/usr/bin/python3", "-m", "zipfile", "-t", path}, {"bsdtar", "-tf", path}} {
		if _, err := exec.LookPath(cmd[0]); err != nil {
			continue // this test needs no other program
		}
		if out, err := exec.CommandContext(t.Context(), cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd, err, out)
		}
	}
}

// Every range of the archive equals that of the whole, whether checksums are known or not.
func TestRanges(t *testing.T) {
	t.Parallel()
	var c counts
	files, _ := samples(&c)
	all, err := io.ReadAll(archive(t, files, new(zipstream.Sums)))
	systest.NoError(t, err)
	known := new(zipstream.Sums)
	_, err = io.Copy(io.Discard, archive(t, files, known))
	systest.NoError(t, err)
	offsets := []int64{0, 1, 29, 40, 41, 80, 100, 8 << 20, 8<<20 + 200, int64(len(all)) - 500, int64(len(all)) - 1, int64(len(all))}
	for range 20 {
		offsets = append(offsets, rand.Int64N(int64(len(all))))
	}
	for _, sums := range []*zipstream.Sums{new(zipstream.Sums), known} {
		for _, off := range offsets {
			a := archive(t, files, sums)
			_, err := a.Seek(off, io.SeekStart)
			systest.NoError(t, err)
			got, err := io.ReadAll(a)
			systest.NoError(t, err)
			systest.NoError(t, a.Close())
			if !bytes.Equal(got, all[off:]) {
				t.Fatalf("from %d: the bytes differ", off)
			}
		}
	}
	// What is known is not read again.
	c.read = 0
	a := archive(t, files, known)
	systest.NoError(t, a.Prepare(a.Size()))
	_, err = a.Seek(-10, io.SeekEnd)
	systest.NoError(t, err)
	_, err = io.ReadAll(a)
	if err != nil || c.read != 0 {
		t.Errorf("read %d bytes, %v", c.read, err)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	var c counts
	files, _ := samples(&c)
	sums := new(zipstream.Sums)
	all, err := io.ReadAll(archive(t, files, sums))
	systest.NoError(t, err)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Range", "bytes=30-5000000")
	w := httptest.NewRecorder()
	http.ServeContent(w, r, "", modified, archive(t, files, sums))
	if w.Code != 206 || !bytes.Equal(w.Body.Bytes(), all[30:5000001]) {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// zeros is a content of zeros.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), z.size-off))
	clear(p[:n])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Files and archives beyond 4 GiB have 64-bit records. The archive is read only at its ends: the
// size of the content would take too long.
func TestLarge(t *testing.T) {
	t.Parallel()
	const size = 4<<30 + 5
	var c counts
	sums := new(zipstream.Sums)
	files := []zipstream.File{file("huge", zeros{size}, size, &c), file("small", strings.NewReader("hello"), 5, &c)}
	if testing.Short() {
		files[0] = file("many", zeros{9 << 20}, 9<<20, &c)
	}
	a := archive(t, files, sums)
	z, err := zip.NewReader(readerAt{a}, a.Size())
	systest.NoError(t, err)
	for i, f := range z.File {
		if f.UncompressedSize64 != uint64(files[i].Size) {
			t.Errorf("%s has %d bytes", f.Name, f.UncompressedSize64)
		}
		r, err := f.Open()
		systest.NoError(t, err)
		if n, err := io.Copy(io.Discard, r); err != nil || n != files[i].Size {
			t.Errorf("%s: %d bytes, %v", f.Name, n, err)
		}
	}
}

type readerAt struct{ a *zipstream.Archive }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	if _, err := r.a.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r.a, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// More than 65,535 files need 64-bit records too.
func TestMany(t *testing.T) {
	t.Parallel()
	var c counts
	var files []zipstream.File
	for i := range 70_000 {
		files = append(files, file(fmt.Sprint(i), strings.NewReader(""), 0, &c))
	}
	all, err := io.ReadAll(archive(t, files, new(zipstream.Sums)))
	systest.NoError(t, err)
	z, err := zip.NewReader(bytes.NewReader(all), int64(len(all)))
	if err != nil || len(z.File) != len(files) {
		t.Errorf("%v", err)
	}
}

// A file that is shorter than its record, or cannot be opened, ends the archive with an error.
func TestLost(t *testing.T) {
	t.Parallel()
	var c counts
	for _, size := range []int64{6, 9 << 20} {
		a := archive(t, []zipstream.File{file("a", strings.NewReader("hello"), size, &c)}, new(zipstream.Sums))
		if _, err := io.ReadAll(a); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d: %v", size, err)
		}
		systest.NoError(t, a.Close())
	}
	gone := errors.New("gone")
	a := archive(t, []zipstream.File{{Name: "a", Size: 1, Open: func(context.Context) (zipstream.Content, error) { return nil, gone }}}, new(zipstream.Sums))
	if _, err := io.ReadAll(a); !errors.Is(err, gone) {
		t.Error(err)
	}
	if c.open != 0 {
		t.Errorf("%d open files", c.open)
	}
	for _, f := range []zipstream.File{{Name: "", Size: 1}, {Name: "a", Size: -1}, {Name: strings.Repeat("a", 2000)}} {
		if _, err := zipstream.New(t.Context(), []zipstream.File{f}, new(zipstream.Sums)); err == nil {
			t.Errorf("%d bytes of %.10s are accepted", f.Size, f.Name)
		}
	}
}

func TestNamer(t *testing.T) {
	t.Parallel()
	var n zipstream.Namer
	var got []string
	for _, name := range []string{"a.pdf", "A.pdf", "a.pdf", "a (2).pdf", "x/../y.txt", "", "..", ".profile", ".profile", "noext", "noext"} {
		got = append(got, n.Unique(name))
	}
	want := "a.pdf A (2).pdf a (3).pdf a (2) (2).pdf x_.._y.txt file file (2) .profile .profile (2) noext noext (2)"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	var many zipstream.Namer
	seen := make(map[string]bool)
	for range 20_000 {
		seen[many.Unique("page.png")] = true
	}
	if len(seen) != 20_000 {
		t.Errorf("%d names", len(seen))
	}
}

// The bytes of an archive are stable: an interrupted download continues after an update.
func TestStable(t *testing.T) {
	t.Parallel()
	var c counts
	files, _ := samples(&c)
	all, err := io.ReadAll(archive(t, files, new(zipstream.Sums)))
	systest.NoError(t, err)
	if sum := fmt.Sprintf("%x", sha256.Sum256(all))[:16]; sum != "6b6f6850ad9c00d9" {
		t.Errorf("the archive has changed to %s; change the first line of the ETag in httpapi.archive too", sum)
	}
}
