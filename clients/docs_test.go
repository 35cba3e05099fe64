//go:build linux

package clients

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// snippet returns the program of a language in the section of a page of docs. An empty section means
// the first program of that language in the page.
func snippet(t *testing.T, page, section, language string) string {
	t.Helper()
	text := string(systest.ReadFile(t, filepath.Join("..", "docs", page)))
	ok := true
	if section != "" {
		_, text, ok = strings.Cut(text, "\n### "+section+"\n")
	}
	_, text, found := strings.Cut(text, "\n```"+language+"\n")
	code, _, end := strings.Cut(text, "\n```\n")
	if !ok || !found || !end {
		t.Fatalf("docs/%s has no program %s in %s", page, section, language)
	}
	return code + "\n"
}

// desk returns a directory with the files that the programs of the documentation expect.
func desk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"report.docx", "photo.jpg", "one.pdf"} {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, name), systest.ReadFile(t, filepath.Join("../examples/files", name)), 0o600))
	}
	return dir
}

// environment returns the variables of the programs.
func environment(t *testing.T) []string {
	t.Helper()
	path, err := filepath.Abs("python/src")
	systest.NoError(t, err)
	return []string{"API=" + baseURL, "KEY=" + apiKey, "PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1"}
}

// packed returns the package of the TypeScript client that npm would publish, unpacked.
func packed(t *testing.T) string {
	t.Helper()
	client := filepath.Join(workspace(t), "typescript")
	systest.NoError(t, os.CopyFS(client, os.DirFS("typescript")))
	out := t.TempDir()
	run(t, client, []string{"npm_config_update_notifier=false"}, "npm", "pack", "--pack-destination", out)
	archives, err := filepath.Glob(filepath.Join(out, "*.tgz"))
	systest.NoError(t, err)
	if len(archives) != 1 {
		t.Fatalf("npm pack made %q", archives)
	}
	run(t, out, nil, "tar", "-xzf", archives[0])
	return filepath.Join(out, "package")
}

// wheel returns the package of the Python client that would be published, as pip installs it.
func wheel(t *testing.T) string {
	t.Helper()
	client, out := t.TempDir(), t.TempDir()
	systest.NoError(t, os.CopyFS(client, os.DirFS("python")))
	const python = "/usr/bin/python3" // has setuptools
	run(t, client, nil, python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "-w", out, ".")
	archives, err := filepath.Glob(filepath.Join(out, "*.whl"))
	systest.NoError(t, err)
	if len(archives) != 1 {
		t.Fatalf("pip wheel made %q", archives)
	}
	site := filepath.Join(out, "site")
	run(t, out, nil, python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", site, archives[0])
	return site
}

// The packages of the clients have everything that a user expects in them, and nothing else.
func TestPackages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T) string
		want []string
	}{
		{"npm", packed, []string{
			"LICENSE", "README.md", "dist/api.d.ts", "dist/api.js", "dist/index.d.ts", "dist/index.js", "dist/webhooks.d.ts", "dist/webhooks.js", "package.json",
		}},
		{"wheel", wheel, []string{
			"filewright/__init__.py", "filewright/client.py", "filewright/py.typed", "filewright/types.py", "filewright/webhooks.py",
			"filewright-0.1.0.dist-info/LICENSE", "filewright-0.1.0.dist-info/METADATA",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			dir := tt.make(t)
			systest.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				name, _ := filepath.Rel(dir, path)
				switch base := filepath.Base(name); {
				case err != nil || e.IsDir() || strings.HasSuffix(base, ".pyc"):
				case strings.Contains(name, ".dist-info") && base != "LICENSE" && base != "METADATA": // of pip
				default:
					got = append(got, name)
				}
				return err
			}))
			if !slices.Equal(got, tt.want) {
				t.Errorf("the package has %q; want %q", got, tt.want)
			}
		})
	}
}

