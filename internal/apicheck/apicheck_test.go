package apicheck_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/systest"
)

const document = `{
  "openapi": "3.1.0",
  "x-alias-prefixes": {"/api/v1": ["/v1/biz", "/old"]},
  "paths": {
    "/api/v1/things/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
      "get": {"responses": {
        "200": {"$ref": "#/components/responses/Thing"},
        "429": {"description": "slow", "headers": {"Retry-After": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
        "404": {"$ref": "#/components/responses/NotFound"}}},
      "delete": {"responses": {"204": {"description": "gone"}}}
    },
    "/api/v1/things/latest": {"get": {"responses": {"200": {"description": "text", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
    "/api/v1/things/{id}/events": {"get": {"responses": {"200": {"description": "events",
      "content": {"text/event-stream": {"schema": {"type": "string"}, "x-event-data": {"$ref": "#/components/schemas/ThingResponse"}}}}}}},
    "/api/v1/only": {"x-no-alias": true, "get": {"responses": {"200": {"$ref": "#/components/responses/Thing"}}}},
    "/blobs/{path}": {
      "parameters": [{"name": "path", "in": "path", "required": true, "x-multi-segment": true, "schema": {"type": "string"}}],
      "put": {"responses": {"200": {"description": "stored", "headers": {"ETag": {"$ref": "#/components/headers/ETag"}}}}},
      "get": {"security": [], "responses": {"200": {"description": "bytes", "content": {"*/*": {}}}, "304": {"description": "same"}}}
    },
    "/image": {"get": {"responses": {"200": {"description": "a picture", "content": {"image/*": {}}}}}}
  },
  "components": {
    "headers": {"ETag": {"required": true, "schema": {"type": "string", "pattern": "^\"[0-9a-f]+\"$"}}},
    "responses": {
      "Thing": {"description": "a thing", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ThingResponse"}}}},
      "NotFound": {"description": "nothing", "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
      "MethodNotAllowed": {"description": "no", "headers": {"Allow": {"required": true, "schema": {"type": "string"}}},
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    },
    "schemas": {
      "Thing": {"type": "object", "required": ["id", "made"], "properties": {
        "id": {"type": "string", "pattern": "^[a-z]+$"}, "made": {"type": "string", "format": "date-time"},
        "size": {"type": "integer"}, "state": {"enum": ["queued", "done"]}}},
      "ThingResponse": {"allOf": [{"$ref": "#/components/schemas/Thing"}], "required": ["data"],
        "properties": {"data": {"$ref": "#/components/schemas/Thing", "unevaluatedProperties": false}},
        "unevaluatedProperties": false, "x-data-repeats-the-others": true},
      "Problem": {"type": "object", "required": ["type", "status", "code", "error", "detail", "message", "request_id"],
        "properties": {"type": {"type": "string"}, "status": {"type": "integer"}, "code": {"type": "integer"}, "error": {"enum": ["not_found", "slow", "method"]},
          "detail": {"type": "string"}, "message": {"type": "string"}, "request_id": {"type": "string"}},
        "additionalProperties": false}
    }
  }
}`

func newChecker(t testing.TB) *apicheck.Checker {
	t.Helper()
	c, err := apicheck.New([]byte(document))
	systest.NoError(t, err)
	return c
}

func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const thing = `"id":"abc","made":"2026-01-02T03:04:05.678Z"`

func problem(status int, slug string) string {
	return fmt.Sprintf(`{"type":"/docs#error-%[2]s","status":%[1]d,"code":%[1]d,"error":%[2]q,"detail":"x","message":"x","request_id":"r1"}`, status, slug)
}

