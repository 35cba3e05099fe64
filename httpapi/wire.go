package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
)

// The bodies of requests and responses. Responses omit absent members and never contain null. In a
// request, null equals an absent member: encoding/json leaves the field unchanged.

type initiateRequest struct {
	FileName string `json:"file_name"`
	Size     *int64 `json:"size"`
	MimeType string `json:"mime_type"`
	Parts    int    `json:"parts"`
}

type initiateResponse struct {
	FileKey       string    `json:"file_key"`
	ObjectName    string    `json:"object_name"`
	UploadID      string    `json:"upload_id"`
	PresignedURLs []string  `json:"presigned_urls"`
	ExpiresAt     time.Time `json:"expires_at,omitzero"`
}

type completeRequest struct {
	FileKey    string      `json:"file_key"`
	ObjectName string      `json:"object_name"`
	UploadID   string      `json:"upload_id"`
	Parts      []partEntry `json:"parts"`
}

type partEntry struct {
	ETag       string `json:"etag"`
	PartNumber int    `json:"part_number"`
}

type messageResponse struct {
	Message string `json:"message"`
	FileKey string `json:"file_key"`
}

type doRequest struct {
	Action     string           `json:"action"`
	FileKeys   []string         `json:"file_keys"`
	Parameters map[string]any   `json:"parameters"`
	Notes      notes            `json:"notes"`
	Steps      []stepRequest    `json:"steps"` // in place of Action and Parameters
	Keep       bool             `json:"keep"`  // the results of all steps
	Deliver    []DeliveryTarget `json:"deliver"`
}

// notes are the notes of an operation. An error in one names it.
type notes map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (n *notes) UnmarshalJSON(b []byte) error {
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*n = make(notes, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch v := all[name].(type) {
		case string:
			(*n)[name] = v
		case nil: // as if it were absent
		default:
			return &json.UnmarshalTypeError{Field: name, Type: reflect.TypeFor[string](), Value: map[reflect.Kind]string{
				reflect.Float64: "number", reflect.Bool: "bool", reflect.Slice: "array", reflect.Map: "object",
			}[reflect.TypeOf(v).Kind()]}
		}
	}
	return nil
}

type stepRequest struct {
	Action     string         `json:"action"`
	Parameters map[string]any `json:"parameters"`
}

type doResponse struct {
	MainTaskID string `json:"main_task_id"`
}

type capabilityRequest struct {
	Ext        string         `json:"ext"`
	Action     string         `json:"action"`
	Parameters map[string]any `json:"parameters"`
	Steps      []stepRequest  `json:"steps"` // in place of Action and Parameters
}

type capabilityResponse struct {
	Supported        bool     `json:"supported"`
	Ext              string   `json:"ext"`
	Action           string   `json:"action,omitempty"`
	AvailableActions []string `json:"available_actions,omitempty"`
	// Published clients read this name.
	AvailableActionsAlias []string       `json:"availableActions,omitempty"`
	Parameters            map[string]any `json:"parameters,omitempty"`
	SameFormat            []string       `json:"same_format,omitempty"`
	// Limits has an element for each action in the response that has a limit, by name.
	Limits map[string]sizeLimit `json:"limits,omitempty"`
	Reason string               `json:"reason,omitempty"`
}

// A sizeLimit limits the input of an action.
type sizeLimit struct {
	MaxBytes int64 `json:"max_bytes"`
}

// OperationStatus is the status of an operation in responses. See [Service.Describe].
type OperationStatus struct {
	OperationStatus string            `json:"operation_status"`
	MainTaskID      string            `json:"main_task_id"`
	Action          string            `json:"action"`
	Progress        int               `json:"progress"`
	Notes           map[string]string `json:"notes,omitempty"`
	CreatedAt       time.Time         `json:"created_at"`
	FinishedAt      time.Time         `json:"finished_at,omitzero"`
	DownloadURL     string            `json:"download_url,omitempty"` // all results as one ZIP
	FilesData       []FileStatus      `json:"files_data"`
	Steps           []StepStatus      `json:"steps,omitempty"`
}

// StepStatus is an element of the steps of an operation.
type StepStatus struct {
	Action   string     `json:"action"`
	Status   string     `json:"status"`
	Progress int        `json:"progress"`
	Count    *taskCount `json:"count,omitempty"` // files of the step, once it has started

	// FilesData has the results of a step before the last if they are kept.
	FilesData []FileStatus `json:"files_data,omitempty"`
}