// compile compiles a program in TypeScript, which uses the client of this repository, to out.
func compile(t *testing.T, dir, program string) {
	t.Helper()
	modules := filepath.Join(dir, "node_modules")
	for _, d := range []string{filepath.Join(modules, "@filewright"), filepath.Join(modules, "@types")} {
		systest.NoError(t, os.MkdirAll(d, 0o700))
	}
	types, err := filepath.Abs("generators/node_modules/@types/node")
	systest.NoError(t, err)
	systest.NoError(t, os.Symlink(packed(t), filepath.Join(modules, "@filewright", "client")))
	systest.NoError(t, os.Symlink(types, filepath.Join(modules, "@types", "node")))
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600))
	run(t, dir, nil, tool(t, "tsc"), append(slices.Clone(strict), program)...)
}

// The programs of docs/quickstart.md run as they are. Each converts the document, and fails with the
// message of the server if the key is wrong.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		section, language, file string
		command                 []string
	}{
		{"curl", "sh", "convert.sh", []string{"sh", "convert.sh"}},
		{"Go", "go", "main.go", nil},
		{"Node", "js", "convert.mjs", []string{"node", "convert.mjs"}},
		{"Python", "python", "convert.py", []string{"/usr/bin/python3", "convert.py"}},
		{"PHP", "php", "convert.php", []string{"php", "convert.php"}},
		{"Go client", "go", "main.go", nil},
		{"TypeScript client", "ts", "convert.ts", []string{"node", "out/convert.js"}},
		{"Python client", "python", "folder.py", []string{"/usr/bin/python3", "folder.py", "."}},
	} {
		t.Run(tt.section, func(t *testing.T) {
			t.Parallel()
			dir := desk(t)
			program := filepath.Join(dir, tt.file)
			systest.NoError(t, os.WriteFile(program, []byte(snippet(t, "quickstart.md", tt.section, tt.language)), 0o600))
			command := tt.command
			if tt.language == "ts" {
				compile(t, dir, tt.file)
			}
			if command == nil { // built in this module, which has the client
				built := filepath.Join(dir, "program")
				run(t, "..", nil, "go", "build", "-o", built, program)
				command = []string{built}
			}
			env := environment(t)
			if tt.section == "Python client" {
				env = append(env, "PYTHONPATH="+wheel(t))
			}
			run(t, dir, env, command[0], command[1:]...)
			if pdf := systest.ReadFile(t, filepath.Join(dir, "report.pdf")); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
				t.Errorf("report.pdf starts with %q", pdf[:min(len(pdf), 200)])
			}
			run(t, dir, env, command[0], command[1:]...) // again, with the result there

			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Dir = dir
			cmd.Env = append(append(os.Environ(), env...), "KEY=wrong")
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("a wrong key is no error: %s", out)
			} else if tt.section != "curl" && !strings.Contains(string(out), "API key") {
				t.Errorf("the message about a wrong key is %s", out)
			}
		})
	}
}

