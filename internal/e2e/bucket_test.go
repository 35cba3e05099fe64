//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

const bucket = "files"

// bucketURL returns the --blob-url for a prefix of the shared bucket.
func bucketURL(prefix, params string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s&path_style=true%s", bucket, prefix, url.QueryEscape(buckets.Endpoint), s3test.Region, params)
}

// stored returns the names under a prefix of the shared bucket.
func stored(t testing.TB, prefix string) (names []string) {
	t.Helper()
	c, err := buckets.Client()
	systest.NoError(t, err)
	for o := range c.ListObjectsIter(t.Context(), bucket, minio.ListObjectsOptions{Prefix: prefix + "/", Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		names = append(names, o.Key)
	}
	return names
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return b
}

func TestBucket(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	dir := filepath.Join(t.TempDir(), "data")
	s := startLean(t, dir, "--blob-url", bucketURL("plain", ""))

	// Large parts go directly to the bucket.
	large := random(64*mib + 77)
	if up := s.initiate(t, "large.bin", len(large), 8); !strings.HasPrefix(up.urls[7], buckets.Endpoint+"/") {
		t.Fatalf("parts of 8 MiB go to %s", up.urls[7])
	}
	key := s.upload(t, "large.bin", large, 8)
	// Small parts, as clients cut them, pass through the service.
	small := random(20*mib + 3)
	if up := s.initiate(t, "small.bin", len(small), 5); strings.HasPrefix(up.urls[0], buckets.Endpoint+"/") {
		t.Fatal("parts below 5 MiB go to the bucket")
	}
	smallKey := s.upload(t, "small.bin", small, 5)

	for k, want := range map[string][]byte{key: large, smallKey: small} {
		link := "/v1/download/" + k
		d := s.want(t, 200, "", "GET", link, nil)
		if !bytes.Equal(d.raw, want) {
			t.Fatalf("a download of %d bytes is not what was uploaded", len(d.raw))
		}
		n := len(want)
		if r := s.want(t, 206, "", "GET", link, nil, "Range", fmt.Sprintf("bytes=%d-%d", 9*mib, 9*mib+99)); !bytes.Equal(r.raw, want[9*mib:9*mib+100]) {
			t.Error("a range in the middle is wrong")
		}
		if r := s.want(t, 206, "", "GET", link, nil, "Range", "bytes=-10"); !bytes.Equal(r.raw, want[n-10:]) || r.header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", n-10, n-1, n) {
			t.Error("the last bytes are wrong")
		}
		s.want(t, 416, "invalid_range", "GET", link, nil, "Range", fmt.Sprintf("bytes=%d-", n))
		s.want(t, 304, "", "GET", link, nil, "If-None-Match", d.header.Get("ETag"))
		if h := s.want(t, 200, "", "HEAD", link, nil); h.header.Get("Content-Length") != fmt.Sprint(n) || len(h.raw) != 0 {
			t.Errorf("HEAD says %v", h.header)
		}
	}

	// Operations read from the bucket and write to it.
	out := s.one(t, "convert", map[string]any{"convert_to": "webp"}, jpg(t))
	if !bytes.HasPrefix(out.b, []byte("RIFF")) {
		t.Errorf("the result is no WebP: %q", out.b[:16])
	}
	task := s.await(t, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key, smallKey}}).str("main_task_id"))
	zip := task.elements()[0]
	s.want(t, 200, "", "GET", zip["download_link"].(string), nil)

	// All files are in the bucket, and none in the data directory.
	for _, k := range []string{key, smallKey, zip["file_key"].(string)} {
		if !strings.Contains(strings.Join(stored(t, "plain"), "\n"), k) {
			t.Errorf("the bucket has no %s", k)
		}
		s.want(t, 200, "", "DELETE", "/api/v1/files/"+k, nil)
		if strings.Contains(strings.Join(stored(t, "plain"), "\n"), k) {
			t.Errorf("the bucket still has %s", k)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "blobs")); err == nil {
		t.Error("there are blobs in the data directory")
	}
	left, err := os.ReadDir(filepath.Join(dir, "scratch"))
	for _, d := range left { // engines have their own directories there
		if strings.HasPrefix(d.Name(), "spool-") {
			err = fmt.Errorf("%s is left", d.Name())
		}
	}
	if err != nil {
		t.Errorf("scratch: %v", err)
	}
	r := s.ready(t)
	if !strings.Contains(string(r.raw), `"bucket"`) {
		t.Errorf("readyz says nothing about the bucket: %s", r.raw)
	}
	for _, secret := range []string{s3test.SecretKey, "X-Amz-Signature"} {
		if strings.Contains(s.err.String(), secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
}

func TestBucketRedirect(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--blob-url", bucketURL("redirect", ""), "--redirect-downloads")
	data := random(100_000)
	input := s.upload(t, "in put.pdf", data, 1)
	task := s.await(t, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{input}}).str("main_task_id"))
	result := task.elements()[0]["download_link"].(string)

	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	do := func(c *http.Client, method, path string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
		systest.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := c.Do(req)
		systest.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		systest.NoError(t, err)
		if resp.Request.URL.Host == strings.TrimPrefix(s.url, "http://") {
			systest.Check(t, checker.Response(method, path, resp.StatusCode, resp.Header, b))
		}
		return resp, b
	}
	auth := []string{"Authorization", "Bearer " + s.key}
	resp, b := do(stay, "GET", "/v1/download/"+input, auth...)
	if resp.StatusCode != http.StatusTemporaryRedirect || !strings.HasPrefix(resp.Header.Get("Location"), buckets.Endpoint+"/") || len(b) != 0 || resp.Header.Get("Cache-Control") != "private, no-store" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	// The API key is not sent to the bucket.
	resp, b = do(http.DefaultClient, "GET", "/v1/download/"+input, auth...)
	if resp.StatusCode != http.StatusOK || !bytes.Equal(b, data) || resp.Header.Get("Content-Type") != "application/pdf" || resp.Header.Get("Content-Disposition") != `attachment; filename="in put.pdf"` {
		t.Errorf("%d %v, %d bytes", resp.StatusCode, resp.Header, len(b))
	}
	resp, b = do(http.DefaultClient, "GET", "/v1/download/"+input, append(auth, "Range", "bytes=10-19")...)
	if resp.StatusCode != http.StatusPartialContent || !bytes.Equal(b, data[10:20]) {
		t.Errorf("%d %v, %d bytes", resp.StatusCode, resp.Header, len(b))
	}
	resp, _ = do(stay, "HEAD", "/v1/download/"+input, auth...)
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(data)) {
		t.Errorf("HEAD: %d %v", resp.StatusCode, resp.Header)
	}
	for _, match := range []string{resp.Header.Get("ETag"), "*", `"x", W/` + resp.Header.Get("ETag")} {
		if resp, _ := do(stay, "GET", "/v1/download/"+input, append(auth, "If-None-Match", match)...); resp.StatusCode != http.StatusNotModified {
			t.Errorf("If-None-Match: %s: %d", match, resp.StatusCode)
		}
	}
	// A client without permission is not redirected.
	if resp, _ := do(stay, "GET", "/v1/download/"+input); resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Location") != "" {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
	if resp, _ := do(stay, "GET", "/v1/download/"+strings.Repeat("a", 26), auth...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("what does not exist: %d", resp.StatusCode)
	}
	if resp, b := do(http.DefaultClient, "GET", result); resp.StatusCode != http.StatusOK || !bytes.HasPrefix(b, []byte("PK")) {
		t.Errorf("a result without a key: %d %v", resp.StatusCode, resp.Header)
	}
	open := s.initiate(t, "open.bin", 10, 1)
	if resp, _ := do(stay, "GET", "/v1/download/"+open.key, auth...); resp.StatusCode != http.StatusConflict {
		t.Errorf("what is not complete: %d", resp.StatusCode)
	}
}

