package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

const helloDocument = `
tags:
  - name: Greetings
    description: Being polite.
paths:
  /api/v1/hello/{name}:
    parameters:
      - {name: name, in: path, required: true, description: Who is greeted., schema: {type: string}, example: ada}
    patch:
      operationId: hello
      tags: [Greetings]
      summary: Say hello
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Hello'}
      responses:
        '200':
          description: The greeting.
          content:
            application/json:
              schema: {$ref: '#/components/schemas/Hello'}
              example: {text: hello ada}
        '400': {$ref: '#/components/responses/InvalidRequest'}
        '401': {$ref: '#/components/responses/Unauthorized'}
        '403': {$ref: '#/components/responses/Forbidden'}
        '404': {$ref: '#/components/responses/NotFound'}
        '500': {$ref: '#/components/responses/InternalError'}
components:
  schemas:
    Hello:
      type: object
      properties: {text: {type: string}}
`

type hello struct {
	Text string `json:"text"`
}

type greeter struct{ *httpapi.Service }

func (g greeter) greet(w http.ResponseWriter, r *http.Request) {
	var req hello
	if err := g.Decode(w, r, &req); err != nil {
		g.Fail(w, r, err)
		return
	}
	p, _ := httpapi.PrincipalOf(r.Context())
	switch name := r.PathValue("name"); name {
	case "nobody":
		g.Fail(w, r, fs.ErrNotExist)
	case "broken":
		g.Fail(w, r, errors.New("the inner workings"))
	case "rude":
		g.Fail(w, r, httpapi.Invalid("text", "%s is not polite", req.Text))
	default:
		g.Reply(w, hello{req.Text + " " + name + " from " + p.Account})
	}
}

func greetings(s *httpapi.Service) httpapi.Extension {
	return httpapi.Extension{OpenAPI: []byte(helloDocument), Routes: []httpapi.Route{
		{Method: "PATCH", Path: "/api/v1/hello/{name}", Scope: httpapi.ScopeOperate, Handler: greeter{s}.greet},
	}}
}

