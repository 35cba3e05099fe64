package conformance_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/onecall"
	"github.com/filewright/filewright/internal/conformance"
	"github.com/filewright/filewright/internal/systest"
)

// actions are a small converter and an archiver.
func actions() []fileops.Action {
	return []fileops.Action{
		fileops.Func(fileops.Spec{
			Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md")}}},
		}, func(_ context.Context, job *fileops.Job) error {
			b, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), bytes.ToUpper(b))
		}),
		fileops.Func(fileops.Spec{
			Name: "zip", Engine: "go", Family: "archive", Summary: "Packs files.", Joint: true,
			Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}},
		}, func(_ context.Context, job *fileops.Job) error {
			var out bytes.Buffer
			z := zip.NewWriter(&out)
			for _, f := range job.Inputs {
				b, err := f.ReadAll(1 << 20)
				if err != nil {
					return err
				}
				w, err := z.Create(f.Name())
				if err != nil {
					return err
				}
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
			if err := z.Close(); err != nil {
				return err
			}
			return job.WriteBytes("files.zip", out.Bytes())
		}),
	}
}

// serve starts a service behind a handler and returns its address.
func serve(t *testing.T, behind func(http.Handler) http.Handler) string {
	t.Helper()
	svc, err := httpapi.New(httpapi.Config{
		Auth: httpapi.StaticKeys("key"), Actions: actions(), TempDir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Extensions: []func(*httpapi.Service) httpapi.Extension{onecall.New(onecall.Config{})},
	})
	systest.NoError(t, err)
	systest.Start(t, svc.Run)
	s := httptest.NewServer(behind(svc))
	t.Cleanup(s.Close)
	return s.URL
}

func check(t *testing.T, url string, levels ...conformance.Level) *conformance.Report {
	t.Helper()
	r, err := conformance.Run(t.Context(), conformance.Config{BaseURL: url + "/", Key: "key"}, nil, levels...)
	systest.NoError(t, err)
	return r
}

// names returns the rules with an outcome.
func names(r *conformance.Report, o conformance.Outcome) (list []string) {
	for _, res := range r.Results {
		if res.Outcome == o {
			list = append(list, res.Rule)
		}
	}
	return list
}

func TestConformingServer(t *testing.T) {
	t.Parallel()
	url := serve(t, func(h http.Handler) http.Handler { return h })
	r := check(t, url)
	for _, res := range r.Results {
		if res.Outcome == conformance.Failed {
			t.Errorf("%s: %s", res.Rule, res.Detail)
		}
	}
	// The server has neither these actions nor PDF.
	if got := names(r, conformance.Skipped); !slices.Equal(got, []string{"supported.values", "convert", "merge", "compress", "password"}) {
		t.Errorf("skipped: %v", got)
	}
	all := make(map[string]bool)
	for _, res := range r.Results {
		if all[res.Rule] || res.Text == "" || !strings.HasSuffix(res.Text, ".") {
			t.Errorf("%s is there twice, or has no sentence", res.Rule)
		}
		all[res.Rule] = true
	}
	core := check(t, url, conformance.Core)
	if len(core.Results) == 0 || len(core.Results) >= len(r.Results) {
		t.Errorf("%d core rules of %d", len(core.Results), len(r.Results))
	}
	if _, err := conformance.Run(t.Context(), conformance.Config{BaseURL: "http://127.0.0.1:1", Key: "key"}, nil); err == nil {
		t.Error("a server that does not exist is checked")
	}
}

// Each fault of a server is found by the rule about it.
func TestBrokenServer(t *testing.T) {
	t.Parallel()
	replace := func(path, old, new string) func(*http.Request, *httptest.ResponseRecorder) {
		return func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.HasPrefix(r.URL.Path, path) {
				b := bytes.ReplaceAll(w.Body.Bytes(), []byte(old), []byte(new))
				w.Body.Reset()
				w.Body.Write(b)
			}
		}
	}
	for _, tt := range []struct {
		fault string
		spoil func(*http.Request, *httptest.ResponseRecorder)
		rules []string
	}{
		{"PUT without ETag", func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.Method == "PUT" {
				w.Header().Del("ETag")
			}
		}, []string{"upload.put", "upload.complete", "upload.etag"}},
		{"another name of the operation", replace("/api/v1/do", "main_task_id", "task"), []string{"do.id", "status.final"}},
		{"another final state of files", replace("/api/v1/status/", `"status":"completed"`, `"status":"done"`), []string{"status.final"}},
		{"errors without allowed", replace("/api/v1/do", `"allowed"`, `"permitted"`), []string{"errors.allowed"}},
		{"downloads of other bytes", replace("/v1/download/", "PK", "KP"), []string{"download.result"}},
		{"downloads without nosniff", func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.HasPrefix(r.URL.Path, "/v1/download/") {
				w.Header().Del("X-Content-Type-Options")
			}
		}, []string{"download.headers"}},
		{"members under data that differ", replace("/api/v1/status/", `"progress":100`, `"progress":99`), nil},
		{"repetitions that are not marked", func(_ *http.Request, w *httptest.ResponseRecorder) { w.Header().Del("Idempotency-Replayed") }, []string{"do.idempotency"}},
		{"every key is good", func(r *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 401 {
				w.Code = 200
			}
		}, []string{"auth.key", "errors.http"}},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			r := check(t, serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					tt.spoil(r, rec)
					for name, values := range rec.Header() {
						if name != "Content-Length" {
							w.Header()[name] = values
						}
					}
					w.WriteHeader(rec.Code)
					io.Copy(w, rec.Body)
				})
			}))
			failed := names(r, conformance.Failed)
			for _, rule := range tt.rules {
				if !slices.Contains(failed, rule) {
					t.Errorf("%s passed; failed are %v", rule, failed)
				}
			}
			if tt.rules == nil && len(failed) > 0 {
				t.Errorf("failed are %v", failed)
			}
		})
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	r := &conformance.Report{BaseURL: "http://x", Results: []conformance.Result{
		{Rule: "a", Level: conformance.Core, Text: "A.", Outcome: conformance.Passed},
		{Rule: "b", Level: conformance.Core, Text: "B <&>.", Outcome: conformance.Failed, Detail: "it is \"b\""},
		{Rule: "c", Level: conformance.Extended, Text: "C.", Outcome: conformance.Skipped, Detail: "not offered"},
	}}
	var b bytes.Buffer
	systest.NoError(t, r.WriteJSON(&b))
	var back conformance.Report
	systest.NoError(t, json.Unmarshal(b.Bytes(), &back))
	if !slices.Equal(back.Results, r.Results) {
		t.Errorf("%+v", back)
	}
	b.Reset()
	systest.NoError(t, r.WriteJUnit(&b))
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	systest.NoError(t, xml.Unmarshal(b.Bytes(), &suite))
	if suite.Tests != 3 || suite.Failures != 1 || suite.Skipped != 1 || len(suite.Cases) != 3 ||
		suite.Cases[0].Failure != nil || suite.Cases[1].Failure.Message != `it is "b"` || suite.Cases[1].Name != "b: B <&>." || suite.Cases[2].Class != "extended" {
		t.Errorf("%+v", suite)
	}
}
