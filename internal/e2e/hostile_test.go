//go:build linux

package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
)

// knownCodes are the error codes of items that failed because of their file.
var knownCodes = []string{"corrupt_input", "format_mismatch", "unsupported_input", "limit_exceeded", "timeout", "engine_failed",
	"password_required", "wrong_password", "not_encrypted", "cancelled"}

// A deed is an action with parameters.
type deed struct {
	action string
	params map[string]any
}

// deeds returns actions to try with a format. n selects among similar actions.
func deeds(f format.Format, n int) []deed {
	to := func(names ...string) (out []deed) {
		for _, name := range names {
			out = append(out, deed{"convert", map[string]any{"convert_to": name}})
		}
		return out
	}
	compress, password := deed{"compress", nil}, map[string]any{"password": "pw"}
	switch f.Family() {
	case format.Document, format.Slides, format.Sheet:
		if f == format.PDF {
			return append(to("png", []string{"txt", "docx", "html", "xlsx"}[n%4]), compress, deed{"lock", password}, deed{"unlock", password}, deed{"merge", nil})
		}
		return append(to("pdf", []string{"docx", "html", "txt", "odt", "xlsx", "csv", "png", "pptx"}[n%8]), compress, []deed{{"lock", password}, {"unlock", password}, {"merge", nil}}[n%3])
	case format.Image:
		return append(to("png", []string{"pdf", "jpg", "txt", "webp"}[n%4]), compress)
	case format.Audio, format.Video:
		return append(to("mp3", []string{"wav", "mp4", "gif", "flac"}[n%4]), compress)
	}
	return append(to("zip"), compress, deed{"unlock", password})
}

// offered returns everything that the server offers for a format.
func (o *overseer) offered(t *testing.T, f format.Format) (out []deed) {
	t.Helper()
	ask := func(body map[string]any) *response {
		return o.want(t, 200, "", "POST", "/api/v1/supported-operation", body)
	}
	actions, _ := ask(map[string]any{"ext": f}).body["available_actions"].([]any)
	for _, a := range actions {
		action := a.(string)
		switch action {
		case "zip": // available for every file
		case "convert":
			params, _ := ask(map[string]any{"ext": f, "action": action}).body["parameters"].(map[string]any)
			targets, _ := params["convert_to"].([]any)
			for _, to := range targets {
				out = append(out, deed{action, map[string]any{"convert_to": to}})
			}
		case "lock", "unlock":
			out = append(out, deed{action, map[string]any{"password": "pw"}})
		case "reset_password":
			out = append(out, deed{action, map[string]any{"old_password": "pw", "new_password": "new"}})
		default:
			out = append(out, deed{action, nil})
		}
	}
	if len(out) == 0 && f.Known() {
		t.Errorf("nothing is offered for %s", f)
	}
	return out
}

// bombs returns all bombs. Some take seconds to make.
var bombs = sync.OnceValue(func() []*fileops.File { return append(hostile.Bombs(), hostile.SlowBombs()...) })

// submit uploads a file and starts at most the first most deeds for it.
func (o *overseer) submit(t *testing.T, f *fileops.File, n, most int) (tasks []string) {
	t.Helper()
	b, err := io.ReadAll(f.Reader())
	systest.NoError(t, err)
	key := o.upload(t, f.Name(), b, 1)
	all := deeds(f.Format(), n)
	if *everyDeed {
		all, most = o.offered(t, f.Format()), math.MaxInt
	}
	for _, d := range append(all[:min(most, len(all))], deed{"zip", nil}) {
		r := o.request(t, "POST", "/api/v1/do", map[string]any{"action": d.action, "file_keys": []string{key}, "parameters": d.params})
		switch {
		case r.status == 200:
			tasks = append(tasks, r.str("main_task_id"))
		case r.status != 400 || r.str("error") != "unsupported_operation":
			t.Errorf("%s: %s %v: %d %s", f.Name(), d.action, d.params, r.status, r.raw)
		}
	}
	return tasks
}

// ends waits for an operation and cancels it after patience. It checks the outcomes of its files.
func (o *overseer) ends(t *testing.T, what, task string, patience time.Duration) {
	t.Helper()
	for began := time.Now(); ; {
		r := o.want(t, 200, "", "GET", "/api/v1/status/"+task+"?wait=1s", nil)
		if st := r.str("operation_status"); st == "completed" || st == "failed" {
			for _, e := range r.elements() {
				code, _ := e["error_code"].(string)
				if e["status"] != "completed" && (e["status"] != "failed" || !slices.Contains(knownCodes, code)) {
					t.Errorf("%s: %v", what, e)
				}
				if msg, _ := e["error_message"].(string); strings.Contains(msg, o.dir) || strings.Contains(msg, "/proc") || strings.Contains(msg, ".go:") {
					t.Errorf("%s: the message tells too much: %s", what, msg)
				}
			}
			return
		}
		if time.Since(began) > patience {
			o.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil)
			began = time.Now().Add(time.Minute)
			patience = 10 * time.Minute
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s does not end", what)
		}
	}
}

