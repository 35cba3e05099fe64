//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// check runs refserver check, and returns its exit code and the differences by file key.
func check(t *testing.T, flags ...string) (code int, kinds map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"check", "--json"}, flags...)...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey)
	var errw bytes.Buffer
	cmd.Stderr = &errw
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Differences []struct {
			Kind string
			Key  string `json:"file_key"`
		}
		Found int
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Differences) != report.Found {
		t.Fatalf("check: %v in %s%s", err, out, &errw)
	}
	kinds = make(map[string]string)
	for _, d := range report.Differences {
		kinds[d.Key] = d.Kind
	}
	return cmd.ProcessState.ExitCode(), kinds
}

// refserver check runs beside a server that accepts uploads and deletes files. On every kind of
// store it finds lost, truncated and orphaned files, and nothing else. The server reports lost
// content, and does not accept it as an input.
func TestCheck(t *testing.T) {
	t.Parallel()
	type store struct {
		s     *server
		flags []string
		blobs blob.Store // of the server
	}
	quick := append([]string{"--rate", "0"}, noEngines...)
	directory := func(t *testing.T, dir string) blob.Store {
		b, err := fsblob.NewShared(dir)
		systest.NoError(t, err)
		t.Cleanup(func() { b.Close() })
		return b
	}
	for name, open := range map[string]func(t *testing.T) store{
		"SQLite and a directory": func(t *testing.T) store {
			dir := filepath.Join(t.TempDir(), "data")
			return store{start(t, dir, quick...), []string{"--data-dir", dir}, directory(t, filepath.Join(dir, "blobs"))}
		},
		"PostgreSQL and a shared directory": func(t *testing.T) store {
			c := newCluster(t)
			return store{c.node("all", quick...), []string{"--database-url", c.url, "--blob-url", c.blobs}, directory(t, c.blobs)}
		},
		"SQLite and a bucket": func(t *testing.T) store {
			c := buckets.Config(bucket)
			c.Prefix = "check"
			b, err := s3blob.New(c)
			systest.NoError(t, err)
			t.Cleanup(func() { b.Close() })
			flags := []string{"--blob-url", bucketURL("check", "")}
			dir := filepath.Join(t.TempDir(), "data")
			return store{start(t, dir, append(quick, flags...)...), append(flags, "--data-dir", dir), b}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := open(t)
			s := st.s
			upload := func(ctx context.Context, content string) (string, error) {
				var up struct {
					Key    string   `json:"file_key"`
					Object string   `json:"object_name"`
					ID     string   `json:"upload_id"`
					URLs   []string `json:"presigned_urls"`
				}
				r, err := s.try(ctx, "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a.txt", "size": len(content), "mime_type": "text/plain"})
				if err != nil {
					return "", err
				}
				if err := json.Unmarshal(r.raw, &up); err != nil || len(up.URLs) != 1 {
					return "", fmt.Errorf("initiate: %s", r.raw)
				}
				if r, err = s.try(ctx, "PUT", up.URLs[0], content, "Content-Type", "text/plain"); err != nil {
					return "", err
				}
				if r, err = s.try(ctx, "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.Key, "object_name": up.Object, "upload_id": up.ID,
					"parts": []map[string]any{{"part_number": 1, "etag": r.header.Get("ETag")}}}); err == nil && r.status != http.StatusOK {
					err = fmt.Errorf("complete: %s", r.raw)
				}
				return up.Key, err
			}
			var keys []string
			for range 3 {
				key, err := upload(t.Context(), "some text")
				systest.NoError(t, err)
				keys = append(keys, key)
			}
			lost, truncated := keys[0], keys[1]

			// Uploads and deletions continue from now on.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var clients sync.WaitGroup
			var rounds atomic.Int64
			for range 2 {
				clients.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						key, err := upload(t.Context(), "some text")
						if err != nil {
							t.Error(err)
							return
						}
						if n%2 == 0 {
							if r, err := s.try(t.Context(), "DELETE", "/api/v1/files/"+key, nil); err != nil || r.status != http.StatusOK {
								t.Errorf("delete: %v, %v", r, err)
								return
							}
						}
						rounds.Add(1)
					}
				})
			}
			for checks := 0; checks < 2 || rounds.Load() < 20 && !t.Failed(); checks++ {
				if code, kinds := check(t, append(st.flags, "--deep", "--grace", "2s")...); code != 0 || len(kinds) != 0 {
					t.Errorf("a whole store: exit code %d, %v", code, kinds)
				}
			}
			nobody := strings.Repeat("z", 26)
			err := st.blobs.Delete(t.Context(), "files/"+lost)
			for key, content := range map[string]string{truncated: "some", nobody: "x"} {
				err = errors.Join(err, st.blobs.Put(t.Context(), "files/"+key, strings.NewReader(content), int64(len(content))))
			}
			systest.NoError(t, err)
			want := map[string]string{lost: "missing", truncated: "wrong_size"}
			if code, kinds := check(t, append(st.flags, "--grace", "1h")...); code != 1 || fmt.Sprint(kinds) != fmt.Sprint(want) {
				t.Errorf("exit code %d, found %v, want %v", code, kinds, want)
			}
			want[nobody] = "orphan"
			if code, kinds := check(t, st.flags...); code != 1 || fmt.Sprint(kinds) != fmt.Sprint(want) {
				t.Errorf("exit code %d, found %v, want %v", code, kinds, want)
			}
			cancel()
			clients.Wait()

			for _, key := range []string{lost, truncated} {
				s.want(t, http.StatusGone, "content_lost", "GET", "/v1/download/"+key, nil)
				task := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{keys[2], key}}).str("main_task_id")
				if r := s.await(t, task); r.str("operation_status") != "failed" || r.elements()[0]["error_code"] != "content_lost" {
					t.Errorf("as an input: %s", r.raw)
				}
			}
			if n := strings.Count(s.err.String(), `msg="content lost"`); n != 2 {
				t.Errorf("%d lines about 2 lost files", n)
			}
		})
	}
}
