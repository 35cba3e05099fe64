package httpapi_test

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

// Errors name the member that caused them, and the valid values where they are finite.
func TestErrorContract(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	_, page := a.call(t, "", "GET", "/docs", "")
	key := a.upload(t, "key-a", "a.txt", "hello")
	png := a.upload(t, "key-a", "a.png", "hello")
	do := func(rest string) string { return fmt.Sprintf(`{"file_keys":[%q]%s}`, key, rest) }
	for _, tt := range []struct {
		name, method, path, body string
		slug, param, allowed     string
		text                     string // in the message
	}{
		{"no action", "POST", "/api/v1/do", do(""), "invalid_request", "action", "", "action is required"},
		{"unknown action", "POST", "/api/v1/do", do(`,"action":"fold"`), "unsupported_operation", "action", "[convert]", "fold"},
		{"action not for the file", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q]}`, png), "unsupported_operation", "action", "", "png"},
		{"missing parameter", "POST", "/api/v1/do", do(`,"action":"convert"`), "invalid_request", "parameters.convert_to", "[md]", "is required"},
		{"bad value", "POST", "/api/v1/do", do(`,"action":"convert","parameters":{"convert_to":"mp3"}`), "unsupported_operation", "parameters.convert_to", "[md]", "one of: md"},
		{"unknown parameter", "POST", "/api/v1/do", do(`,"action":"convert","parameters":{"convert_to":"md","x":1}`), "unsupported_operation", "parameters.x", "*", "not known"},
		{"note that is no text", "POST", "/api/v1/do", do(`,"action":"convert","parameters":{"convert_to":"md"},"notes":{"b":"x","a":1}`), "invalid_request", "notes.a", "", "notes.a must be a string, not a number"},
		{"notes that are no object", "POST", "/api/v1/do", do(`,"action":"convert","notes":[]`), "invalid_request", "notes", "", "notes must be an object, not an array"},
		{"files that are no array", "POST", "/api/v1/do", `{"action":"convert","file_keys":"x"}`, "invalid_request", "file_keys", "", "file_keys must be an array, not a string"},
		{"part of a byte", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":1.5,"mime_type":"text/plain"}`, "invalid_request", "size", "", "size must be a whole number, not 1.5"},
		{"too many parts", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":1,"mime_type":"text/plain","parts":101}`, "invalid_request", "parts", "[1-100]", ""},
		{"unknown cursor", "GET", "/api/v1/operations?cursor=nothing", "", "invalid_request", "cursor", "", "next_cursor"},
		{"unknown state", "GET", "/api/v1/operations?status=done", "", "invalid_request", "status", "[queued running completed failed]", ""},
		{"bad limit", "GET", "/api/v1/operations?limit=x", "", "invalid_request", "limit", "", "from 1 to 200"},
		{"bad time", "GET", "/api/v1/status/x?wait=soon", "", "invalid_request", "wait", "", ""},
		{"file key that is no text", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q,5]}`, key), "invalid_request", "file_keys[1]", "", "file_keys[1] must be a string, not a number"},
		{"too large", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":9000000000000000000,"mime_type":"text/plain"}`, "too_large", "size", "", "the limit is"},
		{"other object", "POST", "/api/v1/complete-upload", fmt.Sprintf(`{"file_key":%q,"object_name":"x","upload_id":"x","parts":[{"part_number":1,"etag":"x"}]}`, key), "invalid_request", "object_name", "", "object_name does not match"},
		{"unknown operation", "GET", "/api/v1/status/x", "", "not_found", "main_task_id", "", ""},
		{"unknown result", "GET", "/v1/download/x", "", "not_found", "file_key", "", ""},
		{"unknown endpoint", "GET", "/api/v1/x", "", "not_found", "", "", "unknown endpoint /api/v1/x"},
		{"wrong method", "PUT", "/api/v1/do", "", "method_not_allowed", "", "[OPTIONS POST]", "allowed: OPTIONS, POST"},
		{"unknown file", "POST", "/api/v1/do", `{"action":"convert","file_keys":["x"],"parameters":{"convert_to":"md"}}`, "not_found", "file_keys[0]", "", ""},
	} {
		status, m := a.call(t, "key-a", tt.method, tt.path, tt.body)
		want := cmp.Or(map[string]int{"not_found": 404, "method_not_allowed": 405, "too_large": 413}[tt.slug], 400)
		if tt.param == "" {
			tt.param = "<nil>"
		}
		allowed := ""
		if m["allowed"] != nil {
			if allowed = fmt.Sprint(m["allowed"]); tt.allowed == "*" {
				allowed = "*"
			}
		}
		if status != want || m["error"] != tt.slug || fmt.Sprint(m["param"]) != tt.param || allowed != tt.allowed || !strings.Contains(m["message"].(string), tt.text) {
			t.Errorf("%s: %d %v", tt.name, status, m)
		}
		link, _ := strings.CutPrefix(m["type"].(string), "/docs#")
		if !strings.Contains(page["raw"].(string), `id="`+link+`"`) {
			t.Errorf("%s: %s is not on the page", tt.name, m["type"])
		}
	}
}

