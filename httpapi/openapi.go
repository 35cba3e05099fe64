package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// The document's prose is written by hand; describeAPI adds the generated parts.
var (
	//go:embed openapi.yaml
	openAPISource []byte
	//go:embed docs.html
	docsTemplate string
	//go:embed docs.css
	docsStyle string
)

// docsBase is the service's address in the document's examples. The page replaces it by the real
// address.
const docsBase = "http://localhost:8080"

// openAPI is the API description in its forms. A form is made when it is asked for first: most
// processes need one or none, and all of them took a third of the processor time of a start.
type openAPI struct {
	json, json30, yaml, docs func() ([]byte, error) // json30 is OpenAPI 3.0
	policy                   string                 // Content-Security-Policy header of docs
}

// describeAPI returns the description of the registered actions with their parameters, the response
// envelope and the extensions.
func describeAPI(reg *fileops.Registry, envelope Envelope, extensions []Extension) openAPI {
	describe := func() (document, error) {
		d, err := extendedDocument(extensions)
		if err != nil {
			return document{}, err
		}
		d.addErrors()
		d.addActions(reg)
		d.addEnvelope(envelope)
		d.addRequestID()
		d.addRateLimits()
		return d, nil
	}
	form := func(render func(document) ([]byte, error)) func() ([]byte, error) {
		return sync.OnceValues(func() ([]byte, error) {
			d, err := describe()
			if err != nil {
				return nil, err
			}
			return render(d)
		})
	}
	style := sha256.Sum256([]byte(docsStyle))
	return openAPI{
		json: form(func(d document) ([]byte, error) {
			d.shape()
			return d.marshal()
		}),
		json30: form(func(d document) ([]byte, error) {
			d.shape()
			d.downgrade()
			return d.marshal()
		}),
		yaml: form(func(d document) ([]byte, error) {
			d.shape()
			var b bytes.Buffer
			enc := yaml.NewEncoder(&b)
			enc.SetIndent(2)
			err := enc.Encode(d.root)
			return b.Bytes(), err
		}),
		docs: form(func(d document) ([]byte, error) {
			page, err := d.page(reg)
			if err != nil {
				return nil, fmt.Errorf("docs: %w", err)
			}
			return page, nil
		}),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) +
			"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// extendedDocument returns the document that is written by hand, with those of the extensions.
func extendedDocument(extensions []Extension) (document, error) {
	root, err := parseDocument(openAPISource)
	if err != nil {
		return document{}, fmt.Errorf("openapi.yaml: %w", err)
	}
	d := document{root}
	for _, e := range extensions {
		if err := d.merge(e.OpenAPI); err != nil {
			return document{}, fmt.Errorf("httpapi: document of an extension: %w", err)
		}
	}
	return d, nil
}

// marshal returns the document as JSON.
func (d document) marshal() ([]byte, error) {
	var b bytes.Buffer
	if err := writeNode(&b, d.root); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// OpenAPI returns the OpenAPI document of the actions that the service offers now, as JSON.
func (s *Service) OpenAPI() []byte {
	doc, err := s.offered.Load().openAPI.json()
	if err != nil { // the parts that callers of New supply were checked there
		s.cfg.Log.Error("cannot make the OpenAPI document", "err", err)
	}
	return bytes.Clone(doc)
}

// openAPIJSON answers GET /openapi.json.
func (s *Service) openAPIJSON(w http.ResponseWriter, r *http.Request) {
	s.serveForm(w, r, "application/json", s.offered.Load().openAPI.json)
}

// openAPI30 answers GET /openapi-3.0.json.
func (s *Service) openAPI30(w http.ResponseWriter, r *http.Request) {
	s.serveForm(w, r, "application/json", s.offered.Load().openAPI.json30)
}

// openAPIYAML answers GET /openapi.yaml.
func (s *Service) openAPIYAML(w http.ResponseWriter, r *http.Request) {
	s.serveForm(w, r, "application/yaml", s.offered.Load().openAPI.yaml)
}

// serveForm answers with a form of the document.
func (s *Service) serveForm(w http.ResponseWriter, r *http.Request, contentType string, form func() ([]byte, error)) {
	text, err := form()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	serveText(w, r, contentType, text)
}

// docs answers GET /docs and GET /docs/api.
func (s *Service) docs(w http.ResponseWriter, r *http.Request) {
	o := s.offered.Load().openAPI
	page, err := o.docs()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	base := strings.TrimSuffix(s.baseURL(r).String(), "/")
	page = bytes.ReplaceAll(page, []byte("BASE="+docsBase), []byte("BASE="+template.HTMLEscapeString(base)))
	w.Header().Set("Content-Security-Policy", o.policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	serveText(w, r, "text/html; charset=utf-8", page)
}

// serveText answers with a text that changes only with the program. Clients may cache it but must
// revalidate it.
func serveText(w http.ResponseWriter, r *http.Request, contentType string, text []byte) {
	sum := sha256.Sum256(text)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := w.Header()
	h.Set("ETag", etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == etag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	w.Write(text)
}

// A document is an OpenAPI document as a tree that keeps the source order.
type document struct{ root *yaml.Node }

// parseDocument parses a document, or an extension's part of a document.
func parseDocument(source []byte) (*yaml.Node, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(source, &file); err != nil {
		return nil, err
	}
	if len(file.Content) == 0 || file.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("not an object")
	}
	if err := complete(file.Content[0]); err != nil {
		return nil, err
	}
	return plain(file.Content[0]), nil
}

// complete rejects members without a value, which OpenAPI never has. They come from an unquoted
// text with a comma inside braces, which YAML splits into two members.
func complete(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		for i := 1; i < len(n.Content); i += 2 {
			if v := n.Content[i]; v.Tag == "!!null" && v.Value == "" {
				return fmt.Errorf("line %d: %q has no value; quote a text that contains a comma or a colon", n.Content[i-1].Line, n.Content[i-1].Value)
			}
		}
	}
	for _, child := range n.Content {
		if err := complete(child); err != nil {
			return err
		}
	}
	return nil
}

// plain returns a copy of n without comments. Aliases become copies of their targets, so that no
// node is in two places.
func plain(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, child := range n.Content {
		c.Content = append(c.Content, plain(child))
	}
	return c
}

// toNode returns a Go value as a tree. Map keys are sorted.
func toNode(v any) *yaml.Node {
	var n yaml.Node
	if err := n.Encode(v); err != nil { // only a type that YAML cannot represent; a bug
		panic(err)
	}
	return &n
}

// get returns the node under a path of keys, or nil.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		i := 0
		for i < len(n.Content) && n.Content[i].Value != key {
			i += 2
		}
		if i >= len(n.Content) {
			return nil
		}
		n = n.Content[i+1]
	}
	return n
}

