// Package apicheck checks a service's responses against its own OpenAPI 3.1 document, for tests. It
// supports the extensions that the document uses:
//
//   - x-alias-prefixes at the top: other prefixes under which paths are served,
//     and x-no-alias at a path that is served only as written;
//   - x-multi-segment at a path parameter whose value may contain slashes;
//   - x-event-data: schema of the data of server-sent events;
//   - x-rules: a list of schemas that a value must match in addition;
//   - x-data-repeats-the-others: the member "data" of an object has the same
//     members as the object itself.
package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Checker checks responses against a document and records them. It is safe for concurrent use.
type Checker struct {
	operations       []*operation
	notFound         *response // for undocumented paths; may be nil
	methodNotAllowed *response // for undocumented methods

	mu   sync.Mutex
	seen map[*operation]map[int]bool
}

type operation struct {
	method, path string
	pattern      *regexp.Regexp
	literal      int  // number of segments without a parameter
	open         bool // needs no API key
	responses    map[int]*response
}

type response struct {
	headers map[string]header
	content map[string]media // by media type or range
}

type header struct {
	required bool
	integer  bool
	schema   *jsonschema.Schema
}

type media struct {
	schema  *jsonschema.Schema // may be nil
	events  *jsonschema.Schema // of the event data
	repeats bool
}

// resource is the URL of the document in the schema compiler.
const resource = "https://openapi.invalid/openapi.json"

type loader struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

// Fetch parses the document that a server has at /openapi.json.
func Fetch(server string) (*Checker, error) {
	resp, err := http.Get(server + "/openapi.json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return New(doc)
}

// New parses a document. It fails if a response schema is invalid or a reference does not resolve.
func New(openapiJSON []byte) (*Checker, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapiJSON))
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	ApplyRules(root)
	l := &loader{root: root, compiler: jsonschema.NewCompiler()}
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	l.compiler.AssertFormat()
	if err := l.compiler.AddResource(resource, doc); err != nil {
		return nil, err
	}
	c := &Checker{seen: make(map[*operation]map[int]bool)}
	paths, _ := root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _ := paths[path].(map[string]any)
		for _, method := range [...]string{"get", "head", "post", "put", "patch", "delete"} {
			if item[method] == nil {
				continue
			}
			op, err := l.operation(method, path, item)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", strings.ToUpper(method), path, err)
			}
			c.operations = append(c.operations, op)
		}
	}
	if len(c.operations) == 0 {
		return nil, errors.New("the document has no operations")
	}
	for name, to := range map[string]**response{"NotFound": &c.notFound, "MethodNotAllowed": &c.methodNotAllowed} {
		if at := []string{"components", "responses", name}; l.at(at) != nil {
			if *to, err = l.response(at); err != nil {
				return nil, fmt.Errorf("response %s: %w", name, err)
			}
		}
	}
	return c, nil
}

// ApplyRules adds the extension x-rules of all schemas in v to their allOf.
func ApplyRules(v any) {
	switch v := v.(type) {
	case map[string]any:
		if rules, ok := v["x-rules"].([]any); ok {
			all, _ := v["allOf"].([]any)
			v["allOf"] = append(all, rules...)
			delete(v, "x-rules")
		}
		for _, e := range v {
			ApplyRules(e)
		}
	case []any:
		for _, e := range v {
			ApplyRules(e)
		}
	}
}

// at returns the value under a path of keys, or nil.
func (l *loader) at(path []string) any {
	var v any = l.root
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// object follows references and returns the object under a path of keys, and its real path.
func (l *loader) object(path []string) (map[string]any, []string, error) {
	for range 16 {
		v, ok := l.at(path).(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("no object at %s", pointer(path))
		}
		ref, ok := v["$ref"].(string)
		if !ok {
			return v, path, nil
		}
		rest, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			return nil, nil, fmt.Errorf("reference to another document: %s", ref)
		}
		path = nil
		for key := range strings.SplitSeq(rest, "/") {
			path = append(path, unescapeKey.Replace(key))
		}
	}
	return nil, nil, fmt.Errorf("circular references at %s", pointer(path))
}

// Keys have some characters in another form in JSON pointers.
var (
	escapeKey   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeKey = strings.NewReplacer("~1", "/", "~0", "~")
)

// EscapeKey returns the key of an object as it is in a JSON pointer.
func EscapeKey(key string) string { return escapeKey.Replace(key) }

