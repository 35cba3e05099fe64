package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/internal/systest"
)

// manyObjects returns a document with more object streams than are in memory at the same time, and with
// streams that are written through the buffer and beside it.
func manyObjects() *Document {
	d := New()
	var all types.Array
	for i := range objectsPerStream * 8 * runtime.GOMAXPROCS(0) {
		all = append(all, d.Add(types.Dict{"N": types.Integer(i), "S": types.StringLiteral(fmt.Sprint("text ", i))}))
	}
	for _, size := range []int{0, 1, small, small + 1, 3<<20 + 5} {
		raw := bytes.Repeat([]byte{'x'}, size)
		all = append(all, d.Add(&types.StreamDict{Dict: types.Dict{"Size": types.Integer(size), "Length": types.Integer(size)}, Raw: raw}))
	}
	pages := d.Add(types.Dict{"Type": types.Name("Pages"), "Kids": types.Array{}, "Count": types.Integer(0)})
	d.Root = d.Add(types.Dict{"Type": types.Name("Catalog"), "Pages": pages, "All": all}).ObjectNumber.Value()
	return d
}

func TestWriteManyObjects(t *testing.T) {
	t.Parallel()
	d := manyObjects()
	var b, again bytes.Buffer
	systest.NoError(t, d.Write(&b, false, nil))
	systest.NoError(t, d.Write(&again, false, nil))
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the same document is written in two ways")
	}
	got, err := Parse(t.Context(), b.Bytes())
	systest.NoError(t, err)
	root, _ := got.Objects[got.Root].(types.Dict)
	all, _ := root["All"].(types.Array)
	want := d.Objects[d.Root].(types.Dict)["All"].(types.Array)
	if len(all) != len(want) {
		t.Fatalf("%d objects, want %d", len(all), len(want))
	}
	for i := range all {
		switch w := d.Objects[want[i].(types.IndirectRef).ObjectNumber.Value()].(type) {
		case types.Dict:
			if g, ok := got.Objects[all[i].(types.IndirectRef).ObjectNumber.Value()].(types.Dict); !ok || fmt.Sprint(g) != fmt.Sprint(w) {
				t.Fatalf("object %d is %v, want %v", i, g, w)
			}
		case *types.StreamDict:
			if g, ok := got.Objects[all[i].(types.IndirectRef).ObjectNumber.Value()].(*types.StreamDict); !ok || !bytes.Equal(g.Raw, w.Raw) {
				t.Fatalf("stream %d differs", i)
			}
		}
	}
}

// A fullDisk takes some bytes.
type fullDisk struct{ left int }

var errFull = errors.New("disk full")

func (w *fullDisk) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteFails(t *testing.T) {
	t.Parallel()
	d := manyObjects()
	var whole bytes.Buffer
	systest.NoError(t, d.Write(&whole, false, nil))
	for _, room := range []int{0, 100, small, whole.Len() - small, whole.Len() - 1} {
		if err := d.Write(&fullDisk{room}, false, nil); !errors.Is(err, errFull) {
			t.Errorf("with %d bytes: %v", room, err)
		}
	}
}

// A panic of a goroutine that compresses objects is one of the goroutine that writes the file.
func TestPackingPanics(t *testing.T) {
	t.Parallel()
	w := &writer{} // without a document, whose objects cannot be found then
	p := w.pack([]int{1})
	defer p.close()
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
	}()
	w.objectStreams(p)
}
