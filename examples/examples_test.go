//go:build linux

// Package examples has only a test, which builds and runs the programs in the directories below.
package examples

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/printer"
	"go/token"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func build(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, systest.Build(path, "./"+name))
	return path
}

// serve starts one of the example servers and returns its address.
func serve(t *testing.T, name string) string {
	t.Helper()
	addr := systest.FreeAddr(t)
	cmd := exec.Command(build(t, name))
	cmd.Env = append(os.Environ(), "API_KEY=secret-key", "ADDR="+addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = t.Output()
	systest.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	systest.Until(t, name+" starts", func() bool {
		resp, err := http.Get("http://" + addr + "/v1/download/x")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

func client(t *testing.T, bin, base string, args ...string) (dir, out string) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.CommandContext(t.Context(), bin, append([]string{base}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "API_KEY=secret-key")
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("client %v: %v\n%s", args, err, b)
	}
	return dir, string(b)
}

func sample(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("files", name))
	systest.NoError(t, err)
	return path
}

// The walk-through of the README: the client against the embedded service.
func TestEmbedAndClient(t *testing.T) {
	t.Parallel()
	base, bin := serve(t, "embed"), build(t, "client")
	dir, _ := client(t, bin, base, "convert", sample(t, "report.docx"), "convert_to=pdf")
	if out, err := exec.Command("pdftotext", filepath.Join(dir, "report.pdf"), "-").Output(); err != nil || !strings.Contains(string(out), "orchard") {
		t.Errorf("docx to pdf: %q, %v", out, err)
	}
	dir, _ = client(t, bin, base, "convert", sample(t, "photo.jpg"), "convert_to=png")
	if out, err := exec.Command("vipsheader", "-f", "width", filepath.Join(dir, "photo.png")).Output(); err != nil || strings.TrimSpace(string(out)) != "960" {
		t.Errorf("jpg to png: %q, %v", out, err)
	}
	dir, _ = client(t, bin, base, "convert", sample(t, "clip.mp4"), "convert_to=mp3")
	if out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", filepath.Join(dir, "clip.mp3")).Output(); err != nil || strings.TrimSpace(string(out)) != "mp3" {
		t.Errorf("mp4 to mp3: %q, %v", out, err)
	}
	dir, _ = client(t, bin, base, "merge", sample(t, "one.pdf"), sample(t, "two.pdf"))
	if out, err := exec.Command("qpdf", "--show-npages", filepath.Join(dir, "merged.pdf")).Output(); err != nil || strings.TrimSpace(string(out)) != "2" {
		t.Errorf("merge: %q, %v", out, err)
	}
	dir, _ = client(t, bin, base, "lock", sample(t, "one.pdf"), "password=s3cret")
	if out, err := exec.Command("qpdf", "--password=s3cret", "--check", filepath.Join(dir, "one.pdf")).CombinedOutput(); err != nil {
		t.Errorf("lock: %s, %v", out, err)
	}
	locked := filepath.Join(dir, "one.pdf")
	dir, _ = client(t, bin, base, "unlock", locked, "password=s3cret")
	if out, err := exec.Command("qpdf", "--check", filepath.Join(dir, "one.pdf")).CombinedOutput(); err != nil {
		t.Errorf("unlock: %s, %v", out, err)
	}
	// Failures are reported as text.
	cmd := exec.Command(bin, base, "unlock", locked, "password=wrong")
	cmd.Env = append(os.Environ(), "API_KEY=secret-key")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "password") {
		t.Errorf("wrong password: %s, %v", out, err)
	}
}

func TestCustomAction(t *testing.T) {
	t.Parallel()
	base := serve(t, "customaction")
	dir, _ := client(t, build(t, "client"), base, "grayscale", sample(t, "photo.jpg"))
	if out, err := exec.Command("vipsheader", "-f", "bands", filepath.Join(dir, "photo.png")).Output(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Errorf("%q, %v", out, err)
	}
	req, _ := http.NewRequest("GET", base+"/api/v1/supported-operation?ext=png", nil)
	req.Header.Set("Authorization", "Bearer secret-key")
	if body := get(t, req, 200); !strings.Contains(body, `"grayscale"`) {
		t.Errorf("supported-operation: %s", body)
	}
}