// pointer returns a JSON pointer as a URL fragment.
func pointer(path []string) string {
	var b strings.Builder
	b.WriteByte('#')
	for _, key := range path {
		b.WriteString("/" + url.PathEscape(escapeKey.Replace(key)))
	}
	return b.String()
}

func (l *loader) schema(path []string) (*jsonschema.Schema, error) {
	return l.compiler.Compile(resource + pointer(path))
}

func (l *loader) operation(method, path string, item map[string]any) (*operation, error) {
	at := []string{"paths", path, method}
	op, _ := item[method].(map[string]any)
	o := &operation{method: strings.ToUpper(method), path: path, responses: make(map[int]*response)}
	if security, ok := op["security"].([]any); ok && len(security) == 0 {
		o.open = true
	}
	multi := make(map[string]bool)
	for _, list := range [][]string{{"paths", path, "parameters"}, append(slices.Clone(at), "parameters")} {
		params, _ := l.at(list).([]any)
		for _, v := range params {
			if p, ok := v.(map[string]any); ok && p["x-multi-segment"] == true {
				multi[fmt.Sprint(p["name"])] = true
			}
		}
	}
	var segments []string
	for segment := range strings.SplitSeq(path, "/") {
		name, isParam := strings.CutPrefix(segment, "{")
		name = strings.TrimSuffix(name, "}")
		switch {
		case isParam && multi[name]:
			segment = ".+"
		case isParam:
			segment = "[^/]+"
		default:
			o.literal++
			segment = regexp.QuoteMeta(segment)
		}
		segments = append(segments, segment)
	}
	pattern := strings.Join(segments, "/")
	aliases, _ := l.root["x-alias-prefixes"].(map[string]any)
	for prefix, others := range aliases {
		rest, ok := strings.CutPrefix(pattern, regexp.QuoteMeta(prefix))
		if !ok || item["x-no-alias"] == true {
			continue
		}
		prefixes := []string{regexp.QuoteMeta(prefix)}
		list, _ := others.([]any)
		for _, other := range list {
			prefixes = append(prefixes, regexp.QuoteMeta(fmt.Sprint(other)))
		}
		pattern = "(?:" + strings.Join(prefixes, "|") + ")" + rest
		break
	}
	var err error
	if o.pattern, err = regexp.Compile("^" + pattern + "$"); err != nil {
		return nil, err
	}
	responses, _ := op["responses"].(map[string]any)
	for code := range responses {
		status, err := strconv.Atoi(code)
		if err != nil {
			return nil, fmt.Errorf("response %q is not a status code", code)
		}
		if o.responses[status], err = l.response(append(slices.Clone(at), "responses", code)); err != nil {
			return nil, fmt.Errorf("response %s: %w", code, err)
		}
	}
	if len(o.responses) == 0 {
		return nil, errors.New("the operation has no responses")
	}
	return o, nil
}

func (l *loader) response(path []string) (*response, error) {
	r, path, err := l.object(path)
	if err != nil {
		return nil, err
	}
	out := &response{headers: make(map[string]header), content: make(map[string]media)}
	headers, _ := r["headers"].(map[string]any)
	for name := range headers {
		h, at, err := l.object(append(slices.Clone(path), "headers", name))
		if err != nil {
			return nil, err
		}
		hd := header{required: h["required"] == true}
		if s, ok := h["schema"].(map[string]any); ok {
			hd.integer = s["type"] == "integer"
			if hd.schema, err = l.schema(append(slices.Clone(at), "schema")); err != nil {
				return nil, err
			}
		}
		out.headers[name] = hd
	}
	content, _ := r["content"].(map[string]any)
	for kind, v := range content {
		at := append(slices.Clone(path), "content", kind)
		body, _ := v.(map[string]any)
		var m media
		if body["schema"] != nil {
			if m.schema, err = l.schema(append(slices.Clone(at), "schema")); err != nil {
				return nil, err
			}
			if s, _, err := l.object(append(slices.Clone(at), "schema")); err == nil {
				m.repeats = s["x-data-repeats-the-others"] == true
			}
		}
		if body["x-event-data"] != nil {
			if m.events, err = l.schema(append(slices.Clone(at), "x-event-data")); err != nil {
				return nil, err
			}
			if s, _, err := l.object(append(slices.Clone(at), "x-event-data")); err == nil {
				m.repeats = s["x-data-repeats-the-others"] == true
			}
		}
		out.content[kind] = m
	}
	return out, nil
}

