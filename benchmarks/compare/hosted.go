//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/benchmarks/internal/proc"
	"github.com/filewright/filewright/httpapi/client"
)

// A hosted contender is a program that serves HTTP. A run sends it jobs from several clients at the
// same time. Its sample is that of one job: time and processor time divided by the number of jobs.
type hosted struct {
	cmd  *exec.Cmd
	dir  string
	base string // the URL of its root, without a slash at its end
	load
	job func(ctx context.Context) error
}

// A load is how a run uses a hosted contender.
type load struct {
	clients, jobs int
}

// host starts a program at a free address, with a new directory in parent for its data; argv returns its
// arguments. It returns when the path ready answers with a status below 500.
func host(parent, ready string, l load, argv func(addr, dir string) []string) (*hosted, error) {
	dir, err := os.MkdirTemp(parent, "hosted-")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := argv(addr, dir)
	h := &hosted{cmd: exec.Command(args[0], args[1:]...), dir: dir, base: "http://" + addr, load: l}
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(dir, "log.txt"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(h.base + ready)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode < 500 {
				return h, nil
			}
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			return nil, errors.Join(fmt.Errorf("%s is not ready after a minute: %s", filepath.Base(args[0]), text), h.close())
		}
	}
}

func (h *hosted) measure(ctx context.Context, _ string) (sample, error) {
	out, err := proc.During(h.cmd.Process.Pid, func() error {
		var left atomic.Int64
		left.Store(int64(h.jobs))
		errs := make([]error, h.clients)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				for errs[i] == nil && left.Add(-1) >= 0 {
					errs[i] = h.job(ctx)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	s := sampleOf(out)
	s.wall /= time.Duration(h.jobs)
	s.cpu /= time.Duration(h.jobs)
	return s, err
}

func (h *hosted) close() error {
	h.cmd.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() { done <- h.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(30 * time.Second):
		syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
		<-done
		err = errors.New("it did not end by itself")
	}
	return errors.Join(err, os.RemoveAll(h.dir))
}

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// connections are the connections of all clients.
var connections = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}

// firstKey finds the API key in the credentials of the first start.
var firstKey = regexp.MustCompile(`Authorization: Bearer (\S+?)"`)

// refserver starts the reference server with its defaults, except for the limit of requests. job
// returns what a client does, and prepares it.
func refserver(l load, job func(ctx context.Context, c *client.Client) (func(ctx context.Context) error, error)) func(e *environment, in []string) (contender, error) {
	return func(e *environment, _ []string) (contender, error) {
		h, err := host(e.inputs.Dir, "/readyz", l, func(addr, dir string) []string {
			return []string{e.server, "serve", "--listen", addr, "--data-dir", dir, "--rate", "0"}
		})
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(h.dir, "first-start.txt"))
		found := firstKey.FindSubmatch(text)
		if err == nil && found == nil {
			err = fmt.Errorf("no API key in first-start.txt")
		}
		if err == nil {
			h.job, err = job(context.Background(), &client.Client{BaseURL: h.base, Key: string(found[1]), HTTP: connections})
		}
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		return h, nil
	}
}

// A tiny job is an action on a small file.
type tiny struct {
	name    string
	content []byte
	action  string
	args    map[string]any
}

// loop is the whole loop of a tiny job: upload, do, status and download.
func (t tiny) loop(_ context.Context, c *client.Client) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		key, err := c.Upload(ctx, t.name, bytes.NewReader(t.content), int64(len(t.content)), nil)
		if err != nil {
			return err
		}
		id, err := c.Do(ctx, client.Request{Action: t.action, FileKeys: []string{key}, Parameters: t.args})
		if err != nil {
			return err
		}
		op, err := c.Wait(ctx, id, nil)
		if err != nil {
			return err
		}
		if err := op.Err(); err != nil {
			return err
		}
		_, err = c.Download(ctx, op.Files[0].DownloadLink, io.Discard)
		return err
	}, nil
}

// oneCall is a tiny job in one request.
func (t tiny) oneCall(_ context.Context, c *client.Client) (func(context.Context) error, error) {
	body, kind, err := form("file", t.name, t.content, t.args)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return send(ctx, http.MethodPost, c.BaseURL+"/api/v1/run/"+t.action, body, http.Header{
			"Content-Type": {kind}, "Authorization": {"Bearer " + c.Key}})
	}, nil
}

// upload only stores the file.
func (t tiny) upload(_ context.Context, c *client.Client) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		_, err := c.Upload(ctx, t.name, bytes.NewReader(t.content), int64(len(t.content)), nil)
		return err
	}, nil
}