// goesOn checks that the server still works for other files.
func (o *overseer) goesOn(t *testing.T, good file, when string) {
	t.Helper()
	if out := o.one(t, "convert", map[string]any{"convert_to": "pdf"}, good); !bytes.HasPrefix(out.b, []byte("%PDF-")) {
		t.Errorf("%s: a good document becomes %.20q", when, out.b)
	}
}

// hostileFiles sends hostile files through a real server, like all files. They touch nothing, every
// item finishes, and the server is as before.
func hostileFiles(t *testing.T, o *overseer) {
	x := hostile.NewTrap(t)
	good := docx(t)
	began := time.Now()
	batch := scale(12, 50)
	files := hostile.Scaled(hostile.Files(x.Path, x.URL))
	for i := 0; i < len(files); i += batch {
		check := o.guard(t)
		var names []string
		tasks := make(map[string]string)
		for j, f := range files[i:min(i+batch, len(files))] {
			names = append(names, f.Name())
			for _, task := range o.submit(t, f, i+j, scale(4, 2)) {
				tasks[task] = f.Name()
			}
		}
		for task, name := range tasks {
			o.ends(t, name, task, 3*time.Minute)
		}
		when := fmt.Sprint("after ", names)
		check(when)
		if x.Opened() {
			t.Errorf("%s: the canary was opened", when)
		}
		if x.Called() {
			t.Errorf("%s: the canary was called", when)
		}
		o.goesOn(t, good, when)
		o.settled(t, when)
		t.Logf("%d files, %v", i+len(names), time.Since(began).Round(time.Second))
	}
	t.Logf("%d files; at most %d MiB, %d when idle", len(files), o.peak>>20, o.idle.memory>>20)
}

// bombsAreFreed checks that bombs use no more than their limits, and free it.
func bombsAreFreed(t *testing.T, o *overseer) {
	good := docx(t)
	batch := scale(4, 12)
	files := hostile.Scaled(bombs())
	for i := 0; i < len(files); i += batch {
		stop, check := o.watch(t), o.guard(t)
		began := time.Now()
		var names []string
		tasks := make(map[string]string)
		for j, f := range files[i:min(i+batch, len(files))] {
			names = append(names, f.Name())
			for _, task := range o.submit(t, f, i+j, 1) {
				tasks[task] = f.Name()
			}
		}
		when := fmt.Sprint("after ", names)
		for task, name := range tasks {
			o.ends(t, name, task, 5*time.Second)
		}
		check(when)
		o.settled(t, when)
		o.goesOn(t, good, when)
		t.Logf("%v: at most %d MiB, %v", names, stop()>>20, time.Since(began).Round(time.Second))
	}
}

// A busy engine is killed with all its processes, by cancellation and by its deadline.
func TestBusyEngineIsKilled(t *testing.T) {
	t.Parallel()
	o := oversee(t, "--task-time", fmt.Sprint(scale(20, 10), "s"))
	byName := make(map[string]file)
	for _, f := range bombs() {
		b, _ := f.Bytes()
		byName[f.Name()] = file{f.Name(), b}
	}
	tests := []struct{ name, to, code string }{
		{"pattern.pdf", "png", "cancelled"},
		{"many.fods", "pdf", "timeout"},
		{"many.fods", "pdf", "cancelled"},
	}
	for _, tt := range tests[:scale(3, 2)] {
		// The replacement of a killed engine has started.
		o.goesOn(t, docx(t), "before "+tt.name)
		before := o.census(t)
		task := o.begin(t, "convert", map[string]any{"convert_to": tt.to}, byName[tt.name])
		// The engine is the busy process that is not the server.
		busy := make(map[int]bool)
		eventually(t, tt.name+" keeps an engine busy", func() bool {
			now := o.census(t)
			for pid, p := range now.processes {
				if pid != o.cmd.Process.Pid && p.cpu-before.processes[pid].cpu > 2*time.Second {
					busy[pid] = true
				}
			}
			return len(busy) > 0
		})
		if tt.code == "cancelled" {
			o.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil)
		}
		r := o.await(t, task)
		ended := time.Now()
		if code := r.elements()[0]["error_code"]; code != tt.code {
			t.Errorf("%s: %v, want %s", tt.name, code, tt.code)
		}
		o.wait(t, tt.name+" "+tt.code, func(c census) string {
			for pid := range busy {
				if p, ok := c.processes[pid]; ok {
					return fmt.Sprintf("%s goes on", p.name)
				}
			}
			return ""
		})
		t.Logf("%s: %s: all is gone after %v", tt.name, tt.code, time.Since(ended).Round(10*time.Millisecond))
	}
	o.goesOn(t, docx(t), "in the end")
	o.settled(t, "in the end")
}

