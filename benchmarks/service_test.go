package benchmarks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/trace/otlp"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// copying is an action without cost, so that benchmarks measure the service.
func copying() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "copy", Engine: "go", Family: "copy", Summary: "Copies a file.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}},
	}, func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
}

// durable starts a service with all data on disk.
func durable(b *testing.B) (base string) {
	b.Helper()
	blobs, err := fsblob.New(filepath.Join(b.TempDir(), "blobs"))
	systest.NoError(b, err)
	b.Cleanup(func() { blobs.Close() })
	return durableOn(b, blobs, false)
}

// durableOn starts a service with its files in a store, and all other data on disk.
func durableOn(b *testing.B, blobs blob.Store, redirect bool) (base string) {
	b.Helper()
	return durableWith(b, blobs, redirect, copying())
}

// durableWith is durableOn with other actions.
func durableWith(b *testing.B, blobs blob.Store, redirect bool, actions ...fileops.Action) (base string) {
	b.Helper()
	return serve(b, httpapi.Config{Actions: actions, Blobs: blobs, RedirectDownloads: redirect})
}

// serve starts a service with its database on disk. cfg has the actions and the store of the files.
func serve(b *testing.B, cfg httpapi.Config) (base string) {
	b.Helper()
	dir := b.TempDir()
	db, err := sqlstore.Open(b.Context(), sqlstore.Options{Path: filepath.Join(dir, "filewright.db"), Exclusive: true})
	systest.NoError(b, err)
	cfg.Auth, cfg.Log = httpapi.AllowAll(), slog.New(slog.DiscardHandler)
	cfg.Files, cfg.Operations, cfg.TempDir, cfg.Limits.Queued = db.Files(), db.Operations(), dir, 1<<30
	svc, err := httpapi.New(cfg)
	systest.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	srv := httptest.NewServer(svc)
	b.Cleanup(func() {
		stop()
		systest.Check(b, <-done)
		srv.Close()
		db.Close()
	})
	return srv.URL
}

func call(b *testing.B, method, url string, body io.Reader, size int64) (*http.Response, map[string]any) {
	req, err := http.NewRequest(method, url, body)
	systest.NoError(b, err)
	if size > 0 {
		req.ContentLength = size
	}
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(b, err)
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s %s: %d %s %v", method, url, resp.StatusCode, raw, err)
	}
	var m map[string]any
	json.Unmarshal(raw, &m)
	return resp, m
}

func post(b *testing.B, base, path string, body any) map[string]any {
	j, err := json.Marshal(body)
	systest.NoError(b, err)
	_, m := call(b, "POST", base+"/api/v1/"+path, bytes.NewReader(j), 0)
	return m
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func uploadFile(b *testing.B, base, name string, size int64) string {
	m := post(b, base, "initiate-upload", map[string]any{"file_name": name, "size": size, "mime_type": "application/octet-stream"})
	resp, _ := call(b, "PUT", m["presigned_urls"].([]any)[0].(string), io.LimitReader(zeros{}, size), size)
	post(b, base, "complete-upload", map[string]any{"file_key": m["file_key"], "object_name": m["object_name"], "upload_id": m["upload_id"],
		"parts": []any{map[string]any{"part_number": 1, "etag": strings.Trim(resp.Header.Get("ETag"), `"`)}}})
	return m["file_key"].(string)
}

// BenchmarkUpload measures one durable upload over HTTP, from initiate to complete.
func BenchmarkUpload(b *testing.B) {
	for _, size := range []int64{100 << 10, 256 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			base := durable(b)
			b.SetBytes(size)
			for b.Loop() {
				uploadFile(b, base, "data.bin", size)
			}
		})
	}
}

// BenchmarkOperation measures the time from do to completed, with five files and an action without
// cost, for eight concurrent clients.
func BenchmarkOperation(b *testing.B) {
	base := durable(b)
	key := uploadFile(b, base, "a.bin", 1000)
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := post(b, base, "do", map[string]any{"action": "copy", "file_keys": []string{key, key, key, key, key}})
			_, st := call(b, "GET", fmt.Sprintf("%s/api/v1/status/%s?wait=60s", base, m["main_task_id"]), nil, 0)
			if st["operation_status"] != "completed" {
				b.Fatalf("%v", st)
			}
		}
	})
}

// BenchmarkTracing measures do and the work on one file, without traces, with traces that are not
// recorded, and with recorded ones. cpu-µs/op is the processor time of this process. The network of
// the collector is not measured.
func BenchmarkTracing(b *testing.B) {
	for name, sample := range map[string]float64{"off": -1, "not-recorded": 0, "recorded": 1} {
		b.Run(name, func(b *testing.B) {
			cfg := httpapi.Config{Actions: []fileops.Action{copying()}}
			if sample >= 0 {
				tracer, err := otlp.New(otlp.Config{Endpoint: "http://collector", Sample: sample, Transport: collector{}})
				systest.NoError(b, err)
				defer tracer.Close(context.Background())
				cfg.Tracer = tracer
			}
			blobs, err := fsblob.New(filepath.Join(b.TempDir(), "blobs"))
			systest.NoError(b, err)
			b.Cleanup(func() { blobs.Close() })
			cfg.Blobs = blobs
			base := serve(b, cfg)
			key := uploadFile(b, base, "a.bin", 1000)
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				m := post(b, base, "do", map[string]any{"action": "copy", "file_keys": []string{key}})
				_, st := call(b, "GET", fmt.Sprintf("%s/api/v1/status/%s?wait=60s", base, m["main_task_id"]), nil, 0)
				if st["operation_status"] != "completed" {
					b.Fatalf("%v", st)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// A collector accepts all requests and reads nothing.
type collector struct{}

func (collector) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// BenchmarkStatusPoll measures one status request for a final operation.
func BenchmarkStatusPoll(b *testing.B) {
	base := durable(b)
	key := uploadFile(b, base, "a.bin", 1000)
	m := post(b, base, "do", map[string]any{"action": "copy", "file_keys": []string{key}})
	url := fmt.Sprintf("%s/api/v1/status/%s", base, m["main_task_id"])
	call(b, "GET", url+"?wait=60s", nil, 0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(b, "GET", url, nil, 0)
		}
	})
}

// BenchmarkDownload measures one download of 256 MiB.
func BenchmarkDownload(b *testing.B) {
	base := durable(b)
	const size = 256 << 20
	key := uploadFile(b, base, "data.bin", size)
	b.SetBytes(size)
	for b.Loop() {
		resp, err := http.Get(base + "/v1/download/" + key)
		systest.NoError(b, err)
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || n != size {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}
}
