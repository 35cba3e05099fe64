//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/proc"
	"github.com/filewright/filewright/benchmarks/internal/service"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

// serve starts the service with all data in dir. The fragment of the URL is an API key.
func serve(ctx context.Context, dir string) (address string, stop func() error, err error) {
	var key string
	address, stop, err = service.Start(ctx, dir, func(db *sqlstore.DB) (_ httpapi.Authenticator, err error) {
		keys := auth.NewKeys(db.Keys(), nil)
		key, _, err = keys.Create(ctx, auth.NewKey{Name: "growth", Rate: httpapi.Rate{PerSecond: 1e6, Burst: 1e6}})
		return keys, err
	})
	return address + "#" + key, stop, err
}

// A client sends requests to the service, one after the other.
type client struct {
	http      *http.Client
	base, key string
	operation string // a finished one
}

// least is how long a number of clients is measured.
const least = 2 * time.Second

// measureClients measures a series of requests.
func (e *environment) measureClients(ctx context.Context, child *proc.Child, s *series) error {
	a, err := child.Ask(map[string]any{"op": "serve", "dir": e.dir})
	if err != nil {
		return err
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return err
	}
	c := &client{base: "http://" + u.Host, key: u.Fragment, http: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}}}
	if err := c.loop(ctx); err != nil {
		return err
	}
	for _, n := range s.sizes {
		if e.most > 0 && n > e.most {
			break
		}
		var mu sync.Mutex
		var took []time.Duration
		var failed error
		var requests atomic.Int64
		got, err := child.During(func() error {
			var wg sync.WaitGroup
			for start := time.Now(); len(took) == 0 || time.Since(start) < min(least, e.budget); {
				for range n {
					wg.Go(func() {
						one := *c
						for range 20 {
							began := time.Now()
							err := s.clients(&one, ctx)
							d := time.Since(began)
							requests.Add(1)
							mu.Lock()
							took, failed = append(took, d), errors.Join(failed, err)
							mu.Unlock()
							if err != nil {
								return
							}
						}
					})
				}
				wg.Wait()
				if failed != nil {
					return failed
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d clients: %w", n, err)
		}
		slices.Sort(took)
		p := point{size: n, cpu: got.CPU / time.Duration(requests.Load()), memory: got.Memory, p50: took[len(took)/2], p99: took[len(took)*99/100]}
		s.points = append(s.points, p)
		fmt.Fprintf(e.out, "%-36s %7d  %10v  %5d MiB  p50 %v, p99 %v of %d\n", s.name, n, p.cpu.Round(time.Microsecond), p.memory>>20, p.p50.Round(time.Microsecond), p.p99.Round(time.Microsecond), len(took))
	}
	return nil
}

// call sends a request and decodes its JSON response into v unless that is nil.
func (c *client) call(ctx context.Context, method, url string, body, v any) (http.Header, error) {
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		in = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	if strings.HasPrefix(url, "/") {
		url = c.base + url
	}
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s %s", method, url, resp.Status, raw)
	}
	if v != nil {
		err = json.Unmarshal(raw, v)
	}
	return resp.Header, err
}

func (c *client) poll(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/api/v1/status/"+c.operation, nil, nil)
	return err
}

func (c *client) list(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/api/v1/operations", nil, nil)
	return err
}

func (c *client) upload(ctx context.Context) error {
	_, err := c.send(ctx, prose(1, 10_000))
	return err
}

// send uploads a file and returns its key.
func (c *client) send(ctx context.Context, content []byte) (key string, err error) {
	var m struct {
		FileKey    string   `json:"file_key"`
		ObjectName string   `json:"object_name"`
		UploadID   string   `json:"upload_id"`
		URLs       []string `json:"presigned_urls"`
	}
	if _, err := c.call(ctx, http.MethodPost, "/api/v1/initiate-upload", map[string]any{"file_name": "a.txt", "size": len(content), "mime_type": "text/plain"}, &m); err != nil {
		return "", err
	}
	if len(m.URLs) != 1 {
		return "", fmt.Errorf("%d URLs to upload to", len(m.URLs))
	}
	h, err := c.call(ctx, http.MethodPut, m.URLs[0], content, nil)
	if err != nil {
		return "", err
	}
	_, err = c.call(ctx, http.MethodPost, "/api/v1/complete-upload", map[string]any{
		"file_key": m.FileKey, "object_name": m.ObjectName, "upload_id": m.UploadID,
		"parts": []any{map[string]any{"part_number": 1, "etag": strings.Trim(h.Get("ETag"), `"`)}},
	}, nil)
	return m.FileKey, err
}

// loop is the whole way of a file. It remembers the operation.
func (c *client) loop(ctx context.Context) error {
	key, err := c.send(ctx, prose(2, 1000))
	if err != nil {
		return err
	}
	var started struct {
		ID string `json:"main_task_id"`
	}
	if _, err := c.call(ctx, http.MethodPost, "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}}, &started); err != nil {
		return err
	}
	c.operation = started.ID
	var end struct {
		Status string `json:"operation_status"`
		Files  []struct {
			Link string `json:"download_link"`
		} `json:"files_data"`
	}
	if _, err := c.call(ctx, http.MethodGet, "/api/v1/status/"+started.ID+"?wait=30s", nil, &end); err != nil {
		return err
	}
	if end.Status != "completed" || len(end.Files) != 1 {
		return fmt.Errorf("the operation is %s with %d files", end.Status, len(end.Files))
	}
	_, err = c.call(ctx, http.MethodGet, end.Files[0].Link, nil, nil)
	return err
}
