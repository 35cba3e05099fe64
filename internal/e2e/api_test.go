//go:build linux

package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func TestMultipartUpload(t *testing.T) {
	t.Parallel()
	content := make([]byte, 1<<20+17)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(rng.Uint32())
	}
	for _, parts := range []int{1, 2, 3, 7} {
		key := shared.upload(t, "data.bin", content, parts)
		// Only its owner can download an upload, and gets the same bytes.
		d := shared.want(t, 200, "", "GET", "/v1/download/"+key, nil)
		if !bytes.Equal(d.raw, content) {
			t.Errorf("%d parts: content differs", parts)
		}
		etag := strings.Trim(d.header.Get("ETag"), `"`)
		if want := s3ETag(content, parts); etag != want {
			t.Errorf("%d parts: ETag %s, want %s", parts, etag, want)
		}
		shared.want(t, 401, "unauthorized", "GET", "/v1/download/"+key, nil, "Authorization", "")
	}
}

// s3ETag returns the ETag of S3 for an object of n equal parts.
func s3ETag(b []byte, n int) string {
	if n == 1 {
		sum := md5.Sum(b)
		return hex.EncodeToString(sum[:])
	}
	all := md5.New()
	chunk := (len(b) + n - 1) / n
	for i := range n {
		sum := md5.Sum(b[min(i*chunk, len(b)):min((i+1)*chunk, len(b))])
		all.Write(sum[:])
	}
	return fmt.Sprintf("%x-%d", all.Sum(nil), n)
}