// Hostile names are cleaned on input or refused. Everything that the server returns is harmless:
// result names, headers, and names in archives.
func TestNamesOfStrangers(t *testing.T) {
	t.Parallel()
	harmless := func(what, name string) {
		t.Helper()
		if name == "" || name != path.Base(name) || strings.ContainsAny(name, "/\\\x00") || name == "." || name == ".." || len(name) > 255 || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, func(r rune) bool {
				return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
			}) {
			t.Errorf("%s: name %q", what, name)
		}
	}
	refused := 0
	for _, name := range hostile.Names() {
		r := shared.request(t, "POST", "/api/v1/initiate-upload", map[string]any{"file_name": name, "size": 4, "mime_type": "text/plain"})
		if r.status == 400 {
			refused++
			continue
		}
		if r.status != 200 {
			t.Errorf("%q: %d %s", name, r.status, r.raw)
			continue
		}
		url := r.body["presigned_urls"].([]any)[0].(string)
		etag := shared.put(t, url, []byte("text"))
		shared.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": r.str("file_key"), "object_name": r.str("object_name"), "upload_id": r.str("upload_id"),
			"parts": []any{map[string]any{"etag": etag, "part_number": 1}}})
		d := shared.want(t, 200, "", "GET", "/v1/download/"+r.str("file_key"), nil)
		inert(t, name, d.header, harmless)
		done := shared.await(t, shared.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{r.str("file_key"), r.str("file_key")}}).str("main_task_id"))
		if done.str("operation_status") != "completed" {
			t.Errorf("%q: zip: %s", name, done.raw)
			continue
		}
		e := done.elements()[0]
		harmless(name, e["file_name"].(string))
		b := shared.want(t, 200, "", "GET", e["download_link"].(string), nil).raw
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil || len(z.File) != 2 || z.File[0].Name == z.File[1].Name {
			t.Errorf("%q: archive: %v", name, err)
			continue
		}
		for _, f := range z.File {
			harmless(name+" in an archive", f.Name)
		}
	}
	if refused == len(hostile.Names()) {
		t.Error("no name is good enough")
	}
	// Archives with such names inside.
	for _, f := range hostile.Files("/etc/hostname", shared.url) {
		if f.Format() != format.TAR && f.Format() != format.TarGZ {
			continue
		}
		b, _ := f.Bytes()
		done := shared.await(t, shared.begin(t, "convert", map[string]any{"convert_to": "zip"}, file{f.Name(), b}))
		e := done.elements()[0]
		if e["status"] != "completed" {
			continue // refused, which is accepted too
		}
		out := shared.want(t, 200, "", "GET", e["download_link"].(string), nil).raw
		z, err := zip.NewReader(bytes.NewReader(out), int64(len(out)))
		systest.NoError(t, err)
		for _, entry := range z.File {
			for part := range strings.SplitSeq(strings.TrimSuffix(entry.Name, "/"), "/") {
				harmless(f.Name(), part)
			}
			if entry.Mode()&^0o777 != 0 && !entry.Mode().IsDir() {
				t.Errorf("%s: %q has mode %v", f.Name(), entry.Name, entry.Mode())
			}
		}
	}
}

// inert checks that a browser saves a download and does nothing else with it.
func inert(t *testing.T, what string, h http.Header, harmless func(what, name string)) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || kind != "attachment" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("Set-Cookie") != "" {
		t.Errorf("%q: headers %v", what, h)
		return
	}
	harmless(what, params["filename"])
}

// Most containers have no namespaces, without which Chromium's own sandbox does not work. An
// ordinary user can still use the browser, inside the server's sandbox.
func TestBrowserWithoutNamespaces(t *testing.T) {
	t.Parallel()
	real := ""
	for _, name := range []string{"/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "google-chrome-stable", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			real = path
			break
		}
	}
	if real == "" {
		t.Fatal("no browser; run scripts/setup.sh test")
	}
	dir, err := os.MkdirTemp("", "e2e-browser-")
	systest.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	script := filepath.Join(dir, "browser")
	text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' --no-sandbox '*) exec %s \"$@\";; esac\necho No usable sandbox >&2\nexit 1\n", real)
	systest.WriteScript(t, script, text)
	systest.NoError(t, os.Chmod(dir, 0o755))
	o := oversee(t, "--chromium", script)
	got := o.one(t, "convert", map[string]any{"convert_to": "pdf"}, file{"a.html", []byte("<p>The quick brown fox</p>")})
	if info := tool(t, "pdfinfo", got.save(t)); !strings.Contains(info, "Skia") {
		t.Errorf("not made by the browser: %s", info)
	}
}
