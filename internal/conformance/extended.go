package conformance

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// extended are the rules of this implementation.
var extended = []rule{
	{"json.objects", Extended, "Responses are JSON objects with the media type application/json, and have no null.", func(t *tester) {
		for _, r := range []*response{t.packed(), t.begin("a.txt", 5, 1), t.send("GET", "/api/v1/formats", nil)} {
			t.want(r.body != nil && strings.HasPrefix(r.header.Get("Content-Type"), "application/json"), "%s: %s", r.header.Get("Content-Type"), r)
			t.want(!hasNull(r.body), "a member is null: %s", r)
		}
	}},
	{"json.data", Extended, "The members are at the top, under data, or both with the same values.", func(t *tester) {
		r := t.packed()
		data, ok := r.body["data"].(map[string]any)
		if !ok || len(r.body) == 1 {
			t.skip("the server sends members in one position")
		}
		top := make(map[string]any)
		for name, v := range r.body {
			if name != "data" {
				top[name] = v
			}
		}
		t.want(reflect.DeepEqual(top, data), "the members under data differ from those at the top")
	}},
	{"json.null", Extended, "null in a request means that the member is absent, and unknown members are ignored.", func(t *tester) {
		r := t.send("POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a.txt", "size": 5, "mime_type": "text/plain", "parts": nil, "unknown": 1})
		t.want(r.status == 200, "%s", r)
	}},
	{"auth.header", Extended, "X-D3-API-Key has the key too.", func(t *tester) {
		r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "pdf"}, "Authorization", "", "X-D3-API-Key", t.cfg.Key)
		t.want(r.status == 200, "%s", r)
	}},
	{"paths.aliases", Extended, "The paths are also below /v1/biz and /v1/external, and /v1/external/upload starts an upload.", func(t *tester) {
		for _, prefix := range []string{"/v1/biz", "/v1/external"} {
			r := t.send("POST", prefix+"/supported-operation", map[string]any{"ext": "pdf"})
			t.want(r.status == 200, "%s: %s", prefix, r)
		}
		r := t.send("POST", "/v1/external/upload", map[string]any{"file_name": "a.txt", "size": 5, "mime_type": "text/plain"})
		t.want(r.status == 200, "/v1/external/upload: %s", r)
	}},
	{"upload.etag", Extended, "The ETag of a part is the MD5 of its bytes in hexadecimal, in quotes.", func(t *tester) {
		r := t.send("PUT", t.begin("a.txt", len(sample), 1).text("presigned_urls", 0), sample, "Authorization", "")
		t.want(r.header.Get("ETag") == `"`+digest(sample)+`"`, "ETag %s, want %q", r.header.Get("ETag"), digest(sample))
	}},
	{"upload.empty", Extended, "A file may be empty.", func(t *tester) {
		session := t.begin("empty.txt", 0, 0)
		r := t.send("PUT", session.text("presigned_urls", 0), "", "Authorization", "")
		t.need(r.status == 200, "PUT: %s", r)
		t.want(t.complete(session, digest("")).status == 200, "complete-upload failed")
	}},
	{"upload.again", Extended, "A part may be sent again until the upload is complete; the last one counts.", func(t *tester) {
		session := t.begin("a.txt", len(sample), 1)
		t.put(session.text("presigned_urls", 0), strings.ToUpper(sample))
		t.put(session.text("presigned_urls", 0), sample)
		r := t.complete(session, digest(sample))
		t.need(r.status == 200, "complete-upload: %s", r)
		t.archived(t.content(t.finish("zip", nil, session.text("file_key"))), sample)
		r = t.send("PUT", session.text("presigned_urls", 0), sample, "Authorization", "")
		t.problem(r, 409, "conflict")
	}},
	{"upload.mistakes", Extended, "missing_part, part_order and part_etag name mistakes of complete-upload; the session stays open.", func(t *tester) {
		session := t.begin("a.txt", 2*len(sample), 2)
		first := t.put(session.text("presigned_urls", 0), sample)
		second := t.put(session.text("presigned_urls", 1), sample)
		entry := func(n int, etag string) any { return map[string]any{"part_number": n, "etag": etag} }
		for slug, parts := range map[string][]any{
			"missing_part": {entry(1, first)},
			"part_order":   {entry(2, second), entry(1, first)},
			"part_etag":    {entry(1, first), entry(2, digest("other"))},
		} {
			t.problem(t.completeWith(session, parts), 400, slug)
		}
		t.want(t.complete(session, first, second).status == 200, "the session is not open any more")
	}},
	{"upload.size", Extended, "The sizes of the parts must add up; a larger body is refused.", func(t *tester) {
		session := t.begin("a.txt", len(sample)+1, 1)
		etag := t.put(session.text("presigned_urls", 0), sample)
		t.problem(t.complete(session, etag), 400, "size_mismatch")
		session = t.begin("a.txt", len(sample)-1, 1)
		t.problem(t.send("PUT", session.text("presigned_urls", 0), sample, "Authorization", ""), 413, "too_large")
	}},
	{"upload.digest", Extended, "Content-MD5 is verified.", func(t *tester) {
		url := t.begin("a.txt", len(sample), 1).text("presigned_urls", 0)
		r := t.send("PUT", url, sample, "Authorization", "", "Content-MD5", base64.StdEncoding.EncodeToString(make([]byte, 16)))
		t.want(r.status == 400, "%s", r)
	}},
	{"upload.signature", Extended, "An upload URL is good for PUT only, and only unchanged.", func(t *tester) {
		url := t.begin("a.txt", len(sample), 1).text("presigned_urls", 0)
		r := t.send("GET", url, nil, "Authorization", "")
		t.want(r.refused(), "GET: %s", r)
		t.problem(t.send("PUT", url+"x", sample, "Authorization", ""), 403, "invalid_signature")
	}},
	{"upload.limits", Extended, "More than 5 GiB need several parts, and a file cannot have more parts than it needs.", func(t *tester) {
		body := map[string]any{"file_name": "a.bin", "size": 5<<30 + 1, "mime_type": "application/octet-stream"}
		t.problem(t.send("POST", "/api/v1/initiate-upload", body), 400, "invalid_request")
		body["size"], body["parts"] = 5, 100_000
		t.problem(t.send("POST", "/api/v1/initiate-upload", body), 400, "invalid_request")
	}},
	{"errors.form", Extended, "Errors are problem details with error, message, code and request_id.", func(t *tester) {
		r := t.send("POST", "/api/v1/do", map[string]any{}, "X-Request-Id", "conformance-1")
		t.problem(r, 400, "invalid_request")
		t.want(r.body["request_id"] == "conformance-1" && r.header.Get("X-Request-Id") == "conformance-1", "the request ID is not repeated: %s", r)
		t.want(r.body["param"] == "action", "param is %v, want action", r.body["param"])
	}},
	{"errors.http", Extended, "404 for unknown paths, 405 with Allow, 415 for other bodies than JSON, 401 with WWW-Authenticate.", func(t *tester) {
		t.problem(t.send("GET", "/nowhere", nil), 404, "not_found")
		r := t.send("PUT", "/api/v1/do", nil)
		t.problem(r, 405, "method_not_allowed")
		t.want(r.header.Get("Allow") != "", "405 without Allow")
		t.problem(t.send("POST", "/api/v1/do", "{}", "Content-Type", "text/plain"), 415, "unsupported_media_type")
		r = t.send("GET", "/api/v1/formats", nil, "Authorization", "")
		t.problem(r, 401, "unauthorized")
		t.want(r.header.Get("WWW-Authenticate") != "", "401 without WWW-Authenticate")
	}},
	{"errors.allowed", Extended, "Errors name the member, and list the valid values where they are finite.", func(t *tester) {
		targets := t.offers("txt", "convert").list("parameters", "convert_to")
		for what, r := range map[string]*response{
			"an unknown action":   t.do("fold", nil, t.text()),
			"a missing parameter": t.do("convert", nil, t.text()),
			"a bad value":         t.do("convert", map[string]any{"convert_to": "nothing"}, t.text()),
		} {
			t.want(r.status == 400 && len(r.list("allowed")) > 0 && r.text("param") != "", "%s: %s", what, r)
		}
		r := t.do("convert", map[string]any{"convert_to": "nothing"}, t.text())
		t.want(reflect.DeepEqual(r.list("allowed"), targets), "allowed is %v, supported-operation has %v", r.list("allowed"), targets)
	}},
	{"supported.alias", Extended, "availableActions repeats available_actions, ext may have a dot, an unknown one is no error.", func(t *tester) {
		r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": ".PDF"})
		t.want(r.text("ext") == "pdf" && reflect.DeepEqual(r.at("availableActions"), r.at("available_actions")), "%s", r)
		r = t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "unknownext"})
		t.want(r.status == 200, "an unknown ext: %s", r)
	}},
	{"do.spellings", Extended, "action is matched without regard to case, and create_zip means zip.", func(t *tester) {
		for _, action := range []string{"ZIP", "create_zip"} {
			r := t.do(action, nil, t.text())
			t.want(r.status == 200, "%s: %s", action, r)
		}
	}},
	{"do.idempotency", Extended, "The same Idempotency-Key and body return the same operation; another body returns 409.", func(t *tester) {
		body := map[string]any{"action": "zip", "file_keys": []string{t.text()}}
		key := rand.Text()
		first := t.send("POST", "/api/v1/do", body, "Idempotency-Key", key)
		again := t.send("POST", "/api/v1/do", body, "Idempotency-Key", key)
		t.want(first.status == 200 && first.text("main_task_id") == again.text("main_task_id"), "%s, then %s", first, again)
		t.want(again.header.Get("Idempotency-Replayed") == "true", "the repetition is not marked")
		body["notes"] = map[string]string{"a": "b"}
		t.problem(t.send("POST", "/api/v1/do", body, "Idempotency-Key", key), 409, "conflict")
	}},
	{"status.files", Extended, "files_data has each input from the start, in order, with input_file_key, progress, file_name, size and mime_type.", func(t *tester) {
		t.offers("txt", "convert")
		target, _ := t.offers("txt", "convert").at("parameters", "convert_to", 0).(string)
		keys := []string{t.upload("b.txt", sample), t.upload("a.txt", sample)}
		r := t.finish("convert", map[string]any{"convert_to": target}, keys...)
		for i, key := range keys {
			t.want(r.text("files_data", i, "input_file_key") == key, "element %d is not about input %d: %s", i, i, r)
			for _, name := range []string{"progress", "file_name", "size", "mime_type", "download_link"} {
				t.want(r.at("files_data", i, name) != nil, "element %d has no %s", i, name)
			}
		}
	}},
	{"status.wait", Extended, "?wait= answers when the operation is final.", func(t *tester) {
		r := t.do("zip", nil, t.text())
		r = t.send("GET", "/api/v1/status/"+r.text("main_task_id")+"?wait=30s", nil)
		t.want(r.status == 200 && r.text("operation_status") == "completed", "%s", r)
	}},
	{"status.events", Extended, "/events sends the status at every change and ends after the final one.", func(t *tester) {
		r := t.do("zip", nil, t.text())
		r = t.send("GET", "/api/v1/status/"+r.text("main_task_id")+"/events", nil)
		t.want(strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream"), "the type is %s", r.header.Get("Content-Type"))
		events := strings.Split(strings.TrimSpace(string(r.raw)), "\n\n")
		t.want(strings.Contains(events[len(events)-1], `"operation_status":"completed"`), "the last event: %s", events[len(events)-1])
	}},
	{"status.cancel", Extended, "DELETE cancels an operation; for a final one it changes nothing.", func(t *tester) {
		id := t.lastID(t.packed())
		r := t.send("DELETE", "/api/v1/status/"+id, nil)
		t.want(r.status == 200 && r.text("operation_status") == "completed", "%s", r)
	}},
	{"status.owner", Extended, "What does not exist, or belongs to someone else, is not found.", func(t *tester) {
		t.problem(t.send("GET", "/api/v1/status/00000000-0000-0000-0000-000000000000", nil), 404, "not_found")
		t.problem(t.do("zip", nil, strings.Repeat("a", 26)), 404, "not_found")
		t.problem(t.send("DELETE", "/api/v1/files/"+strings.Repeat("a", 26), nil), 404, "not_found")
	}},
	{"operations.list", Extended, "/operations lists operations, newest first, in pages.", func(t *tester) {
		older := t.packed().text("main_task_id")
		newer := t.finish("zip", nil, t.text()).text("main_task_id")
		first := t.send("GET", "/api/v1/operations?limit=1", nil)
		t.need(first.status == 200 && len(first.list("operations")) == 1 && first.text("next_cursor") != "", "%s", first)
		var ids []string // others may have been accepted at the same time
		for path := "/api/v1/operations?limit=50"; !slices.Contains(ids, older); {
			page := t.send("GET", path, nil)
			t.need(page.status == 200 && len(page.list("operations")) > 0, "%s", page)
			for i := range page.list("operations") {
				ids = append(ids, page.text("operations", i, "main_task_id"))
			}
			cursor := page.text("next_cursor")
			t.need(cursor != "" || slices.Contains(ids, older), "operation %s is not listed", older)
			path = "/api/v1/operations?limit=50&cursor=" + cursor
		}
		n := slices.Index(ids, newer)
		t.want(newer != older && n >= 0 && n < slices.Index(ids, older), "operation %s is not before the older one, %s", newer, older)
		t.problem(t.send("GET", "/api/v1/operations?cursor=unknown", nil), 400, "invalid_request")
	}},
	{"formats", Extended, "/formats lists formats and engines.", func(t *tester) {
		r := t.send("GET", "/api/v1/formats", nil)
		t.want(r.status == 200 && len(r.list("formats")) > 0 && r.at("engines") != nil, "%s", r)
	}},
	{"download.headers", Extended, "Downloads are attachments with ETag, ranges, nosniff and a sandbox.", func(t *tester) {
		link := t.packed().text("files_data", 0, "download_link")
		r := t.send("GET", link, nil)
		t.want(strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment"), "Content-Disposition: %s", r.header.Get("Content-Disposition"))
		t.want(r.header.Get("X-Content-Type-Options") == "nosniff", "X-Content-Type-Options is not nosniff")
		t.want(strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox"), "Content-Security-Policy has no sandbox")
		t.want(r.header.Get("ETag") != "", "there is no ETag")
		part := t.send("GET", link, nil, "Range", "bytes=1-3")
		t.want(part.status == 206 && len(r.raw) > 3 && bytes.Equal(part.raw, r.raw[1:4]), "bytes 1 to 3: %d, %d bytes", part.status, len(part.raw))
		same := t.send("GET", link, nil, "If-None-Match", r.header.Get("ETag"))
		t.want(same.status == 304, "If-None-Match: %d", same.status)
		t.problem(t.send("GET", link, nil, "Range", fmt.Sprintf("bytes=%d-", len(r.raw)+1)), 416, "invalid_range")
	}},
	{"download.input", Extended, "An upload can be downloaded only with the key of its owner.", func(t *tester) {
		r := t.send("GET", "/v1/download/"+t.text(), nil)
		t.want(r.status == 200 && string(r.raw) == sample, "with the key: %s", r)
		r = t.send("GET", "/v1/download/"+t.text(), nil, "Authorization", "")
		t.want(r.refused(), "without a key: %s", r)
	}},
	{"download.zip", Extended, "/operations/{id}/download has all results of an operation as a ZIP.", func(t *tester) {
		r := t.send("GET", "/api/v1/operations/"+t.lastID(t.packed())+"/download", nil)
		t.want(r.status == 200 && strings.HasPrefix(string(r.raw), "PK"), "%d, %d bytes", r.status, len(r.raw))
	}},
	{"files.delete", Extended, "A deleted file is gone.", func(t *tester) {
		key := t.upload("a.txt", sample)
		r := t.send("DELETE", "/api/v1/files/"+key, nil)
		t.want(r.status == 200, "%s", r)
		for what, r := range map[string]*response{"download": t.send("GET", "/v1/download/"+key, nil), "do": t.do("zip", nil, key)} {
			t.want(r.status == 404 || r.status == 410, "%s: %s", what, r)
		}
	}},
	{"run", Extended, "POST /run/{action} uploads, runs and downloads in one request.", func(t *tester) {
		r := t.send("POST", "/api/v1/run/zip?file_name=a.txt", sample, "Content-Type", "text/plain")
		if r.status == 404 {
			t.skip("one call is switched off")
		}
		t.need(r.status == 200, "%s", r)
		t.archived(r.raw, sample)
	}},
	{"service", Extended, "/healthz, /readyz, /openapi.json, /openapi-3.0.json, /openapi.yaml and /docs answer without a key.", func(t *tester) {
		for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/openapi-3.0.json", "/openapi.yaml", "/docs"} {
			r := t.send("GET", path, nil, "Authorization", "")
			t.want(r.status == 200, "%s: %d", path, r.status)
		}
	}},
}

// rules returns all rules.
func rules() []rule { return slices.Concat(core, extended) }

// problem checks an error response.
func (t *tester) problem(r *response, status int, slug string) {
	t.want(r.status == status && r.body["error"] == slug, "%s, want %d %s", r, status, slug)
	if r.status < 400 {
		return
	}
	t.want(strings.HasPrefix(r.header.Get("Content-Type"), "application/problem+json"), "the type of an error is %s", r.header.Get("Content-Type"))
	for _, name := range []string{"type", "title", "detail", "error", "message", "request_id"} {
		s, _ := r.body[name].(string)
		t.want(s != "", "an error has no %s: %s", name, r)
	}
	t.want(r.body["message"] == r.body["detail"] && r.body["code"] == float64(r.status) && r.body["status"] == float64(r.status), "members of an error disagree: %s", r)
}

// hasNull reports whether a value has a null in it.
func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if hasNull(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}