// The action runs in one process for each file, and checks the image size first.
func TestCustomActionIsBounded(t *testing.T) {
	t.Parallel()
	base, bin := serve(t, "customaction"), build(t, "client")
	large := filepath.Join(t.TempDir(), "large.png")
	var header bytes.Buffer // an image of 100,000 × 100,000 pixels, without pixel data
	header.WriteString("\x89PNG\r\n\x1a\n\x00\x00\x00\r")
	ihdr := []byte("IHDR\x00\x01\x86\xa0\x00\x01\x86\xa0\x08\x02\x00\x00\x00")
	header.Write(ihdr)
	systest.NoError(t, binary.Write(&header, binary.BigEndian, crc32.ChecksumIEEE(ihdr)))
	header.WriteString("\x00\x00\x00\x00IEND\xaeB`\x82")
	systest.NoError(t, os.WriteFile(large, header.Bytes(), 0o600))
	cmd := exec.Command(bin, base, "grayscale", large)
	cmd.Env = append(os.Environ(), "API_KEY=secret-key")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "more than the limit of 50000000") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestCustomEngine(t *testing.T) {
	t.Parallel()
	base := serve(t, "customengine")
	dir, _ := client(t, build(t, "client"), base, "linearize", sample(t, "one.pdf"))
	if out, err := exec.Command("qpdf", "--check-linearization", filepath.Join(dir, "one.pdf")).CombinedOutput(); err != nil || !strings.Contains(string(out), "no linearization errors") {
		t.Errorf("%s, %v", out, err)
	}
}

// Every example has at most 60 lines beside its imports, so that it is quick to read.
func TestShort(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"customaction/main.go", "customengine/main.go", "customstore/store.go", "ownauth/main.go"} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0) // without comments
		systest.NoError(t, err)
		var code bytes.Buffer
		systest.NoError(t, printer.Fprint(&code, fset, file))
		_, body, _ := strings.Cut(code.String(), "\n)\n")
		lines := 0
		for line := range strings.Lines(body) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if lines == 0 || lines > 60 {
			t.Errorf("%s has %d lines of code", path, lines)
		}
	}
}

func TestOwnAuth(t *testing.T) {
	t.Parallel()
	base := serve(t, "ownauth")
	for cookie, want := range map[string]int{"": 401, "cookie-of-ada": 200, "cookie-of-eve": 401} {
		req, _ := http.NewRequest("GET", base+"/api/v1/operations", nil)
		if cookie != "" {
			req.AddCookie(&http.Cookie{Name: "session", Value: cookie})
		}
		get(t, req, want)
	}
	post := func(cookie, path, body string, want int) string {
		t.Helper()
		req, _ := http.NewRequest("POST", base+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.AddCookie(&http.Cookie{Name: "session", Value: cookie})
		return get(t, req, want)
	}
	// Each user has a quota of 1000 bytes, which deletions free.
	const initiate = "/api/v1/initiate-upload"
	started := post("cookie-of-ada", initiate, `{"file_name":"a.txt","size":600,"mime_type":"text/plain"}`, 200)
	if body := post("cookie-of-ada", initiate, `{"file_name":"b.txt","size":401,"mime_type":"text/plain"}`, 429); !strings.Contains(body, `"quota":{"what":"stored_bytes","limit":1000,"used":600}`) {
		t.Errorf("more than the plan: %s", body)
	}
	post("cookie-of-bob", initiate, `{"file_name":"b.txt","size":401,"mime_type":"text/plain"}`, 200)
	var file struct {
		Key string `json:"file_key"`
	}
	systest.NoError(t, json.Unmarshal([]byte(started), &file))
	del, _ := http.NewRequest("DELETE", base+"/api/v1/files/"+file.Key, nil)
	del.AddCookie(&http.Cookie{Name: "session", Value: "cookie-of-ada"})
	get(t, del, 200)
	post("cookie-of-ada", initiate, `{"file_name":"b.txt","size":1000,"mime_type":"text/plain"}`, 200)
	if body := post("cookie-of-bob", "/api/v1/do", `{}`, 403); !strings.Contains(body, "the scope operate") {
		t.Errorf("what the plan does not have: %s", body)
	}

	req, _ := http.NewRequest("GET", base+"/", nil)
	if body := get(t, req, 200); !strings.Contains(body, "own page") {
		t.Errorf("the backend's own route: %s", body)
	}
}

func get(t *testing.T, req *http.Request, want int) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Errorf("%s: %d %s, want %d (%v)", req.URL, resp.StatusCode, b, want, err)
	}
	return string(b)
}