func TestUploadRules(t *testing.T) {
	t.Parallel()
	s := shared
	t.Run("empty file", func(t *testing.T) {
		up := s.initiate(t, "empty.txt", 0, 0)
		if etag := s.put(t, up.urls[0], nil); etag != "d41d8cd98f00b204e9800998ecf8427e" {
			t.Errorf("ETag %s", etag)
		}
		s.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "upload_id": up.id, "object_name": nil,
			"parts": []any{map[string]any{"etag": "d41d8cd98f00b204e9800998ecf8427e", "part_number": 1}}})
	})
	t.Run("parts in any order, again, and empty at the end", func(t *testing.T) {
		content := []byte("0123456789abcdef")
		up := s.initiate(t, "a.txt", len(content), 3)
		e2 := s.put(t, up.urls[1], content[6:])
		s.put(t, up.urls[0], []byte("wrong!"))
		e1 := s.put(t, up.urls[0], content[:6])
		e3 := s.put(t, up.urls[2], nil)
		body := map[string]any{"file_key": up.key, "object_name": up.object, "upload_id": up.id, "parts": []any{
			map[string]any{"etag": `"` + e1 + `"`, "part_number": 1}, map[string]any{"etag": e2, "part_number": 2}, map[string]any{"etag": e3, "part_number": 3}}}
		first := s.want(t, 200, "", "POST", "/api/v1/complete-upload", body)
		again := s.want(t, 200, "", "POST", "/api/v1/complete-upload", body)
		if first.str("message") == again.str("message") || again.str("message") != "file upload completed" {
			t.Errorf("messages %q and %q", first.str("message"), again.str("message"))
		}
		if d := s.want(t, 200, "", "GET", "/v1/download/"+up.key, nil); string(d.raw) != string(content) {
			t.Errorf("content %q", d.raw)
		}
		s.want(t, 409, "conflict", "PUT", up.urls[0], content[:6])
	})
	t.Run("bad lists of parts leave the session open", func(t *testing.T) {
		up := s.initiate(t, "a.txt", 12, 2)
		e1 := s.put(t, up.urls[0], []byte("012345"))
		complete := func(status int, slug string, parts ...any) {
			t.Helper()
			s.want(t, status, slug, "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "object_name": up.object, "upload_id": up.id, "parts": parts})
		}
		part := func(n int, etag string) any { return map[string]any{"etag": etag, "part_number": n} }
		complete(400, "missing_part", part(1, e1))
		complete(400, "missing_part", part(1, e1), part(2, e1))
		s.want(t, 409, "upload_incomplete", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{up.key}})
		s.want(t, 409, "upload_incomplete", "GET", "/v1/download/"+up.key, nil)
		e2 := s.put(t, up.urls[1], []byte("6789"))
		complete(400, "size_mismatch", part(1, e1), part(2, e2))
		e2 = s.put(t, up.urls[1], []byte("6789ab"))
		complete(400, "part_order", part(2, e2), part(1, e1))
		complete(400, "part_etag", part(1, e1), part(2, e1))
		complete(400, "missing_part")
		complete(400, "missing_part", part(1, e1), part(2, e2), part(3, e2))
		s.want(t, 400, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "object_name": "other", "upload_id": up.id, "parts": []any{part(1, e1), part(2, e2)}})
		s.want(t, 400, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "upload_id": "other", "parts": []any{part(1, e1), part(2, e2)}})
		complete(200, "", part(1, e1), part(2, e2))
	})
	t.Run("URLs", func(t *testing.T) {
		up := s.initiate(t, "a.txt", 6, 1)
		b := []byte("012345")
		u := up.urls[0]
		s.want(t, 403, "invalid_signature", "PUT", flip(u), b)
		other := s.initiate(t, "b.txt", 6, 1)
		s.want(t, 403, "invalid_signature", "PUT", strings.Replace(u, up.id, other.id, 1), b)
		s.want(t, 405, "method_not_allowed", "GET", u, nil)
		s.want(t, 405, "method_not_allowed", "POST", u, b)
		s.want(t, 413, "too_large", "PUT", u, []byte("0123456"))
		s.want(t, 400, "", "PUT", u, b, "Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
		s.want(t, 200, "", "PUT", u, b, "Content-MD5", "1qmpM8iq/FHlWsBmK25NSg==", "Authorization", "Bearer nonsense")
	})
	t.Run("limits", func(t *testing.T) {
		body := func(size, parts any) map[string]any {
			return map[string]any{"file_name": "a.bin", "size": size, "mime_type": "application/octet-stream", "parts": parts}
		}
		s.want(t, 400, "", "POST", "/api/v1/initiate-upload", body(int64(5<<30+1), 1))
		s.want(t, 400, "", "POST", "/api/v1/initiate-upload", body(int64(5<<30+1), nil))
		s.want(t, 200, "", "POST", "/api/v1/initiate-upload", body(int64(5<<30), 1))
		s.want(t, 200, "", "POST", "/api/v1/initiate-upload", body(int64(5<<30+1), 2))
		s.want(t, 400, "", "POST", "/api/v1/initiate-upload", body(100, 10001))
		s.want(t, 400, "", "POST", "/api/v1/initiate-upload", body(-1, 1))
	})
}

// flip changes the last character of a URL, which belongs to its signature.
func flip(u string) string {
	c := "A"
	if strings.HasSuffix(u, c) {
		c = "B"
	}
	return u[:len(u)-1] + c
}

func TestExpiredURL(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--url-ttl", "1s")
	up := s.initiate(t, "a.txt", 3, 1)
	// Until then an upload succeeds, which changes nothing here.
	eventually(t, "the URL expires", func() bool { return s.request(t, "PUT", up.urls[0], []byte("abc")).status != 200 })
	s.want(t, 403, "url_expired", "PUT", up.urls[0], []byte("abc"))
}

func TestRetention(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--file-ttl", "3s")
	key := s.upload(t, "a.txt", []byte("abc"), 1)
	out := s.await(t, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}}).str("main_task_id"))
	link := out.elements()[0]["download_link"].(string)
	s.want(t, 200, "", "GET", link, nil)
	eventually(t, "the result expires", func() bool { return s.request(t, "GET", link, nil).status != 200 })
	s.want(t, 410, "expired", "GET", link, nil)
	s.want(t, 410, "expired", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}})
	gone := s.upload(t, "b.txt", []byte("abc"), 1)
	s.want(t, 200, "", "DELETE", "/api/v1/files/"+gone, nil)
	s.want(t, 404, "not_found", "DELETE", "/api/v1/files/"+gone, nil)
	s.want(t, 404, "not_found", "GET", "/v1/download/"+gone, nil)
}

