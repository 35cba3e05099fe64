package upload_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
)

// BenchmarkUpload puts 256 MiB in four concurrent parts into a directory.
func BenchmarkUpload(b *testing.B) {
	const (
		size  = 256 << 20
		parts = 4
	)
	e := newEnv(b, newFS(b, b.TempDir()), upload.Options{})
	b.SetBytes(size)
	b.ReportAllocs()
	var completing time.Duration
	for b.Loop() {
		f, urls := e.start(size, parts)
		etags := make([]string, parts)
		var wg sync.WaitGroup
		for i, u := range urls {
			wg.Go(func() {
				var err error
				r := io.LimitReader(&zeros{onMiB: func() {}}, size/parts)
				if etags[i], err = e.PutPart(b.Context(), http.MethodPut, u, r, upload.PutOptions{Size: size / parts}); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		begin := time.Now()
		if _, _, err := e.Complete(b.Context(), "alice", f.Key, f.Object, f.UploadID, list(etags...)); err != nil {
			b.Fatal(err)
		}
		completing += time.Since(begin)
		b.StopTimer()
		systest.NoError(b, e.Delete(b.Context(), "alice", f.Key))
		b.StartTimer()
	}
	b.ReportMetric(float64(completing.Microseconds())/1000/float64(b.N), "ms/complete")
}

// BenchmarkSmall is a whole upload of 4 KiB, which is mostly waiting for the
// disk.
func BenchmarkSmall(b *testing.B) {
	e := newEnv(b, newFS(b, b.TempDir()), upload.Options{})
	data := noise(4096)
	b.ReportAllocs()
	for b.Loop() {
		f, urls := e.start(int64(len(data)), 1)
		etag := e.put(urls[0], data)
		if _, _, err := e.Complete(b.Context(), "alice", f.Key, "", "", list(etag)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSweep ends 10,000 files of 1 KiB that have expired at the same time.
func BenchmarkSweep(b *testing.B) {
	const files = 10_000
	for _, p := range pairs[1:] {
		b.Run(p.name, func(b *testing.B) {
			e := newEnv(b, p.blobs(b), upload.Options{Store: p.records(b), Quarantine: -1})
			var sweeping time.Duration
			for b.Loop() {
				b.StopTimer()
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						for range files / 64 {
							if _, err := e.Add(b.Context(), upload.File{Owner: "alice", Size: 1024}, io.LimitReader(&zeros{onMiB: func() {}}, 1024), ""); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				e.clock.advance(2 * day)
				b.StartTimer()
				begin := time.Now()
				if n, err := e.Sweep(b.Context()); n != files/64*64 || err != nil {
					b.Fatalf("Sweep = %d, %v", n, err)
				}
				sweeping += time.Since(begin)
			}
			b.ReportMetric(float64(files/64*64*b.N)/sweeping.Seconds(), "files/s")
		})
	}
}
