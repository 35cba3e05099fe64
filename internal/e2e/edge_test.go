//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// Headers are limited in size and must arrive in time.
func TestHeaders(t *testing.T) {
	t.Parallel()
	dial := func(s *server, text string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		systest.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(2 * time.Minute)) // timeout of the test
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for name, head := range map[string]string{
		"one long header": "X-Long: " + strings.Repeat("x", 30_000) + "\r\n",
		"many headers":    strings.Repeat("X-Short: x\r\n", 3000),
	} {
		resp, err := http.ReadResponse(bufio.NewReader(dial(shared, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+head+"\r\n")), nil)
		if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %v %v, want 431", name, resp, err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(dial(shared, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 10_000)+"\r\n\r\n")), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("10 KB of headers: %v %v", resp, err)
	}

	s := start(t, filepath.Join(t.TempDir(), "data"), "--header-time", "2s", "--idle-time", "2s", "--soffice", "none", "--chromium", "none", "--ffmpeg", "none")
	ended := func(conn net.Conn) {
		t.Helper()
		_, err := io.Copy(io.Discard, conn)
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			t.Error("the connection is not closed")
		}
	}
	ended(dial(s, "GET /healthz HT"))
	ended(dial(s, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: "))
	ended(dial(s, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) // answered, then idle
	slow := dial(s, "GET /healthz HTTP/1.1\r\n")
	go func() {
		for range 600 { // a header line at intervals
			time.Sleep(200 * time.Millisecond)
			if _, err := io.WriteString(slow, "X-A: b\r\n"); err != nil {
				return
			}
		}
	}()
	ended(slow)
}

// Slow files of one account do not block the files of another account.
func TestFairness(t *testing.T) {
	t.Parallel()
	long := makeFile(t, "long.mp4", "", "sh", "-c", `ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=1280x720:rate=25:duration=2 -c:v mpeg4 -q:v 20 short.mp4 &&
		ffmpeg -nostdin -v error -stream_loop 99 -i short.mp4 -c copy long.mp4`)
	for _, places := range []string{"1", "2"} {
		t.Run(places+" at once", func(t *testing.T) {
			s := start(t, filepath.Join(t.TempDir(), "data"), "--concurrency", "media="+places, "--soffice", "none", "--chromium", "none")
			other := &server{url: s.url, dir: s.dir, key: createKey(t, s.dir, "other")}

			// 500 videos for the slowest encoder.
			key := s.upload(t, long.name, long.b, 1)
			var tasks []string
			for range 5 {
				tasks = append(tasks, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{
					"action": "convert", "file_keys": slices.Repeat([]string{key}, 100), "parameters": map[string]any{"convert_to": "webm"},
				}).str("main_task_id"))
			}
			running := func() (n int) {
				for _, e := range s.want(t, 200, "", "GET", "/api/v1/status/"+tasks[0], nil).elements() {
					if e["status"] == "running" {
						n++
					}
					if e["status"] == "completed" || e["status"] == "failed" {
						t.Fatalf("the film is not long enough: %v", e)
					}
				}
				return n
			}
			want, _ := strconv.Atoi(places)
			eventually(t, "the account uses all places", func() bool { return running() >= want })
			if n := running(); n != want {
				t.Fatalf("alone, the account has %d files in work, want %d", n, want)
			}
			r := other.await(t, other.begin(t, "convert", map[string]any{"convert_to": "mp3"}, audio(t, "wav")))
			if r.str("operation_status") != "completed" {
				t.Fatalf("%s", r.raw)
			}
			if n := running(); n != want {
				t.Errorf("the work of the first account was stopped: %d of %d are running", n, want)
			}
			for _, id := range tasks {
				s.want(t, 200, "", "DELETE", "/api/v1/status/"+id, nil)
			}
			for _, id := range tasks {
				s.await(t, id)
			}
		})
	}
}

// descendants returns a process and all its descendants.
func descendants(pid int) []int {
	parents := make(map[int][]int)
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		child, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", d.Name(), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		parents[parent] = append(parents[parent], child)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, parents[all[i]]...)
	}
	return all
}