// Response checks one response to a request. requestPath is the path of the request, with or
// without a query. The error lists all problems.
//
// A path that is not in the document must get 404, and a method that is not in the document 405, as
// components.responses describes them. OPTIONS may get an empty 200 or 204 everywhere.
func (c *Checker) Response(method, requestPath string, status int, header http.Header, body []byte) error {
	path, _, _ := strings.Cut(requestPath, "?")
	where := fmt.Sprintf("%s %s answered %d", method, path, status)
	if method == http.MethodOptions && (status == http.StatusOK || status == http.StatusNoContent) {
		if len(body) > 0 {
			return fmt.Errorf("%s: a response to OPTIONS has no body, this one has %d bytes", where, len(body))
		}
		return nil
	}
	op, pathKnown := c.find(method, path)
	var want *response
	switch {
	case op != nil:
		where += fmt.Sprintf(" (%s %s)", op.method, op.path)
		if want = op.responses[status]; want == nil {
			return fmt.Errorf("%s: the status is not documented; documented are %v%s", where, slices.Sorted(maps.Keys(op.responses)), excerpt(body))
		}
		c.remember(op, status)
	case pathKnown:
		if want = c.methodNotAllowed; status != http.StatusMethodNotAllowed || want == nil {
			return fmt.Errorf("%s: the method is not documented, so it must be answered with 405%s", where, excerpt(body))
		}
	default:
		if want = c.notFound; status != http.StatusNotFound || want == nil {
			return fmt.Errorf("%s: the path is not documented, so it must be answered with 404%s", where, excerpt(body))
		}
	}
	errs := want.checkHeaders(header)
	errs = append(errs, want.checkBody(method, status, header, body)...)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w%s", where, errors.Join(errs...), excerpt(body))
}

// find returns the operation of a request. pathKnown reports whether the path exists with any
// method.
func (c *Checker) find(method, path string) (op *operation, pathKnown bool) {
	for _, o := range c.operations {
		if !o.pattern.MatchString(path) {
			continue
		}
		pathKnown = true
		// Endpoints that answer GET without a key also answer HEAD.
		fits := o.method == method || method == http.MethodHead && o.method == http.MethodGet && o.open
		if fits && (op == nil || o.literal > op.literal || o.literal == op.literal && o.method == method) {
			op = o
		}
	}
	return op, pathKnown
}

func (c *Checker) remember(op *operation, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[op] == nil {
		c.seen[op] = make(map[int]bool)
	}
	c.seen[op][status] = true
}

// Unseen lists documented operations and statuses without a response so far, sorted: "GET /x" for
// an operation that was not called, "GET /x 404" for a missing status of a called operation.
func (c *Checker) Unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, op := range c.operations {
		if c.seen[op] == nil {
			out = append(out, op.method+" "+op.path)
			continue
		}
		for status := range op.responses {
			if !c.seen[op][status] {
				out = append(out, fmt.Sprintf("%s %s %d", op.method, op.path, status))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r *response) checkHeaders(h http.Header) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		want := r.headers[name]
		values := h.Values(name)
		if len(values) == 0 {
			if want.required {
				errs = append(errs, fmt.Errorf("the header %s is missing", name))
			}
			continue
		}
		if want.schema == nil {
			continue
		}
		text := strings.Join(values, ", ")
		var v any = text
		if want.integer {
			v = json.Number(text)
			if _, err := strconv.ParseInt(text, 10, 64); err != nil {
				errs = append(errs, fmt.Errorf("the header %s: %q is not a whole number", name, text))
				continue
			}
		}
		if err := want.schema.Validate(v); err != nil {
			errs = append(errs, fmt.Errorf("the header %s: %q: %s", name, text, details(err)))
		}
	}
	return errs
}

func (r *response) checkBody(method string, status int, h http.Header, body []byte) []error {
	if method == http.MethodHead {
		if len(body) > 0 {
			return []error{errors.New("a response to HEAD has no body")}
		}
		return nil
	}
	if len(r.content) == 0 {
		if len(body) > 0 {
			return []error{errors.New("no body is documented, but there is one")}
		}
		return nil
	}
	ct := h.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(ct)
	if err != nil {
		return []error{fmt.Errorf("the header Content-Type %q is missing or not valid", ct)}
	}
	m, ok := r.content[kind]
	if !ok {
		major, _, _ := strings.Cut(kind, "/")
		if m, ok = r.content[major+"/*"]; !ok {
			m, ok = r.content["*/*"]
		}
	}
	if !ok {
		return []error{fmt.Errorf("the content type is %s; documented are %s", kind, strings.Join(slices.Sorted(maps.Keys(r.content)), ", "))}
	}
	switch {
	case m.events != nil:
		return m.checkEvents(body)
	case kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return nil
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") {
		return []error{fmt.Errorf("JSON in %s", cs)}
	}
	errs := m.checkJSON(body)
	if kind == "application/problem+json" {
		errs = append(errs, checkProblem(status, h, body)...)
	}
	return errs
}