// poll asks for the status of a completed operation.
func (t tiny) poll(ctx context.Context, c *client.Client) (func(context.Context) error, error) {
	key, err := c.Upload(ctx, t.name, bytes.NewReader(t.content), int64(len(t.content)), nil)
	if err != nil {
		return nil, err
	}
	id, err := c.Do(ctx, client.Request{Action: t.action, FileKeys: []string{key}, Parameters: t.args})
	if err != nil {
		return nil, err
	}
	if _, err := c.Wait(ctx, id, nil); err != nil {
		return nil, err
	}
	return repeatedly(c.BaseURL, "/api/v1/status/"+id, c.Key)
}

// repeatedly returns a function that sends a GET request over a kept connection. The client of net/http takes
// as long for a small response as the server does, on the same processors.
func repeatedly(base, path, key string) (func(context.Context) error, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nAuthorization: Bearer " + key + "\r\n\r\n")
	type connection struct {
		net.Conn
		in *bufio.Reader
	}
	var idle sync.Pool // of *connection
	return func(ctx context.Context) error {
		c, _ := idle.Get().(*connection)
		if c == nil {
			made, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
			if err != nil {
				return err
			}
			c = &connection{made, bufio.NewReader(made)}
		}
		if _, err := c.Write(request); err != nil {
			return errors.Join(err, c.Close())
		}
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return errors.Join(err, c.Close())
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close() // the connection stays open
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		if err != nil {
			return errors.Join(err, c.Close())
		}
		idle.Put(c)
		return nil
	}, nil
}

// send sends a request and reads the whole response.
func send(ctx context.Context, method, url string, body []byte, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := connections.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %.200s", method, url, resp.Status, text)
	}
	return err
}

// tusd is the server of the tus protocol for uploads. It receives a file in one request, computes no
// checksum and does not wait for the disk.
func tusd(l load, content []byte) rival {
	return rival{"tusd", func(e *environment, _ []string) (contender, error) {
		program := filepath.Join(e.tools, "bin", "tusd")
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("tusd: %w", errMissing)
		}
		h, err := host(e.inputs.Dir, "/files/", l, func(addr, dir string) []string {
			ip, port, _ := strings.Cut(addr, ":")
			return []string{program, "-host", ip, "-port", port, "-upload-dir", dir}
		})
		if err != nil {
			return nil, err
		}
		h.job = func(ctx context.Context) error {
			return send(ctx, http.MethodPost, h.base+"/files/", content, http.Header{
				"Tus-Resumable": {"1.0.0"}, "Upload-Length": {fmt.Sprint(len(content))}, "Content-Type": {"application/offset+octet-stream"}})
		}
		return h, nil
	}}
}

// newGotenberg starts the server of the flag -gotenberg. It gets a file in one request and answers with the PDF,
// without tags, without an API key, and without storing anything.
func newGotenberg(e *environment, l load, route, name string, content []byte) (contender, error) {
	if e.gotenberg == "" {
		return nil, fmt.Errorf("gotenberg: %w", errMissing)
	}
	body, kind, err := form("files", name, content, nil)
	if err != nil {
		return nil, err
	}
	h, err := host(e.inputs.Dir, "/health", l, func(addr, _ string) []string {
		ip, port, _ := strings.Cut(addr, ":")
		return []string{e.gotenberg, "--api-bind-ip", ip, "--api-port", port, "--chromium-auto-start", "--libreoffice-auto-start", "--log-level", "error"}
	})
	if err != nil {
		return nil, err
	}
	h.job = func(ctx context.Context) error {
		return send(ctx, http.MethodPost, h.base+route, body, http.Header{"Content-Type": {kind}})
	}
	return h, nil
}