// forms returns the encodings in which a secret could occur in a file.
func forms(secret string) map[string][]byte {
	var wide []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	plain := []byte(secret)
	// Its start and end in base64 depend on the neighbouring bytes; the middle does not.
	m := map[string][]byte{"plain": plain, "UTF-16": wide, "hex": []byte(hex.EncodeToString(plain)), "HEX": []byte(strings.ToUpper(hex.EncodeToString(plain)))}
	for i := range 3 {
		s := base64.StdEncoding.EncodeToString(append(make([]byte, i), plain...))
		m[fmt.Sprint("base64, shifted by ", i)] = []byte(s[4 : len(s)-4])
	}
	return m
}

func find(in []byte, secrets map[string][]byte) string {
	for form, b := range secrets {
		if bytes.Contains(in, b) {
			return form
		}
	}
	return ""
}

// findBelow searches all files of a directory for secrets and returns the matches.
func findBelow(t *testing.T, dir string, secrets map[string][]byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if form := find(b, secrets); form != "" {
			found = append(found, path+" ("+form+")")
		}
		return err
	})
	systest.NoError(t, err)
	return found
}

// Only the engine that needs a password sees it. It does not appear in arguments or environments of
// processes, logs, responses, metrics or files.
func TestPasswordsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	random := func() string { b := make([]byte, 6); rand.Read(b); return hex.EncodeToString(b) }
	first, second, wrong := "Trace1-"+random(), "Trace2-"+random(), "Trace3-"+random()
	secrets := make(map[string][]byte)
	for _, p := range []string{first, second, wrong} {
		for form, b := range forms(p) {
			secrets[p+" "+form] = b
		}
	}
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir, "--log-level", "debug", "--ffmpeg", "none")

	// The search itself must work.
	if find([]byte("x"+base64.StdEncoding.EncodeToString([]byte(`{"password":"`+first+`"}`))), secrets) == "" || find(forms(first)["UTF-16"], secrets) == "" {
		t.Fatal("a password is not found where it is")
	}

	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looks, seen := 0, make(map[string]bool)
	looking.Go(func() {
		for ctx.Err() == nil {
			for _, pid := range descendants(s.cmd.Process.Pid) {
				for _, name := range []string{"cmdline", "environ"} {
					b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
					if err != nil {
						continue // the process has ended
					}
					if name == "cmdline" {
						prog, _, _ := bytes.Cut(b, []byte{0})
						seen[filepath.Base(string(prog))] = true
					}
					if form := find(b, secrets); form != "" {
						t.Errorf("the %s of a process has a password (%s): %q", name, form, b)
						return
					}
				}
			}
			looks++
			time.Sleep(2 * time.Millisecond)
		}
	})

	var answers bytes.Buffer
	ask := func(method, path string, body any, headers ...string) *response {
		t.Helper()
		r := s.want(t, 200, "", method, path, body, headers...)
		answers.Write(r.raw)
		fmt.Fprint(&answers, r.header)
		return r
	}
	var events sync.WaitGroup
	var eventsMu sync.Mutex
	run := func(want, action string, f file, params map[string]any) file {
		t.Helper()
		key := s.upload(t, f.name, f.b, 1)
		task := ask("POST", "/api/v1/do", map[string]any{"action": action, "file_keys": []string{key}, "parameters": params}, "Idempotency-Key", random()).str("main_task_id")
		events.Go(func() {
			r, err := s.try(t.Context(), "GET", "/api/v1/status/"+task+"/events", nil)
			if err != nil {
				t.Error(err)
				return
			}
			eventsMu.Lock()
			defer eventsMu.Unlock()
			if form := find(r.raw, secrets); form != "" {
				t.Errorf("events have a password (%s)", form)
			}
		})
		r := s.await(t, task)
		answers.Write(r.raw)
		e := r.elements()[0]
		if got := fmt.Sprint(e["status"], e["error_code"]); got != want {
			t.Fatalf("%s %s: %s", action, f.name, r.raw)
		}
		if e["status"] != "completed" {
			return file{}
		}
		return file{e["file_name"].(string), s.want(t, 200, "", "GET", e["download_link"].(string), nil).raw}
	}
	const done, refused = "completed<nil>", "failedwrong_password"
	for _, f := range []file{pdf(t), docx(t), sample(t, format.ZIP)} {
		locked := run(done, "lock", f, map[string]any{"password": first})
		run(refused, "unlock", locked, map[string]any{"password": wrong})
		run(done, "unlock", locked, map[string]any{"password": first})
		if f.name == "paper.pdf" {
			run(refused, "reset_password", locked, map[string]any{"old_password": wrong, "new_password": second})
			again := run(done, "reset_password", locked, map[string]any{"old_password": first, "new_password": second})
			run(done, "unlock", again, map[string]any{"password": second})
		}
	}
	// Error responses must not repeat the password either.
	key := s.upload(t, "a.pdf", pdf(t).b, 1)
	for _, params := range []any{
		map[string]any{"password": []string{first}}, map[string]any{first: first}, map[string]any{"pasword": first}, first, map[string]any{"password": strings.Repeat(first, 100)},
	} {
		r := s.request(t, "POST", "/api/v1/do", map[string]any{"action": "lock", "file_keys": []string{key}, "parameters": params})
		if r.status == 200 {
			s.await(t, r.str("main_task_id"))
		}
		if m, ok := params.(map[string]any); ok && m[first] == nil { // errors repeat parameter names
			answers.Write(r.raw)
		}
	}
	answers.Write(s.request(t, "POST", "/api/v1/do", `{"action":"lock","parameters":{"password":`+first+`}}`).raw)
	ask("GET", "/api/v1/operations?limit=200", nil)
	answers.Write(s.want(t, 200, "", "GET", "/metrics", nil).raw)
	answers.Write(s.ready(t).raw)
	events.Wait()
	stop()
	looking.Wait()
	if looks < 20 || !seen["qpdf"] {
		t.Errorf("%d looks at processes; seen were %v", looks, seen)
	}
	if form := find(answers.Bytes(), secrets); form != "" {
		t.Errorf("an answer has a password (%s)", form)
	}
	if found := findBelow(t, dir, secrets); found != nil { // while the server runs, including the database's log
		t.Errorf("files have a password: %v", found)
	}
	systest.Check(t, s.stop())
	if found := findBelow(t, dir, secrets); found != nil {
		t.Errorf("files have a password after the server has stopped: %v", found)
	}
	if form := find([]byte(s.err.String()+s.out.String()), secrets); form != "" {
		t.Errorf("the log has a password (%s)", form)
	}

	// A server that is killed while operations are queued leaves the password encrypted.
	s = start(t, dir, "--concurrency", "pdf=0", "--soffice", "none", "--chromium", "none", "--ffmpeg", "none")
	s.key = createKey(t, dir, "again")
	key = s.upload(t, "a.pdf", pdf(t).b, 1)
	body := fmt.Sprintf(`{"action":"lock","file_keys":[%q],"parameters":{"password":%q},"notes":{"find":"Note-%s"}}`, key, first, first[7:])
	s.want(t, 200, "", "POST", "/api/v1/do", body, "Idempotency-Key", "killed")
	s.kill()
	if found := findBelow(t, dir, secrets); found != nil {
		t.Errorf("files of a waiting operation have a password: %v", found)
	}
	sum := sha256.Sum256([]byte(body))
	if found := findBelow(t, dir, map[string][]byte{"hash of the request": sum[:], "hash of the request in hex": []byte(hex.EncodeToString(sum[:]))}); found != nil {
		t.Errorf("the password could be guessed from %v", found)
	}
	if found := findBelow(t, dir, map[string][]byte{"note": []byte("Note-" + first[7:])}); found == nil {
		t.Error("the note that was stored beside it is not found, so nothing would be")
	}
}