func TestSupportedOperation(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/supported-operation"
	ask := func(body map[string]any) *response { t.Helper(); return shared.want(t, 200, "", "POST", path, body) }

	r := ask(map[string]any{"ext": "pdf"})
	var actions []string
	for _, a := range r.body["available_actions"].([]any) {
		actions = append(actions, a.(string))
	}
	all := []string{
		"attach",
		"bookmarks",
		"compress",
		"convert",
		"extract_pages",
		"fill_form",
		"flatten",
		"inspect",
		"lock",
		"merge",
		"metadata",
		"ocr",
		"page_numbers",
		"reset_password",
		"rotate",
		"split",
		"thumbnail",
		"unlock",
		"watermark",
		"zip",
	}
	if !slices.Equal(actions, all) || r.body["supported"] != true {
		t.Errorf("actions on pdf: %s", r.raw)
	}
	if fmt.Sprint(r.body["availableActions"]) != fmt.Sprint(r.body["available_actions"]) {
		t.Errorf("availableActions: %s", r.raw)
	}
	r = ask(map[string]any{"ext": ".JPEG", "action": "CONVERT"})
	if r.body["supported"] != true || r.str("action") != "convert" || !slices.Contains(shared.targets(t, "jpg"), "png") {
		t.Errorf("convert of JPEG: %s", r.raw)
	}
	r = ask(map[string]any{"ext": "pdf", "action": "compress"})
	if got := fmt.Sprint(r.body["parameters"].(map[string]any)["compression_value"]); !strings.Contains(got, "extreme_compression") || !strings.Contains(got, "less_compression") {
		t.Errorf("compress: %s", r.raw)
	}
	r = ask(map[string]any{"ext": "pdf", "action": "lock", "parameters": nil})
	if p := r.body["parameters"].(map[string]any)["password"].(map[string]any); p["type"] != "string" || p["required"] != true {
		t.Errorf("lock: %s", r.raw)
	}
	if r = ask(map[string]any{"ext": "mp3", "action": "convert", "parameters": map[string]any{"convert_to": "pdf"}}); r.body["supported"] != false {
		t.Errorf("mp3 to pdf: %s", r.raw)
	}
	if r = ask(map[string]any{"ext": "qqq"}); fmt.Sprint(r.body["available_actions"]) != "[zip]" || r.body["supported"] != true {
		t.Errorf("unknown extension: %s", r.raw)
	}
	if r = ask(map[string]any{"ext": "qqq", "action": "convert"}); r.body["supported"] != false {
		t.Errorf("unknown extension: %s", r.raw)
	}
	// GET with a query, and with a body.
	r = shared.want(t, 200, "", "GET", path+"?ext=docx&action=Convert&parameters[convert_to]=pdf", nil)
	if r.body["supported"] != true {
		t.Errorf("GET: %s", r.raw)
	}
	r = shared.want(t, 200, "", "GET", path+`?ext=docx&action=convert&parameters=%7B%22convert_to%22%3A%22mp3%22%7D`, nil)
	if r.body["supported"] != false {
		t.Errorf("GET: %s", r.raw)
	}
	if r = shared.want(t, 200, "", "GET", path, map[string]any{"ext": "docx", "action": "convert"}); r.body["supported"] != true {
		t.Errorf("GET with a body: %s", r.raw)
	}
	shared.want(t, 400, "invalid_request", "GET", path, nil)
	shared.want(t, 400, "invalid_request", "POST", path, map[string]any{"action": "convert"})
}

