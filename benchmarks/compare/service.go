//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"

	"github.com/filewright/filewright/benchmarks/internal/service"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

// newService starts the HTTP service for everybody, with all data on disk.
func newService(ctx context.Context, dir string) (url string, stop func() error, err error) {
	return service.Start(ctx, dir, func(*sqlstore.DB) (httpapi.Authenticator, error) { return httpapi.AllowAll(), nil })
}

// An uploader uploads size bytes to a service in a worker.
type uploader struct {
	*server
	url  string
	dir  string
	size int64
}

func newUploader(e *environment, size int64) (contender, error) {
	dir, err := os.MkdirTemp(e.inputs.Dir, "service-")
	if err != nil {
		return nil, err
	}
	w, err := e.worker(nil)
	if err != nil {
		return nil, err
	}
	a, err := w.Ask(map[string]any{"op": "serve", "dir": dir})
	return &uploader{server: w, url: a.URL, dir: dir, size: size}, err
}

func (u *uploader) close() error { return errors.Join(u.server.close(), os.RemoveAll(u.dir)) }

func (u *uploader) measure(ctx context.Context, _ string) (sample, error) {
	var key string
	s, err := u.during(func() (err error) {
		key, err = upload(ctx, u.url, u.size)
		return err
	})
	s.size = u.size
	if err == nil && key == "" {
		err = errors.New("the service did not print a key")
	}
	return s, err
}

// upload runs a whole upload, from initiate to complete, in one part.
func upload(ctx context.Context, base string, size int64) (key string, err error) {
	var m struct {
		FileKey    string   `json:"file_key"`
		ObjectName string   `json:"object_name"`
		UploadID   string   `json:"upload_id"`
		URLs       []string `json:"presigned_urls"`
	}
	err = post(ctx, base+"/api/v1/initiate-upload", map[string]any{"file_name": "data.bin", "size": size, "mime_type": "application/octet-stream"}, &m)
	if err != nil {
		return "", err
	}
	if len(m.URLs) != 1 {
		return "", errors.New("no address to upload to")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, m.URLs[0], io.LimitReader(&repeated{block: randomBlock()}, size))
	if err != nil {
		return "", err
	}
	req.ContentLength = size
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("PUT: %s", resp.Status)
	}
	return m.FileKey, post(ctx, base+"/api/v1/complete-upload", map[string]any{
		"file_key": m.FileKey, "object_name": m.ObjectName, "upload_id": m.UploadID,
		"parts": []any{map[string]any{"part_number": 1, "etag": strings.Trim(resp.Header.Get("ETag"), `"`)}},
	}, nil)
}

func post(ctx context.Context, url string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s %s", url, resp.Status, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func randomBlock() []byte {
	var seed [32]byte
	b := make([]byte, 1<<20)
	rand.NewChaCha8(seed).Read(b)
	return b
}

// repeated reads the same block repeatedly.
type repeated struct {
	block []byte
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	return n, nil
}