// Hostile names are cleaned on input, and so are names derived from them: results, archive entries
// and headers.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"../../../etc/cron.d/x.txt", `..\..\windows\win.ini.txt`, "a\r\nSet-Cookie: evil=1.txt", "a\x00b.txt", "ann\u202etxt.exe.txt", "con.txt", "COM1.txt",
		strings.Repeat("x", 5000) + ".txt", `quote".txt`, "100%41.txt", "ünïcødé 名前.txt", "-rf.txt", "$(touch x).txt", "`id`.txt", "..", "/", ".txt",
	}
	var keys []string
	for _, n := range names {
		r := shared.want(t, 200, "", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": n, "size": 1, "mime_type": "text/plain"})
		etag := shared.put(t, r.body["presigned_urls"].([]any)[0].(string), []byte("x"))
		shared.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": r.str("file_key"), "upload_id": r.str("upload_id"), "parts": []any{map[string]any{"part_number": 1, "etag": etag}}})
		keys = append(keys, r.str("file_key"))
		d := shared.want(t, 200, "", "GET", "/v1/download/"+r.str("file_key"), nil)
		if h := d.header; h.Get("Set-Cookie") != "" || len(h["Content-Disposition"]) != 1 || !strings.HasPrefix(h.Get("Content-Disposition"), `attachment; filename="`) ||
			strings.ContainsAny(h.Get("Content-Disposition"), "/\r\n\x00\u202e") || len(h.Get("Content-Disposition")) > 1200 {
			t.Errorf("%.100q: headers %v", n, h)
		}
	}
	task := shared.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": keys}).str("main_task_id")
	r := shared.await(t, task)
	for _, bad := range []string{`\u0000`, `\r`, `\n`, "\u202e", `../`, `..\\`, "evil=1.txt\\n"} {
		if bytes.Contains(r.raw[:len(r.raw)-1], []byte(bad)) {
			t.Errorf("the status has %q: %s", bad, r.raw)
		}
	}
	archive := file{"files.zip", shared.want(t, 200, "", "GET", r.elements()[0]["download_link"].(string), nil).raw}
	list := tool(t, "/usr/bin/python3", "-c", `
import json, sys, zipfile
print(json.dumps(zipfile.ZipFile(sys.argv[1]).namelist()))`, archive.save(t))
	var entries []string
	if err := json.Unmarshal([]byte(list), &entries); err != nil || len(entries) != len(names) {
		t.Fatalf("%d entries for %d files: %s %v", len(entries), len(names), list, err)
	}
	seen := make(map[string]bool)
	for _, e := range entries {
		if e == "" || len(e) > 255 || e == "." || e == ".." || strings.ContainsAny(e, "/\\\r\n\x00\u202e") || strings.HasPrefix(strings.ToLower(e), "con.") || seen[strings.ToLower(e)] {
			t.Errorf("entry %q", e)
		}
		seen[strings.ToLower(e)] = true
	}
}