// supported-operation and do agree over the whole matrix.
func TestDoAgreesWithSupportedOperation(t *testing.T) {
	t.Parallel()
	keys := make(map[string]string)
	for f := range format.Known() {
		keys[string(f)] = shared.upload(t, "x."+string(f), []byte("not looked at before it is worked on"), 1)
	}
	for ext, key := range keys {
		for _, to := range []string{"pdf", "png", "docx", "mp3", "mp4", "xlsx", "zip", "txt"} {
			params := map[string]any{"convert_to": to}
			r := shared.want(t, 200, "", "POST", "/api/v1/supported-operation", map[string]any{"ext": ext, "action": "convert", "parameters": params})
			d := shared.request(t, "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": params})
			if r.body["supported"] != (d.status == 200) {
				t.Errorf("%s to %s: supported %v, do answers %d", ext, to, r.body["supported"], d.status)
			}
			if d.status != 200 && d.str("error") != "unsupported_operation" {
				t.Errorf("%s to %s: %s", ext, to, d.raw)
			}
			if d.status == 200 {
				shared.want(t, 200, "", "DELETE", "/api/v1/status/"+d.str("main_task_id"), nil)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	key := shared.upload(t, "photo.jpg", jpg(t).b, 1)
	bad := shared.upload(t, "bad.jpg", jpg(t).b[:300], 1)
	task := shared.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "CONVERT", "file_keys": []string{key, bad},
		"parameters": map[string]any{"convert_to": "PNG"}, "notes": map[string]string{"order": "17"}}).str("main_task_id")
	first := shared.want(t, 200, "", "GET", "/api/v1/status/"+task, nil)
	if n := len(first.elements()); n != 2 {
		t.Errorf("files_data has %d elements from the start, want 2", n)
	}
	r := shared.await(t, task)
	es := r.elements()
	if r.str("operation_status") != "completed" || es[0]["status"] != "completed" || es[1]["status"] != "failed" {
		t.Fatalf("one good and one bad file: %s", r.raw)
	}
	if es[0]["input_file_key"] != key || es[1]["file_key"] != bad || es[1]["error_code"] == nil || es[0]["file_name"] != "photo.png" || es[0]["mime_type"] != "image/png" {
		t.Errorf("elements: %s", r.raw)
	}
	if fmt.Sprint(r.body["notes"]) != "map[order:17]" {
		t.Errorf("notes: %s", r.raw)
	}
	if data, _ := json.Marshal(r.body["data"]); !strings.Contains(string(data), task) {
		t.Errorf("no data member: %s", r.raw)
	}
	for _, k := range []string{key, es[0]["file_key"].(string)} {
		if one := shared.want(t, 200, "", "GET", "/api/v1/status/"+task+"/"+k, nil).elements(); len(one) != 1 || one[0]["file_key"] != es[0]["file_key"] {
			t.Errorf("status of one file: %v", one)
		}
	}
	shared.want(t, 404, "not_found", "GET", "/api/v1/status/"+task+"/nonsense", nil)
	shared.want(t, 404, "not_found", "GET", "/api/v1/status/nonsense", nil)
	shared.want(t, 400, "invalid_request", "GET", "/api/v1/status/"+task+"?wait=soon", nil)

	// Downloads: ranges, HEAD, names and headers.
	link := es[0]["download_link"].(string)
	d := shared.want(t, 200, "", "GET", link, nil, "Authorization", "")
	if cd := d.header.Get("Content-Disposition"); !strings.HasPrefix(cd, "attachment") || !strings.Contains(cd, "photo.png") {
		t.Errorf("Content-Disposition %q", cd)
	}
	if d.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(d.header.Get("Content-Security-Policy"), "sandbox") || d.header.Get("Content-Type") != "image/png" {
		t.Errorf("headers %v", d.header)
	}
	part := shared.want(t, 206, "", "GET", link, nil, "Range", "bytes=1-3")
	if string(part.raw) != "PNG" {
		t.Errorf("range: %q", part.raw)
	}
	shared.want(t, 304, "", "GET", link, nil, "If-None-Match", d.header.Get("ETag"))
	if h := shared.want(t, 200, "", "HEAD", link, nil); len(h.raw) != 0 || h.header.Get("Content-Length") != fmt.Sprint(len(d.raw)) {
		t.Errorf("HEAD: %v", h.header)
	}
	shared.want(t, 200, "", "GET", "/api"+link, nil)
	shared.want(t, 200, "", "HEAD", "/api"+link, nil)
	shared.want(t, 416, "invalid_range", "GET", link, nil, "Range", "bytes=1000000-")
	shared.want(t, 404, "not_found", "GET", "/v1/download/nonsense", nil)
}

