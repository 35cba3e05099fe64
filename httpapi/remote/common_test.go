package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// local allows the address of the servers of tests. 127.0.0.2 leads to the same host and is not
// allowed.
var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

var secrets = [][]byte{[]byte("0123456789abcdef")}

// convert writes texts in capitals. With the parameter lines it writes one result for each line.
func convert() fileops.Action {
	spec := fileops.Spec{Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "md"),
			{Name: "lines", Doc: "One result for each line.", Type: fileops.Boolean},
		},
	}}}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(2 << 20)
		if err != nil {
			return err
		}
		if bytes.Contains(b, []byte("broken")) {
			return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged")
		}
		if !job.Params.Bool("lines") {
			return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), bytes.ToUpper(b))
		}
		for i, line := range strings.Split(string(b), "\n") {
			if err := job.WriteBytes(fmt.Sprintf("line %d.md", i+1), []byte(line)); err != nil {
				return err
			}
		}
		return nil
	})
}

// join writes one file with the content of all.
func join() fileops.Action {
	spec := fileops.Spec{Name: "join", Engine: "go", Family: "text", Joint: true, Summary: "Joins files.", Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}}}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		var all []byte
		for _, in := range job.Inputs {
			b, err := in.ReadAll(2 << 20)
			if err != nil {
				return err
			}
			all = append(all, b...)
		}
		return job.WriteBytes("all.txt", all)
	})
}

// A place holds the state of a service over restarts.
type place struct{ dir string }

// A server is a service with a database and files in a directory.
type server struct {
	*httptest.Server
	place
	svc   *httpapi.Service
	db    *sqlstore.DB
	check *apicheck.Checker
	log   *logtest.Buffer
	stop  func() // stops the service as if its process ended
}

// start starts a service at a place. with completes its configuration and returns what runs beside it.
func (p place) start(t *testing.T, cfg httpapi.Config, with func(*server, *httpapi.Config) (run func(context.Context) error)) *server {
	t.Helper()
	s := &server{place: p, log: new(logtest.Buffer)}
	var err error
	s.db, err = sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(p.dir, "db"), Exclusive: true})
	systest.NoError(t, err)
	blobs, err := fsblob.New(filepath.Join(p.dir, "blobs"))
	systest.NoError(t, err)
	systest.NoError(t, os.MkdirAll(filepath.Join(p.dir, "scratch"), 0o700))
	cfg.Actions, cfg.Files, cfg.Operations, cfg.Blobs = []fileops.Action{convert(), join()}, s.db.Files(), s.db.Operations(), blobs
	cfg.TempDir, cfg.Secrets = filepath.Join(p.dir, "scratch"), secrets
	cfg.Log = slog.New(slog.NewTextHandler(s.log, nil))
	cfg.Limits.Drain = time.Millisecond
	if cfg.Auth == nil {
		cfg.Auth = httpapi.StaticKeys("key", "other")
	}
	run := with(s, &cfg)
	s.svc, err = httpapi.New(cfg)
	systest.NoError(t, err)
	stopWork, stopBeside := systest.Start(t, s.svc.Run), systest.Start(t, run)
	s.Server = httptest.NewServer(s.svc)
	s.check, err = apicheck.Fetch(s.URL)
	systest.NoError(t, err)
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stopWork()
		stopBeside()
		s.Close()
		systest.Check(t, errors.Join(s.db.Close(), blobs.Close()))
	}
	t.Cleanup(s.stop)
	return s
}

// call sends a request with a JSON body and checks the response against the OpenAPI document.
func (s *server) call(t *testing.T, method, path string, body any) (int, map[string]any) {
	t.Helper()
	return s.callAs(t, "key", method, path, body)
}

func (s *server) callAs(t *testing.T, key, method, path string, body any) (int, map[string]any) {
	t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		systest.NoError(t, err)
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, in)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, b := systest.SendBy(t, http.DefaultClient, req)
	if err := s.check.Response(method, req.URL.Path, resp.StatusCode, resp.Header, b); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, b)
	}
	m := make(map[string]any)
	if json.Unmarshal(b, &m) != nil {
		m["raw"] = string(b)
	}
	m["location"] = resp.Header.Get("Location")
	return resp.StatusCode, m
}

// left lists the files, records, transfers and scratch files that exist.
func (s *server) left(t *testing.T) (left []string) {
	t.Helper()
	for f, err := range s.db.Files().All(context.Background()) {
		systest.NoError(t, err)
		if f.State != upload.Expired { // the others bar the keys of results that a late worker might add
			left = append(left, "record "+f.Name)
		}
	}
	for _, kind := range []string{"import", "delivery"} {
		n, _, err := s.db.Transfers().Pending(t.Context(), kind)
		systest.NoError(t, err)
		if n > 0 {
			left = append(left, fmt.Sprintf("%d of %s", n, kind))
		}
	}
	for _, dir := range []string{"blobs", "scratch"} {
		left = append(left, systest.Regular(t, filepath.Join(s.dir, dir))...)
	}
	return left
}

// empty waits until nothing is left but base.
func (s *server) empty(t *testing.T, base []string) {
	t.Helper()
	systest.Until(t, "nothing left", func() bool { return slices.Equal(s.left(t), base) })
}

// source serves a handler over HTTP.
func source(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	return s
}

// text answers with a text.
func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, s)
	}
}
