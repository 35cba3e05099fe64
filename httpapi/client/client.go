// Package client calls a Filewright server from Go. It imports only the standard library.
//
//	c := &client.Client{BaseURL: "https://files.example.com", Key: os.Getenv("API_KEY")}
//	key, err := c.UploadFile(ctx, "report.docx", nil)
//	…
//	id, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "pdf"}})
//	…
//	op, err := c.Wait(ctx, id, nil)
//	…
//	err = c.DownloadFile(ctx, op.Files[0].DownloadLink, "report.pdf")
//
// Uploads are sent in parallel parts. An [Upload] can be stored as JSON and continued by another
// process. Requests that a server or a connection failed are repeated where that is safe; an error
// response is an [*Error].
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Client calls one server with one API key. Only BaseURL is required. A Client may be used by
// several goroutines; its fields must not change after the first call.
type Client struct {
	BaseURL string // such as "https://files.example.com"
	Key     string // API key; "" sends none

	// HTTP sends the requests; nil means [http.DefaultClient]. It should have no total timeout,
	// since uploads, downloads and waiting take as long as they need; use contexts instead.
	HTTP *http.Client

	PartSize int64 // size in bytes of the parts of an upload; 0 means 16 MiB
	Parallel int   // number of parts that are sent at the same time; 0 means 4

	// Attempts limits how often a request is sent if the connection breaks or the server is
	// unavailable; 0 means 5. Between attempts the client waits as long as the server asks for,
	// else up to ten seconds.
	Attempts int
}

// An Error is an error response of the server (RFC 9457).
type Error struct {
	Status     int           // HTTP status
	Slug       string        // stable name such as "unsupported_operation"
	Detail     string        // for people
	Param      string        // member of the request that caused the error, or ""
	Allowed    []string      // values that the member accepts, if they are few
	RequestID  string        // for the operator of the server
	RetryAfter time.Duration // when to try again; 0 if the server did not say
}

// Error implements error.
func (e *Error) Error() string {
	if e.Slug == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s (%s)", e.Detail, e.Slug)
}

// Is reports whether target is an *Error with the same slug, so that
// errors.Is(err, &Error{Slug: "not_found"}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Slug != "" && t.Slug == e.Slug
}

// temporary reports whether the same request may succeed later.
func (e *Error) temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests:
		return e.Slug != "quota_exceeded"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// asError reads the error of a response. It returns nil for a status below 400.
func asError(resp *http.Response) error {
	if resp.StatusCode < 400 {
		return nil
	}
	var body struct {
		Slug      string   `json:"error"`
		Detail    string   `json:"detail"`
		Param     string   `json:"param"`
		Allowed   []string `json:"allowed"`
		RequestID string   `json:"request_id"`
	}
	// A proxy may answer with another body; then the status alone says enough.
	_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&body)
	e := &Error{
		Status: resp.StatusCode, Slug: body.Slug, Detail: body.Detail, Param: body.Param,
		Allowed: body.Allowed, RequestID: body.RequestID,
	}
	if sec, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && sec > 0 {
		e.RetryAfter = time.Duration(sec) * time.Second
	}
	return e
}

// A Request asks for an operation.
type Request struct {
	Action     string            `json:"action,omitempty"`
	FileKeys   []string          `json:"file_keys"`
	Parameters map[string]any    `json:"parameters,omitempty"`
	Notes      map[string]string `json:"notes,omitempty"` // stored with the operation

	// Steps replace Action and Parameters: the results of a step are the inputs of the next. The
	// results of all but the last step are deleted unless Keep is set.
	Steps []Step `json:"steps,omitempty"`
	Keep  bool   `json:"keep,omitempty"`

	// Deliver is where the server writes the results: one element for each result, or one whose URL
	// has {index} or {name} in its path or query.
	Deliver []Target `json:"deliver,omitempty"`

	// IdempotencyKey identifies the request: a server that has accepted it answers a repetition
	// with the same operation. "" means a random key, which makes the client's own repetitions safe.
	IdempotencyKey string `json:"-"`
}

// A Step is one action of a [Request] with several steps.
type Step struct {
	Action     string         `json:"action"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// A Target is a URL for the result of an operation, such as a presigned PUT URL of a bucket.
type Target struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"` // of the request
}

// A Delivery is the state of the delivery of a result.
type Delivery struct {
	State        string    `json:"state"`    // "pending", "delivered" or "failed"
	Attempts     int       `json:"attempts"` // number of requests
	Next         time.Time `json:"next_attempt"`
	Delivered    time.Time `json:"delivered_at"`
	ErrorCode    string    `json:"error_code"` // of the last request, if it failed
	ErrorMessage string    `json:"error_message"`
}

// A StepState is the state of a step.
type StepState struct {
	Action   string `json:"action"`
	Status   string `json:"status"`     // "queued", "running", "completed" or "failed"
	Progress int    `json:"progress"`   // percent
	Files    []File `json:"files_data"` // results of a step before the last, if they are kept
}

