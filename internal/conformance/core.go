package conformance

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"strings"
)

// core are the rules that every server of the interface follows.
var core = []rule{
	{"auth.key", Core, "A request without an API key, or with an unknown one, is refused.", func(t *tester) {
		for name, header := range map[string]string{"without a key": "", "with an unknown key": "Bearer unknown", "with another scheme": "Basic " + t.cfg.Key} {
			r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "pdf"}, "Authorization", header)
			t.want(r.status == 401 || r.status == 403, "%s: %s", name, r)
		}
	}},
	{"auth.bearer", Core, "The API key is the bearer credential of the header Authorization.", func(t *tester) {
		r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "pdf"})
		t.want(r.status == 200, "%s", r)
	}},
	{"upload.session", Core, "initiate-upload returns file_key, object_name, upload_id and presigned_urls.", func(t *tester) {
		r := t.begin("a.txt", 5, 1)
		for _, name := range []string{"file_key", "object_name", "upload_id"} {
			_, ok := r.at(name).(string)
			t.want(ok, "%s is not a string: %s", name, r)
		}
		t.want(strings.HasPrefix(r.text("presigned_urls", 0), "http"), "presigned_urls has no URL: %s", r)
	}},
	{"upload.one-url", Core, "Without parts, or with 0, there is one upload URL.", func(t *tester) {
		r := t.begin("a.txt", 5, 0)
		t.want(len(r.list("presigned_urls")) == 1, "without parts: %s", r)
		r = t.send("POST", "/api/v1/initiate-upload", map[string]any{"file_name": "a.txt", "size": 5, "mime_type": "text/plain", "parts": 0})
		t.want(r.status == 200 && len(r.list("presigned_urls")) == 1, "with 0 parts: %s", r)
	}},
	{"upload.urls", Core, "There are as many upload URLs as parts.", func(t *tester) {
		urls := t.begin("a.txt", 9, 3).list("presigned_urls")
		t.want(len(urls) == 3 && urls[0] != urls[1] && urls[1] != urls[2], "3 parts have the URLs %v", urls)
	}},
	{"upload.required", Core, "file_name, size and mime_type are required.", func(t *tester) {
		for _, name := range []string{"file_name", "size", "mime_type"} {
			body := map[string]any{"file_name": "a.txt", "size": 5, "mime_type": "text/plain"}
			delete(body, name)
			r := t.send("POST", "/api/v1/initiate-upload", body)
			t.want(r.refused(), "without %s: %s", name, r)
		}
	}},
	{"upload.put", Core, "An upload URL takes the bytes by PUT without an API key and returns their ETag.", func(t *tester) {
		etag := t.put(t.begin("a.txt", len(sample), 1).text("presigned_urls", 0), sample)
		t.want(etag != "", "the response has no ETag")
	}},
	{"upload.complete", Core, "complete-upload returns a message and the file_key.", func(t *tester) {
		session := t.begin("a.txt", len(sample), 1)
		etag := t.put(session.text("presigned_urls", 0), sample)
		r := t.complete(session, etag)
		t.need(r.status == 200, "%s", r)
		t.want(r.text("message") != "" && r.text("file_key") == session.text("file_key"), "%s", r)
		t.want(strings.Contains(r.text("message"), etag), "the message does not have the ETag %s: %s", etag, r)
		r = t.complete(session, etag)
		t.want(r.status == 200 && r.text("message") != "", "the second call: %s", r)
	}},
	{"upload.missing-part", Core, "complete-upload fails if a part was not sent.", func(t *tester) {
		session := t.begin("a.txt", 2*len(sample), 2)
		etag := t.put(session.text("presigned_urls", 0), sample)
		r := t.complete(session, etag, etag)
		t.want(r.refused(), "%s", r)
	}},
	{"upload.usable", Core, "A file can be used after complete-upload, not before.", func(t *tester) {
		session := t.begin("a.txt", len(sample), 1)
		r := t.do("zip", nil, session.text("file_key"))
		t.want(r.refused(), "before: %s", r)
		etag := t.put(session.text("presigned_urls", 0), sample)
		t.need(t.complete(session, etag).status == 200, "complete-upload failed")
		r = t.do("zip", nil, session.text("file_key"))
		t.want(r.status == 200, "afterwards: %s", r)
	}},
	{"upload.parts", Core, "The parts of a file are joined in order.", func(t *tester) {
		half := strings.Repeat("first ", 1000)
		other := strings.Repeat("second ", 100)
		session := t.begin("parts.txt", len(half)+len(other), 2)
		second := t.put(session.text("presigned_urls", 1), other)
		first := t.put(session.text("presigned_urls", 0), half)
		r := t.complete(session, first, second)
		t.need(r.status == 200, "complete-upload: %s", r)
		t.archived(t.content(t.finish("zip", nil, session.text("file_key"))), half+other)
	}},
	{"do.id", Core, "do returns main_task_id.", func(t *tester) {
		r := t.do("zip", nil, t.text())
		t.want(r.status == 200 && r.text("main_task_id") != "", "%s", r)
	}},
	{"do.notes", Core, "do accepts notes.", func(t *tester) {
		r := t.send("POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{t.text()}, "notes": map[string]string{"order": "7"}})
		t.want(r.status == 200, "%s", r)
	}},
	{"do.refused", Core, "do refuses an unknown action, no files, and unknown files.", func(t *tester) {
		t.want(t.do("fold", nil, t.text()).refused(), "an unknown action is accepted")
		t.want(t.send("POST", "/api/v1/do", map[string]any{"action": "zip"}).refused(), "no files are accepted")
		t.want(t.do("zip", nil, "unknown").refused(), "an unknown file is accepted")
	}},
	{"status.final", Core, "operation_status becomes completed, and files_data has each result.", func(t *tester) {
		r := t.packed()
		files := r.list("files_data")
		t.need(len(files) == 1, "zip has %d results: %s", len(files), r)
		key := r.text("files_data", 0, "file_key")
		t.want(r.text("files_data", 0, "status") == "completed", "the status of the result: %s", r)
		t.want(key != "" && strings.HasSuffix(r.text("files_data", 0, "download_link"), "/v1/download/"+key), "download_link does not lead to %s: %s", key, r)
	}},
	{"status.file", Core, "The status of one file of an operation can be requested.", func(t *tester) {
		packed := t.packed()
		id := t.lastID(packed)
		r := t.send("GET", "/api/v1/status/"+id+"/"+packed.text("files_data", 0, "file_key"), nil)
		t.want(r.status == 200, "%s", r)
	}},
	{"status.unknown", Core, "The status of an unknown operation is refused.", func(t *tester) {
		r := t.send("GET", "/api/v1/status/unknown", nil)
		t.want(r.refused(), "%s", r)
	}},
	{"download.result", Core, "download_link, relative to the base address, has the result.", func(t *tester) {
		t.archived(t.content(t.packed()), sample, sample+sample)
	}},
	{"supported.actions", Core, "With ext, supported-operation lists the actions.", func(t *tester) {
		r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "pdf"})
		t.need(r.status == 200, "%s", r)
		_, ok := r.at("supported").(bool)
		t.want(ok, "supported is not a boolean: %s", r)
		t.want(r.text("ext") != "", "there is no ext: %s", r)
		t.want(slices.Contains(r.list("available_actions"), any("zip")), "available_actions has no zip: %s", r)
	}},
	{"supported.get", Core, "supported-operation answers GET and POST.", func(t *tester) {
		r := t.send("GET", "/api/v1/supported-operation?ext=pdf", nil)
		t.want(r.status == 200 && len(r.list("available_actions")) > 0, "%s", r)
	}},
	{"supported.values", Core, "With ext and action, in any case, supported-operation lists the valid values.", func(t *tester) {
		for _, action := range []string{"convert", "CONVERT"} {
			targets := t.offers("jpg", action).list("parameters", "convert_to")
			t.want(len(targets) > 0, "%s for jpg has no convert_to", action)
		}
		if r := t.send("POST", "/api/v1/supported-operation", map[string]any{"ext": "pdf", "action": "compress"}); r.at("supported") == true {
			t.want(slices.Contains(r.list("parameters", "compression_value"), any("recommended_compression")), "compress for pdf: %s", r)
		}
	}},
	{"supported.truth", Core, "do accepts what supported-operation lists, and nothing else.", func(t *tester) {
		target, _ := t.offers("txt", "convert").at("parameters", "convert_to", 0).(string)
		t.need(target != "", "convert for txt has no convert_to")
		r := t.do("convert", map[string]any{"convert_to": target}, t.text())
		t.want(r.status == 200, "convert to %s: %s", target, r)
		r = t.do("convert", map[string]any{"convert_to": "nothing"}, t.text())
		t.want(r.refused(), "convert to nothing: %s", r)
	}},
	{"convert", Core, "convert returns a file of the target format.", func(t *tester) {
		targets := t.offers("txt", "convert").list("parameters", "convert_to")
		if !slices.Contains(targets, any("pdf")) {
			t.skip("the server does not convert txt to pdf")
		}
		b := t.content(t.finish("convert", map[string]any{"convert_to": "pdf"}, t.text()))
		t.want(bytes.HasPrefix(b, []byte("%PDF-")), "the result is not a PDF file")
	}},
	{"merge", Core, "merge joins PDF files into one.", func(t *tester) {
		t.offers("pdf", "merge")
		r := t.finish("merge", nil, t.upload("one.pdf", pdf()), t.upload("two.pdf", pdf()))
		t.want(bytes.HasPrefix(t.content(r), []byte("%PDF-")), "the result is not a PDF file")
		t.want(len(r.list("files_data")) == 1, "%s", r)
	}},
	{"compress", Core, "compress works without compression_value and with each one.", func(t *tester) {
		values := t.offers("pdf", "compress").list("parameters", "compression_value")
		key := t.upload("one.pdf", pdf())
		t.content(t.finish("compress", nil, key))
		for _, v := range values {
			t.content(t.finish("compress", map[string]any{"compression_value": v}, key))
		}
	}},
	{"password", Core, "lock, reset_password and unlock set, change and remove the password of a PDF; a wrong one fails.", func(t *tester) {
		for _, action := range []string{"lock", "reset_password", "unlock"} {
			t.offers("pdf", action)
		}
		key := t.upload("one.pdf", pdf())
		locked := t.finish("lock", map[string]any{"password": "first"}, key)
		b := t.content(locked)
		t.want(bytes.Contains(b, []byte("/Encrypt")), "lock: the result is not encrypted")
		changed := t.finish("reset_password", map[string]any{"old_password": "first", "new_password": "second"}, t.upload("locked.pdf", string(b)))
		b = t.content(changed)
		key = t.upload("changed.pdf", string(b))
		r := t.finish("unlock", map[string]any{"password": "first"}, key)
		t.want(r.text("operation_status") == "failed", "unlock with the old password: %s", r)
		b = t.content(t.finish("unlock", map[string]any{"password": "second"}, key))
		t.want(!bytes.Contains(b, []byte("/Encrypt")), "unlock: the result is encrypted")
	}},
}

// archived checks the contents of the members of an archive.
func (t *tester) archived(archive []byte, contents ...string) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	t.need(err == nil, "the result is not a ZIP archive: %v", err)
	t.need(len(z.File) == len(contents), "the archive has %d members, want %d", len(z.File), len(contents))
	for i, f := range z.File {
		r, err := f.Open()
		t.need(err == nil, "member %s: %v", f.Name, err)
		b, err := io.ReadAll(r)
		r.Close()
		t.want(err == nil && string(b) == contents[i], "member %s differs from the upload", f.Name)
	}
}

// lastID returns the id of an operation from its status, or starts another operation to learn one.
func (t *tester) lastID(status *response) string {
	if id := status.text("main_task_id"); id != "" {
		return id
	}
	r := t.do("zip", nil, t.keys...)
	t.need(r.status == 200, "do: %s", r)
	return r.text("main_task_id")
}