// checkJSON checks one JSON text.
func (m media) checkJSON(text []byte) (errs []error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []error{fmt.Errorf("the body is not JSON: %w", err)}
	}
	if m.schema != nil {
		if err := m.schema.Validate(v); err != nil {
			errs = append(errs, errors.New(details(err)))
		}
	}
	if at := null(v, ""); at != "" {
		errs = append(errs, fmt.Errorf("at '%s': members without a value must be left out, not null", at))
	}
	if o, ok := v.(map[string]any); ok && m.repeats {
		data := o["data"]
		delete(o, "data")
		if !reflect.DeepEqual(data, any(o)) {
			errs = append(errs, errors.New("at '/data': it must repeat the other members of the body"))
		}
	}
	return errs
}

// null returns the JSON pointer of the first null in v, or "".
func null(v any, at string) string {
	switch v := v.(type) {
	case nil:
		return at + "/"
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if p := null(v[k], at+"/"+k); p != "" {
				return strings.TrimSuffix(p, "/")
			}
		}
	case []any:
		for i, e := range v {
			if p := null(e, fmt.Sprintf("%s/%d", at, i)); p != "" {
				return strings.TrimSuffix(p, "/")
			}
		}
	}
	return ""
}

// checkProblem checks rules for problems that a schema cannot express.
func checkProblem(status int, h http.Header, body []byte) (errs []error) {
	var p struct {
		Type, Detail, Message, Error string
		Status, Code                 int
		RequestID                    string `json:"request_id"`
	}
	if json.Unmarshal(body, &p) != nil {
		return nil // the schema check has reported it
	}
	if p.Status != status || p.Code != status {
		errs = append(errs, fmt.Errorf("status is %d and code %d, but the HTTP status is %d", p.Status, p.Code, status))
	}
	if p.Message != p.Detail {
		errs = append(errs, errors.New("message and detail differ"))
	}
	if id := h.Get("X-Request-Id"); p.RequestID != id {
		errs = append(errs, fmt.Errorf("request_id is %q, but the header X-Request-Id is %q", p.RequestID, id))
	}
	if !strings.HasSuffix(p.Type, "#error-"+p.Error) {
		errs = append(errs, fmt.Errorf("type is %q, but error is %q", p.Type, p.Error))
	}
	return errs
}

// checkEvents checks a whole stream of server-sent events.
func (m media) checkEvents(body []byte) (errs []error) {
	stream := strings.ReplaceAll(string(body), "\r\n", "\n")
	if stream != "" && !strings.HasSuffix(stream, "\n\n") {
		errs = append(errs, errors.New("the stream ends inside an event"))
	}
	n := 0
	for block := range strings.SplitSeq(strings.TrimRight(stream, "\n"), "\n\n") {
		var data []string
		for line := range strings.SplitSeq(block, "\n") {
			name, value, ok := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case name == "data":
				data = append(data, value)
			case line != "" && !ok, ok && name != "" && name != "event" && name != "id" && name != "retry":
				errs = append(errs, fmt.Errorf("event %d: unknown field %q", n, line))
			}
		}
		if data == nil {
			continue // comments keep the connection alive
		}
		for _, err := range (media{schema: m.events, repeats: m.repeats}).checkJSON([]byte(strings.Join(data, "\n"))) {
			errs = append(errs, fmt.Errorf("event %d: %w", n, err))
		}
		n++
	}
	if n == 0 {
		errs = append(errs, errors.New("the stream has no events"))
	}
	return errs
}

// details returns a validation error without its first line, which only names the schema.
func details(err error) string {
	var v *jsonschema.ValidationError
	if errors.As(err, &v) {
		if _, rest, ok := strings.Cut(v.Error(), "\n"); ok {
			return rest
		}
	}
	return err.Error()
}

// excerpt returns the start of a body for an error message.
func excerpt(body []byte) string {
	const limit = 2 << 10
	switch {
	case len(body) == 0:
		return ""
	case len(body) > limit:
		return fmt.Sprintf("\nbody: %q…", body[:limit])
	}
	return fmt.Sprintf("\nbody: %s", bytes.TrimSpace(body))
}
