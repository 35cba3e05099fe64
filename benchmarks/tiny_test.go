package benchmarks

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// BenchmarkTinyJob measures a small file through the whole service: upload, do, status, download.
// cpu-ms/op is the processor time of all processes, which another load of the machine changes less
// than the time. It compares a process for each file with processes that read several files.
func BenchmarkTinyJob(b *testing.B) {
	content := func(path string) []byte {
		c, err := os.ReadFile(path)
		systest.NoError(b, err)
		return c
	}
	var picture bytes.Buffer
	systest.NoError(b, png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 64, 64))))
	document := content(sample("one.pdf")(b)[0])
	cache := b.TempDir()
	for _, files := range []int{1, 64} {
		engines := standard.Probe(b.Context(), &standard.Options{CacheDir: cache, Isolate: true, IsolatedFiles: files, FFmpeg: standard.None, LibreOffice: standard.None, Chromium: standard.None})
		systest.NoError(b, engines.Ready(b.Context()))
		systest.NoError(b, engines.Warm(b.Context()))
		for _, job := range []struct {
			name, file string
			content    []byte
			request    map[string]any
		}{
			{"png-jpg", "a.png", picture.Bytes(), map[string]any{"action": "convert", "parameters": map[string]any{"convert_to": "jpg"}}},
			{"zip", "a.txt", []byte("hello\n"), map[string]any{"action": "zip"}},
			{"lock", "a.pdf", document, map[string]any{"action": "lock", "parameters": map[string]any{"password": "secret"}}},
			{"pdf-txt", "a.pdf", document, map[string]any{"action": "convert", "parameters": map[string]any{"convert_to": "txt"}}},
		} {
			b.Run(fmt.Sprintf("%s/files=%d", job.name, files), func(b *testing.B) {
				blobs, err := fsblob.New(filepath.Join(b.TempDir(), "blobs"))
				systest.NoError(b, err)
				b.Cleanup(func() { blobs.Close() })
				base := durableWith(b, blobs, false, engines.Actions()...)
				before := processorTime(b)
				for b.Loop() {
					m := post(b, base, "initiate-upload", map[string]any{"file_name": job.file, "size": len(job.content), "mime_type": "application/octet-stream"})
					resp, _ := call(b, "PUT", m["presigned_urls"].([]any)[0].(string), bytes.NewReader(job.content), int64(len(job.content)))
					post(b, base, "complete-upload", map[string]any{"file_key": m["file_key"], "object_name": m["object_name"], "upload_id": m["upload_id"],
						"parts": []any{map[string]any{"part_number": 1, "etag": strings.Trim(resp.Header.Get("ETag"), `"`)}}})
					job.request["file_keys"] = []any{m["file_key"]}
					m = post(b, base, "do", job.request)
					_, st := call(b, "GET", fmt.Sprintf("%s/api/v1/status/%s?wait=60s", base, m["main_task_id"]), nil, 0)
					if st["operation_status"] != "completed" {
						b.Fatalf("%v", st)
					}
					link := st["files_data"].([]any)[0].(map[string]any)["download_link"].(string)
					if strings.HasPrefix(link, "/") {
						link = base + link
					}
					call(b, "GET", link, nil, 0)
				}
				b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
		systest.NoError(b, engines.Close())
	}
}

// processorTime returns the processor time of this process and of all processes that it has
// started, directly or not (proc_pid_stat(5)).
func processorTime(b *testing.B) time.Duration {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	systest.NoError(b, err)
	ticks, children := make(map[int]int64), make(map[int][]int)
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		systest.NoError(b, err)
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		number := func(i int) int64 {
			n, err := strconv.ParseInt(string(f[i]), 10, 64)
			systest.NoError(b, err)
			return n
		}
		children[int(number(1))] = append(children[int(number(1))], pid)
		ticks[pid] = number(11) + number(12) + number(13) + number(14)
	}
	var sum func(pid int) int64
	sum = func(pid int) int64 {
		n := ticks[pid]
		for _, child := range children[pid] {
			n += sum(child)
		}
		return n
	}
	return time.Duration(sum(os.Getpid())) * (time.Second / 100)
}
