//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func TestBadRequests(t *testing.T) {
	t.Parallel()
	key := shared.upload(t, "a.txt", []byte("abc"), 1)
	for _, tt := range []struct {
		name   string
		status int
		slug   string
		method string
		path   string
		body   any
		header []string
	}{
		{"no key", 401, "unauthorized", "POST", "/api/v1/do", "{}", []string{"Authorization", ""}},
		{"wrong key", 401, "unauthorized", "POST", "/api/v1/do", "{}", []string{"Authorization", "Bearer fw_nonsense"}},
		{"wrong scheme", 401, "unauthorized", "POST", "/api/v1/do", "{}", []string{"Authorization", "Basic " + shared.key}},
		{"no JSON", 400, "invalid_request", "POST", "/api/v1/do", "{", nil},
		{"no body", 400, "invalid_request", "POST", "/api/v1/do", "", nil},
		{"an array", 400, "invalid_request", "POST", "/api/v1/do", "[]", nil},
		{"null", 400, "invalid_request", "POST", "/api/v1/do", "null", nil},
		{"two objects", 400, "invalid_request", "POST", "/api/v1/do", `{"action":"zip"}{}`, nil},
		{"a form", 415, "unsupported_media_type", "POST", "/api/v1/do", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"too long", 413, "too_large", "POST", "/api/v1/do", `{"action":"` + strings.Repeat("x", 1<<20) + `"}`, nil},
		{"action is a number", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": 1, "file_keys": []string{key}}, nil},
		{"keys are a string", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": key}, nil},
		{"no keys", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{}}, nil},
		{"keys are null", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": nil}, nil},
		{"no action", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"file_keys": []string{key}}, nil},
		{"notes are numbers", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}, "notes": map[string]any{"a": 1}}, nil},
		{"too many files", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": strings.Split(strings.Repeat("k,", 101), ",")}, nil},
		{"unknown file", 404, "not_found", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{"nonsense"}}, nil},
		{"unknown action", 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "fold", "file_keys": []string{key}}, nil},
		{"action not for this file", 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "unlock", "file_keys": []string{key}, "parameters": map[string]any{"password": "x"}}, nil},
		{"target not for this file", 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "mp3"}}, nil},
		{"parameter missing", 400, "invalid_request", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}}, nil},
		{"parameter of the wrong type", 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": 7}}, nil},
		{"unknown parameter", 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "pdf", "colour": "red"}}, nil},
		{"size is text", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a", "size": "3", "mime_type": "text/plain"}, nil},
		{"size is missing", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a", "mime_type": "text/plain"}, nil},
		{"size is a fraction", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a", "size": 1.5, "mime_type": "text/plain"}, nil},
		{"no name", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"size": 3, "mime_type": "text/plain"}, nil},
		{"no type", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a", "size": 3}, nil},
		{"bad type", 400, "invalid_request", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a", "size": 3, "mime_type": "text"}, nil},
		{"complete of nothing", 404, "not_found", "POST", "/api/v1/complete-upload", map[string]any{"file_key": "nonsense", "parts": []any{}}, nil},
		{"complete without key", 400, "invalid_request", "POST", "/api/v1/complete-upload", map[string]any{"parts": []any{}}, nil},
		{"part number is text", 400, "invalid_request", "POST", "/api/v1/complete-upload", map[string]any{"file_key": "x", "parts": []any{map[string]any{"etag": "a", "part_number": "1"}}}, nil},
		{"no endpoint", 404, "not_found", "GET", "/api/v1/nonsense", nil, nil},
		{"no endpoint at all", 404, "not_found", "GET", "/", nil, nil},
		{"trailing slash", 404, "not_found", "POST", "/api/v1/do/", "{}", nil},
		{"wrong method", 405, "method_not_allowed", "GET", "/api/v1/do", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.want(t, tt.status, tt.slug, tt.method, tt.path, tt.body, tt.header...)
			if tt.status == 405 && r.header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
			if tt.name == "target not for this file" && !strings.Contains(fmt.Sprint(r.body["allowed"]), "pdf") {
				t.Errorf("the allowed values are not named: %s", r.raw)
			}
		})
	}
	// Unknown members and nulls count as absent.
	shared.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}, "parameters": nil, "notes": nil, "colour": "red"})
}

// Files of other accounts look missing.
func TestForeign(t *testing.T) {
	t.Parallel()
	mine := shared.upload(t, "a.txt", []byte("abc"), 1)
	up := shared.initiate(t, "b.txt", 3, 1)
	task := shared.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{mine}}).str("main_task_id")
	shared.await(t, task)
	other := &server{url: shared.url, dir: shared.dir, key: createKey(t, shared.dir, "other")}
	other.want(t, 404, "not_found", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{mine}})
	other.want(t, 404, "not_found", "GET", "/api/v1/status/"+task, nil)
	other.want(t, 404, "not_found", "GET", "/api/v1/status/"+task+"/"+mine, nil)
	other.want(t, 404, "not_found", "GET", "/api/v1/status/"+task+"/events", nil)
	other.want(t, 404, "not_found", "DELETE", "/api/v1/status/"+task, nil)
	other.want(t, 404, "not_found", "DELETE", "/api/v1/files/"+mine, nil)
	other.want(t, 404, "not_found", "GET", "/v1/download/"+mine, nil)
	other.want(t, 404, "not_found", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "upload_id": up.id, "object_name": up.object, "parts": []any{}})
	if r := other.want(t, 200, "", "GET", "/api/v1/operations", nil); len(r.body["operations"].([]any)) != 0 {
		t.Errorf("foreign operations are listed: %s", r.raw)
	}
}

