package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/upload"
)

// sampleActions have parameters of all kinds; two actions have the same name.
func sampleActions() []fileops.Action {
	do := func(context.Context, *fileops.Job) error { return nil }
	act := func(name, engine, doc string, joint bool, s fileops.Schema, formats ...format.Format) fileops.Action {
		return fileops.Func(fileops.Spec{
			Name: name, Engine: engine, Family: engine, Summary: doc, Joint: joint,
			Accepts: []fileops.Accept{{Formats: formats, Params: s}},
		}, do)
	}
	dpi := fileops.Param{Name: "dpi", Doc: "Resolution.", Type: fileops.Integer, Min: 36, Max: 600, Default: 150}
	pages := fileops.Param{Name: "pages", Doc: "Which pages, as in `1-3,7`.", Pattern: `[0-9,-]+`}
	level := fileops.Param{Name: "compression_value", Doc: "How hard.", Enum: []string{"recommended_compression", "less_compression"}, Default: "recommended_compression"}
	return []fileops.Action{
		act("convert", "office", "Converts documents.", false, fileops.Schema{fileops.Enum("convert_to", "Target.", "pdf", "odt")}, format.DOCX, format.ODT),
		act("convert", "image", "Converts images.", false, fileops.Schema{fileops.Enum("convert_to", "Target.", "png", "jpg"), dpi, pages}, format.PDF),
		act("compress", "image", "Makes files smaller.", false, fileops.Schema{level}, format.PDF, format.JPG),
		act("lock", "pdf", "Protects PDFs.", false, fileops.Schema{fileops.Secret("password", "Opens the result.")}, format.PDF),
		act("zip", "archive", "Packs <files> & more.", true, nil, format.Any),
	}
}

func sampleRegistry(t testing.TB) *fileops.Registry {
	t.Helper()
	reg, err := fileops.NewRegistry(sampleActions()...)
	systest.NoError(t, err)
	return reg
}

// described returns the document, also as decoded JSON.
func described(t testing.TB, envelope Envelope) (openAPI, map[string]any) {
	t.Helper()
	o := describeAPI(sampleRegistry(t), envelope, nil)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(form(t, o.json)))
	systest.NoError(t, err)
	return o, v.(map[string]any)
}

// form returns a form of the document.
func form(t testing.TB, render func() ([]byte, error)) []byte {
	t.Helper()
	text, err := render()
	systest.NoError(t, err)
	return text
}

func sampleService(t testing.TB, cfg Config) *Service {
	t.Helper()
	cfg.Auth, cfg.Actions = AllowAll(), sampleActions()
	s, err := New(cfg)
	systest.NoError(t, err)
	return s
}