// FileStatus is an element of files_data: a result, or an input that has no result yet.
type FileStatus struct {
	FileKey       string           `json:"file_key"`
	InputFileKey  string           `json:"input_file_key"`
	InputFileKeys []string         `json:"input_file_keys,omitempty"` // inputs of a joint action
	Status        string           `json:"status"`
	Progress      int              `json:"progress"`
	DownloadLink  string           `json:"download_link,omitempty"`
	FileName      string           `json:"file_name,omitempty"`
	Size          *int64           `json:"size,omitempty"`
	MimeType      string           `json:"mime_type,omitempty"`
	ExpiresAt     time.Time        `json:"expires_at,omitzero"`
	Waiting       *WaitingStatus   `json:"waiting,omitempty"`
	Warnings      []status.Warning `json:"warnings,omitempty"`
	ErrorCode     string           `json:"error_code,omitempty"`
	ErrorMessage  string           `json:"error_message,omitempty"`
	Delivery      *DeliveryStatus  `json:"delivery,omitempty"`
}

// WaitingStatus says why a file waits.
type WaitingStatus struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

type listResponse struct {
	Operations []OperationStatus `json:"operations"`
	NextCursor string            `json:"next_cursor,omitempty"`
}

type formatsResponse struct {
	Formats []formatEntry `json:"formats"`
	Engines []engineEntry `json:"engines"`
}

type formatEntry struct {
	Ext     string                 `json:"ext"`
	Title   string                 `json:"title"`
	Family  string                 `json:"family"`
	MIME    string                 `json:"mime_type"`
	Aliases []string               `json:"aliases,omitempty"`
	Actions map[string]actionEntry `json:"actions"`
}

type actionEntry struct {
	Engines    []string       `json:"engines"`
	Parameters map[string]any `json:"parameters"`
	SameFormat []string       `json:"same_format,omitempty"`
}

type engineEntry struct {
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	Available bool   `json:"available"`
	Problem   string `json:"problem,omitempty"`
}

type readyResponse struct {
	Status       string            `json:"status"`
	Node         string            `json:"node,omitempty"`
	Checks       map[string]string `json:"checks"`
	Dependencies []dependencyEntry `json:"dependencies"`
	Engines      []engineEntry     `json:"engines"`
	Sandbox      *Sandbox          `json:"sandbox,omitempty"`
}

// An Envelope is the position of the members of a successful response.
type Envelope int

// Published clients read the members under a "data" object; the original interface has them at the
// top.
const (
	EnvelopeDual  Envelope = iota // at the top and under "data"
	EnvelopePlain                 // at the top only
	EnvelopeData                  // under "data" only
)

// reply writes v, a struct, as the body of a successful response.
func (n *Node) reply(w http.ResponseWriter, v any) { n.replyStatus(w, http.StatusOK, v) }

func (n *Node) replyStatus(w http.ResponseWriter, status int, v any) {
	b, err := n.encode(v)
	if err != nil { // only a type that JSON cannot represent; a bug
		panic(err)
	}
	writeJSON(w, status, "application/json", b)
}

func (n *Node) encode(v any) ([]byte, error) {
	b, err := marshal(v)
	if err != nil {
		return nil, err
	}
	switch n.cfg.Envelope {
	case EnvelopePlain:
		return b, nil
	case EnvelopeData:
		return slices.Concat([]byte(`{"data":`), b, []byte("}")), nil
	}
	if len(b) == 2 { // {}
		return []byte(`{"data":{}}`), nil
	}
	out := make([]byte, 0, 2*len(b)+len(`,"data":}`)+1) // writeJSON appends a byte
	out = append(append(out, b[:len(b)-1]...), `,"data":`...)
	return append(append(out, b...), '}'), nil
}