func TestExtension(t *testing.T) {
	t.Parallel()
	scopes := map[string]httpapi.Scope{"Bearer all": 0, "Bearer operate": httpapi.ScopeOperate, "Bearer read": httpapi.ScopeRead}
	a := serve(t, httpapi.Config{
		Auth: httpapi.AuthFunc(func(r *http.Request) (httpapi.Principal, error) {
			s, ok := scopes[r.Header.Get("Authorization")]
			if !ok {
				return httpapi.Principal{}, httpapi.ErrUnauthenticated
			}
			return httpapi.Principal{Account: "bob", Scopes: s}, nil
		}),
		Extensions: []func(*httpapi.Service) httpapi.Extension{greetings},
	})
	for _, tt := range []struct {
		key, path, body string
		status          int
		want            string // in the answer
	}{
		{"all", "/api/v1/hello/ada", `{"text":"hi"}`, 200, "hi ada from bob"},
		{"operate", "/api/v1/hello/ada", `{"text":"hi"}`, 200, `data:map[text:hi ada from bob]`},
		{"read", "/api/v1/hello/ada", `{"text":"hi"}`, 403, "lacks the scope operate"},
		{"wrong", "/api/v1/hello/ada", `{"text":"hi"}`, 401, "unauthorized"},
		{"all", "/api/v1/hello/nobody", `{}`, 404, "not_found"},
		{"all", "/api/v1/hello/rude", `{"text":"Hey"}`, 400, "Hey is not polite"},
		{"all", "/api/v1/hello/broken", `{}`, 500, "internal_error"},
		{"all", "/api/v1/hello/ada", `[]`, 400, "must be a JSON object"},
		{"all", "/v1/biz/hello/ada", `{}`, 404, "unknown endpoint"},
	} {
		st, m := a.call(t, tt.key, "PATCH", tt.path, tt.body)
		if st != tt.status || !strings.Contains(fmt.Sprint(m), tt.want) || st >= 400 && m["request_id"] == nil || strings.Contains(fmt.Sprint(m), "inner") {
			t.Errorf("%s as %s: %d %v", tt.path, tt.key, st, m)
		}
	}
	// The scopes of the service's own endpoints.
	for _, tt := range []struct {
		method, path, scope string
	}{
		{"POST", "/api/v1/initiate-upload", "upload"}, {"POST", "/v1/external/upload", "upload"}, {"POST", "/api/v1/complete-upload", "upload"}, {"DELETE", "/api/v1/files/x", "upload"},
		{"POST", "/v1/biz/do", "operate"}, {"DELETE", "/api/v1/status/x", "operate"},
		{"GET", "/api/v1/status/x", "read"}, {"GET", "/api/v1/status/x/y", "read"}, {"GET", "/api/v1/operations", "read"}, {"GET", "/api/v1/formats", "read"},
		{"POST", "/api/v1/supported-operation", "read"}, {"GET", "/v1/download/x", "read"},
	} {
		for _, key := range []string{"all", "operate", "read"} {
			st, m := a.call(t, key, tt.method, tt.path, "{}")
			forbidden := st == 403 && m["error"] == "forbidden" && strings.HasSuffix(fmt.Sprint(m["message"]), "the scope "+tt.scope)
			if forbidden != (key != "all" && key != tt.scope) {
				t.Errorf("%s %s with a key for %s: %d %v", tt.method, tt.path, key, st, m)
			}
		}
	}
	// The extension shares the document, the page and the metrics.
	resp, err := http.Get(a.URL + "/openapi.json")
	systest.NoError(t, err)
	defer resp.Body.Close()
	var doc struct {
		Tags  []struct{ Name string }
		Paths map[string]map[string]any
	}
	systest.NoError(t, json.NewDecoder(resp.Body).Decode(&doc))
	if item := doc.Paths["/api/v1/hello/{name}"]; item["x-no-alias"] != true || doc.Tags[len(doc.Tags)-2].Name != "Greetings" {
		t.Errorf("in the document: %v, tags %v", item, doc.Tags)
	}
	if _, page := a.call(t, "", "GET", "/docs", ""); !strings.Contains(fmt.Sprint(page), `id="hello"`) {
		t.Error("it is not on the page")
	}
	if _, metrics := a.call(t, "", "GET", "/metrics", ""); !strings.Contains(fmt.Sprint(metrics), `route="/api/v1/hello/:name"`) {
		t.Error("it is not in the metrics")
	}
}

func TestExtensionMistakes(t *testing.T) {
	t.Parallel()
	with := func(document string, routes ...httpapi.Route) error {
		extension := func(*httpapi.Service) httpapi.Extension {
			return httpapi.Extension{OpenAPI: []byte(document), Routes: routes}
		}
		_, err := httpapi.New(httpapi.Config{Auth: httpapi.AllowAll(), Extensions: []func(*httpapi.Service) httpapi.Extension{extension}})
		return err
	}
	systest.Check(t, with("", httpapi.Route{Method: "GET", Path: "/api/v1/hello", Handler: http.NotFound}))
	for name, err := range map[string]error{
		"a path that there is":      with("", httpapi.Route{Method: "GET", Path: "/api/v1/formats", Handler: http.NotFound}),
		"no path":                   with("", httpapi.Route{Method: "GET", Path: "hello", Handler: http.NotFound}),
		"no YAML":                   with("paths: ["),
		"no object":                 with("- a"),
		"a documented path":         with("paths:\n  /api/v1/formats: {}"),
		"a component that there is": with("components:\n  schemas:\n    Problem: {}"),
		"components of no kind":     with("components:\n  things:\n    a: {}"),
		"another part":              with("info: {title: x}"),
		"half a text":               with("components:\n  schemas:\n    A: {type: string, description: Of the operation, at that time.}"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]httpapi.Scope{
		"": 0, "upload": httpapi.ScopeUpload, "upload operate read": httpapi.DefaultScopes, "read,admin": httpapi.ScopeRead | httpapi.ScopeAdmin, " read  read ": httpapi.ScopeRead,
	} {
		got, err := httpapi.ParseScope(text)
		if err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
		if again, err := httpapi.ParseScope(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q", text, got)
		}
	}
	for _, bad := range []string{"all", "Upload", "upload;read"} {
		if _, err := httpapi.ParseScope(bad); err == nil || !strings.Contains(err.Error(), "upload, operate, read, admin") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