// A browser that opens an untrusted file saves it, and does not execute it.
func TestDownloadsAreInert(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hits := make(map[string]int)
	pages := make(map[string]string) // of the attacker
	types := map[string]string{".html": "text/html", ".svg": "image/svg+xml", ".js": "text/javascript", ".css": "text/css", ".xhtml": "application/xhtml+xml"}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if by := r.URL.Query().Get("by"); by != "" {
			hits[by]++
			return
		}
		w.Header().Set("Content-Type", types[filepath.Ext(r.URL.Path)])
		io.WriteString(w, pages[r.URL.Path])
	}))
	defer evil.Close()
	count := func(by string) int {
		mu.Lock()
		defer mu.Unlock()
		return hits[by]
	}
	// Each file calls the attacker's server if it is executed or even displayed.
	call := func(by string) string { return `new Image().src="` + evil.URL + `/?by=` + by + `"` }
	content := func(by string) map[string]string {
		return map[string]string{
			"page.html":  `<!doctype html><title>x</title><script>` + call(by) + `</script><img src="` + evil.URL + `/?by=` + by + `"><style>@import "` + evil.URL + `/?by=` + by + `";</style>`,
			"page.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><body><script>` + call(by) + `</script></body></html>`,
			"pic.svg":    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>` + call(by) + `</script><rect width="9" height="9"/></svg>`,
			"code.js":    call(by),
			"code.txt":   call(by),
			"noext":      `<!doctype html><script>` + call(by) + `</script>`,
			"poly.pdf":   `<html><script>` + call(by) + `</script>%PDF-1.4`,
			"pic.png":    `<svg xmlns="http://www.w3.org/2000/svg"><script>` + call(by) + `</script></svg>`,
		}
	}
	links := make(map[string]string)
	for name, text := range content("file") {
		links[name] = shared.url + "/v1/download/" + shared.upload(t, name, []byte(text), 1)
	}
	// One page that loads all files, in every way.
	var all strings.Builder
	all.WriteString(`<!doctype html><title>attack</title>`)
	for _, l := range links {
		fmt.Fprintf(&all, `<iframe src=%q></iframe><object data=%q></object><embed src=%q><img src=%q><script src=%q></script><link rel=stylesheet href=%q>`, l, l, l, l, l, l)
	}
	all.WriteString(`<script>addEventListener("load", () => setTimeout(() => { ` + call("attack-ran") + ` }, 1500))</script>`) // delayed requests come before
	mu.Lock()
	pages["/attack.html"] = all.String()
	for name, text := range content("control") {
		pages["/"+name] = text
	}
	pages["/frame.html"] = `<!doctype html><iframe src="/page.html"></iframe><object data="/pic.svg"></object><script src="/code.js"></script>`
	mu.Unlock()

	b := newBrowser(t)
	// The same files do execute when served carelessly. Otherwise the rest would prove nothing.
	for _, p := range []string{"/page.html", "/page.xhtml", "/pic.svg", "/frame.html"} {
		before := count("control")
		b.open(evil.URL + p)
		b.until(func() bool { return count("control") > before }, "the control "+p+" runs")
	}
	// The browser has the credentials of the files' owner.
	b.call("Network.enable", nil)
	b.call("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{"Authorization": "Bearer " + shared.key}})
	for name, l := range links {
		if got := b.open(l); got != "net::ERR_ABORTED" { // it became a download
			t.Errorf("%s was opened: %q", name, got)
		}
	}
	b.open(evil.URL + "/attack.html")
	b.until(func() bool { return count("attack-ran") > 0 }, "the attack is over")
	if n := count("file"); n != 0 {
		t.Errorf("a file was run or shown: %d calls", n)
	}
	saved, err := os.ReadDir(b.downloads)
	if err != nil || len(saved) == 0 {
		t.Errorf("nothing was saved: %v", err)
	}
}

// A testBrowser is a Chromium with JavaScript, driven over a pipe.
type testBrowser struct {
	t         *testing.T
	w         io.Writer
	replies   map[int]chan json.RawMessage
	mu        sync.Mutex
	id        int
	session   string
	downloads string
}

func newBrowser(t *testing.T) *testBrowser {
	t.Helper()
	inR, inW, err := os.Pipe()
	systest.NoError(t, err)
	outR, outW, err := os.Pipe()
	systest.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.Command("chromium", "--headless", "--remote-debugging-pipe", "--no-sandbox", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "about:blank")
	cmd.ExtraFiles = []*os.File{inR, outW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	systest.NoError(t, cmd.Start())
	inR.Close()
	outW.Close()
	b := &testBrowser{t: t, w: inW, replies: make(map[int]chan json.RawMessage), downloads: filepath.Join(dir, "downloads")}
	systest.NoError(t, os.Mkdir(b.downloads, 0o700))
	read := make(chan struct{})
	go func() {
		defer close(read)
		r := bufio.NewReader(outR)
		for {
			msg, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var m struct {
				ID     int
				Result json.RawMessage
				Error  json.RawMessage
			}
			if json.Unmarshal(msg[:len(msg)-1], &m) != nil || m.ID == 0 {
				continue
			}
			b.mu.Lock()
			reply := b.replies[m.ID]
			b.mu.Unlock()
			if m.Error != nil {
				m.Result = m.Error
			}
			reply <- m.Result
		}
	}()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		inW.Close()
		outR.Close()
		<-read
		for range 50 { // it may still be writing
			if os.RemoveAll(filepath.Join(dir, "profile")) == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	b.call("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": b.downloads})
	var target struct{ TargetID string }
	json.Unmarshal(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var session struct{ SessionID string }
	json.Unmarshal(b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &session)
	if session.SessionID == "" {
		t.Fatal("the browser has no page")
	}
	b.session = session.SessionID
	return b
}

func (b *testBrowser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	reply := make(chan json.RawMessage, 1)
	b.mu.Lock()
	b.id++
	b.replies[b.id] = reply
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	if params == nil {
		delete(m, "params")
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.w.Write(append(text, 0))
	}
	b.mu.Unlock()
	systest.NoError(b.t, err)
	select {
	case r := <-reply:
		return r
	case <-time.After(2 * time.Minute):
		b.t.Fatalf("%s: no answer from the browser", method)
		return nil
	}
}

// open opens an address and returns the browser's error.
func (b *testBrowser) open(url string) string {
	b.t.Helper()
	var r struct{ ErrorText string }
	json.Unmarshal(b.call("Page.navigate", map[string]any{"url": url}), &r)
	return r.ErrorText
}

func (b *testBrowser) until(ok func() bool, what string) {
	b.t.Helper()
	eventually(b.t, what, ok)
}

// onSmallDisk starts a server whose data directory is a separate file system of the given size in
// MiB. seen is its path for the test. It uses a mount namespace, as root or with a user namespace.
// Where neither is possible, as in a container, it uses /dev/shm, which is small enough.
func onSmallDisk(t *testing.T, mib int, flags ...string) (s *server, seen string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	systest.NoError(t, os.Mkdir(dir, 0o700))
	script := fmt.Sprintf(`mount -t tmpfs -o size=%dm,mode=700 tmpfs "$0" && exec "$@"`, mib)
	for _, ns := range []string{"-m", "-rm"} {
		if exec.Command("unshare", ns, "sh", "-c", script, dir, "true").Run() != nil {
			continue
		}
		s, err := launchBy([]string{"unshare", ns, "sh", "-c", script, dir}, filepath.Join(dir, "data"), flags...)
		systest.NoError(t, err)
		t.Cleanup(func() {
			s.kill()
			if t.Failed() {
				t.Logf("log of the server:\n%s", tail(s.err.String(), 8000))
			}
		})
		return s, fmt.Sprintf("/proc/%d/root%s", s.cmd.Process.Pid, dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || int64(st.Blocks)*st.Bsize > 256<<20 {
		t.Fatalf("no small file system can be made here, and /dev/shm is none: %v", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "e2e-")
	systest.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return start(t, filepath.Join(dir, "data"), flags...), dir
}

// The disk fills up, and later has space again. Meanwhile uploads are refused, items wait and
// existing files can be read. Nothing is damaged or left behind.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s, disk := onSmallDisk(t, 64, "--min-free", "0", "--max-attempts", "1", "--soffice", "none", "--chromium", "none", "--ffmpeg", "none")
	free := func() int64 {
		t.Helper()
		var st unix.Statfs_t
		systest.NoError(t, unix.Statfs(disk, &st))
		return int64(st.Bavail) * st.Bsize
	}
	filler := filepath.Join(disk, "filler")
	// leave fills the disk except for n bytes.
	leave := func(n int64) {
		t.Helper()
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		systest.NoError(t, err)
		defer f.Close()
		for free() > n {
			if _, err := f.Write(make([]byte, min(free()-n, 1<<20))); err != nil {
				break
			}
		}
	}
	empty := func() {
		t.Helper()
		systest.NoError(t, os.Remove(filler))
	}
	noise := random(4 << 20)
	key := s.upload(t, "a.bin", noise, 2)

	// Too full for uploads: refused at once, before the body, and nothing is stored.
	up := s.initiate(t, "b.bin", 12<<20, 3)
	s.put(t, up.urls[0], noise)
	leave(3 << 20)
	before := free()
	s.want(t, 507, "insufficient_storage", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "c.bin", "size": 4 << 20, "mime_type": "a/b"})
	s.want(t, 507, "insufficient_storage", "PUT", up.urls[1], noise)
	if now := free(); now < before-(1<<20) {
		t.Errorf("of %d free bytes %d are left after uploads that were refused", before, now)
	}
	// Operations are accepted and wait. They do not start without space, and do not fail.
	task := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}}).str("main_task_id")
	eventually(t, "the operation says that it waits", func() bool {
		r := s.want(t, 200, "", "GET", "/api/v1/status/"+task, nil)
		if st := r.str("operation_status"); st != "queued" && st != "running" {
			t.Fatalf("without space the operation is %s", st)
		}
		w, ok := r.elements()[0]["waiting"].(map[string]any)
		return ok && w["reason"] == "disk_full"
	})
	// No free byte: the database cannot write either. No response reports an internal error.
	leave(0)
	var accepted []string
	for i := range 60 {
		r := s.request(t, "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}, "notes": map[string]string{"n": strings.Repeat("n", 10_000)}}, "Idempotency-Key", fmt.Sprint(i))
		switch {
		case r.status == 200:
			accepted = append(accepted, r.str("main_task_id"))
		case r.status != 507 || r.str("error") != "insufficient_storage":
			t.Fatalf("%d %s", r.status, r.raw)
		}
		leave(0)
	}
	if len(accepted) == 60 {
		t.Error("the disk is not full")
	}
	s.want(t, 507, "insufficient_storage", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "c.bin", "size": 1 << 20, "mime_type": "a/b"})
	if d := s.want(t, 200, "", "GET", "/v1/download/"+key, nil); !bytes.Equal(d.raw, noise) {
		t.Error("a file cannot be read on a full disk")
	}
	s.want(t, 200, "", "GET", "/healthz", nil)

	// With free space everything continues by itself.
	empty()
	for _, id := range append(accepted, task) {
		if r := s.await(t, id); r.str("operation_status") != "completed" {
			t.Fatalf("after there is space again: %s", r.raw)
		}
	}
	r := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "zip", "file_keys": []string{key}, "notes": map[string]string{"n": strings.Repeat("n", 10_000)}}, "Idempotency-Key", "59")
	s.await(t, r.str("main_task_id"))
	etags := []any{}
	for i, u := range up.urls {
		etags = append(etags, map[string]any{"part_number": i + 1, "etag": s.put(t, u, noise)})
	}
	s.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "upload_id": up.id, "parts": etags})
	if d := s.want(t, 200, "", "GET", "/v1/download/"+up.key, nil); !bytes.Equal(d.raw, bytes.Repeat(noise, 3)) {
		t.Error("the file whose upload met a full disk is not what was sent")
	}
	if left, err := os.ReadDir(filepath.Join(disk, "data", "blobs", "tmp")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	// The database is intact: SQLite's own program checks a copy.
	copied := t.TempDir()
	for _, name := range []string{"filewright.db", "filewright.db-wal"} {
		b, err := os.ReadFile(filepath.Join(disk, "data", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), b, 0o600)
		}
		systest.NoError(t, err)
	}
	if out := tool(t, "/usr/bin/python3", "-c", `
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check").fetchall())`, filepath.Join(copied, "filewright.db")); strings.TrimSpace(out) != "[('ok',)]" {
		t.Errorf("integrity check: %s", out)
	}
	if strings.Contains(s.err.String(), "panic") {
		t.Error("something has panicked")
	}
}

// Uploads leave the free space of --min-free for processing.
func TestMinFree(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"), "--min-free", "1000TB", "--soffice", "none", "--chromium", "none", "--ffmpeg", "none")
	r := s.want(t, 507, "insufficient_storage", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": "c.bin", "size": 1, "mime_type": "a/b"})
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