// An Operation is the state of an operation.
type Operation struct {
	ID       string            `json:"main_task_id"`
	Status   string            `json:"operation_status"` // "queued", "running", "completed" or "failed"
	Action   string            `json:"action"`
	Progress int               `json:"progress"` // percent
	Notes    map[string]string `json:"notes"`
	Created  time.Time         `json:"created_at"`
	Finished time.Time         `json:"finished_at"`
	Files    []File            `json:"files_data"`
	Steps    []StepState       `json:"steps"` // nil for an operation of a single action
}

// Final reports whether the operation has ended.
func (o *Operation) Final() bool { return o.Status == "completed" || o.Status == "failed" }

// A File is a result of an operation, or an input that has no result yet.
type File struct {
	Key          string    `json:"file_key"`
	InputKey     string    `json:"input_file_key"`
	Status       string    `json:"status"`   // "queued", "running", "completed" or "failed"
	Progress     int       `json:"progress"` // percent
	DownloadLink string    `json:"download_link"`
	Name         string    `json:"file_name"`
	Size         int64     `json:"size"` // bytes
	MIMEType     string    `json:"mime_type"`
	Expires      time.Time `json:"expires_at"`
	Warnings     []Warning `json:"warnings"`
	ErrorCode    string    `json:"error_code"`
	ErrorMessage string    `json:"error_message"`
	Delivery     *Delivery `json:"delivery"` // nil: the request has no Deliver, or the file failed
}

// A Warning describes what a result lost.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Do starts an operation and returns its ID.
func (c *Client) Do(ctx context.Context, r Request) (id string, err error) {
	key := r.IdempotencyKey
	if key == "" {
		key = randomKey()
	}
	var out struct {
		ID string `json:"main_task_id"`
	}
	err = c.call(ctx, request{method: http.MethodPost, path: "/api/v1/do", body: r, header: http.Header{"Idempotency-Key": {key}}}, &out)
	return out.ID, err
}

// Status returns the state of an operation.
func (c *Client) Status(ctx context.Context, id string) (*Operation, error) {
	op := new(Operation)
	return op, c.call(ctx, request{method: http.MethodGet, path: "/api/v1/status/" + url.PathEscape(id)}, op)
}

// Wait waits until an operation has ended, and returns its last state. It passes each state that it
// sees to progress, which may be nil. An operation that failed is no error of Wait; see
// [Operation.Err].
func (c *Client) Wait(ctx context.Context, id string, progress func(*Operation)) (*Operation, error) {
	if progress == nil {
		progress = func(*Operation) {}
	} else if op := c.watch(ctx, id, progress); op != nil {
		return op, nil
	}
	// The events ended early, perhaps because a proxy keeps them back.
	for {
		op := new(Operation)
		if err := c.call(ctx, request{method: http.MethodGet, path: "/api/v1/status/" + url.PathEscape(id) + "?wait=30s"}, op); err != nil {
			return nil, err
		}
		progress(op)
		if op.Final() {
			return op, nil
		}
	}
}

// watch passes the states of an operation to progress, as the server sends them. It returns the last
// one, or nil if the events ended before the operation.
func (c *Client) watch(ctx context.Context, id string, progress func(*Operation)) *Operation {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.BaseURL, "/")+"/api/v1/status/"+url.PathEscape(id)+"/events", nil)
	if err != nil {
		return nil
	}
	c.authorize(req)
	resp, err := c.send(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20) // one state may describe thousands of files
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		op := new(Operation)
		if err := json.Unmarshal([]byte(data), op); err != nil {
			return nil
		}
		progress(op)
		if op.Final() {
			return op
		}
	}
	return nil
}

// Err returns an error that names each failed file, or nil if all files are completed. It returns nil
// for an operation that has not ended.
func (o *Operation) Err() error {
	if !o.Final() {
		return nil
	}
	var errs []error
	for _, f := range o.Files {
		if f.Status == "failed" {
			errs = append(errs, &FileError{Key: f.InputKey, Name: f.Name, Code: f.ErrorCode, Message: f.ErrorMessage})
		}
	}
	if len(errs) == 0 && o.Status == "failed" {
		return errors.New("the operation failed")
	}
	return errors.Join(errs...)
}

// A FileError reports that the operation failed for a file.
type FileError struct {
	Key     string // of the input
	Name    string // "" if the server did not say
	Code    string // stable name such as "corrupt_input"
	Message string // for people
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Name, e.Message, e.Code)
}

// Cancel cancels an operation that has not ended. Results that are finished remain.
func (c *Client) Cancel(ctx context.Context, id string) (*Operation, error) {
	op := new(Operation)
	return op, c.call(ctx, request{method: http.MethodDelete, path: "/api/v1/status/" + url.PathEscape(id)}, op)
}

