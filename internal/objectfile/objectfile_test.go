package objectfile_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/filewright/filewright/internal/objectfile"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
)

// An object is neither a local file nor in memory.
type object struct{ *bytes.Reader }

func (object) Close() error      { return nil }
func (o object) Info() blob.Info { return blob.Info{Size: o.Size()} }

// A local object is a file, and an inMemory one has its bytes.
type (
	local struct {
		object
		path string
	}
	inMemory struct {
		object
		b []byte
	}
)

func (o local) LocalPath() string { return o.path }
func (local) File() *os.File      { return nil }
func (o inMemory) Bytes() []byte  { return o.b }

func TestFile(t *testing.T) {
	t.Parallel()
	content := []byte("content")
	dir := t.TempDir()
	path := dir + "/stored"
	systest.NoError(t, os.WriteFile(path, content, 0o600))
	plain := object{bytes.NewReader(content)}
	for name, tt := range map[string]struct {
		obj    blob.Object
		copies int
	}{
		"local file": {local{plain, path}, 0}, "memory": {inMemory{plain, content}, 0}, "remote": {plain, 1}, "no path": {local{plain, ""}, 1},
	} {
		copies := 0
		f, err := objectfile.File("a.txt", tt.obj, func() (*os.File, error) { copies++; return os.CreateTemp(dir, "copy-") })
		systest.NoError(t, err)
		b, ok := f.Bytes()
		if at, isFile := f.Path(); isFile {
			b, ok = systest.ReadFile(t, at), true
		}
		if !ok || !bytes.Equal(b, content) || f.Name() != "a.txt" || copies != tt.copies {
			t.Errorf("%s: %q, name %s, %d copies", name, b, f.Name(), copies)
		}
	}
	if _, err := objectfile.File("a.txt", plain, func() (*os.File, error) { return nil, os.ErrPermission }); err == nil {
		t.Error("no place for the copy is no error")
	}
}

func ExampleFile() {
	f, err := objectfile.File("a.txt", inMemory{b: []byte("content")}, nil)
	fmt.Println(f.Name(), f.Size(), err)
	// Output: a.txt 7 <nil>
}