// Damaged and mislabelled files fail with the right code, and the server continues to work.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	pngBytes, pdfBytes := sample(t, format.PNG).b, pdf(t).b
	garbage := bytes.Repeat([]byte{0x13, 0x00, 0xfe, 0x37, 0x88, 0x01}, 500)
	convert := func(to string) map[string]any { return map[string]any{"convert_to": to} }
	for _, tt := range []struct {
		name, code, action string
		params             map[string]any
		in                 file
	}{
		{"PNG named jpg", "format_mismatch", "convert", convert("webp"), file{"a.jpg", pngBytes}},
		{"text named png", "format_mismatch", "convert", convert("jpg"), file{"a.png", []byte("I am not a picture, really not.")}},
		{"PDF named docx", "format_mismatch", "convert", convert("pdf"), file{"a.docx", pdfBytes}},
		{"zip named docx", "format_mismatch", "convert", convert("pdf"), file{"a.docx", sample(t, format.ZIP).b}},
		{"PNG named pdf", "format_mismatch", "merge", nil, file{"a.pdf", pngBytes}},
		{"playlist named mp4", "format_mismatch", "convert", convert("mp3"), file{"a.mp4", []byte("#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n")}},
		{"garbage named jpg", "corrupt_input", "convert", convert("png"), file{"a.jpg", garbage}},
		{"garbage named pdf", "corrupt_input", "convert", convert("png"), file{"a.pdf", garbage}},
		{"garbage named docx", "corrupt_input", "convert", convert("pdf"), file{"a.docx", garbage}},
		{"garbage named mp3", "corrupt_input", "convert", convert("wav"), file{"a.mp3", garbage}},
		{"empty jpg", "corrupt_input", "convert", convert("png"), file{"a.jpg", nil}},
		{"half a PNG", "corrupt_input", "convert", convert("jpg"), file{"a.png", pngBytes[:len(pngBytes)/2]}},
		{"half a docx", "corrupt_input", "convert", convert("pdf"), file{"a.docx", docx(t).b[:4000]}},
		{"head of a PDF", "corrupt_input", "convert", convert("png"), file{"a.pdf", pdfBytes[:200]}},
		{"head of a PDF", "corrupt_input", "lock", map[string]any{"password": "x"}, file{"a.pdf", pdfBytes[:200]}},
		{"video without sound", "unsupported_input", "convert", convert("mp3"), makeFile(t, "mute.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x120:duration=1", "-pix_fmt", "yuv420p", "mute.mp4")},
	} {
		t.Run(tt.name+" "+tt.action, func(t *testing.T) {
			t.Parallel()
			shared.fails(t, tt.code, tt.action, tt.params, tt.in)
		})
	}
}

// A truncated body leaves no part behind.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	up := shared.initiate(t, "a.bin", 100000, 1)
	host := strings.TrimPrefix(shared.url, "http://")
	conn, err := net.Dial("tcp", host)
	systest.NoError(t, err)
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n%s", strings.TrimPrefix(up.urls[0], shared.url), host, strings.Repeat("x", 1000))
	conn.Close()
	shared.want(t, 400, "missing_part", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "upload_id": up.id, "object_name": up.object,
		"parts": []any{map[string]any{"etag": "d41d8cd98f00b204e9800998ecf8427e", "part_number": 1}}})

	// The signature is checked before the body: the response arrives before the client has sent any
	// of it.
	conn, err = net.Dial("tcp", host)
	systest.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n", strings.TrimPrefix(flip(up.urls[0]), shared.url), host)
	head := make([]byte, 12)
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 403" {
		t.Errorf("answer %q (%v)", head, err)
	}
}

func createKey(t testing.TB, dir, name string) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "keys", "create", "--data-dir", dir, "--name", name).Output()
	systest.NoError(t, err)
	key := strings.TrimSpace(string(out))
	if !strings.HasPrefix(key, "fw_") || strings.ContainsAny(key, " \n") {
		t.Fatalf("keys create prints %q", out)
	}
	return key
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	other := &server{url: s.url, key: createKey(t, s.dir, "laptop")}
	other.want(t, 200, "", "GET", "/api/v1/operations", nil)
	list := tool(t, binary, "keys", "list", "--data-dir", s.dir)
	if !strings.Contains(list, "laptop") || !strings.Contains(list, "first key") || strings.Contains(list, other.key) {
		t.Errorf("list:\n%s", list)
	}
	if db := tool(t, "bash", "-c", "cat "+s.dir+"/filewright.db* | grep -c "+other.key+" || true"); strings.TrimSpace(db) != "0" {
		t.Error("the key itself is in the database")
	}
	var id string
	for line := range strings.Lines(list) {
		if strings.Contains(line, "laptop") {
			id = strings.Fields(line)[0]
		}
	}
	tool(t, binary, "keys", "revoke", "--data-dir", s.dir, id)
	// Another process revoked the key, and it is refused at once.
	other.want(t, 401, "unauthorized", "GET", "/api/v1/operations", nil)
}