// text returns the scalar under a path of keys, or "".
func text(n *yaml.Node, path ...string) string {
	if n = get(n, path...); n == nil {
		return ""
	}
	return n.Value
}

// set adds or replaces a member of a mapping.
func set(n *yaml.Node, key string, value *yaml.Node) {
	if old := get(n, key); old != nil {
		*old = *value
		return
	}
	n.Content = append(n.Content, toNode(key), value)
}

// remove removes a member from a mapping.
func remove(n *yaml.Node, key string) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// members yields the keys and values of a mapping in order.
func members(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// elements returns the elements of a sequence.
func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// writeNode writes a tree as JSON.
func writeNode(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		first := true
		for key, value := range members(n) {
			if !first {
				b.WriteByte(',')
			}
			first = false
			name, err := marshal(key)
			if err != nil {
				return err
			}
			b.Write(name)
			b.WriteByte(':')
			if err := writeNode(b, value); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeNode(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		value, err := marshal(v)
		if err != nil {
			return err
		}
		b.Write(value)
	}
	return nil
}

// resolve follows a reference into the document.
func (d document) resolve(n *yaml.Node) *yaml.Node {
	if ref := text(n, "$ref"); ref != "" {
		return get(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

func ref(kind, name string) string { return "#/components/" + kind + "/" + name }

// addErrors adds the lists of error names and codes to the schemas.
func (d document) addErrors() {
	var slugs, codes []string
	byStatus := make(map[int][]string)
	for _, e := range elements(get(d.root, "x-errors")) {
		status, _ := strconv.Atoi(text(e, "status"))
		byStatus[status] = append(byStatus[status], text(e, "slug"))
		slugs = append(slugs, text(e, "slug"))
	}
	for _, e := range elements(get(d.root, "x-file-errors")) {
		codes = append(codes, text(e, "code"))
	}
	schemas := get(d.root, "components", "schemas")
	set(get(schemas, "ErrorName"), "enum", toNode(slugs))
	set(get(schemas, "FileErrorCode"), "enum", toNode(codes))
	var warnings []any
	for code, meaning := range fileops.WarningMeanings() {
		warnings = append(warnings, map[string]any{"code": code, "meaning": meaning})
	}
	set(d.root, "x-file-warnings", toNode(warnings))
	var rules []any
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		rules = append(rules, map[string]any{
			"if": map[string]any{"properties": map[string]any{"status": map[string]any{"const": status}}},
			"then": map[string]any{"properties": map[string]any{
				"code":  map[string]any{"const": status},
				"error": map[string]any{"enum": byStatus[status]},
			}},
		})
	}
	set(get(schemas, "Problem"), "allOf", toNode(rules))
}

// parameters returns the parameters of an action, merged over all actions of that name and all
// formats.
func parameters(reg *fileops.Registry, name string) fileops.Schema {
	var all []fileops.Schema
	for a := range reg.Actions() {
		if spec := a.Spec(); spec.Name == name {
			for _, acc := range spec.Accepts {
				all = append(all, acc.Params)
			}
		}
	}
	return fileops.Merge(all...)
}

// summary returns the summary of an action: its engine's, or for several engines the document's.
func (d document) summary(reg *fileops.Registry, name string) string {
	var all []string
	for a := range reg.Actions() {
		if spec := a.Spec(); spec.Name == name && spec.Summary != "" && !slices.Contains(all, spec.Summary) {
			all = append(all, spec.Summary)
		}
	}
	if common := text(d.root, "x-actions", name); common != "" && len(all) > 1 {
		return common
	}
	return strings.Join(all, " ")
}

// addActions adds the actions and their parameters.
func (d document) addActions(reg *fileops.Registry) {
	names := reg.Names()
	schemas := get(d.root, "components", "schemas")
	do := get(schemas, "Do")
	var choices []any
	for _, name := range names {
		schema := parameters(reg, name).JSONSchema()
		set(schemas, camel(name)+"Parameters", toNode(schema))
		choice := map[string]any{
			"title": name,
			"properties": map[string]any{
				"action":     map[string]any{"const": name},
				"parameters": map[string]any{"$ref": ref("schemas", camel(name)+"Parameters")},
			},
		}
		if s := d.summary(reg, name); s != "" {
			choice["description"] = s
		}
		choice["required"] = []string{"action"}
		if len(schema["required"].([]string)) > 0 {
			choice["required"] = []string{"action", "parameters"}
		}
		choices = append(choices, choice)
	}
	if len(names) > 0 {
		set(get(do, "properties", "action"), "enum", toNode(names))
		choices = append(choices, map[string]any{
			"title": stepsAction, "description": "Runs several actions one after the other.",
			"properties": map[string]any{"action": false, "parameters": false}, "required": []string{"steps"},
		})
		set(do, "oneOf", toNode(choices))
	}
	// Drop examples of actions that this service does not offer.
	body := get(d.root, "paths", "/api/v1/do", "post", "requestBody", "content", "application/json")
	examples := get(body, "examples")
	for title, example := range maps.Collect(members(examples)) {
		type action struct {
			Action     string         `yaml:"action"`
			Parameters map[string]any `yaml:"parameters"`
		}
		var req struct {
			action `yaml:",inline"`
			Steps  []action `yaml:"steps"`
		}
		err := get(example, "value").Decode(&req)
		if req.Steps == nil {
			req.Steps = []action{req.action}
		}
		for _, a := range req.Steps {
			if _, perr := parameters(reg, a.Action).Parse(a.Parameters); err != nil || perr != nil || !slices.Contains(names, a.Action) {
				remove(examples, title)
				break
			}
		}
	}
	if len(examples.Content) == 0 {
		remove(body, "examples")
	}
}

// addEnvelope applies an envelope to the schemas and examples of successful responses, which the
// source has without an envelope. See Service.encode.
func (d document) addEnvelope(envelope Envelope) {
	name := [...]string{"dual", "plain", "data"}[envelope]
	info := get(d.root, "info", "description")
	info.Value = strings.Replace(info.Value, "(envelope)", text(d.root, "x-envelopes", name), 1)
	remove(d.root, "x-envelopes")

	wrap := func(schema *yaml.Node) {
		target := text(schema, "$ref")
		if target == "" {
			return
		}
		of := target[strings.LastIndexByte(target, '/')+1:]
		closed := map[string]any{"$ref": target, "unevaluatedProperties": false}
		response := closed
		switch envelope {
		case EnvelopeData:
			response = map[string]any{
				"type": "object", "required": []string{"data"}, "additionalProperties": false,
				"properties": map[string]any{"data": closed},
			}
		case EnvelopeDual:
			response = map[string]any{
				"description": "The members of " + of + ", and under `data` the same members again.",
				"type":        "object", "required": []string{"data"}, "unevaluatedProperties": false,
				"allOf":                     []any{map[string]any{"$ref": target}},
				"properties":                map[string]any{"data": closed},
				"x-data-repeats-the-others": true,
			}
		}
		set(get(d.root, "components", "schemas"), of+"Envelope", toNode(response))
		set(schema, "$ref", toNode(ref("schemas", of+"Envelope")))
	}
	example := func(v *yaml.Node) {
		if v == nil || envelope == EnvelopePlain {
			return
		}
		members := plain(v)
		if envelope == EnvelopeData {
			v.Content = nil
		}
		set(v, "data", members)
	}
	response := func(r *yaml.Node) {
		set(r, "headers", withDefault(get(r, "headers")))
		content := get(r, "content")
		if body := get(content, "application/json"); text(body, "schema", "$ref") != "" {
			wrap(get(body, "schema"))
			example(get(body, "example"))
			for _, e := range members(get(body, "examples")) {
				example(get(e, "value"))
			}
		}
		if data := get(content, "text/event-stream", "x-event-data"); data != nil {
			wrap(data)
		}
	}
	d.responses(response)
}

func withDefault(n *yaml.Node) *yaml.Node {
	if n == nil {
		return toNode(map[string]any{})
	}
	return n
}

// responses calls f for every response that is not a reference.
func (d document) responses(f func(*yaml.Node)) {
	for _, r := range members(get(d.root, "components", "responses")) {
		f(r)
	}
	for _, item := range members(get(d.root, "paths")) {
		for method, op := range members(item) {
			if !slices.Contains(methods, method) {
				continue
			}
			for _, r := range members(get(op, "responses")) {
				if text(r, "$ref") == "" {
					f(r)
				}
			}
		}
	}
}

// methods are the keys of operations in a path item, in display order.
var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// addRequestID adds the request ID header to every response.
func (d document) addRequestID() {
	d.responses(func(r *yaml.Node) {
		set(get(r, "headers"), "X-Request-Id", toNode(map[string]string{"$ref": ref("headers", "X-Request-Id")}))
	})
}

// addRateLimits adds the rate limit headers to successful responses of endpoints that require a
// key.
func (d document) addRateLimits() {
	for _, item := range members(get(d.root, "paths")) {
		for method, op := range members(item) {
			if !slices.Contains(methods, method) || get(op, "security") != nil {
				continue
			}
			for status, r := range members(get(op, "responses")) {
				if status[0] != '2' || text(r, "$ref") != "" {
					continue
				}
				for _, name := range [...]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
					set(get(r, "headers"), name, toNode(map[string]string{"$ref": ref("headers", name)}))
				}
			}
		}
	}
}

// The following code turns the document into the data of docs.html.

type docsPage struct {
	Title, Summary, Version  string
	Style                    template.CSS
	Intro                    template.HTML
	Sections                 []docsHeading
	Tags                     []docsTag
	Actions                  []docsAction
	Errors                   []docsError
	FileErrors, FileWarnings []docsError
}

type docsHeading struct{ ID, Title string }

type docsTag struct {
	ID, Name   string
	Doc        template.HTML
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary string
	Doc                       template.HTML
	Auth                      string // "": requires an API key
	Deprecated, OnlyHere      bool
	Curl                      string
	Parameters                []docsMember
	Body                      *docsContent
	Responses                 []docsResponse
	Errors                    []docsError
}

type docsMember struct {
	Name, In, Type string
	Required       bool
	Doc            template.HTML
}

type docsContent struct {
	Type     string
	Doc      template.HTML
	Members  []docsMember
	Examples []docsExample
}

type docsExample struct{ Title, Text string }

type docsResponse struct {
	Status, StatusText string
	Doc                template.HTML
	Headers            []docsMember
	Contents           []docsContent
}

type docsError struct {
	Slug   string
	Status string
	Doc    template.HTML
}

type docsAction struct {
	Name    string
	Doc     string
	Joint   bool
	Engines []string
	Rows    []docsActionRow
}

type docsActionRow struct {
	Formats    []string
	Parameters []docsMember
}

// page renders the document as HTML.
func (d document) page(reg *fileops.Registry) ([]byte, error) {
	tmpl, err := template.New("docs").Funcs(template.FuncMap{"lower": strings.ToLower}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	intro, headings := markdown(text(d.root, "info", "description"))
	p := docsPage{
		Title: text(d.root, "info", "title"), Summary: text(d.root, "info", "summary"), Version: text(d.root, "info", "version"),
		Style: template.CSS(docsStyle), Intro: intro, Sections: headings,
	}
	for _, t := range elements(get(d.root, "tags")) {
		tag := docsTag{ID: anchor(text(t, "name")), Name: text(t, "name"), Doc: prose(text(t, "description"))}
		for path, item := range members(get(d.root, "paths")) {
			for _, method := range methods {
				if op := get(item, method); op != nil && elements(get(op, "tags"))[0].Value == tag.Name {
					tag.Operations = append(tag.Operations, d.operation(path, method, item, op))
				}
			}
		}
		p.Tags = append(p.Tags, tag)
	}
	for _, name := range reg.Names() {
		p.Actions = append(p.Actions, d.describeAction(reg, name))
	}
	for _, e := range elements(get(d.root, "x-errors")) {
		p.Errors = append(p.Errors, docsError{text(e, "slug"), text(e, "status"), prose(text(e, "meaning"))})
	}
	for _, e := range elements(get(d.root, "x-file-errors")) {
		p.FileErrors = append(p.FileErrors, docsError{Slug: text(e, "code"), Doc: prose(text(e, "meaning"))})
	}
	for _, e := range elements(get(d.root, "x-file-warnings")) {
		p.FileWarnings = append(p.FileWarnings, docsError{Slug: text(e, "code"), Doc: prose(text(e, "meaning"))})
	}
	var b bytes.Buffer
	if err := tmpl.Execute(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (d document) operation(path, method string, item, op *yaml.Node) docsOperation {
	o := docsOperation{
		ID: text(op, "operationId"), Method: strings.ToUpper(method), Path: path, Summary: text(op, "summary"),
		Doc: prose(text(op, "description")), Deprecated: text(op, "deprecated") == "true",
		OnlyHere: strings.HasPrefix(path, prefixes[0]+"/") && text(item, "x-no-alias") == "true",
	}
	if security := get(op, "security"); security != nil {
		o.Auth = "no API key"
		if len(security.Content) > 0 {
			o.Auth = "API key for uploads only"
		}
	}
	url, query := path, ""
	for _, p := range append(slices.Clone(elements(get(item, "parameters"))), elements(get(op, "parameters"))...) {
		p = d.resolve(p)
		schema := d.resolve(get(p, "schema"))
		o.Parameters = append(o.Parameters, docsMember{
			Name: text(p, "name"), In: text(p, "in"), Type: d.typeOf(schema), Required: text(p, "required") == "true",
			Doc: prose(text(p, "description")),
		})
		example := get(p, "example")
		switch {
		case example == nil:
		case text(p, "in") == "path":
			url = strings.ReplaceAll(url, "{"+text(p, "name")+"}", example.Value)
		case text(p, "in") == "query" && example.Kind == yaml.ScalarNode && query == "":
			query = "?" + text(p, "name") + "=" + example.Value
		}
	}
	if body := get(op, "requestBody"); body != nil {
		for kind, content := range members(get(body, "content")) {
			c := d.content(kind, content)
			c.Doc = prose(text(body, "description"))
			o.Body = &c
		}
	}
	o.Curl = curl(method, url+query, o)
	for status, r := range members(get(op, "responses")) {
		r = d.resolve(r)
		if problem := get(r, "content", "application/problem+json"); problem != nil {
			for _, slug := range elements(get(problem, "schema", "properties", "error", "enum")) {
				o.Errors = append(o.Errors, docsError{Slug: slug.Value, Status: status})
			}
			continue
		}
		n, _ := strconv.Atoi(status)
		resp := docsResponse{Status: status, StatusText: http.StatusText(n), Doc: prose(text(r, "description"))}
		for name, h := range members(get(r, "headers")) {
			if h = d.resolve(h); name != "X-Request-Id" {
				resp.Headers = append(resp.Headers, docsMember{Name: name, Type: d.typeOf(get(h, "schema")), Required: text(h, "required") == "true", Doc: prose(text(h, "description"))})
			}
		}
		if method != "head" {
			for kind, content := range members(get(r, "content")) {
				resp.Contents = append(resp.Contents, d.content(kind, content))
			}
		}
		o.Responses = append(o.Responses, resp)
	}
	return o
}

func (d document) content(kind string, n *yaml.Node) docsContent {
	c := docsContent{Type: kind}
	if kind == "*/*" {
		c.Type = "the bytes of the file"
	}
	schema := get(n, "schema")
	if events := get(n, "x-event-data"); events != nil {
		schema = events
	}
	schema = d.resolve(schema)
	// Show only the content of an enveloped response.
	if all := elements(get(schema, "allOf")); len(all) == 1 && text(schema, "x-data-repeats-the-others") != "" {
		schema = d.resolve(all[0])
	} else if text(schema, "$ref") != "" {
		schema = d.resolve(schema)
	}
	c.Members = d.membersOf(schema, "", 0)
	add := func(title string, v *yaml.Node) {
		if v == nil {
			return
		}
		if v.Kind == yaml.ScalarNode {
			c.Examples = append(c.Examples, docsExample{title, strings.TrimSpace(v.Value)})
			return
		}
		var compact, pretty bytes.Buffer
		if writeNode(&compact, v) == nil && json.Indent(&pretty, compact.Bytes(), "", "  ") == nil {
			c.Examples = append(c.Examples, docsExample{title, pretty.String()})
		}
	}
	add("Example", get(n, "example"))
	for _, e := range members(get(n, "examples")) {
		add(text(e, "summary"), get(e, "value"))
	}
	return c
}

// membersOf lists the members of a schema. Members of nested objects are listed with their path.
func (d document) membersOf(schema *yaml.Node, prefix string, depth int) []docsMember {
	if depth > 4 {
		return nil
	}
	var out []docsMember
	required := make(map[string]bool)
	for _, r := range elements(get(schema, "required")) {
		required[r.Value] = true
	}
	for name, p := range members(get(schema, "properties")) {
		target := d.resolve(p)
		doc := text(p, "description")
		if doc == "" {
			doc = text(target, "description")
		}
		out = append(out, docsMember{Name: prefix + name, Type: d.typeOf(target), Required: required[name], Doc: prose(doc)})
		inner, path := target, prefix+name
		if items := get(target, "items"); items != nil {
			inner, path = d.resolve(items), path+"[]"
		} else if more := get(target, "additionalProperties"); more != nil && more.Kind == yaml.MappingNode {
			inner, path = d.resolve(more), path+".*"
		}
		out = append(out, d.membersOf(inner, path+".", depth+1)...)
	}
	for _, choice := range elements(get(schema, "oneOf")) {
		params := d.resolve(get(choice, "properties", "parameters"))
		for _, m := range d.membersOf(params, "", depth+1) {
			m.Name = prefix + "parameters." + m.Name
			m.In = text(choice, "title")
			out = append(out, m)
		}
	}
	return out
}

// typeOf describes in a few words the values that a schema permits.
func (d document) typeOf(n *yaml.Node) string {
	n = d.resolve(n)
	t := text(n, "type")
	switch {
	case n == nil:
		return ""
	case get(n, "const") != nil:
		return text(n, "const")
	case t == "array":
		items := d.resolve(get(n, "items"))
		if inner := text(items, "type"); inner != "" {
			return "array of " + inner
		}
		return "array"
	case get(n, "enum") != nil:
		var values []string
		for _, v := range elements(get(n, "enum")) {
			values = append(values, v.Value)
		}
		if len(values) > 40 {
			return "one of " + strconv.Itoa(len(values)) + " values"
		}
		return strings.Join(values, " | ")
	case t == "integer" || t == "number":
		if lo, hi := text(n, "minimum"), text(n, "maximum"); hi != "" {
			return t + " from " + lo + " to " + hi
		} else if lo != "" {
			return t + " from " + lo
		}
	case t == "string" && text(n, "format") != "":
		return "string (" + text(n, "format") + ")"
	}
	return t
}

// curl returns a request as a shell command. Its shell variables are defined in the page's
// introduction.
func curl(method, url string, o docsOperation) string {
	var b strings.Builder
	b.WriteString("curl ")
	switch {
	case method == "head":
		b.WriteString("-I ")
	case method == "put":
		return `curl -i -T report.docx "$UPLOAD_URL"`
	case method == "delete", method == "patch":
		b.WriteString("-X " + strings.ToUpper(method) + " ")
	case o.ID == "operationEvents":
		b.WriteString("-N ")
	case strings.HasPrefix(o.ID, "download"):
		b.WriteString("-OJ ")
	}
	fmt.Fprintf(&b, `"$BASE%s"`, url)
	if o.Auth == "" {
		b.WriteString(" \\\n  -H \"Authorization: Bearer $KEY\"")
	}
	if o.Body != nil && len(o.Body.Examples) > 0 {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(o.Body.Examples[0].Text)) == nil {
			fmt.Fprintf(&b, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '%s'", strings.ReplaceAll(compact.String(), "'", `'\''`))
		}
	}
	return b.String()
}

// describeAction lists the formats that an action accepts, grouped by equal parameters.
func (d document) describeAction(reg *fileops.Registry, name string) docsAction {
	out := docsAction{Name: name, Doc: d.summary(reg, name)}
	rows := make(map[string]int) // index by parameters
	seen := make(map[format.Format]bool)
	for a := range reg.Actions() {
		spec := a.Spec()
		if spec.Name != name {
			continue
		}
		out.Joint = out.Joint || spec.Joint
		if !slices.Contains(out.Engines, spec.Engine) {
			out.Engines = append(out.Engines, spec.Engine)
		}
		for _, acc := range spec.Accepts {
			for _, f := range acc.Formats {
				if seen[f] {
					continue
				}
				seen[f] = true
				schema, _ := reg.Schema(name, f)
				key := fmt.Sprint(schema)
				i, ok := rows[key]
				if !ok {
					i = len(out.Rows)
					rows[key] = i
					out.Rows = append(out.Rows, docsActionRow{Parameters: describeSchema(schema)})
				}
				title := string(f)
				if f == format.Any {
					title = "any file"
				}
				out.Rows[i].Formats = append(out.Rows[i].Formats, title)
			}
		}
	}
	for i := range out.Rows {
		slices.Sort(out.Rows[i].Formats)
	}
	return out
}

func describeSchema(s fileops.Schema) []docsMember {
	var d document
	props := get(toNode(s.JSONSchema()), "properties")
	var out []docsMember
	for _, p := range s {
		doc := p.Doc
		if p.Default != nil {
			doc += fmt.Sprintf(" Default: `%v`.", p.Default)
		}
		out = append(out, docsMember{Name: p.Name, Type: d.typeOf(get(props, p.Name)), Required: p.Required, Doc: prose(doc)})
	}
	return out
}

// markdown renders the CommonMark subset of the document: headings, paragraphs, lists, fenced code,
// code spans and bold text. Everything else is shown unchanged.
func markdown(source string) (template.HTML, []docsHeading) {
	var (
		b         strings.Builder
		headings  []docsHeading
		paragraph []string
		list      bool
	)
	flush := func() {
		if len(paragraph) > 0 {
			b.WriteString("<p>" + inline(strings.Join(paragraph, " ")) + "</p>\n")
			paragraph = nil
		}
	}
	lines := strings.Split(strings.TrimRight(source, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		item, isItem := strings.CutPrefix(line, "- ")
		if list && !isItem {
			b.WriteString("</ul>\n")
			list = false
		}
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			var code []string
			for i++; i < len(lines) && lines[i] != "```"; i++ {
				code = append(code, lines[i])
			}
			b.WriteString("<pre tabindex=\"0\"><code>" + template.HTMLEscapeString(strings.Join(code, "\n")) + "</code></pre>\n")
		case strings.HasPrefix(line, "## "):
			flush()
			h := docsHeading{anchor(line[3:]), line[3:]}
			headings = append(headings, h)
			b.WriteString("<h2 id=\"" + h.ID + "\">" + inline(h.Title) + "</h2>\n")
		case isItem:
			flush()
			if !list {
				b.WriteString("<ul>\n")
				list = true
			}
			b.WriteString("<li>" + inline(item) + "</li>\n")
		case strings.TrimSpace(line) == "":
			flush()
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	if list {
		b.WriteString("</ul>\n")
	}
	return template.HTML(b.String()), headings
}

// prose renders a text without headings. A single paragraph has no p tags.
func prose(source string) template.HTML {
	html, _ := markdown(source)
	if s, ok := strings.CutSuffix(strings.TrimSpace(string(html)), "</p>"); ok && strings.LastIndex(s, "<p>") == 0 {
		return template.HTML(s[len("<p>"):])
	}
	return html
}

// inline renders code spans and bold text.
func inline(s string) string {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			b.WriteString("<code>" + part + "</code>")
			continue
		}
		for j, bold := range strings.Split(part, "**") {
			if j%2 == 1 {
				bold = "<strong>" + bold + "</strong>"
			}
			b.WriteString(bold)
		}
	}
	return b.String()
}

// anchor returns the id of a heading.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}