// dig returns the value under a path of keys.
func dig(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// walk calls f for every object in v with the JSON pointer to it.
func walk(v any, at string, f func(at string, m map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(at, v)
		for k, e := range v {
			walk(e, at+"/"+apicheck.EscapeKey(k), f)
		}
	case []any:
		for i, e := range v {
			walk(e, fmt.Sprintf("%s/%d", at, i), f)
		}
	}
}

// fragment returns a JSON pointer as a URL fragment.
func fragment(pointer string) string { return "#" + (&url.URL{Path: pointer}).EscapedPath() }

var routeParam = regexp.MustCompile(`[:*]([a-z_]+)`)

func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	s := sampleService(t, Config{})
	_, doc := described(t, EnvelopeDual)
	paths := dig(doc, "paths").(map[string]any)
	documented := make(map[string]bool)
	for path, item := range paths {
		for _, method := range methods {
			if dig(item, method) != nil {
				documented[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for _, rt := range s.routes() {
		path := routeParam.ReplaceAllString(rt.path, "{$1}")
		if !documented[rt.method+" "+path] {
			t.Errorf("route %s %s is not in the document", rt.method, path)
			continue
		}
		item := paths[path]
		if got := dig(item, "x-no-alias") == true; got != rt.noAlias {
			t.Errorf("%s: x-no-alias is %v, the route says %v", path, got, rt.noAlias)
		}
		security, _ := dig(item, strings.ToLower(rt.method), "security").([]any)
		free := dig(item, strings.ToLower(rt.method), "security") != nil && (len(security) == 0 || slices.ContainsFunc(security, func(v any) bool { return len(v.(map[string]any)) == 0 }))
		if free != rt.open {
			t.Errorf("%s %s: the document says open %v, the route %v", rt.method, path, free, rt.open)
		}
	}
	// In the other direction the router decides: some documented paths are special cases of a
	// route.
	braces := regexp.MustCompile(`\{[^}]+\}`)
	aliases := dig(doc, "x-alias-prefixes", prefixes[0]).([]any)
	if len(aliases) != len(prefixes)-1 {
		t.Errorf("the document has %d aliases of %s, the service %d", len(aliases), prefixes[0], len(prefixes)-1)
	}
	for op := range documented {
		method, path, _ := strings.Cut(op, " ")
		concrete := braces.ReplaceAllString(path, "x")
		if h, _, _ := s.router.Lookup(method, concrete); h == nil {
			t.Errorf("%s is documented, but there is no route", op)
		}
		for _, alias := range aliases {
			rest, ok := strings.CutPrefix(concrete, prefixes[0]+"/")
			if !ok {
				continue
			}
			h, _, _ := s.router.Lookup(method, alias.(string)+"/"+rest)
			if served := h != nil; served == (dig(paths[path], "x-no-alias") == true) {
				t.Errorf("%s below %s: served %v, but the document says otherwise", op, alias, served)
			}
		}
	}
}

func TestOpenAPIIsConsistent(t *testing.T) {
	t.Parallel()
	for _, envelope := range []Envelope{EnvelopeDual, EnvelopePlain, EnvelopeData} {
		_, doc := described(t, envelope)
		ids, used := make(map[string]string), make(map[string]bool)
		walk(doc, "", func(at string, m map[string]any) {
			if ref, ok := m["$ref"].(string); ok {
				used[strings.TrimPrefix(ref, "#")] = true
				if dig(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
					t.Errorf("%s: reference %s leads nowhere", at, ref)
				}
			}
			if id, ok := m["operationId"].(string); ok {
				if ids[id] != "" {
					t.Errorf("operationId %s is at %s and %s", id, ids[id], at)
				}
				ids[id] = at
				for _, member := range []string{"summary", "tags", "responses"} {
					if m[member] == nil {
						t.Errorf("%s has no %s", id, member)
					}
				}
			}
			// Every variable in a path must be declared.
			if rest, ok := strings.CutPrefix(at, "/paths/"); ok && !strings.Contains(rest, "/") {
				path := strings.NewReplacer("~1", "/", "~0", "~").Replace(rest)
				declared := make(map[string]bool)
				for _, p := range append(list(m["parameters"]), list(dig(m, "put", "parameters"))...) {
					if ref, ok := dig(p, "$ref").(string); ok {
						p = dig(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
					}
					if dig(p, "in") == "path" {
						declared[dig(p, "name").(string)] = true
					}
				}
				for _, p := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
					if !declared[p[1]] {
						t.Errorf("%s: parameter %s is not declared", path, p[1])
					}
					delete(declared, p[1])
				}
				if len(declared) > 0 {
					t.Errorf("%s: parameters %v are declared but not in the path", path, declared)
				}
			}
		})
		for _, kind := range []string{"schemas", "responses", "parameters", "headers"} {
			for name := range dig(doc, "components", kind).(map[string]any) {
				// MethodNotAllowed has no reference: every path can return it.
				if !used["/components/"+kind+"/"+name] && name != "MethodNotAllowed" {
					t.Errorf("%s %s is not used", kind, name)
				}
			}
		}
		if b, _ := json.Marshal(doc); bytes.Contains(b, []byte("(envelope)")) {
			t.Error("the placeholder of the envelope is still there")
		}
	}
}

func list(v any) []any { l, _ := v.([]any); return l }

// Every schema is valid, and every example and default matches its schema.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	for _, envelope := range []Envelope{EnvelopeDual, EnvelopePlain, EnvelopeData} {
		_, doc := described(t, envelope)
		apicheck.ApplyRules(doc)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		const name = "https://example.com/openapi.json"
		systest.NoError(t, c.AddResource(name, doc))
		examples := 0
		check := func(at string, schemaAt string, v any) {
			examples++
			schema, err := c.Compile(name + fragment(schemaAt))
			if err != nil {
				t.Errorf("%s: %v", schemaAt, err)
			} else if err := schema.Validate(v); err != nil {
				t.Errorf("example at %s: %v", at, err)
			}
		}
		walk(doc, "", func(at string, m map[string]any) {
			switch {
			case strings.HasPrefix(at, "/components/schemas/"):
				if strings.Count(at, "/") == 3 {
					if _, err := c.Compile(name + fragment(at)); err != nil {
						t.Errorf("schema %s: %v", at, err)
					}
				}
				for _, e := range list(m["examples"]) {
					check(at+"/examples", at, e)
				}
				if d, ok := m["default"]; ok && m["type"] != nil && !strings.HasSuffix(at, "/properties") {
					check(at+"/default", at, d)
				}
			case m["schema"] != nil:
				if _, err := c.Compile(name + fragment(at+"/schema")); err != nil {
					t.Errorf("schema at %s: %v", at, err)
				}
				if e, ok := m["example"]; ok {
					check(at+"/example", at+"/schema", e)
				}
				named, _ := m["examples"].(map[string]any)
				for title, e := range named {
					check(at+"/examples/"+title, at+"/schema", dig(e, "value"))
				}
			}
		})
		if examples < 60 {
			t.Errorf("only %d examples were found", examples)
		}
	}
}

func TestOpenAPIActions(t *testing.T) {
	t.Parallel()
	reg := sampleRegistry(t)
	_, doc := described(t, EnvelopeDual)
	schemas := dig(doc, "components", "schemas")
	var kinds []any
	for _, kind := range []string{"DoAction", "DoSteps"} {
		kinds = append(kinds, map[string]any{"$ref": "#/components/schemas/" + kind})
	}
	if got := dig(schemas, "Do", "oneOf"); !reflect.DeepEqual(got, any(kinds)) {
		t.Errorf("do lists %v", got)
	}
	if got := dig(schemas, "DoSteps", "required"); !reflect.DeepEqual(got, any([]any{"file_keys", "steps"})) {
		t.Errorf("an operation of several steps requires %v", got)
	}
	// A step has the same parameters as an operation of one action.
	if got := dig(schemas, "DoSteps", "properties", "steps", "items", "$ref"); got != "#/components/schemas/Step" {
		t.Errorf("the steps are %v", got)
	}
	for _, name := range reg.Names() {
		step, do := dig(schemas, "Step"+camel(name)), dig(schemas, "Do"+camel(name))
		if got := dig(schemas, "Step", "discriminator", "mapping", name); got != "#/components/schemas/Step"+camel(name) {
			t.Errorf("the discriminator of steps refers to %v for %s", got, name)
		}
		for _, member := range []string{"action", "parameters"} {
			if !reflect.DeepEqual(dig(step, "properties", member), dig(do, "properties", member)) {
				t.Errorf("%s of a step is %v, want that of %s", member, dig(step, "properties", member), "Do"+camel(name))
			}
		}
		if n := len(dig(step, "properties").(map[string]any)); n > 2 {
			t.Errorf("the step %s has %d members", name, n)
		}
	}
	choices := list(dig(schemas, "DoAction", "oneOf"))
	names := reg.Names()
	if len(choices) != len(names) {
		t.Fatalf("do lists %d actions, want %d", len(choices), len(names))
	}
	for i, name := range names {
		variant := "Do" + camel(name)
		if got := dig(choices[i], "$ref"); got != "#/components/schemas/"+variant {
			t.Errorf("do refers to %v for %s", got, name)
		}
		if got := dig(schemas, "DoAction", "discriminator", "mapping", name); got != "#/components/schemas/"+variant {
			t.Errorf("the discriminator refers to %v for %s", got, name)
		}
		do := dig(doc, "components", "schemas", variant)
		if got := dig(do, "properties", "action", "enum"); !reflect.DeepEqual(got, any([]any{name})) {
			t.Errorf("the action of %s is %v", name, got)
		}
		var all []fileops.Schema
		for a := range reg.Actions() {
			for _, acc := range a.Spec().Accepts {
				if a.Spec().Name == name {
					all = append(all, acc.Params)
				}
			}
		}
		want := fileops.Merge(all...)
		parameters := dig(doc, "components", "schemas", camel(name)+"Parameters")
		if len(want) == 0 {
			if parameters != nil || dig(do, "properties", "parameters") != nil {
				t.Errorf("%s has parameters", name)
			}
			continue
		}
		if got := dig(do, "properties", "parameters", "$ref"); got != "#/components/schemas/"+camel(name)+"Parameters" {
			t.Errorf("%s refers to %v for its parameters", name, got)
		}
		if n := len(dig(parameters, "properties").(map[string]any)); n != len(want) {
			t.Errorf("%s has %d parameters, want %d", name, n, len(want))
		}
		for _, p := range want {
			got := dig(parameters, "properties", p.Name)
			if required := slices.Contains(list(dig(parameters, "required")), any(p.Name)); required != p.Required {
				t.Errorf("%s of %s: required is %v", p.Name, name, required)
			}
			// A default would make the member mandatory in generated types.
			if dig(got, "default") != nil || fmt.Sprint(dig(got, "x-default")) != fmt.Sprint(p.Default) {
				t.Errorf("%s of %s: default %v, x-default %v, want %v", p.Name, name, dig(got, "default"), dig(got, "x-default"), p.Default)
			}
			if !strings.HasPrefix(dig(got, "description").(string), strings.TrimSuffix(p.Doc, ".")) {
				t.Errorf("%s of %s is described as %v", p.Name, name, dig(got, "description"))
			}
		}
		// Parameters that are valid for one format are valid in the schema of the action.
		for a := range reg.Actions() {
			for _, acc := range a.Spec().Accepts {
				for _, f := range acc.Formats {
					s, _ := reg.Schema(name, f)
					for _, p := range s {
						listed := list(dig(doc, "components", "schemas", camel(name)+"Parameters", "properties", p.Name, "enum"))
						for _, v := range p.Enum {
							if !slices.Contains(listed, any(v)) {
								t.Errorf("%s of %s for %s: %q is not in the document", p.Name, name, f, v)
							}
						}
					}
				}
			}
		}
	}
	// The action selects the schema of a request.
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	systest.NoError(t, c.AddResource("https://example.com/openapi.json", doc))
	schema := c.MustCompile("https://example.com/openapi.json#/components/schemas/Do")
	const key = `"k3v7mzq2d5yhw6tcn4xrfa7p2e"`
	for _, tt := range []struct {
		body string
		ok   bool
	}{
		{`{"action":"convert","file_keys":[` + key + `],"parameters":{"convert_to":"odt"}}`, true},
		{`{"action":"convert","file_keys":[` + key + `],"parameters":{"convert_to":"png","dpi":300}}`, true},
		{`{"action":"convert","file_keys":[` + key + `],"parameters":{"convert_to":"mp3"}}`, false},
		{`{"action":"convert","file_keys":[` + key + `],"parameters":{"convert_to":"png","dpi":3}}`, false},
		{`{"action":"convert","file_keys":[` + key + `]}`, false},
		{`{"action":"zip","file_keys":[` + key + `]}`, true},
		{`{"action":"zip","file_keys":[]}`, false},
		{`{"action":"lock","file_keys":[` + key + `],"parameters":{"password":""}}`, false},
		{`{"action":"fold","file_keys":[` + key + `]}`, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.body))
		systest.NoError(t, err)
		if err := schema.Validate(v); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want valid %v", tt.body, err, tt.ok)
		}
	}
	// Examples of missing actions are omitted.
	examples := dig(doc, "paths", "/api/v1/do", "post", "requestBody", "content", "application/json", "examples").(map[string]any)
	if got := slices.Sorted(maps.Keys(examples)); !slices.Equal(got, []string{"compress", "convert", "lock", "zip"}) {
		t.Errorf("examples are %v", got)
	}
}