// Delete deletes an upload or a result.
func (c *Client) Delete(ctx context.Context, fileKey string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/v1/files/" + url.PathEscape(fileKey)}, nil)
}

// A Capability says what a server can do with files of a format.
type Capability struct {
	Supported        bool           `json:"supported"`
	Ext              string         `json:"ext"`
	Action           string         `json:"action"`
	AvailableActions []string       `json:"available_actions"`
	Parameters       map[string]any `json:"parameters"`
	SameFormat       []string       `json:"same_format"` // parameters that change a file without changing its format
	Reason           string         `json:"reason"`      // why it is not supported
}

// Supported asks whether the server supports an action with parameters for files with an extension.
// With action "" it asks for the actions.
func (c *Client) Supported(ctx context.Context, ext, action string, parameters map[string]any) (*Capability, error) {
	out := new(Capability)
	return out, c.call(ctx, request{method: http.MethodPost, path: "/api/v1/supported-operation", body: map[string]any{
		"ext": ext, "action": action, "parameters": parameters,
	}, repeatable: true}, out)
}

// An Import is a file that the server reads from a URL.
type Import struct {
	URL      string            // such as a presigned GET URL of a bucket
	FileName string            // "": from the response or the URL
	Headers  map[string]string // of the request, such as Authorization; sent only to the host of the URL
}

// Import makes the server read a file from a URL, and returns its key when it is stored. If the file
// cannot be read, the error is an [*Error] whose Slug says why. When ctx ends, the import is cancelled.
func (c *Client) Import(ctx context.Context, i Import) (fileKey string, err error) {
	var f struct {
		FileKey string `json:"file_key"`
		State   string `json:"state"`
		Code    string `json:"error_code"`
		Message string `json:"error_message"`
	}
	body := map[string]any{"url": i.URL, "file_name": i.FileName, "headers": i.Headers, "wait": "50s"}
	if err := c.call(ctx, request{method: http.MethodPost, path: "/api/v1/import", body: body}, &f); err != nil {
		return "", err
	}
	for f.State == "importing" {
		key := f.FileKey
		if err := c.call(ctx, request{method: http.MethodGet, path: "/api/v1/files/" + url.PathEscape(key) + "?wait=50s"}, &f); err != nil {
			if ctx.Err() != nil {
				after, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
				_ = c.Delete(after, key) // it may have ended
				stop()
			}
			return "", err
		}
	}
	if f.State == "failed" {
		return "", &Error{Status: http.StatusUnprocessableEntity, Slug: f.Code, Detail: f.Message}
	}
	return f.FileKey, nil
}

// A request describes a call.
type request struct {
	method, path string // path with query
	body         any    // sent as JSON; nil: no body
	header       http.Header
	repeatable   bool // a POST that changes nothing
}

// call sends a request and decodes the response into out, unless that is nil.
func (c *Client) call(ctx context.Context, r request, out any) error {
	var body []byte
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return err
		}
		body = b
	}
	repeat := r.method != http.MethodPost || r.repeatable || r.header.Get("Idempotency-Key") != ""
	return c.retry(ctx, repeat, func() error {
		req, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(c.BaseURL, "/")+r.path, bytes.NewReader(body))
		if err != nil {
			return permanentError{err}
		}
		for name, values := range r.header {
			req.Header[name] = values
		}
		c.authorize(req)
		if r.body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := c.answer(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if out == nil {
			_, err = io.Copy(io.Discard, resp.Body) // so that the connection is used again
			return err
		}
		return json.NewDecoder(resp.Body).Decode(out)
	})
}

func (c *Client) authorize(req *http.Request) {
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
}

// answer sends a request and returns the response, or the error that the response reports.
func (c *Client) answer(req *http.Request) (*http.Response, error) {
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if err := asError(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.HTTP != nil {
		return c.HTTP.Do(req)
	}
	return http.DefaultClient.Do(req)
}

// A permanentError ends the attempts of retry.
type permanentError struct{ error }

// retry calls f until it succeeds, fails for good, or has failed too often. Unless repeat is set, it
// repeats only what the server refused.
func (c *Client) retry(ctx context.Context, repeat bool, f func() error) error {
	attempts := c.Attempts
	attempts = cmp.Or(max(attempts, 0), 5)
	delay := 200 * time.Millisecond
	for n := 1; ; n++ {
		err := f()
		if err == nil {
			return nil
		}
		var permanent permanentError
		if errors.As(err, &permanent) {
			return permanent.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := delay/2 + rand.N(delay)
		var e *Error
		switch answered := errors.As(err, &e); {
		case n >= attempts, answered && !e.temporary(), !answered && !repeat:
			return err
		case answered && e.RetryAfter > 0:
			wait = e.RetryAfter
		}
		delay = min(2*delay, 10*time.Second)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
