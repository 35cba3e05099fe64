package compound

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/internal/systest"
)

func data(name string, b []byte) *Node {
	return &Node{Name: name, Size: int64(len(b)), Content: func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// sample returns a file with a large stream, a small stream and a storage.
func sample(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, []*Node{
		data("Large", bytes.Repeat([]byte("large"), 2000)),
		data("Small", []byte("small")),
		{Name: "Storage", Children: []*Node{data("Inner", []byte("inner"))}},
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func content(b []byte, name string) (string, error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), 0)
	if err != nil {
		return "", err
	}
	r, ok, err := f.Stream(name)
	if err != nil || !ok {
		return "", errors.Join(err, fmt.Errorf("found: %t", ok))
	}
	s, err := io.ReadAll(r)
	return string(s), err
}

func TestStreams(t *testing.T) {
	t.Parallel()
	b := sample(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)), 8)
	systest.NoError(t, err)
	if got := slices.Sorted(f.Streams()); !slices.Equal(got, []string{"large", "small"}) {
		t.Errorf("streams %q: only those of the root storage count", got)
	}
	for name, want := range map[string]string{"LARGE": string(bytes.Repeat([]byte("large"), 2000)), "small": "small"} {
		if got, err := content(b, name); err != nil || got != want {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	if _, ok, err := f.Stream("inner"); ok || err != nil {
		t.Errorf("a stream of another storage: %t, %v", ok, err)
	}
}

func TestStorages(t *testing.T) {
	t.Parallel()
	b := sample(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)), 0)
	systest.NoError(t, err)
	if got := slices.Collect(f.Storages()); !slices.Equal(got, []string{"storage"}) {
		t.Errorf("storages %q", got)
	}
	inner, ok := f.Storage("STORAGE")
	if !ok {
		t.Fatal("not found")
	}
	if got := slices.Collect(inner.Streams()); !slices.Equal(got, []string{"inner"}) {
		t.Errorf("streams %q", got)
	}
	r, _, err := inner.Stream("inner")
	systest.NoError(t, err)
	if got, err := io.ReadAll(r); err != nil || string(got) != "inner" {
		t.Errorf("%q, %v", got, err)
	}
	if _, ok := f.Storage("inner"); ok {
		t.Error("a stream is opened as a storage")
	}
	for name, want := range map[string]string{"Large": "large", "small": "small"} {
		at, err := f.Offset(name)
		systest.NoError(t, err)
		if got := string(b[at : at+5]); got != want {
			t.Errorf("%s starts with %q", name, got)
		}
	}
}

// A storage that contains itself is opened only to a depth.
func TestStorageInItself(t *testing.T) {
	t.Parallel()
	b := sample(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)), 0)
	systest.NoError(t, err)
	for i, e := range f.entries {
		if name, _ := entryName(e); name == "storage" {
			e[76] = byte(i)
		}
	}
	f.list(uint32(f.entries[0][76]))
	opened := 0
	for g, ok := f.Storage("storage"); ok; g, ok = g.Storage("storage") {
		opened++
	}
	if opened != maxDepth {
		t.Errorf("%d storages", opened)
	}
}

func TestReadPart(t *testing.T) {
	t.Parallel()
	b := sample(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)), 0)
	systest.NoError(t, err)
	r, _, err := f.Stream("large")
	systest.NoError(t, err)
	p := make([]byte, 10)
	if n, err := r.ReadAt(p, 509); n != 10 || err != nil || string(p) != "elargelarg" {
		t.Errorf("over the end of a sector: %q, %v", p[:n], err)
	}
	if n, err := r.ReadAt(p, 9995); n != 5 || err != io.EOF {
		t.Errorf("over the end: %d bytes, %v", n, err)
	}
}

