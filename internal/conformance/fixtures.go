package conformance

import (
	"crypto/md5"
	"encoding/hex"
	"strings"
	"time"

	"github.com/filewright/filewright/internal/tinypdf"
)

// fixtures are files and operations that several rules look at. They are made when a rule first needs
// them.
type fixtures struct {
	cfg Config

	file string    // key of an uploaded text
	zip  *response // final status of an operation that packs two texts
	keys []string  // of the two texts
}

const sample = "The quick brown fox jumps over the lazy dog.\n"

// begin starts an upload.
func (t *tester) begin(name string, size, parts int) *response {
	body := map[string]any{"file_name": name, "size": size, "mime_type": "text/plain"}
	if parts > 0 {
		body["parts"] = parts
	}
	r := t.send("POST", "/api/v1/initiate-upload", body)
	t.need(r.status == 200, "initiate-upload: %s", r)
	return r
}

// put sends a part and returns its ETag without quotes.
func (t *tester) put(url, content string) string {
	r := t.send("PUT", url, content, "Authorization", "", "Content-Type", "text/plain")
	t.need(r.status == 200, "PUT to the upload URL: %s", r)
	return strings.Trim(r.header.Get("ETag"), `"`)
}

// complete completes an upload.
func (t *tester) complete(session *response, etags ...string) *response {
	parts := []any{}
	for i, tag := range etags {
		parts = append(parts, map[string]any{"etag": tag, "part_number": i + 1})
	}
	return t.completeWith(session, parts)
}

func (t *tester) completeWith(session *response, parts []any) *response {
	return t.send("POST", "/api/v1/complete-upload", map[string]any{
		"file_key": session.text("file_key"), "object_name": session.text("object_name"), "upload_id": session.text("upload_id"), "parts": parts,
	})
}

// upload uploads a file in one part and returns its key.
func (t *tester) upload(name, content string) string {
	session := t.begin(name, len(content), 0)
	etag := t.put(session.text("presigned_urls", 0), content)
	r := t.complete(session, etag)
	t.need(r.status == 200, "complete-upload: %s", r)
	return session.text("file_key")
}

// text returns the key of an uploaded text.
func (t *tester) text() string {
	if t.file == "" {
		t.file = t.upload("sample.txt", sample)
	}
	return t.file
}

// do starts an operation and returns its response.
func (t *tester) do(action string, parameters map[string]any, keys ...string) *response {
	body := map[string]any{"action": action, "file_keys": keys}
	if parameters != nil {
		body["parameters"] = parameters
	}
	return t.send("POST", "/api/v1/do", body)
}

// finish starts an operation and returns its final status.
func (t *tester) finish(action string, parameters map[string]any, keys ...string) *response {
	r := t.do(action, parameters, keys...)
	t.need(r.status == 200 && r.text("main_task_id") != "", "do %s: %s", action, r)
	return t.poll(r.text("main_task_id"))
}

// poll returns the final status of an operation.
func (t *tester) poll(id string) *response {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(t.cfg.Patience); time.Now().Before(end); {
		r := t.send("GET", "/api/v1/status/"+id, nil)
		t.need(r.status == 200, "status: %s", r)
		if s := r.text("operation_status"); s == "completed" || s == "failed" {
			return r
		}
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			panic(stop{})
		}
	}
	t.need(false, "the operation is not finished after %s", t.cfg.Patience)
	return nil
}

// packed returns the final status of an operation that packs two texts.
func (t *tester) packed() *response {
	if t.zip == nil {
		t.keys = []string{t.upload("one.txt", sample), t.upload("two.txt", sample+sample)}
		r := t.finish("zip", nil, t.keys...)
		t.need(r.text("operation_status") == "completed", "zip: %s", r)
		t.zip = r
	}
	return t.zip
}

// offers returns the response of supported-operation. It skips the rule if the server does not offer the
// action.
func (t *tester) offers(ext, action string) *response {
	r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": ext, "action": action})
	t.need(r.status == 200, "supported-operation: %s", r)
	if r.at("supported") != true {
		t.skip("the server does not offer %s for %s", action, ext)
	}
	return r
}

// content downloads the first result of an operation.
func (t *tester) content(status *response) []byte {
	t.need(status.text("operation_status") == "completed", "%s", status)
	link := status.text("files_data", 0, "download_link")
	t.need(link != "", "there is no download_link: %s", status)
	r := t.send("GET", link, nil)
	t.need(r.status == 200 && len(r.raw) > 0, "download: %d, %d bytes", r.status, len(r.raw))
	return r.raw
}

func digest(content string) string {
	sum := md5.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// pdf returns a PDF file of one empty page.
func pdf() string {
	return string(tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Resources<<>>>>"))
}