func TestEventsAndCancel(t *testing.T) {
	t.Parallel()
	long := makeFile(t, "long.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=60",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "long.mp4")
	task := shared.begin(t, "convert", map[string]any{"convert_to": "webm"}, long)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shared.url+"/api/v1/status/"+task+"/events", nil)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+shared.key)
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(t, err)
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatalf("Content-Type %q", ct)
	}
	last, states := -1.0, []string{}
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 1<<20)
	cancelled := time.Time{}
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var ev struct {
			Status string `json:"operation_status"`
			Files  []struct {
				Progress float64 `json:"progress"`
				Code     string  `json:"error_code"`
			} `json:"files_data"`
		}
		systest.NoError(t, json.Unmarshal([]byte(data), &ev))
		if len(states) == 0 || states[len(states)-1] != ev.Status {
			states = append(states, ev.Status)
		}
		if ev.Status == "failed" {
			if ev.Files[0].Code != "cancelled" {
				t.Errorf("code %q", ev.Files[0].Code)
			}
			continue
		}
		if p := ev.Files[0].Progress; p < last {
			t.Errorf("progress fell from %v to %v", last, p)
		} else {
			last = p
		}
		if last > 3 && cancelled.IsZero() {
			cancelled = time.Now()
			shared.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil)
		}
	}
	if cancelled.IsZero() || states[len(states)-1] != "failed" {
		t.Errorf("states %v, progress %v", states, last)
	}
	// A late client gets the final state, and the stream ends.
	if late := shared.want(t, 200, "", "GET", "/api/v1/status/"+task+"/events", nil); strings.Count(string(late.raw), "data: ") != 1 || !strings.Contains(string(late.raw), "cancelled") {
		t.Errorf("events of a final operation: %s", late.raw)
	}
	// Cancelling a final operation changes nothing.
	if r := shared.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil); r.str("operation_status") != "failed" {
		t.Errorf("cancelled again: %s", r.raw)
	}
	shared.want(t, 404, "not_found", "DELETE", "/api/v1/status/nonsense", nil)
	// Cancelling has killed the engine.
	eventually(t, "the engine stops after the operation was cancelled", func() bool { return !working(t, filepath.Join(shared.dir, "scratch"), ".webm") })
}

// working reports whether a process has an argument that contains both texts.
func working(t *testing.T, a, b string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, path := range lines {
		args, _ := os.ReadFile(path) // the process may have ended
		for arg := range bytes.SplitSeq(args, []byte{0}) {
			if bytes.Contains(arg, []byte(a)) && bytes.Contains(arg, []byte(b)) {
				return true
			}
		}
	}
	return false
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	init := map[string]any{"file_name": "a.txt", "size": 3, "mime_type": "text/plain"}
	a := shared.want(t, 200, "", "POST", "/api/v1/initiate-upload", init, "Idempotency-Key", "init-1")
	b := shared.want(t, 200, "", "POST", "/api/v1/initiate-upload", init, "Idempotency-Key", "init-1")
	if a.str("file_key") != b.str("file_key") || a.str("upload_id") != b.str("upload_id") {
		t.Errorf("two sessions: %s %s", a.raw, b.raw)
	}
	init["size"] = 4
	shared.want(t, 409, "conflict", "POST", "/api/v1/initiate-upload", init, "Idempotency-Key", "init-1")

	key := shared.upload(t, "a.txt", []byte("abc"), 1)
	do := map[string]any{"action": "zip", "file_keys": []string{key}}
	x := shared.want(t, 200, "", "POST", "/api/v1/do", do, "Idempotency-Key", "do-1")
	shared.await(t, x.str("main_task_id"))
	shared.want(t, 200, "", "DELETE", "/api/v1/files/"+key, nil) // the response stays the same even without the file
	y := shared.want(t, 200, "", "POST", "/api/v1/do", do, "Idempotency-Key", "do-1")
	if x.str("main_task_id") != y.str("main_task_id") {
		t.Errorf("two operations: %s %s", x.raw, y.raw)
	}
	do["notes"] = map[string]string{"a": "b"}
	shared.want(t, 409, "conflict", "POST", "/api/v1/do", do, "Idempotency-Key", "do-1")
}