func TestSingle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command(build(t, "single"), sample(t, "one.pdf"), dir, "s3cret").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("qpdf", "--show-encryption", "--password=s3cret", filepath.Join(dir, "one.pdf")).Output()
	if err != nil || !strings.Contains(string(out), "R = 6") {
		t.Errorf("%s, %v", out, err)
	}
}

// The program in the README equals the tested program.
func TestREADME(t *testing.T) {
	t.Parallel()
	readme := systest.ReadFile(t, filepath.Join("..", "README.md"))
	src := systest.ReadFile(t, filepath.Join("embed", "main.go"))
	_, body, ok := strings.Cut(string(src), "func main()")
	if want := fmt.Sprintf("```go\nfunc main()%s```", body); !ok || !strings.Contains(string(readme), want) {
		t.Errorf("the README does not show examples/embed as it is:\n%s", want)
	}
}

// The programs in docs/embedding.md that link to an example are parts of it.
func TestEmbedding(t *testing.T) {
	t.Parallel()
	doc := systest.ReadFile(t, filepath.Join("..", "docs", "embedding.md"))
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?s)\(\.\./examples/([a-z/_]+\.go)\)[^\n]*\n\n`+"```go\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		src := systest.ReadFile(t, m[1])
		flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if !strings.Contains(flat(string(src)), flat(m[2])) {
			t.Errorf("%s has not what embedding.md shows of it:\n%s", m[1], m[2])
		}
		seen[filepath.Dir(m[1])] = true
	}
	for _, name := range []string{"customaction", "customengine", "customstore"} {
		if !seen[name] {
			t.Errorf("embedding.md shows nothing of %s", name)
		}
	}
}

// The files for systemd and containers refer only to existing settings, commands and files.
func TestDeploy(t *testing.T) {
	t.Parallel()
	systest.NoError(t, systest.DependOn("../cmd/refserver"))
	help, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/refserver", "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	commands, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/refserver", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, commands)
	}
	setting := regexp.MustCompile(`FILEWRIGHT_[A-Z_]+`)
	for name, calls := range map[string][]string{"Dockerfile": {"serve"}, "compose.yaml": {"health"}, "filewright.service": {"serve"}} {
		b := systest.ReadFile(t, filepath.Join("deploy", name))
		named := setting.FindAllString(string(b), -1)
		if len(named) == 0 {
			t.Errorf("%s has no setting", name)
		}
		for _, v := range named {
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(v, "FILEWRIGHT_")), "_", "-")
			if !strings.Contains(string(help), "  --"+flag+" ") {
				t.Errorf("%s: there is no setting %s", name, v)
			}
		}
		for _, c := range calls {
			if !strings.Contains(string(b), c) || !strings.Contains(string(commands), "  "+c+" ") {
				t.Errorf("%s does not call %s, or it is no command", name, c)
			}
		}
	}
	for _, line := range []string{"COPY scripts/setup.sh", "ARG ENGINES=serve", "bash /tmp/setup.sh $ENGINES", "ENGINES=slim", `"refserver", "health"`, "-o /refserver ./cmd/refserver"} {
		if b, err := os.ReadFile("deploy/Dockerfile"); err != nil || !strings.Contains(string(b), line) {
			t.Errorf("the image is made without %q", line)
		}
	}
	for _, mode := range []string{"serve", "slim"} {
		if b, err := os.ReadFile("../scripts/setup.sh"); err != nil || !strings.Contains(string(b), `"$mode" = `+mode) {
			t.Errorf("setup.sh has no mode %s", mode)
		}
	}
}
