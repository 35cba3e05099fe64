package dataops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/internal/systest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{
		Action: dataops.Convert(),
		Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			b, err := out[0].ReadAll(1 << 20)
			if err != nil || !strings.Contains(string(b), "Birnen") || !strings.Contains(string(b), "Äpfel") || len(out) != 1 {
				t.Errorf("%s became %d results, %q, %v", in[0].Name(), len(out), b, err)
			}
		},
	})
}

// large writes a CSV file of about size bytes and returns its path.
func large(tb testing.TB, size int) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "large.csv")
	f, err := os.Create(path)
	systest.NoError(tb, err)
	defer f.Close()
	var b strings.Builder
	b.WriteString("id,name,city,amount,note\n")
	for i := 0; size > 0; i++ {
		fmt.Fprintf(&b, "%d,Jürgen %d,\"Köln, Altstadt\",%d.%02d,\"a note of \"\"some\"\" length, as people write them\"\n", i, i%977, i%5000, i%100)
		if b.Len() > 1<<20 {
			size -= b.Len()
			if _, err := f.WriteString(b.String()); err != nil {
				tb.Fatal(err)
			}
			b.Reset()
		}
	}
	return path
}

// toDisk converts the file at path and returns the path of the result.
func toDisk(tb testing.TB, r fileops.Runner, path, format string) string {
	tb.Helper()
	r.TempDir = filepath.Dir(path)
	var out string
	err := r.Run(tb.Context(), dataops.Convert(), to(format), fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		p, ok := f.Path()
		if !ok {
			return fmt.Errorf("the result is in memory")
		}
		out = filepath.Join(filepath.Dir(path), "result-"+f.Name())
		return os.Rename(p, out)
	}), fileops.Path(path))
	systest.NoError(tb, err)
	return out
}

// The memory for a conversion does not grow with the file. Not parallel, because
// it measures the heap of the process.
func TestMemory(t *testing.T) {
	path := large(t, 32<<20)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, step := range []string{"json", "csv"} {
		runtime.GC()
		before := heap()
		var calls, most atomic.Int64
		r := fileops.Runner{Progress: func(float64) {
			if calls.Add(1)%16 == 0 {
				most.Store(max(most.Load(), heap()-before))
			}
		}}
		path = toDisk(t, r, path, step)
		if calls.Load() < 100 || most.Load() > 16<<20 {
			t.Errorf("to %s: %d MiB more of heap in %d looks", step, most.Load()>>20, calls.Load()/16)
		}
		t.Logf("to %s: %d MiB more of heap", step, most.Load()>>20)
	}
}

func BenchmarkConvert(b *testing.B) {
	csv := large(b, 50<<20)
	json := toDisk(b, fileops.Runner{}, csv, "json")
	for _, bb := range []struct{ path, to string }{{csv, "json"}, {json, "csv"}, {json, "html"}} {
		b.Run(filepath.Ext(bb.path)[1:]+" to "+bb.to, func(b *testing.B) {
			st, err := os.Stat(bb.path)
			systest.NoError(b, err)
			b.SetBytes(st.Size())
			b.ReportAllocs()
			for b.Loop() {
				toDisk(b, fileops.Runner{}, bb.path, bb.to)
			}
		})
	}
}