func TestListOperations(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	key := s.upload(t, "a.txt", []byte("abc"), 1)
	var ids []string
	for range 5 {
		id := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}}).str("main_task_id")
		s.await(t, id)
		ids = append([]string{id}, ids...)
	}
	var got []string
	cursor := ""
	for range 3 {
		r := s.want(t, 200, "", "GET", "/api/v1/operations?limit=2&status=completed&cursor="+cursor, nil)
		for _, o := range r.body["operations"].([]any) {
			got = append(got, o.(map[string]any)["main_task_id"].(string))
		}
		cursor = r.str("next_cursor")
	}
	if !slices.Equal(got, ids) || cursor != "" {
		t.Errorf("listed %v, cursor %q, want %v", got, cursor, ids)
	}
	if r := s.want(t, 200, "", "GET", "/api/v1/operations?status=failed", nil); len(r.body["operations"].([]any)) != 0 {
		t.Errorf("failed: %s", r.raw)
	}
	s.want(t, 400, "invalid_request", "GET", "/api/v1/operations?status=lost", nil)
	s.want(t, 400, "invalid_request", "GET", "/api/v1/operations?limit=0", nil)
}

func TestAliases(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"/api/v1", "/v1/biz", "/v1/external"} {
		r := shared.want(t, 200, "", "POST", prefix+"/supported-operation", map[string]any{"ext": "pdf"})
		if r.body["supported"] != true {
			t.Errorf("%s: %s", prefix, r.raw)
		}
		shared.want(t, 404, "not_found", "GET", prefix+"/status/nonsense", nil)
	}
	shared.want(t, 200, "", "POST", "/v1/external/upload", map[string]any{"file_name": "a.txt", "size": 3, "mime_type": "text/plain"})
	shared.want(t, 200, "", "GET", "/api/v1/formats", nil, "Authorization", "", "X-D3-API-Key", shared.key)
}

func TestFormatsAndHealth(t *testing.T) {
	t.Parallel()
	r := shared.want(t, 200, "", "GET", "/api/v1/formats", nil)
	exts := make(map[string]bool)
	for _, f := range r.body["formats"].([]any) {
		exts[f.(map[string]any)["ext"].(string)] = true
	}
	for _, want := range []string{"pdf", "docx", "jpg", "mp4", "mp3", "csv", "*"} {
		if !exts[want] {
			t.Errorf("formats has no %s", want)
		}
	}
	for _, e := range r.body["engines"].([]any) {
		if e := e.(map[string]any); e["available"] != true {
			t.Errorf("engine %v", e)
		}
	}
	shared.want(t, 200, "", "GET", "/healthz", nil, "Authorization", "")
	if r := shared.ready(t, "Authorization", ""); r.str("status") != "ok" || r.body["checks"].(map[string]any)["database"] != "ok" {
		t.Errorf("readyz: %s", r.raw)
	}
	m := string(shared.want(t, 200, "", "GET", "/metrics", nil, "Authorization", "").raw)
	for _, want := range []string{"filewright_http_requests_total", "filewright_database_bytes ", `filewright_database_seconds_count{kind="write"}`, `filewright_engine_available{engine="ffmpeg"`} {
		if !strings.Contains(m, want) {
			t.Errorf("metrics without %s", want)
		}
	}
	if d := shared.want(t, 200, "", "GET", "/docs", nil, "Authorization", ""); !strings.Contains(string(d.raw), "/docs/quickstart") {
		t.Error("the documentation lacks the quickstart")
	}
	if d := shared.want(t, 200, "", "GET", "/docs/api", nil, "Authorization", ""); !strings.Contains(string(d.raw), "/api/v1/initiate-upload") {
		t.Error("docs page without the endpoints")
	}
	shared.want(t, 200, "", "GET", "/openapi.yaml", nil, "Authorization", "")
	shared.want(t, 200, "", "GET", "/openapi.json", nil, "Authorization", "")
	shared.want(t, 200, "", "GET", "/openapi-3.0.json", nil, "Authorization", "")
}

