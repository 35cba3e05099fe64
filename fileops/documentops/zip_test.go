package documentops_test

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// rezip returns an archive with added or changed entries. nil removes an entry.
func rezip(t testing.TB, in []byte, change map[string][]byte) []byte {
	t.Helper()
	zr, err := zip.NewReader(bytes.NewReader(in), int64(len(in)))
	systest.NoError(t, err)
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	write := func(name string, b []byte) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if name == "mimetype" {
			h.Method = zip.Store
		}
		w, err := zw.CreateHeader(h)
		if err == nil {
			_, err = w.Write(b)
		}
		systest.NoError(t, err)
	}
	seen := make(map[string]bool)
	for _, f := range zr.File {
		seen[f.Name] = true
		b, changed := change[f.Name]
		if changed && b == nil {
			continue
		}
		if !changed {
			b = part(t, in, f.Name)
		}
		write(f.Name, b)
	}
	// In a fixed order, because the first of equal pictures is kept.
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if b := change[name]; !seen[name] && b != nil {
			write(name, b)
		}
	}
	systest.NoError(t, zw.Close())
	return out.Bytes()
}

// part returns an entry of an archive, or nil.
func part(t testing.TB, in []byte, name string) []byte {
	t.Helper()
	zr, err := zip.NewReader(bytes.NewReader(in), int64(len(in)))
	systest.NoError(t, err)
	for _, f := range zr.File {
		if f.Name != name {
			continue
		}
		r, err := f.Open()
		systest.NoError(t, err)
		b, err := io.ReadAll(r)
		r.Close()
		systest.NoError(t, err)
		return b
	}
	return nil
}
