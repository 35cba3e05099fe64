// Command client is a small client of the service: it uploads a file in parts,
// runs an operation and downloads the results.
//
//	API_KEY=fw_… client http://127.0.0.1:8080 convert report.docx convert_to=pdf
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// partSize is the size of an uploaded part. A single part may have up to 5 GiB; smaller parts can
// be repeated when a connection breaks.
const partSize = 5 << 20

// A Client calls one server.
type Client struct {
	Base string // server address without a trailing slash
	Key  string // API key
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: API_KEY=… client URL ACTION FILE… [NAME=VALUE…]")
	}
	c := &Client{Base: strings.TrimSuffix(os.Args[1], "/"), Key: os.Getenv("API_KEY")}
	var files []string
	params := map[string]string{}
	for _, arg := range os.Args[3:] {
		if name, value, ok := strings.Cut(arg, "="); ok {
			params[name] = value
		} else {
			files = append(files, arg)
		}
	}
	saved, err := c.Run(context.Background(), os.Args[2], files, params, ".")
	for _, path := range saved {
		fmt.Println(path)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// Run uploads files, runs action on them and saves the results in dir. It returns the paths of the
// results.
func (c *Client) Run(ctx context.Context, action string, files []string, params map[string]string, dir string) ([]string, error) {
	var keys []string
	for _, path := range files {
		key, err := c.Upload(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("upload %s: %w", path, err)
		}
		keys = append(keys, key)
	}
	var task struct {
		ID string `json:"main_task_id"`
	}
	if err := c.call(ctx, "POST", "/api/v1/do", map[string]any{"action": action, "file_keys": keys, "parameters": params}, &task); err != nil {
		return nil, err
	}
	var op struct {
		Status string `json:"operation_status"`
		Files  []struct {
			Status  string `json:"status"`
			Name    string `json:"file_name"`
			Link    string `json:"download_link"`
			Message string `json:"error_message"`
		} `json:"files_data"`
	}
	for op.Status != "completed" && op.Status != "failed" {
		if err := c.call(ctx, "GET", "/api/v1/status/"+task.ID+"?wait=30s", nil, &op); err != nil {
			return nil, err
		}
	}
	var saved []string
	var errs []error
	for _, f := range op.Files {
		if f.Status != "completed" {
			errs = append(errs, fmt.Errorf("%s: %s", f.Name, f.Message))
			continue
		}
		path := filepath.Join(dir, filepath.Base(f.Name))
		if err := c.download(ctx, f.Link, path); err != nil {
			errs = append(errs, err)
			continue
		}
		saved = append(saved, path)
	}
	return saved, errors.Join(errs...)
}

// Upload uploads a file and returns its file_key.
func (c *Client) Upload(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	mimeType := mime.TypeByExtension(filepath.Ext(path))
	if mimeType == "" {
		mimeType = "application/octet-stream"
	}
	parts := min(max(1, (st.Size()+partSize-1)/partSize), 100)
	chunk := (st.Size() + parts - 1) / parts
	var up struct {
		FileKey  string   `json:"file_key"`
		Object   string   `json:"object_name"`
		UploadID string   `json:"upload_id"`
		URLs     []string `json:"presigned_urls"`
	}
	if err := c.call(ctx, "POST", "/api/v1/initiate-upload", map[string]any{
		"file_name": filepath.Base(path), "size": st.Size(), "mime_type": mimeType, "parts": parts,
	}, &up); err != nil {
		return "", err
	}
	var done []map[string]any
	for i, url := range up.URLs {
		off := int64(i) * chunk
		n := min(chunk, max(0, st.Size()-off))
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, io.NewSectionReader(f, off, n))
		if err != nil {
			return "", err
		}
		if req.ContentLength = n; n == 0 {
			req.Body = http.NoBody
		}
		req.Header.Set("Content-Type", mimeType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		if err := problem(resp); err != nil {
			return "", err
		}
		resp.Body.Close()
		done = append(done, map[string]any{"part_number": i + 1, "etag": strings.Trim(resp.Header.Get("ETag"), `"`)})
	}
	return up.FileKey, c.call(ctx, "POST", "/api/v1/complete-upload", map[string]any{
		"file_key": up.FileKey, "object_name": up.Object, "upload_id": up.UploadID, "parts": done,
	}, nil)
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := problem(resp); err != nil || out == nil {
		return err
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (c *Client) download(ctx context.Context, link, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+link, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := problem(resp); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// problem returns the error of a response, or nil.
func problem(resp *http.Response) error {
	if resp.StatusCode < 400 {
		return nil
	}
	defer resp.Body.Close()
	var p struct {
		Slug   string `json:"error"`
		Detail string `json:"detail"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p) // the status alone says enough
	return fmt.Errorf("%s: %s (%s)", resp.Status, p.Detail, p.Slug)
}