func TestResponse(t *testing.T) {
	t.Parallel()
	jsonType := headers("Content-Type", "application/json")
	problemType := headers("Content-Type", "application/problem+json", "X-Request-Id", "r1", "Allow", "GET", "Retry-After", "3")
	events := headers("Content-Type", "text/event-stream")
	good := `{` + thing + `,"data":{` + thing + `}}`
	for _, tt := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body               string
		want               string // part of the error; "" means no error
	}{
		{"good", "GET", "/api/v1/things/7", 200, jsonType, good, ""},
		{"query", "GET", "/api/v1/things/7?wait=3s", 200, jsonType, good, ""},
		{"charset", "GET", "/api/v1/things/7", 200, headers("Content-Type", "application/json; charset=UTF-8"), good, ""},
		{"alias", "GET", "/v1/biz/things/7", 200, jsonType, good, ""},
		{"other alias", "GET", "/old/things/7", 200, jsonType, good, ""},
		{"optional members", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"size":3,"state":"done","data":{` + thing + `,"state":"done","size":3}}`, ""},
		{"problem", "GET", "/api/v1/things/7", 404, problemType, problem(404, "not_found"), ""},
		{"header that is a number", "GET", "/api/v1/things/7", 429, problemType, problem(429, "slow"), ""},
		{"no body", "DELETE", "/api/v1/things/7", 204, nil, "", ""},
		{"concrete path goes first", "GET", "/api/v1/things/latest", 200, headers("Content-Type", "text/plain; charset=utf-8"), "abc", ""},
		{"several segments", "PUT", "/blobs/a/b/c", 200, headers("ETag", `"0af"`), "", ""},
		{"any type", "GET", "/blobs/a", 200, headers("Content-Type", "video/mp4"), "\x00\x01", ""},
		{"type range", "GET", "/image", 200, headers("Content-Type", "image/png"), "x", ""},
		{"head of an open path", "HEAD", "/blobs/a", 200, headers("Content-Type", "video/mp4"), "", ""},
		{"preflight", "OPTIONS", "/api/v1/things/7", 204, nil, "", ""},
		{"unknown path", "GET", "/nowhere", 404, problemType, problem(404, "not_found"), ""},
		{"unknown method", "PUT", "/api/v1/only", 405, problemType, problem(405, "method"), ""},
		{"head of a path with a key", "HEAD", "/api/v1/only", 405, problemType, "", ""},
		{"events", "GET", "/api/v1/things/7/events", 200, events, "event: status\ndata: " + good + "\n\n: still here\n\ndata: " + good + "\n\n", ""},

		{"undocumented status", "GET", "/api/v1/things/7", 418, jsonType, good, "documented are [200 404 429]"},
		{"undocumented path", "GET", "/nowhere", 200, jsonType, good, "the path is not documented"},
		{"path without aliases", "GET", "/v1/biz/only", 200, jsonType, good, "the path is not documented"},
		{"undocumented method", "PUT", "/api/v1/only", 200, jsonType, good, "the method is not documented"},
		{"405 without Allow", "PUT", "/api/v1/only", 405, headers("Content-Type", "application/problem+json", "X-Request-Id", "r1"), problem(405, "method"), "header Allow is missing"},
		{"missing member", "GET", "/api/v1/things/7", 200, jsonType, `{"id":"abc","data":{"id":"abc"}}`, "missing property 'made'"},
		{"wrong type", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"size":"3","data":{` + thing + `,"size":"3"}}`, "at '/size'"},
		{"wrong value", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"state":"lost","data":{` + thing + `,"state":"lost"}}`, "at '/state'"},
		{"wrong format", "GET", "/api/v1/things/7", 200, jsonType, `{"id":"abc","made":"yesterday","data":{"id":"abc","made":"yesterday"}}`, "'yesterday' is not valid date-time"},
		{"wrong pattern", "GET", "/api/v1/things/7", 200, jsonType, strings.ReplaceAll(good, "abc", "A1"), "at '/id'"},
		{"unknown member", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"extra":1,"data":{` + thing + `,"extra":1}}`, "extra"},
		{"null", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"size":null,"data":{` + thing + `,"size":null}}`, "at '/data/size': members without a value must be left out"},
		{"data is missing", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `}`, "'data'"},
		{"data differs", "GET", "/api/v1/things/7", 200, jsonType, `{` + thing + `,"size":1,"data":{` + thing + `,"size":2}}`, "must repeat"},
		{"not JSON", "GET", "/api/v1/things/7", 200, jsonType, `{`, "is not JSON"},
		{"two values", "GET", "/api/v1/things/7", 200, jsonType, good + `{}`, "is not JSON"},
		{"empty body", "GET", "/api/v1/things/7", 200, jsonType, ``, "is not JSON"},
		{"wrong content type", "GET", "/api/v1/things/7", 200, headers("Content-Type", "text/html"), good, "the content type is text/html; documented are application/json"},
		{"no content type", "GET", "/api/v1/things/7", 200, nil, good, "Content-Type"},
		{"latin-1", "GET", "/api/v1/things/7", 200, headers("Content-Type", "application/json; charset=latin1"), good, "JSON in latin1"},
		{"body where none is documented", "DELETE", "/api/v1/things/7", 204, jsonType, "{}", "no body is documented"},
		{"missing header", "PUT", "/blobs/a", 200, nil, "", "header ETag is missing"},
		{"wrong header", "PUT", "/blobs/a", 200, headers("ETag", "0af"), "", "the header ETag"},
		{"header that is no number", "GET", "/api/v1/things/7", 429, headers("Content-Type", "application/problem+json", "X-Request-Id", "r1", "Retry-After", "soon"), problem(429, "slow"), "not a whole number"},
		{"header out of range", "GET", "/api/v1/things/7", 429, headers("Content-Type", "application/problem+json", "X-Request-Id", "r1", "Retry-After", "0"), problem(429, "slow"), "the header Retry-After"},
		{"status of a problem", "GET", "/api/v1/things/7", 404, problemType, problem(400, "not_found"), "the HTTP status is 404"},
		{"type of a problem", "GET", "/api/v1/things/7", 404, problemType, strings.Replace(problem(404, "not_found"), "#error-not_found", "#error-slow", 1), `type is "/docs#error-slow"`},
		{"text of a problem", "GET", "/api/v1/things/7", 404, problemType, strings.Replace(problem(404, "not_found"), `"detail":"x"`, `"detail":"y"`, 1), "message and detail differ"},
		{"id of a problem", "GET", "/api/v1/things/7", 404, headers("Content-Type", "application/problem+json", "X-Request-Id", "r2"), problem(404, "not_found"), `request_id is "r1"`},
		{"wrong event", "GET", "/api/v1/things/7/events", 200, events, "data: " + good + "\n\ndata: {}\n\n", "event 1: - at ''"},
		{"event that is cut off", "GET", "/api/v1/things/7/events", 200, events, "data: " + good + "\n", "ends inside an event"},
		{"no events", "GET", "/api/v1/things/7/events", 200, events, "", "no events"},
		{"strange field", "GET", "/api/v1/things/7/events", 200, events, "date: x\ndata: " + good + "\n\n", "unknown field"},
		{"body of HEAD", "HEAD", "/blobs/a", 200, headers("Content-Type", "video/mp4"), "x", "HEAD has no body"},
		{"body of a preflight", "OPTIONS", "/api/v1/only", 200, nil, "x", "OPTIONS has no body"},
		{"wrong type range", "GET", "/image", 200, headers("Content-Type", "text/plain"), "x", "documented are image/*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := newChecker(t).Response(tt.method, tt.path, tt.status, tt.header, []byte(tt.body))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && err == nil:
				t.Errorf("no error, want one with %q", tt.want)
			case err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			case err != nil && !strings.HasPrefix(err.Error(), tt.method+" "+tt.path[:5]):
				t.Errorf("%v does not begin with the request", err)
			}
		})
	}
}

func TestUnseen(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	all := []string{
		"DELETE /api/v1/things/{id}", "GET /api/v1/only", "GET /api/v1/things/latest", "GET /api/v1/things/{id}", "GET /api/v1/things/{id}/events",
		"GET /blobs/{path}", "GET /image", "PUT /blobs/{path}",
	}
	if got := c.Unseen(); !slices.Equal(got, all) {
		t.Errorf("at first: %q", got)
	}
	// Invalid responses are recorded too; Response itself has reported them.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_ = c.Response("GET", "/old/things/7", 200, nil, nil)
			_ = c.Response("DELETE", "/api/v1/things/7", 204, nil, nil)
			_ = c.Unseen()
		})
	}
	wg.Wait()
	want := []string{
		"GET /api/v1/only", "GET /api/v1/things/latest", "GET /api/v1/things/{id} 404", "GET /api/v1/things/{id} 429", "GET /api/v1/things/{id}/events",
		"GET /blobs/{path}", "GET /image", "PUT /blobs/{path}",
	}
	if got := c.Unseen(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, doc, want string }{
		{"not JSON", "openapi: 3.1.0", "invalid JSON"},
		{"not an object", "[]", "not an object"},
		{"no operations", "{}", "no operations"},
		{"no responses", `{"paths":{"/x":{"get":{}}}}`, "no responses"},
		{"strange status", `{"paths":{"/x":{"get":{"responses":{"2XX":{}}}}}}`, "not a status code"},
		{"reference to nothing", `{"paths":{"/x":{"get":{"responses":{"200":{"$ref":"#/components/responses/X"}}}}}}`, "no object at #/components/responses/X"},
		{"circular reference", `{"paths":{"/x":{"get":{"responses":{"200":{"$ref":"#/paths/~1x/get/responses/200"}}}}}}`, "circular references"},
		{"reference elsewhere", `{"paths":{"/x":{"get":{"responses":{"200":{"$ref":"other.json"}}}}}}`, "another document"},
		{"schema that is none", `{"paths":{"/x":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"text"}}}}}}}}}`, "GET /x"},
		{"reference of a schema to nothing", `{"paths":{"/x":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/X"}}}}}}}}}`, "GET /x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := apicheck.New([]byte(tt.doc)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func Example() {
	c, err := apicheck.New([]byte(`{"paths": {"/time": {"get": {"responses": {
		"200": {"description": "The time.", "content": {"application/json": {"schema": {
			"type": "object", "required": ["now"], "properties": {"now": {"type": "string", "format": "date-time"}}}}}}}}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	h := http.Header{"Content-Type": {"application/json"}}
	fmt.Println(c.Response("GET", "/time", 200, h, []byte(`{"now":"2026-01-01T00:00:00Z"}`)))
	fmt.Println(c.Response("GET", "/time", 200, h, []byte(`{"now":1767225600}`)))
	fmt.Println(c.Unseen())
	// Output:
	// <nil>
	// GET /time answered 200 (GET /time): - at '/now': got number, want string
	// body: {"now":1767225600}
	// []
}