// Both forms of the document have the shape that generators of clients need.
func TestOpenAPIForGenerators(t *testing.T) {
	t.Parallel()
	for _, envelope := range []Envelope{EnvelopeDual, EnvelopePlain, EnvelopeData} {
		o, _ := described(t, envelope)
		for version, text := range map[string][]byte{"3.1.0": form(t, o.json), "3.0.3": form(t, o.json30)} {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			systest.NoError(t, err)
			doc := v.(map[string]any)
			if doc["openapi"] != version {
				t.Errorf("the version is %v, want %s", doc["openapi"], version)
			}
			names := make(map[string]string)
			for _, kind := range []string{"schemas", "parameters", "headers", "responses"} {
				for name := range dig(doc, "components", kind).(map[string]any) {
					plain := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
					if names[plain] != "" {
						t.Errorf("%s: the %s %s has the name of one of the %s", version, kind, name, names[plain])
					}
					names[plain] = kind
				}
			}
			walk(doc, "", func(at string, m map[string]any) {
				if strings.Contains(at, "/x-rules") {
					return
				}
				if ref, ok := m["$ref"].(string); ok && dig(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
					t.Errorf("%s: %s: reference %s leads nowhere", version, at, ref)
				}
				props, _ := m["properties"].(map[string]any)
				for name, p := range props {
					if _, ok := p.(map[string]any); !ok {
						t.Errorf("%s: %s: the schema of %s is %v", version, at, name, p)
					}
				}
				if _, ok := m["type"].([]any); ok && !strings.Contains(at, "/example") {
					t.Errorf("%s: %s has a list of types", version, at)
				}
				if strings.HasPrefix(at, "/components/schemas/") && m["type"] != nil && m["default"] != nil && !strings.HasSuffix(at, "/properties") {
					t.Errorf("%s: %s has a default, which makes it mandatory in generated types", version, at)
				}
				for _, key := range []string{"if", "then", "else", "dependentRequired"} {
					if _, ok := m[key].(map[string]any); ok {
						t.Errorf("%s: %s has a condition", version, at)
					}
				}
				if version != "3.0.3" || strings.HasSuffix(at, "/properties") || strings.Contains(at, "/example") {
					return
				}
				for _, key := range []string{"const", "unevaluatedProperties", "webhooks"} {
					if m[key] != nil {
						t.Errorf("%s has %s", at, key)
					}
				}
				if m["$ref"] != nil && len(m) > 1 {
					t.Errorf("%s has members beside its reference", at)
				}
			})
			// Every request and response in JSON has an example.
			for path, item := range dig(doc, "paths").(map[string]any) {
				for _, method := range methods {
					for status, r := range asMap(dig(item, method, "responses")) {
						if ref, ok := dig(r, "$ref").(string); ok {
							r = dig(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
						}
						needExample(t, fmt.Sprint(version, " ", method, " ", path, " ", status), dig(r, "content"))
					}
					needExample(t, fmt.Sprint(version, " request of ", method, " ", path), dig(item, method, "requestBody", "content"))
				}
			}
		}
	}
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

func needExample(t *testing.T, where string, content any) {
	t.Helper()
	for kind, media := range asMap(content) {
		if strings.HasSuffix(kind, "json") && dig(media, "example") == nil && dig(media, "examples") == nil {
			t.Errorf("%s: %s has no example", where, kind)
		}
	}
}

func TestOpenAPIWithoutActions(t *testing.T) {
	t.Parallel()
	reg, err := fileops.NewRegistry()
	systest.NoError(t, err)
	o := describeAPI(reg, EnvelopeDual, nil)
	if _, err := apicheck.New(form(t, o.json)); err != nil {
		t.Error(err)
	}
}

// The documented error lists match the service's errors.
func TestOpenAPIErrors(t *testing.T) {
	t.Parallel()
	_, doc := described(t, EnvelopeDual)
	want := map[string]int{
		"invalid_request": 400, "missing_part": 400, "part_order": 400, "part_etag": 400, "size_mismatch": 400, "unsupported_operation": 400,
		"url_scheme": 400, "url_credentials": 400, "url_address": 400,
		"unauthorized": 401, "forbidden": 403, "address_not_allowed": 403, "invalid_signature": 403, "url_expired": 403, "not_found": 404, "method_not_allowed": 405, "request_timeout": 408,
		"conflict": 409, "upload_incomplete": 409, "expired": 410, "content_lost": 410, "too_large": 413, "unsupported_media_type": 415, "operation_failed": 422,
		"rate_limit_exceeded": 429, "quota_exceeded": 429, "queue_full": 429, "internal_error": 500, "unavailable": 503, "insufficient_storage": 507, "invalid_range": 416,
	}
	got := make(map[string]int)
	for _, e := range list(doc["x-errors"]) {
		n, _ := dig(e, "status").(json.Number).Int64()
		got[dig(e, "slug").(string)] = int(n)
		if dig(e, "meaning") == nil {
			t.Errorf("%v has no meaning", e)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, m := range errorMap {
		if got[m.slug] != m.status {
			t.Errorf("%s is answered with %d, documented with %d", m.slug, m.status, got[m.slug])
		}
	}
	codes := []string{
		"corrupt_input", "format_mismatch", "password_required", "wrong_password", "not_encrypted", "unsupported_input", "limit_exceeded",
		"timeout", "cancelled", "engine_failed", "invalid_parameter", "engine_unavailable", "input_expired", "content_lost", "internal_error", "waited_too_long",
	}
	var listed []string
	for _, c := range list(dig(doc, "components", "schemas", "FileErrorCode", "enum")) {
		listed = append(listed, c.(string))
	}
	if !slices.Equal(listed, codes) {
		t.Errorf("codes of files are %v, want %v", listed, codes)
	}
	for _, kind := range []error{
		context.DeadlineExceeded, context.Canceled, fileops.ErrCorruptInput, fileops.ErrFormatMismatch, fileops.ErrUnsupportedInput, fileops.ErrPasswordRequired,
		fileops.ErrWrongPassword, fileops.ErrNotEncrypted, fileops.ErrLimit, fileops.ErrEngine, fileops.ErrUnavailable, worker.ErrInputGone, worker.ErrSealed, upload.ErrContentLost,
	} {
		if c := worker.Code(kind); !slices.Contains(codes, c) {
			t.Errorf("%v has the code %s, which is not documented", kind, c)
		}
	}
}

// Responses of the service match the document in every envelope.
func TestOpenAPIEnvelopes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	size := int64(12)
	const key = "k3v7mzq2d5yhw6tcn4xrfa7p2e"
	done := OperationStatus{
		OperationStatus: "completed", MainTaskID: "0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20", Action: "convert", Progress: 100,
		CreatedAt: now, FinishedAt: now, FilesData: []FileStatus{{
			FileKey: key, InputFileKey: key, Status: "completed", Progress: 100, DownloadLink: "/v1/download/" + key,
			FileName: "a.pdf", Size: &size, MimeType: "application/pdf",
		}},
	}
	linkless := done
	linkless.FilesData = slices.Clone(done.FilesData)
	linkless.FilesData[0].DownloadLink = ""
	for _, envelope := range []Envelope{EnvelopeDual, EnvelopePlain, EnvelopeData} {
		o, _ := described(t, envelope)
		check, err := apicheck.New(form(t, o.json))
		systest.NoError(t, err)
		for _, as := range []Envelope{EnvelopeDual, EnvelopePlain, EnvelopeData} {
			s := &Node{cfg: Config{Envelope: as}}
			for _, tt := range []struct {
				method, path string
				v            any
				ok           bool
			}{
				{"POST", "/api/v1/do", doResponse{"0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20"}, true},
				{"POST", "/v1/biz/do", doResponse{"0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20"}, true},
				{"POST", "/api/v1/do", doResponse{"17"}, false},
				{"GET", "/api/v1/status/0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20", done, true},
				{"GET", "/api/v1/status/0b9f1c7e-3d52-4a86-9a4e-5f0f3f1b7c20", linkless, false},
				{"GET", "/api/v1/operations", listResponse{Operations: []OperationStatus{done}}, true},
				{"GET", "/api/v1/operations", listResponse{}, false}, // null
			} {
				w := httptest.NewRecorder()
				w.Header().Set("X-Request-Id", "1")
				s.reply(w, tt.v)
				err := check.Response(tt.method, tt.path, w.Code, w.Header(), w.Body.Bytes())
				if want := tt.ok && as == envelope; (err == nil) != want {
					t.Errorf("envelope %d, described as %d: %s %s: got %v, want valid %v", as, envelope, tt.method, tt.path, err, want)
				}
			}
		}
	}
}

func TestOpenAPIForms(t *testing.T) {
	t.Parallel()
	o, _ := described(t, EnvelopeDual)
	again, _ := described(t, EnvelopeDual)
	if !bytes.Equal(form(t, o.json), form(t, again.json)) || !bytes.Equal(form(t, o.yaml), form(t, again.yaml)) || !bytes.Equal(form(t, o.docs), form(t, again.docs)) {
		t.Error("the document is not the same every time")
	}
	var fromJSON, fromYAML any
	systest.NoError(t, json.Unmarshal(form(t, o.json), &fromJSON))
	systest.NoError(t, yaml.Unmarshal(form(t, o.yaml), &fromYAML))
	a, _ := json.Marshal(fromJSON)
	b, err := json.Marshal(fromYAML)
	systest.NoError(t, err)
	if !bytes.Equal(a, b) {
		t.Error("the JSON and the YAML document differ")
	}
	for _, text := range [][]byte{form(t, o.json), form(t, o.yaml), form(t, o.docs)} {
		if bytes.Contains(text, []byte("\t\n")) || len(text) < 10000 {
			t.Error("a form is too short")
		}
	}
}

func TestOpenAPIHandlers(t *testing.T) {
	t.Parallel()
	s := sampleService(t, Config{})
	check, err := apicheck.New(s.OpenAPI())
	systest.NoError(t, err)
	for path, contentType := range map[string]string{
		"/openapi.json": "application/json", "/openapi-3.0.json": "application/json", "/openapi.yaml": "application/yaml", "/docs": "text/html; charset=utf-8",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			get := func(method, known string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(method, "http://files.test"+path, nil)
				if known != "" {
					r.Header.Set("If-None-Match", known)
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				body := w.Body.Bytes()
				if method == http.MethodHead {
					body = nil // net/http would drop it
				}
				systest.Check(t, check.Response(method, path, w.Code, w.Header(), body))
				return w
			}
			w := get("GET", "")
			if w.Code != 200 || w.Header().Get("Content-Type") != contentType || fmt.Sprint(w.Body.Len()) != w.Header().Get("Content-Length") {
				t.Errorf("got %d, %v", w.Code, w.Header())
			}
			etag := w.Header().Get("ETag")
			for known, want := range map[string]int{etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200} {
				if w := get("GET", known); w.Code != want {
					t.Errorf("If-None-Match %s: got %d, want %d", known, w.Code, want)
				}
			}
			if w := get("HEAD", ""); w.Code != 200 || w.Header().Get("ETag") != etag {
				t.Errorf("HEAD: got %d, %v", w.Code, w.Header())
			}
			if w := get("POST", ""); w.Code != 405 {
				t.Errorf("POST: got %d", w.Code)
			}
		})
	}
}

// The page is complete, accessible and loads nothing from other sites.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	s := sampleService(t, Config{})
	_, doc := described(t, EnvelopeDual)
	r := httptest.NewRequest("GET", "http://files.test/docs", nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	page := w.Body.String()
	tree, err := html.Parse(strings.NewReader(page))
	systest.NoError(t, err)
	ids := make(map[string]int)
	var links []string
	var style string
	var elements func(n *html.Node)
	elements = func(n *html.Node) {
		if n.Type == html.ElementNode {
			if n.Data == "script" || n.Data == "iframe" || n.Data == "img" {
				t.Errorf("the page has an element %s", n.Data)
			}
			if n.Data == "style" {
				style += n.FirstChild.Data
			}
			for _, a := range n.Attr {
				switch {
				case a.Key == "id":
					ids[a.Val]++
				case a.Key == "href":
					links = append(links, a.Val)
				case a.Key == "style", strings.HasPrefix(a.Key, "on"), a.Key == "src":
					t.Errorf("%s has the attribute %s", n.Data, a.Key)
				}
			}
		}
		for c := range n.ChildNodes() {
			elements(c)
		}
	}
	elements(tree)
	for id, n := range ids {
		if n > 1 {
			t.Errorf("the id %s is there %d times", id, n)
		}
	}
	for _, l := range links {
		switch id, local := strings.CutPrefix(l, "#"); {
		case local && ids[id] == 0:
			t.Errorf("link to #%s leads nowhere", id)
		case !local && l != "/openapi.json" && l != "/openapi.yaml" && !strings.HasPrefix(l, "data:image/svg+xml,"):
			t.Errorf("link to %s", l)
		}
	}
	walk(doc, "", func(at string, m map[string]any) {
		if id, ok := m["operationId"].(string); ok && ids[id] == 0 {
			t.Errorf("operation %s is not on the page", id)
		}
	})
	for path := range dig(doc, "paths").(map[string]any) {
		if !strings.Contains(page, "<span>"+path+"</span>") {
			t.Errorf("path %s is not on the page", path)
		}
	}
	for _, e := range list(doc["x-errors"]) {
		if slug := dig(e, "slug").(string); ids["error-"+slug] == 0 {
			t.Errorf("error %s is not on the page", slug)
		}
	}
	for _, e := range list(doc["x-file-errors"]) {
		if code := dig(e, "code").(string); ids["file-error-"+code] == 0 {
			t.Errorf("file error %s is not on the page", code)
		}
	}
	for code := range fileops.WarningMeanings() {
		if ids["file-warning-"+code] == 0 {
			t.Errorf("warning %s is not on the page", code)
		}
	}
	for _, a := range sampleActions() {
		if ids["action-"+a.Spec().Name] == 0 {
			t.Errorf("action %s is not on the page", a.Spec().Name)
		}
	}
	sum := sha256.Sum256([]byte(style))
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the policy %q does not fit the style", csp)
	}
	for _, want := range []string{
		"BASE=http://files.test\n", "Packs &lt;files&gt; &amp; more.", "Converts files to other formats", "any file", "<code>1-3,7</code>",
		"<code>files_data[].download_link</code>", "<code>parameters.convert_to</code>", `X-D3-API-Key`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	for _, bad := range []string{"ZgotmplZ", "&amp;lt;", "<no value>", docsBase + "\n", "`"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

// The page does not depend on the Host header.
func TestDocsPageEscapesItsAddress(t *testing.T) {
	t.Parallel()
	s := sampleService(t, Config{TrustProxy: true})
	r := httptest.NewRequest("GET", "/docs", nil)
	r.Header.Set("X-Forwarded-Host", `x"><script>alert(1)</script>`)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), "<script") {
		t.Error("the address is not escaped")
	}
	u, err := url.Parse("https://files.example/base/")
	systest.NoError(t, err)
	w = httptest.NewRecorder()
	sampleService(t, Config{BaseURL: u}).ServeHTTP(w, httptest.NewRequest("GET", "/docs", nil))
	if !strings.Contains(w.Body.String(), "BASE=https://files.example/base\n") {
		t.Error("the configured address is not shown")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"paragraphs", "one\ntwo\n\nthree", "<p>one two</p>\n<p>three</p>\n"},
		{"code span", "a `b < c` **d** & e", "<p>a <code>b &lt; c</code> <strong>d</strong> &amp; e</p>\n"},
		{"stars in code", "`**a**`", "<p><code>**a**</code></p>\n"},
		{"list", "x\n\n- a\n- `b`\n\ny", "<p>x</p>\n<ul>\n<li>a</li>\n<li><code>b</code></li>\n</ul>\n<p>y</p>\n"},
		{"list at the end", "- a", "<ul>\n<li>a</li>\n</ul>\n"},
		{"heading", "## Large files", "<h2 id=\"large-files\">Large files</h2>\n"},
		{"fence", "```sh\na <b>\n\n- c\n```\nd", "<pre tabindex=\"0\"><code>a &lt;b&gt;\n\n- c</code></pre>\n<p>d</p>\n"},
		{"fence that is never closed", "```\na", "<pre tabindex=\"0\"><code>a</code></pre>\n"},
		{"html", "<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := markdown(tt.in); string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Real responses, from the first request to the last, match the document.
func TestOpenAPIRealResponses(t *testing.T) {
	t.Parallel()
	const auth = "Bearer key-of-the-test"
	upper := fileops.Func(fileops.Spec{
		Name: "upper", Engine: "test 1.0", Family: "text", Summary: "Writes a text in capitals.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "txt", "md")}}},
	}, func(_ context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(b, []byte("bad")) {
			return fileops.Fail(fileops.ErrCorruptInput, nil, "")
		}
		return job.WriteBytes(fileops.ResultName(job.Input(), format.Parse(job.Params.Get("convert_to"))), bytes.ToUpper(b))
	})
	s, err := New(Config{
		Auth: StaticKeys("key-of-the-test"), Actions: append(sampleActions(), upper), Origins: []string{"*"},
		Engines: []Engine{{Name: "test", Version: "1.0"}, {Name: "gone", Err: context.Canceled, Hint: "install it"}},
		Checks:  map[string]func(context.Context) error{"store": func(context.Context) error { return nil }},
	})
	systest.NoError(t, err)
	check, err := apicheck.New(s.OpenAPI())
	systest.NoError(t, err)
	stop := systest.Start(t, s.Run)
	defer stop()
	server := httptest.NewServer(s)
	defer server.Close()

	// call makes a request, checks the response and returns it.
	call := func(want int, method, target, body string, headers ...string) (*http.Response, map[string]any) {
		t.Helper()
		if strings.HasPrefix(target, "/") {
			target = server.URL + target
		}
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		systest.NoError(t, err)
		r.Header.Set("Authorization", auth)
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		systest.NoError(t, err)
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		systest.Check(t, check.Response(method, r.URL.Path, resp.StatusCode, resp.Header, b.Bytes()))
		if resp.StatusCode != want {
			t.Fatalf("%s %s: got %d, want %d: %s", method, target, resp.StatusCode, want, b.String())
		}
		m := map[string]any{"": b.String()}
		json.Unmarshal(b.Bytes(), &m)
		return resp, m
	}
	// send uploads a file and returns its key.
	send := func(name, content, at string) string {
		t.Helper()
		_, up := call(200, "POST", at, fmt.Sprintf(`{"file_name":%q,"size":%d,"mime_type":"text/plain"}`, name, len(content)))
		resp, _ := call(200, "PUT", list(up["presigned_urls"])[0].(string), content, "Authorization", "", "Origin", "https://example.com")
		etag := strings.Trim(resp.Header.Get("ETag"), `"`)
		complete := fmt.Sprintf(`{"file_key":%q,"object_name":%q,"upload_id":%q,"parts":[{"part_number":1,"etag":%q}]}`, up["file_key"], up["object_name"], up["upload_id"], etag)
		call(400, "POST", "/api/v1/complete-upload", strings.Replace(complete, etag, strings.Repeat("0", 32), 1))
		call(200, "POST", "/api/v1/complete-upload", complete)
		call(200, "POST", "/v1/biz/complete-upload", complete)
		call(409, "PUT", list(up["presigned_urls"])[0].(string), content)
		return up["file_key"].(string)
	}
	good, bad := send("a.txt", "hello", "/api/v1/initiate-upload"), send("b.txt", "bad", "/v1/external/upload")

	_, op := call(200, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"UPPER","file_keys":[%q,%q],"parameters":{"convert_to":"md"},"notes":{"a":"b"}}`, good, bad), "Idempotency-Key", "1")
	id := op["main_task_id"].(string)
	call(409, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"zip","file_keys":[%q]}`, good), "Idempotency-Key", "1")
	_, events := call(200, "GET", "/api/v1/status/"+id+"/events", "")
	if !strings.Contains(events[""].(string), "event: status\ndata: ") {
		t.Errorf("events are %v", events)
	}
	_, st := call(200, "GET", "/api/v1/status/"+id+"?wait=20s", "")
	if st["operation_status"] != "completed" || len(list(st["files_data"])) != 2 {
		t.Fatalf("the status is %v", st)
	}
	result := list(st["files_data"])[0].(map[string]any)
	link := result["download_link"].(string)
	call(200, "GET", "/api/v1/status/"+id+"/"+bad, "")
	call(404, "GET", "/api/v1/status/"+id+"/nothing", "")
	call(404, "GET", "/api/v1/status/nothing", "")
	call(400, "GET", "/api/v1/status/"+id+"?wait=soon", "")
	call(200, "DELETE", "/api/v1/status/"+id, "")
	call(200, "GET", "/api/v1/operations?limit=1", "")
	call(400, "GET", "/api/v1/operations?limit=0", "")
	_, failed := call(200, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"upper","file_keys":[%q],"parameters":{"convert_to":"md"}}`, bad))
	call(200, "GET", "/v1/external/status/"+failed["main_task_id"].(string)+"?wait=20s", "")

	archive := "/api/v1/operations/" + id + "/download"
	if st["download_url"] != archive {
		t.Errorf("download_url is %v", st["download_url"])
	}
	zipped, _ := call(200, "GET", archive, "")
	call(206, "GET", archive, "", "Range", "bytes=1-2")
	call(416, "GET", archive, "", "Range", "bytes=100000-")
	call(304, "GET", archive, "", "If-None-Match", zipped.Header.Get("ETag"))
	call(412, "GET", archive, "", "If-Match", `"other"`)
	call(401, "GET", archive, "", "Authorization", "")
	call(404, "GET", "/api/v1/operations/nothing/download", "")
	call(422, "GET", "/api/v1/operations/"+failed["main_task_id"].(string)+"/download", "")

	resp, _ := call(200, "GET", link, "", "Authorization", "")
	etag := resp.Header.Get("ETag")
	call(200, "HEAD", link, "", "Authorization", "")
	call(206, "GET", link, "", "Range", "bytes=1-2")
	call(416, "GET", link, "", "Range", "bytes=100-")
	call(304, "GET", link, "", "If-None-Match", etag)
	call(412, "GET", link, "", "If-Match", `"other"`)
	call(200, "GET", "/api"+link, "")
	call(404, "GET", "/v1/download/nothing", "")
	call(404, "HEAD", "/v1/download/nothing", "")
	call(401, "GET", "/v1/download/"+good, "", "Authorization", "")
	call(200, "GET", "/v1/download/"+good, "")

	call(200, "GET", "/api/v1/formats", "")
	for _, q := range []string{
		`{"ext":"pdf"}`, `{"ext":"pdf","action":"CONVERT"}`, `{"ext":"pdf","action":"lock"}`, `{"ext":"pdf","action":"zip"}`, `{"ext":"xyz"}`,
		`{"ext":"pdf","action":"fold"}`, `{"ext":"pdf","action":"convert","parameters":{"convert_to":"mp3"}}`,
	} {
		call(200, "POST", "/api/v1/supported-operation", q)
		call(200, "GET", "/api/v1/supported-operation", q, "Content-Type", "application/json")
	}
	call(400, "POST", "/api/v1/supported-operation", `{}`)
	call(400, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q]}`, good))
	call(400, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"upper","file_keys":[%q],"parameters":{"convert_to":"mp3"}}`, good))
	call(404, "POST", "/api/v1/do", `{"action":"zip","file_keys":["nothing"]}`)
	call(415, "POST", "/api/v1/do", `{}`, "Content-Type", "text/plain")
	call(413, "POST", "/api/v1/do", strings.Repeat(" ", 2<<20))
	call(401, "POST", "/api/v1/do", `{}`, "Authorization", "")
	call(403, "PUT", "/v1/upload/a/b/1?signature=x", "x")
	call(403, "PUT", "/v1/upload/a", "x")
	call(404, "GET", "/nowhere", "")
	call(405, "PUT", "/api/v1/do", "")
	call(204, "OPTIONS", "/api/v1/do", "", "Origin", "https://example.com", "Access-Control-Request-Method", "POST")
	call(200, "GET", "/api/v1/files/"+good, "")
	call(400, "GET", "/api/v1/files/"+good+"?wait=soon", "")
	call(200, "DELETE", "/api/v1/files/"+good, "")
	call(404, "GET", "/api/v1/files/"+good+"?wait=30s", "")
	call(404, "DELETE", "/api/v1/files/"+good, "")
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi-3.0.json", "/openapi.yaml", "/docs", "/docs/api"} {
		call(200, "GET", path, "", "Authorization", "")
		call(200, "HEAD", path, "", "Authorization", "")
	}
	for _, op := range check.Unseen() {
		if _, status, _ := strings.Cut(op, " "); !strings.Contains(status, " ") && op != "HEAD /api/v1/download/{file_key}" {
			t.Errorf("%s was not called", op)
		}
	}
}
