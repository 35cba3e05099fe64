package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"
)

// A world is the state of one scenario.
type world struct {
	dir     string // of the checkout's tests
	base    string // URL of the service
	version string
	store   string // directory of the files of the latest response
	work    string // parent of the directories of files
	response
	trials   []trial
	receiver *receiver
}

// A trial is the response to one of several requests at the same time.
type trial struct {
	status int
	pdfs   int
}

const traceHeader = "Gotenberg-Trace"

// form builds the form of a request from a table.
func (w *world) form(table [][]string) (body []byte, contentType string, header http.Header, err error) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	header = make(http.Header)
	for _, row := range table {
		if len(row) != 3 {
			return nil, "", nil, fmt.Errorf("row %q", row)
		}
		name, value := row[0], w.local(row[1])
		switch row[2] {
		case "header":
			header.Set(name, value)
		case "field":
			if err := m.WriteField(name, value); err != nil {
				return nil, "", nil, err
			}
		case "file":
			path := filepath.Join(w.dir, value)
			if rest, ok := strings.CutPrefix(value, "teststore/"); ok {
				path = filepath.Join(w.store, rest)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, "", nil, err
			}
			p, err := m.CreatePart(textproto.MIMEHeader{
				"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"; filename="%s"`, name, filepath.Base(path))},
				"Content-Type":        {"application/octet-stream"},
			})
			if err != nil {
				return nil, "", nil, err
			}
			if _, err := p.Write(content); err != nil {
				return nil, "", nil, err
			}
		default:
			return nil, "", nil, fmt.Errorf("row %q", row)
		}
	}
	err = m.Close()
	return b.Bytes(), m.FormDataContentType(), header, err
}

// local replaces the address of the host of containers by that of the receiver.
func (w *world) local(text string) string {
	if w.receiver != nil {
		text = strings.ReplaceAll(text, "host.docker.internal:%d", w.receiver.address)
	}
	return text
}

// A response is a response that was read.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (w *world) send(method, path string, body []byte, contentType string, header http.Header) (r response, err error) {
	req, err := http.NewRequest(method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	client := http.Client{Timeout: 4 * time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, content}, err
}

// post sends a form and stores the files of the response.
func (w *world) post(path string, table [][]string) error {
	body, contentType, header, err := w.form(table)
	if err != nil {
		return err
	}
	if w.response, err = w.send(http.MethodPost, path, body, contentType, header); err != nil {
		return err
	}
	switch dir := filepath.Join(w.work, clean(w.header.Get(traceHeader))); {
	case w.status == http.StatusNoContent:
		w.store = dir
	case w.status == http.StatusOK && w.header.Get("Content-Disposition") != "":
		w.store = dir
		return save(dir, w.header, w.body)
	}
	return nil
}

func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '.' {
			return '_'
		}
		return r
	}, name)
}

// save stores a file, and the files in it if it is an archive.
func save(dir string, header http.Header, content []byte) error {
	_, params, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if err != nil {
		return fmt.Errorf("header Content-Disposition: %w", err)
	}
	name := filepath.Base(params["filename"])
	if params["filename"] == "" {
		name = "unnamed"
		if strings.HasPrefix(header.Get("Content-Type"), "application/pdf") {
			name = "unnamed.pdf"
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		return err
	}
	if header.Get("Content-Type") != "application/zip" {
		return nil
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		inner, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), inner, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// several sends n requests at the same time.
func (w *world) several(n int, path string, table [][]string) error {
	body, contentType, header, err := w.form(table)
	if err != nil {
		return err
	}
	w.trials = make([]trial, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, err := w.send(http.MethodPost, path, body, contentType, header)
			if errs[i] = err; err != nil {
				return
			}
			w.trials[i].status = r.status
			if bytes.HasPrefix(r.body, []byte("%PDF-")) {
				w.trials[i].pdfs = 1
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// pdfs returns the paths of the PDF files of the latest response.
func (w *world) pdfs() ([]string, error) {
	if w.store == "" {
		return nil, fmt.Errorf("the response has no files")
	}
	all, err := filepath.Glob(filepath.Join(w.store, "*.pdf"))
	return all, err
}

// file returns the path of a file of the latest response. A name that begins with *_ is a part of the
// name.
func (w *world) file(name string) (string, error) {
	pattern := name
	if rest, ok := strings.CutPrefix(name, "*"); ok {
		pattern = "*" + rest
	}
	found, err := filepath.Glob(filepath.Join(w.store, pattern))
	if err != nil || w.store == "" || len(found) == 0 {
		return "", fmt.Errorf("there is no file %q, only %q", name, names(w.store))
	}
	return found[0], nil
}

// names lists the files in a directory.
func names(dir string) (out []string) {
	entries, _ := os.ReadDir(dir) // a missing directory has no files
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// compare reports where JSON differs from what is expected. Members that are not expected, and those
// whose expected value is "ignore", may be anything.
func compare(expected, actual any) error {
	switch e := expected.(type) {
	case map[string]any:
		a, ok := actual.(map[string]any)
		if !ok {
			return fmt.Errorf("want an object, got %v", actual)
		}
		for name, v := range e {
			if v == "ignore" {
				continue
			}
			have, ok := a[name]
			if !ok {
				return fmt.Errorf("%s is missing", name)
			}
			if err := compare(v, have); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	case []any:
		a, ok := actual.([]any)
		if !ok || len(a) != len(e) {
			return fmt.Errorf("want %v, got %v", e, actual)
		}
		for i := range e {
			if err := compare(e[i], a[i]); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	}
	if !reflect.DeepEqual(expected, actual) {
		return fmt.Errorf("want %v, got %v", expected, actual)
	}
	return nil
}

func compareText(expected string, actual []byte) error {
	var e, a any
	if err := json.Unmarshal([]byte(expected), &e); err != nil {
		return err
	}
	if err := json.Unmarshal(actual, &a); err != nil {
		return fmt.Errorf("%w: %.200s", err, actual)
	}
	return compare(e, a)
}

// A receiver is a server for webhooks, pages and downloads.
type receiver struct {
	address string
	server  *http.Server
	got     chan struct{} // closed after the first webhook

	mu     sync.Mutex
	once   sync.Once
	header http.Header // of the latest request
	cookie []*http.Cookie
	body   []byte
	event  []byte
	err    error
}

func newReceiver(dir, work string) (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{address: ln.Addr().String(), got: make(chan struct{})}
	note := func(req *http.Request) []byte {
		body, err := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header, r.cookie, r.body, r.err = req.Header, req.Cookies(), body, err
		return body
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/webhook", func(_ http.ResponseWriter, req *http.Request) {
		body := note(req)
		err := save(filepath.Join(work, clean(req.Header.Get(traceHeader))), req.Header, body)
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		r.once.Do(func() { close(r.got) })
	})
	mux.HandleFunc("/webhook/error", func(_ http.ResponseWriter, req *http.Request) {
		note(req)
		r.once.Do(func() { close(r.got) })
	})
	mux.HandleFunc("/webhook/events", func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body) // a short body fails the comparison
		r.mu.Lock()
		r.event = body
		r.mu.Unlock()
	})
	mux.HandleFunc("/static/", func(out http.ResponseWriter, req *http.Request) {
		note(req)
		path := strings.TrimPrefix(req.URL.Path, "/static/")
		out.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(path)}))
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			http.Error(out, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = out.Write(content)
	})
	mux.HandleFunc("/html/", func(out http.ResponseWriter, req *http.Request) {
		note(req)
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(req.URL.Path, "/html/"))))
		if err != nil {
			http.Error(out, err.Error(), http.StatusNotFound)
			return
		}
		out.Header().Set("Content-Type", "text/html; charset=UTF-8")
		_, _ = out.Write(content)
	})
	mux.HandleFunc("/redirect-to-private", func(out http.ResponseWriter, req *http.Request) {
		http.Redirect(out, req, "http://127.0.0.1:9/redirected", http.StatusFound)
	})
	r.server = &http.Server{Handler: mux}
	go func() { _ = r.server.Serve(ln) }()
	return r, nil
}