func TestCORS(t *testing.T) {
	t.Parallel()
	up := shared.initiate(t, "a.txt", 3, 1)
	pre := shared.request(t, "OPTIONS", up.urls[0], nil, "Origin", "https://app.example.com", "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type")
	if pre.status != 204 || pre.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(pre.header.Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("preflight: %d %v", pre.status, pre.header)
	}
	put := shared.want(t, 200, "", "PUT", up.urls[0], []byte("abc"), "Origin", "https://app.example.com")
	if !strings.Contains(put.header.Get("Access-Control-Expose-Headers"), "ETag") {
		t.Errorf("headers %v", put.header)
	}
	other := shared.request(t, "OPTIONS", "/api/v1/do", nil, "Origin", "https://evil.example.com", "Access-Control-Request-Method", "POST")
	if other.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign origin is allowed: %v", other.header)
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"plain": `{"supported":`, "data": `{"data":{"supported":`} {
		s := startLean(t, filepath.Join(t.TempDir(), "data"), "--envelope", mode)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/supported-operation?ext=pdf", nil)
		req.Header.Set("Authorization", "Bearer "+s.key)
		resp, err := http.DefaultClient.Do(req)
		systest.NoError(t, err)
		var b bytes.Buffer
		b.ReadFrom(resp.Body)
		resp.Body.Close()
		if !strings.HasPrefix(b.String(), want) || strings.Contains(b.String(), `"data"`) != (mode == "data") {
			t.Errorf("%s: %s", mode, b.String())
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--public-url", "https://files.example.com/base", "--absolute-links", "--private-downloads")
	up := s.want(t, 200, "", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a.txt", "size": 3, "mime_type": "text/plain"})
	u := up.body["presigned_urls"].([]any)[0].(string)
	rest, ok := strings.CutPrefix(u, "https://files.example.com/base/")
	if !ok {
		t.Fatalf("upload URL %s", u)
	}
	etag := s.put(t, s.url+"/"+rest, []byte("abc"))
	s.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.str("file_key"), "object_name": up.str("object_name"), "upload_id": up.str("upload_id"),
		"parts": []any{map[string]any{"etag": etag, "part_number": 1}}})
	r := s.await(t, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{up.str("file_key")}}).str("main_task_id"))
	link := r.elements()[0]["download_link"].(string)
	path, ok := strings.CutPrefix(link, "https://files.example.com/base")
	if !ok {
		t.Fatalf("download link %s", link)
	}
	s.want(t, 401, "unauthorized", "GET", path, nil, "Authorization", "")
	s.want(t, 200, "", "GET", path, nil)
}

// One call and the ZIP of all results, as the document of the API describes them.
func TestOneCallIsDocumented(t *testing.T) {
	t.Parallel()
	r := shared.want(t, 200, "", "POST", "/api/v1/run/convert?file_name=a.csv&convert_to=tsv&keep=true", "x,y\n1,2\n", "Content-Type", "text/csv")
	if string(r.raw) != "x\ty\n1\t2\n" {
		t.Errorf("result %s", r.raw)
	}
	r = shared.want(t, 200, "", "GET", "/api/v1/operations/"+r.header.Get("X-Main-Task-Id")+"/download", nil)
	z, err := zip.NewReader(bytes.NewReader(r.raw), int64(len(r.raw)))
	systest.NoError(t, err)
	if len(z.File) != 1 || z.File[0].Name != "a.tsv" {
		t.Errorf("members %v", z.File)
	}
}
