// Package conformance checks a server over HTTP against the rules of the interface. It knows nothing of
// the server but its address and an API key.
package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Config names the server to check.
type Config struct {
	BaseURL string       // such as "http://127.0.0.1:8080"
	Key     string       // API key with the scopes upload, operate and read
	HTTP    *http.Client // nil means http.DefaultClient

	// Patience is the longest time that an operation may take; 0 means two minutes.
	Patience time.Duration
}

// A Level groups rules.
type Level string

// The levels.
const (
	Core     Level = "core"     // the interface that all servers share
	Extended Level = "extended" // what this implementation adds and decides
)

// An Outcome is the result of checking a rule.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // the server does not offer what the rule is about
)

// A Result is the outcome of one rule.
type Result struct {
	Rule    string  `json:"rule"` // stable name, such as "upload.etag"
	Level   Level   `json:"level"`
	Text    string  `json:"text"` // what the rule demands
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"` // why it failed or was skipped
	Seconds float64 `json:"seconds"`
}

// A Report has the results of all rules.
type Report struct {
	BaseURL string    `json:"base_url"`
	Started time.Time `json:"started"`
	Results []Result  `json:"results"`
}

// Count returns the number of results with an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for _, res := range r.Results {
		if res.Outcome == o {
			n++
		}
	}
	return n
}

// A rule is one check. Its function reports failures to its tester.
type rule struct {
	name  string
	level Level
	text  string
	check func(*tester)
}

// Run checks the rules of the given levels in order and passes each result to done, which may be nil. It
// returns an error if the server cannot be reached at all, or ctx is done.
func Run(ctx context.Context, cfg Config, done func(Result), levels ...Level) (*Report, error) {
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	cfg.Patience = cmp.Or(cfg.Patience, 2*time.Minute)
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.BaseURL+"/api/v1/status/none", nil)
	if err != nil {
		return nil, err
	}
	resp, err := cfg.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()

	report := &Report{BaseURL: cfg.BaseURL, Started: time.Now().UTC()}
	f := &fixtures{cfg: cfg}
	for _, r := range rules() {
		if !contains(levels, r.level) {
			continue
		}
		res := run(ctx, f, r)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		report.Results = append(report.Results, res)
		if done != nil {
			done(res)
		}
	}
	return report, nil
}

func contains(levels []Level, l Level) bool {
	for _, have := range levels {
		if have == l {
			return true
		}
	}
	return len(levels) == 0
}

// run checks one rule.
func run(ctx context.Context, f *fixtures, r rule) (res Result) {
	start := time.Now()
	t := &tester{ctx: ctx, fixtures: f}
	res = Result{Rule: r.name, Level: r.level, Text: r.text}
	defer func() {
		switch stopped := recover(); stopped.(type) {
		case nil, stop:
		default:
			panic(stopped)
		}
		res.Outcome, res.Detail = Passed, strings.Join(t.problems, "; ")
		switch {
		case len(t.problems) > 0:
			res.Outcome = Failed
		case t.skipped != "":
			res.Outcome, res.Detail = Skipped, t.skipped
		}
		res.Seconds = time.Since(start).Seconds()
	}()
	r.check(t)
	return res
}

// A stop ends the check of a rule.
type stop struct{}

// A tester checks one rule.
type tester struct {
	*fixtures
	ctx      context.Context
	problems []string
	skipped  string
}

// want records a problem unless ok.
func (t *tester) want(ok bool, format string, args ...any) {
	if !ok {
		t.problems = append(t.problems, fmt.Sprintf(format, args...))
	}
}

// need is want for a condition without which the check cannot continue.
func (t *tester) need(ok bool, format string, args ...any) {
	if t.want(ok, format, args...); !ok {
		panic(stop{})
	}
}

// skip ends the check of a rule that does not apply to the server.
func (t *tester) skip(format string, args ...any) {
	t.skipped = fmt.Sprintf(format, args...)
	panic(stop{})
}

// A response is the answer of the server.
type response struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any // of a JSON object; nil for other bodies
}

// at returns the value under a path of keys and indexes in the body, in both positions that members may
// have: at the top and under "data".
func (r *response) at(path ...any) any {
	if v := dig(r.body, path...); v != nil {
		return v
	}
	return dig(r.body["data"], path...)
}

func dig(v any, path ...any) any {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}

// text is at for a string, "" if it is none.
func (r *response) text(path ...any) string {
	s, _ := r.at(path...).(string)
	return s
}

// list is at for an array.
func (r *response) list(path ...any) []any {
	l, _ := r.at(path...).([]any)
	return l
}

func (r *response) String() string {
	raw := r.raw
	if len(raw) > 200 {
		raw = raw[:200]
	}
	return fmt.Sprintf("%d %s", r.status, strings.TrimSpace(string(raw)))
}

// send sends a request. A body that is not a string or nil is sent as JSON. headers are names and values;
// an empty value removes the header.
func (t *tester) send(method, path string, body any, headers ...string) *response {
	var content io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(body)
		t.need(err == nil, "%v", err)
		content, kind = bytes.NewReader(encoded), "application/json"
	}
	url := path
	if strings.HasPrefix(path, "/") {
		url = t.cfg.BaseURL + path
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	t.need(err == nil, "invalid address %q", url)
	req.Header.Set("Authorization", "Bearer "+t.cfg.Key)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := t.cfg.HTTP.Do(req)
	t.need(err == nil, "%s %s: %v", method, path, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	t.need(err == nil || errors.Is(err, io.EOF), "%s %s: %v", method, path, err)
	r := &response{status: resp.StatusCode, header: resp.Header, raw: raw}
	if json.Unmarshal(raw, &r.body) != nil {
		r.body = nil
	}
	return r
}

// refused reports whether a response is an error of the request.
func (r *response) refused() bool { return r.status >= 400 && r.status < 500 }