// The caller limits the directory entries.
func TestMaxEntries(t *testing.T) {
	t.Parallel()
	nodes := make([]*Node, 20)
	for i := range nodes {
		nodes[i] = data(fmt.Sprint("s", i), []byte("x"))
	}
	var b bytes.Buffer
	systest.NoError(t, Write(&b, nodes))
	open := func(most int) error {
		_, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), most)
		return err
	}
	if err := open(16); !errors.Is(err, ErrDamaged) {
		t.Errorf("24 entries where 16 may be: %v", err)
	}
	for _, most := range []int{0, 24} {
		if err := open(most); err != nil {
			t.Errorf("24 entries where %d may be: %v", most, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	put := func(at int, n uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], n); return b }
	}
	for _, tt := range []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"another magic", put(0, 0)},
		{"odd size of sectors", put(30, 5)},
		{"more tables than listed", put(44, 1<<20)},
		{"a table outside of the file", put(76, 1<<20)},
		{"a list of tables that loops", func(b []byte) []byte {
			for i := range 127 {
				put(512+4*i, 0)(b)
			}
			return put(68, 0)(put(512+4*127, 0)(b))
		}},
		{"no directory", put(48, end)},
		{"a table of small sectors outside of the file", put(60, 1<<20)},
		{"a chain that loops", func(b []byte) []byte {
			fat := (binary.LittleEndian.Uint32(b[76:]) + 1) * 512
			return put(int(fat)+4*2, 1)(b)
		}},
		{"truncated", func(b []byte) []byte { return b[:3000] }},
	} {
		b := tt.damage(sample(t))
		if _, err := content(b, "large"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The file is truncated within a stream; its tables come before.
func TestCutOff(t *testing.T) {
	t.Parallel()
	const sector = 512
	le := binary.LittleEndian
	b := make([]byte, 3*sector, 13*sector)
	copy(b, Magic)
	le.PutUint16(b[30:], 9)
	le.PutUint32(b[44:], 1)
	le.PutUint32(b[48:], 1) // the directory
	le.PutUint32(b[60:], end)
	le.PutUint32(b[68:], end)
	fat := b[sector:]
	le.PutUint32(fat, fatSector)
	le.PutUint32(fat[4:], end)
	for i := range uint32(10) {
		le.PutUint32(fat[8+4*i:], 3+i)
	}
	le.PutUint32(fat[8+4*9:], end)
	dir := b[2*sector:]
	le.PutUint32(dir[76:], 1)
	le.PutUint32(dir[116:], end)
	e := dir[entrySize:]
	for i, c := range utf16.Encode([]rune("large")) {
		le.PutUint16(e[2*i:], c)
	}
	le.PutUint16(e[64:], 12)
	e[66] = 2
	for _, at := range []int{68, 72, 76} {
		le.PutUint32(e[at:], none)
	}
	le.PutUint32(e[116:], 2)
	le.PutUint32(e[120:], 10*sector-100)
	b = b[:cap(b)]

	for size, whole := range map[int]bool{len(b): true, len(b) - 100: true, len(b) - 101: false, len(b) - 600: false, 3 * sector: false} {
		got, err := content(b[:size], "large")
		if whole && (err != nil || len(got) != 10*sector-100) || !whole && !errors.Is(err, ErrDamaged) {
			t.Errorf("of %d bytes: %d, %v", size, len(got), err)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	if err := Write(io.Discard, []*Node{{Name: "a", Size: MaxStream + 1, Content: func(io.Writer) error { return nil }}}); err == nil {
		t.Error("a stream that is too large was written")
	}
	if err := Write(io.Discard, []*Node{{Name: "a", Size: 5, Content: func(io.Writer) error { return nil }}}); err == nil {
		t.Error("a stream whose content is too short was written")
	}
}

func FuzzCompoundFile(f *testing.F) {
	b := sample(f)
	f.Add(b)
	f.Add(b[:1024])
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Open(bytes.NewReader(b), int64(len(b)), 4096)
		if err != nil {
			return
		}
		for name := range c.Streams() {
			r, _, err := c.Stream(name)
			if err != nil {
				continue
			}
			if n, _ := io.Copy(io.Discard, r); n != r.Size() || n > int64(len(b)) {
				t.Errorf("%d bytes of %d from a file of %d", n, r.Size(), len(b))
			}
		}
	})
}