// The address of a private bucket is never shown to clients.
func TestBucketPrivate(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--blob-url", bucketURL("private", "&private=true"), "--redirect-downloads")
	data := random(6 << 20)
	if up := s.initiate(t, "a.bin", len(data), 1); !strings.HasPrefix(up.urls[0], s.url) {
		t.Errorf("parts go to %s", up.urls[0])
	}
	key := s.upload(t, "a.bin", data, 1)
	if d := s.want(t, 200, "", "GET", "/v1/download/"+key, nil); !bytes.Equal(d.raw, data) {
		t.Error("the download is not what was uploaded")
	}
}

// While the bucket does not respond, clients get an error; afterwards the service continues.
func TestBucketDies(t *testing.T) {
	t.Parallel()
	srv := s3test.Own(t, bucket)
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--max-attempts", "20",
		"--blob-url", fmt.Sprintf("s3://%s?endpoint=%s&region=%s&private=true", bucket, url.QueryEscape(srv.Endpoint), s3test.Region))
	data := random(300_000)
	key := s.upload(t, "a.bin", data, 1)
	srv.Kill()
	s.want(t, 503, "unavailable", "GET", "/v1/download/"+key, nil)
	up := s.initiate(t, "b.bin", 10, 1)
	s.want(t, 503, "unavailable", "PUT", up.urls[0], random(10))
	if r := s.request(t, "GET", "/readyz", nil); r.status != 503 {
		t.Errorf("readyz: %d %s", r.status, r.raw)
	}
	task := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}}).str("main_task_id")
	eventually(t, "it waits for the bucket", func() bool {
		e := s.want(t, 200, "", "GET", "/api/v1/status/"+task, nil).elements()[0]
		return e["status"] == "queued" && e["waiting"] != nil
	})
	systest.NoError(t, srv.Start())
	if r := s.await(t, task); r.str("operation_status") != "completed" {
		t.Errorf("an operation that was waiting for the bucket: %s", r.raw)
	}
	if d := s.want(t, 200, "", "GET", "/v1/download/"+key, nil); !bytes.Equal(d.raw, data) {
		t.Error("the download is not what was uploaded")
	}
	s.put(t, up.urls[0], random(10))
	metrics := string(s.want(t, 200, "", "GET", "/metrics", nil).raw)
	for _, want := range []string{`{method="PUT",status="200"}`, `{method="GET",status="none"}`} {
		if !strings.Contains(metrics, "filewright_bucket_request_seconds_count"+want) {
			t.Errorf("metrics without %s", want)
		}
	}
}

// A server that cannot use its bucket reports the reason and does not start.
func TestBucketWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		url, secret string
		want        string
	}{
		"no such bucket": {strings.Replace(bucketURL("x", ""), "s3://files", "s3://nothing", 1), s3test.SecretKey, `"nothing"`},
		"wrong secret":   {bucketURL("x", ""), "other", "SignatureDoesNotMatch"},
		"half a key":     {bucketURL("x", ""), "", "AWS_SECRET_ACCESS_KEY"},
		"no bucket":      {"s3:///x", s3test.SecretKey, "--blob-url"},
		"secret in URL":  {"s3://a:other@files", s3test.SecretKey, "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data"), "--blob-url", tt.url)
			cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+tt.secret)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "other") {
				t.Errorf("exit code %d, %v: %s", code, err, out)
			}
		})
	}
}