// form returns a form with a file, and its type.
func form(field, name string, content []byte, values map[string]any) (body []byte, kind string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, err := w.CreateFormFile(field, name)
	if err != nil {
		return nil, "", err
	}
	if _, err := f.Write(content); err != nil {
		return nil, "", err
	}
	for k, v := range values {
		if err := w.WriteField(k, fmt.Sprint(v)); err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return b.Bytes(), w.FormDataContentType(), err
}

// Routes of Gotenberg.
const (
	officeRoute = "/forms/libreoffice/convert"
	pageRoute   = "/forms/chromium/convert/html"
)

// withGotenberg adds the contenders to a task: the whole loop of a conversion to PDF, and a request to a route of
// Gotenberg. The input has the name file.
func withGotenberg(t task, route, file string, l load) task {
	reading := func(start func(e *environment, content []byte) (contender, error)) func(*environment, []string) (contender, error) {
		return func(e *environment, in []string) (contender, error) {
			content, err := os.ReadFile(in[0])
			if err != nil {
				return nil, err
			}
			return start(e, content)
		}
	}
	t.about += "; upload, do, status and download, with tags; Gotenberg: one request, without tags"
	t.ours = reading(func(e *environment, content []byte) (contender, error) {
		return refserver(l, tiny{file, content, "convert", map[string]any{"convert_to": "pdf"}}.loop)(e, nil)
	})
	t.rivals = []rival{{"Gotenberg", reading(func(e *environment, content []byte) (contender, error) {
		return newGotenberg(e, l, route, file, content)
	})}}
	return t
}

// hostedTasks returns the comparisons through HTTP, with the isolation and the durability of the
// reference server. onePage is a PDF file.
func hostedTasks(onePage []byte) []task {
	text := tiny{"a.txt", []byte("hello\n"), "zip", nil}
	picture := tiny{"a.png", dot(), "convert", map[string]any{"convert_to": "jpg"}}
	document := tiny{"a.pdf", onePage, "lock", map[string]any{"password": "secret"}}
	var tasks []task
	for _, t := range []struct {
		name string
		tiny tiny
	}{{"tiny zip", text}, {"tiny png → jpg", picture}, {"tiny pdf lock", document}} {
		tasks = append(tasks,
			task{name: t.name + " through HTTP", about: "upload, do, status and download; one of 100", ours: refserver(load{1, 100}, t.tiny.loop),
				goals: []goal{{metric: byCPU, max: 8e-3}}},
			task{name: t.name + " in one call", about: "one of 100", ours: refserver(load{1, 100}, t.tiny.oneCall),
				goals: []goal{{metric: byCPU, max: 8e-3}}},
		)
	}
	report := sampleFile("report.docx")
	atMost := func(max float64) []goal { return []goal{{metric: byTime, rival: "Gotenberg", max: max}} }
	tasks = append(tasks,
		withGotenberg(task{name: "docx → pdf through HTTP, small", about: "one page with a picture, 47 KB; one of 5", inputs: report, goals: atMost(0.4)}, officeRoute, "a.docx", load{1, 5}),
		withGotenberg(task{name: "docx → pdf through HTTP, large", about: "ten pages with two pictures; one of 3", inputs: one((*inputs.Set).DOCX), goals: atMost(0.4)}, officeRoute, "a.docx", load{1, 3}),
		withGotenberg(task{name: "pptx → pdf through HTTP", about: "twelve slides; one of 3", inputs: one((*inputs.Set).PPTX), goals: atMost(0.7)}, officeRoute, "a.pptx", load{1, 3}),
		withGotenberg(task{name: "html → pdf through HTTP", about: "a page of text with a table; one of 3", inputs: one((*inputs.Set).HTML), goals: atMost(0.3)}, pageRoute, "index.html", load{1, 3}),
		withGotenberg(task{name: "docx → pdf through HTTP, 8 clients", about: "the small one; time is that of all, divided by their number", inputs: report, goals: []goal{{metric: byTime, max: 1.0 / 40}}}, officeRoute, "a.docx", load{8, 16}),
	)
	small := tiny{"a.bin", slices.Repeat([]byte("0123456789"), 1000), "zip", nil}
	return append(tasks,
		task{name: "tiny zips, 16 clients", about: "the same loop; time is that of all, divided by their number", ours: refserver(load{16, 400}, text.loop),
			goals: []goal{{metric: byTime, max: 5e-3}}},
		task{name: "status, 32 clients", about: "of a finished operation; time is that of all, divided by their number", ours: refserver(load{32, 20000}, text.poll),
			goals: []goal{{metric: byTime, max: 1.0 / 20000}}},
		task{name: "uploads of 10 KB, one client", about: "three requests with MD5 and fsync; tusd: one, without both", ours: refserver(load{1, 100}, small.upload),
			rivals: []rival{tusd(load{1, 100}, small.content)}, goals: []goal{{metric: byTime, rival: "tusd", max: 1}}},
		task{name: "uploads of 10 KB, 8 clients", about: "three requests with MD5 and fsync; tusd: one, without both", ours: refserver(load{8, 400}, small.upload),
			rivals: []rival{tusd(load{8, 400}, small.content)}, goals: []goal{{metric: byTime, rival: "tusd", max: 1}}},
	)
}
