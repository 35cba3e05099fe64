package upload_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
)

// zeros yields zeros and measures the heap from time to time.
type zeros struct {
	n     int64
	onMiB func()
}

func (z *zeros) Read(b []byte) (int, error) {
	if z.n&(32<<20-1) == 0 {
		z.onMiB()
	}
	b = b[:min(int64(len(b)), 64<<10)]
	clear(b)
	z.n += int64(len(b))
	return len(b), nil
}

// Not parallel, because it measures the whole process.
func TestMemoryOfLargeUpload(t *testing.T) {
	size := int64(systest.Scale(1<<30, 256<<20))
	const (
		parts = 4
		bound = 16 << 20 // four copy buffers of 512 KiB, and room
	)
	e := newEnv(t, newFS(t, t.TempDir()), upload.Options{})
	goroutines := runtime.NumGoroutine()
	var (
		mu        sync.Mutex
		base, top uint64
	)
	measure := func() {
		mu.Lock()
		defer mu.Unlock()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		top = max(top, m.HeapAlloc)
	}
	runtime.GC()
	measure()
	base = top

	f, urls := e.start(size, parts)
	etags := make([]string, parts)
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() {
			var err error
			etags[i], err = e.PutPart(t.Context(), http.MethodPut, u, &zeros{onMiB: measure}, upload.PutOptions{Size: size / parts})
			systest.Check(t, err)
		})
	}
	wg.Wait()
	done, _, err := e.Complete(t.Context(), "alice", f.Key, f.Object, f.UploadID, list(etags...))
	systest.NoError(t, err)
	measure()
	if top-base > bound {
		t.Errorf("the heap has grown by %d KiB", (top-base)>>10)
	}
	t.Logf("the heap has grown by %d KiB", (top-base)>>10)

	h, all := md5.New(), md5.New()
	if _, err := io.CopyN(h, &zeros{onMiB: func() {}}, size/parts); err != nil {
		t.Fatal(err)
	}
	for range parts {
		all.Write(h.Sum(nil))
	}
	if want := fmt.Sprintf("%s-%d", hex.EncodeToString(all.Sum(nil)), parts); done.ETag != want || done.Size != size {
		t.Errorf("ETag is %s, want %s", done.ETag, want)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}