// A request with an idempotency key may be repeated in another spelling. The response says that it is
// a repetition.
func TestIdempotentReplay(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	file := a.upload(t, "key-a", "a.txt", "hello")
	call := func(key, path, body string) (int, string, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+path, strings.NewReader(body))
		systest.NoError(t, err)
		r.Header.Set("Authorization", "Bearer key-a")
		r.Header.Set("Idempotency-Key", key)
		resp, b := systest.Send(t, r)
		systest.Check(t, a.check.Response("POST", path, resp.StatusCode, resp.Header, b))
		return resp.StatusCode, string(b), resp.Header
	}
	for _, tt := range []struct{ path, first, same, other string }{
		{
			"/api/v1/do",
			fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, file),
			fmt.Sprintf("{ \"parameters\": {\"convert_to\": \"m\\u0064\", \"mode\": null},\n\"notes\":null, \"file_keys\": [%q], \"action\": \"convert\"}", file),
			fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"},"notes":{"a":"b"}}`, file),
		},
		{
			"/api/v1/initiate-upload",
			`{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`,
			`{"mime_type": "text/plain", "size": 5, "file_name": "a.txt", "parts": null}`,
			`{"file_name":"b.txt","size":5,"mime_type":"text/plain"}`,
		},
	} {
		status, first, header := call("1", tt.path, tt.first)
		if status != 200 || header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: %d, replayed %q: %s", tt.path, status, header.Get("Idempotency-Replayed"), first)
		}
		for _, body := range []string{tt.first, tt.same} {
			status, again, header := call("1", tt.path, body)
			if status != 200 || header.Get("Idempotency-Replayed") != "true" || again != first {
				t.Errorf("%s again: %d, replayed %q: %s, want %s", tt.path, status, header.Get("Idempotency-Replayed"), again, first)
			}
		}
		if status, body, header := call("1", tt.path, tt.other); status != 409 || header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s with another body: %d %s", tt.path, status, body)
		}
		if status, body, header := call("2", tt.path, tt.first); status != 200 || header.Get("Idempotency-Replayed") != "" || body == first {
			t.Errorf("%s with another key: %d %s", tt.path, status, body)
		}
	}
}

// GET supported-operation takes parameters under their own names, and convert_to may have a dot.
func TestSupportedOperationQuery(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	for query, want := range map[string]bool{
		"ext=txt&action=convert&convert_to=md":                            true,
		"ext=.TXT&action=CONVERT&convert_to=.MD":                          true,
		"ext=txt&action=convert&convert_to=mp3":                           false,
		"ext=txt&action=convert&parameters[convert_to]=mp3&convert_to=md": false,
		`ext=txt&action=convert&parameters={"convert_to":"md"}&_=17`:      true,
		"ext=txt&action=convert&unknown=1":                                true,
		"ext=txt&convert_to=mp3":                                          true, // which actions
		"ext=png&action=convert&convert_to=md":                            false,
	} {
		if status, m := a.call(t, "key-a", "GET", "/api/v1/supported-operation?"+strings.ReplaceAll(query, `"`, "%22"), ""); status != 200 || m["supported"] != want {
			t.Errorf("%s: %d %v", query, status, m)
		}
	}
	file := a.upload(t, "key-a", "a.txt", "hello")
	status, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":".md"}}`, file))
	if status != 200 {
		t.Fatalf("%d %v", status, m)
	}
	_, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), "")
	if !reflect.DeepEqual(first(m)["file_name"], "a.md") {
		t.Errorf("%v", m)
	}
}