// marshal is json.Marshal without HTML escaping: upload URLs contain "&" and should be usable
// unchanged.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func writeJSON(w http.ResponseWriter, status int, contentType string, body []byte) {
	jsonHeader(w.Header(), contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// jsonHeader sets the headers of a JSON response.
func jsonHeader(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// decode decodes the JSON body of a request into v, a pointer to a struct. It returns the raw body,
// which identifies the request. A missing body is an error unless optional is set.
func (s *Service) decode(w http.ResponseWriter, r *http.Request, v any, optional bool) ([]byte, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		mt, params, err := mime.ParseMediaType(ct)
		utf8 := err == nil && (params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8"))
		if err != nil || !utf8 || mt != "application/json" && !strings.HasSuffix(mt, "+json") {
			p := problem(http.StatusUnsupportedMediaType, "unsupported_media_type",
				"the body must be JSON; send it with the header Content-Type: application/json")
			p.Param, p.Allowed = "Content-Type", []string{"application/json"}
			return nil, p
		}
	}
	body, err := s.readBody(w, r)
	if err != nil {
		var said *Problem
		if errors.As(err, &said) {
			return nil, err
		}
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, problem(http.StatusRequestEntityTooLarge, "too_large", "the JSON body has more than %d bytes", tooLarge.Limit)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.Header().Set("Connection", "close")
			return nil, err
		}
		return nil, problem(http.StatusBadRequest, "invalid_request", "cannot read the body of the request")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		if optional {
			return nil, nil
		}
		return nil, problem(http.StatusBadRequest, "invalid_request", "the body is empty; expected a JSON object")
	}
	if c := bytes.TrimSpace(body)[0]; c != '{' {
		// null would decode silently, and an array with an unhelpful error.
		return nil, problem(http.StatusBadRequest, "invalid_request", "the body must be a JSON object")
	}
	limit := maxValues + 2*s.cfg.Limits.Files
	if _, ok := v.(*completeRequest); ok {
		limit = maxValues + 4*s.cfg.Limits.Parts
	}
	if n := countValues(body); n > limit {
		return nil, problem(http.StatusRequestEntityTooLarge, "too_large", "the JSON body has %d values; the limit is %d", n, limit)
	}
	if err := json.Unmarshal(body, v); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			got, number, _ := strings.Cut(wrongType.Value, " ") // the number may have any length
			want := jsonType(wrongType.Type.Kind().String())
			if got = jsonType(got); number != "" && len(number) <= 40 {
				got = number
			}
			name := wrongType.Field + elementIndex(body, wrongType)
			return nil, invalid(name, "%s must be %s, not %s", name, want, got)
		}
		return nil, problem(http.StatusBadRequest, "invalid_request", "the body is not valid JSON: %s", err)
	}
	return body, nil
}

// elementIndex returns the index of the element that has the wrong type, such as "[1]". It is empty if the
// member itself has the wrong type, or is not a member of the body.
func elementIndex(body []byte, e *json.UnmarshalTypeError) string {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(members[e.Field], &elements) != nil {
		return ""
	}
	for i, element := range elements {
		v := reflect.New(e.Type).Interface()
		if json.Unmarshal(element, v) != nil {
			return "[" + strconv.Itoa(i) + "]"
		}
	}
	return ""
}

// maxValues is the largest number of values in a request body, beside the values of its files or
// parts. Each value takes a hundred bytes of memory or more, even if it is only a few bytes of the
// body.
const maxValues = 5000

// countValues returns a lower bound of the number of JSON values in body: elements and members, and
// empty arrays and objects. It does not allocate.
func countValues(body []byte) (n int) {
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case ',', '[', '{':
			n++
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// Any number of bodies of up to shortBody bytes is read at once. Longer bodies wait for each other,
// for up to bodyWait.
const (
	shortBody = 64 << 10
	bodyWait  = 10 * time.Second
)

// readBody reads the body of a request.
func (s *Service) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := s.cfg.Limits.BodyBytes
	in := http.MaxBytesReader(w, r.Body, limit)
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // the rest is not worth reading
		return nil, &http.MaxBytesError{Limit: limit}
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength+bytes.MinRead, shortBody)))
	}
	if r.ContentLength <= shortBody {
		if _, err := io.CopyN(&b, in, shortBody); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return b.Bytes(), err
		}
	}
	account := principal(r).Account
	if !s.longBodies.wait(r.Context(), account, bodyWait) {
		w.Header().Set("Connection", "close")
		p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests with large bodies at the same time; try again in a moment")
		p.RetryAfter = time.Second
		return nil, p
	}
	// The decoded body stays in memory until the request is answered.
	context.AfterFunc(r.Context(), func() { s.longBodies.leave(account) })
	if n := r.ContentLength; n > 0 {
		b.Grow(int(n) - b.Len() + bytes.MinRead)
	}
	_, err := b.ReadFrom(in)
	return b.Bytes(), err
}

// jsonType returns the JSON name of a Go kind, or of a kind of value in JSON.
func jsonType(kind string) string {
	switch {
	case kind == "string":
		return "a string"
	case kind == "bool":
		return "true or false"
	case kind == "slice", kind == "array":
		return "an array"
	case kind == "map", kind == "struct", kind == "object":
		return "an object"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	}
	return "a number"
}