// The programs of the guides run as they are.
func TestGuides(t *testing.T) {
	t.Parallel()
	t.Run("web-app", func(t *testing.T) {
		t.Parallel()
		dir := desk(t)
		systest.NoError(t, os.WriteFile(filepath.Join(dir, "app.mjs"), []byte(snippet(t, "guides/web-app.md", "", "js")), 0o600))
		addr := systest.FreeAddr(t)
		_, port, _ := strings.Cut(addr, ":")
		cmd := exec.CommandContext(t.Context(), "node", "app.mjs")
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), environment(t)...), "PORT="+port)
		var out logtest.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		systest.NoError(t, cmd.Start())
		defer cmd.Wait()
		defer cmd.Process.Kill()
		var page string
		systest.Until(t, "the app answers", func() bool {
			resp, err := http.Get("http://" + addr + "/")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			page = string(b)
			return err == nil
		})
		if !strings.Contains(page, `type="file"`) {
			t.Errorf("the page is %s", page)
		}
		post := func(name string, body []byte) (int, []byte) {
			resp, err := http.Post("http://"+addr+"/convert?name="+name, "", bytes.NewReader(body))
			systest.NoError(t, err)
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			systest.NoError(t, err)
			return resp.StatusCode, b
		}
		if status, b := post("report.docx", systest.ReadFile(t, filepath.Join(dir, "report.docx"))); status != 200 || !bytes.HasPrefix(b, []byte("%PDF-")) {
			t.Errorf("%d %.300s\n%s", status, b, out.String())
		}
		if status, b := post("report.docx", []byte("no document")); status != 422 || len(b) == 0 || bytes.Contains(b, []byte("undefined")) {
			t.Errorf("a broken document: %d %.300s\n%s", status, b, out.String())
		}
	})
	t.Run("compress-uploads", func(t *testing.T) {
		t.Parallel()
		dir := desk(t)
		systest.NoError(t, os.WriteFile(filepath.Join(dir, "compress.py"), []byte(snippet(t, "guides/compress-uploads.md", "", "python")), 0o600))
		photo := filepath.Join(dir, "photo.jpg")
		before := systest.ReadFile(t, photo)
		systest.NoError(t, os.WriteFile(filepath.Join(dir, "broken.jpg"), []byte("no picture"), 0o600))
		out := run(t, dir, environment(t), "/usr/bin/python3", "compress.py", "broken.jpg", "photo.jpg")
		if after := systest.ReadFile(t, photo); len(after) > len(before) || !bytes.HasPrefix(after, []byte("\xff\xd8")) {
			t.Errorf("%d bytes became %d: %s", len(before), len(after), out)
		}
		if !strings.Contains(out, "broken.jpg: kept as it is") || string(systest.ReadFile(t, filepath.Join(dir, "broken.jpg"))) != "no picture" {
			t.Error(out)
		}
	})
	t.Run("mailbox", func(t *testing.T) {
		t.Parallel()
		dir := desk(t)
		systest.NoError(t, os.WriteFile(filepath.Join(dir, "ocr.py"), []byte(snippet(t, "guides/mailbox.md", "", "python")), 0o600))
		env := environment(t)
		run(t, dir, env, "/usr/bin/python3", "-c", `
import email.message, mailbox
m = email.message.EmailMessage()
m["Subject"] = "Scan"
m.set_content("See the attachment.")
m.add_attachment(open("photo.jpg", "rb").read(), maintype="image", subtype="jpeg", filename="../scan 1.jpg")
m.add_attachment(b"text", maintype="text", subtype="x-other", filename="notes.txt")
mailbox.Maildir("Mail", create=True).add(m)
`)
		out := run(t, dir, env, "/usr/bin/python3", "ocr.py", "Mail", "searchable")
		found, err := filepath.Glob(filepath.Join(dir, "searchable", "*.pdf"))
		systest.NoError(t, err)
		if len(found) != 1 || filepath.Base(found[0]) != "00000-scan_1.pdf" {
			t.Errorf("%q: %s", found, out)
		} else if !bytes.HasPrefix(systest.ReadFile(t, found[0]), []byte("%PDF-")) {
			t.Error("the result is no PDF")
		}
	})
	t.Run("embed", func(t *testing.T) {
		t.Parallel()
		dir := desk(t)
		systest.NoError(t, os.Rename(filepath.Join(dir, "one.pdf"), filepath.Join(dir, "report.pdf")))
		program := filepath.Join(dir, "main.go")
		systest.NoError(t, os.WriteFile(program, []byte(snippet(t, "guides/embed.md", "", "go")), 0o600))
		run(t, "..", []string{"CGO_ENABLED=0"}, "go", "build", "-o", filepath.Join(dir, "program"), program)
		run(t, dir, nil, filepath.Join(dir, "program"))
		if out := run(t, dir, nil, "qpdf", "--password=s3cret", "--show-encryption", "out/report.pdf"); !strings.Contains(out, "AES") {
			t.Error(out)
		}
	})
}
