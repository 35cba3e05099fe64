package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// Commands of actions write where they are told to, and replace nothing.
func TestLocalCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	sample := func(name string) string {
		path, err := filepath.Abs(filepath.Join("..", "..", "examples", "files", name))
		systest.NoError(t, err)
		return path
	}
	systest.NoError(t, os.WriteFile(in("a.csv"), []byte("x,y\n1,2\n"), 0o600))
	systest.NoError(t, os.WriteFile(in("pw"), []byte("s3cret\n"), 0o600))
	systest.NoError(t, os.Mkdir(in("parts"), 0o700))
	for _, tt := range []struct {
		args []string
		code int
		out  string // standard output; "*" any
		err  string // part of standard error
	}{
		{[]string{"compress", sample("photo.jpg"), in("small.jpg")}, 0, in("small.jpg") + "\n", ""},
		{[]string{"compress", sample("photo.jpg"), in("small.jpg")}, 1, "", "--force"},
		{[]string{"compress", sample("photo.jpg"), in("small.png")}, 1, "", "jpg file"},
		{[]string{"merge", sample("one.pdf"), sample("two.pdf"), in("both.pdf")}, 0, in("both.pdf") + "\n", ""},
		{[]string{"merge", sample("one.pdf"), in("both.pdf")}, 1, "", "--force"},
		{[]string{"split", in("both.pdf"), in("parts"), "--param", "every=1"}, 0, in("parts/both-001.pdf") + "\n" + in("parts/both-002.pdf") + "\n", ""},
		{[]string{"split", in("both.pdf"), in("part.pdf"), "--param", "every=1"}, 0, in("part-001.pdf") + "\n" + in("part-002.pdf") + "\n", ""},
		{[]string{"split", in("both.pdf"), "-", "--param", "every=1"}, 1, "", "2 results"},
		{[]string{"lock", sample("one.pdf"), in("locked.pdf"), "--param", "password=@" + in("pw")}, 0, in("locked.pdf") + "\n", ""},
		{[]string{"unlock", in("locked.pdf"), in("open.pdf"), "--param", "password=wrong"}, 1, "", "password"},
		{[]string{"unlock", in("locked.pdf"), in("open.pdf"), "--param", "password=@" + in("pw")}, 0, in("open.pdf") + "\n", ""},
		{[]string{"watermark", sample("one.pdf"), in("marked.pdf"), "--file", "image_key=" + sample("photo.jpg")}, 0, in("marked.pdf") + "\n", ""},
		{[]string{"watermark", sample("one.pdf"), in("unmarked.pdf"), "--param", "image_key=" + sample("photo.jpg")}, 2, "", "pass the file"},
		{[]string{"watermark", sample("one.pdf"), in("unmarked.pdf"), "--file", "image_key=" + in("none.jpg")}, 1, "", "none.jpg"},
		{[]string{"inspect", sample("photo.jpg")}, 0, "*", ""},
		{[]string{"thumbnail", sample("photo.jpg"), in("thumb.png"), "--param", "width=20"}, 0, in("thumb.png") + "\n", ""},
		{[]string{"thumbnail", sample("photo.jpg"), in("parts")}, 2, "", "--to"},
		{[]string{"thumbnail", sample("photo.jpg"), in("parts"), "--to", "webp"}, 0, in("parts/photo.webp") + "\n", ""},
		{[]string{"convert", "-", "-", "--from", "csv", "--to", "json"}, 0, "*", ""},
		{[]string{"convert", "-", in("b.json")}, 2, "", "--from"},
		{[]string{"convert", in("a.csv"), "-"}, 2, "", "--to"},
		{[]string{"zip", "-", "-", in("a.zip"), "--from", "csv"}, 2, "", "only one"},
		{[]string{"zip", "-", in("a.csv"), in("a.zip"), "--from", "csv"}, 0, in("a.zip") + "\n", ""},
		{[]string{"lock", sample("one.pdf")}, 2, "", "missing arguments: expected IN OUT"},
		{[]string{"split", in("both.pdf"), in("fresh") + "/", "--param", "every=1"}, 0, in("fresh/both-001.pdf") + "\n" + in("fresh/both-002.pdf") + "\n", ""},
		{[]string{"split", in("both.pdf"), in("none/fresh") + "/", "--param", "every=1"}, 1, "", "no such file or directory"},
		{[]string{"split", in("both.pdf"), in("failed") + "/", "--param", "every=x"}, 2, "", "every"},
		{[]string{"thumbnail", sample("photo.jpg"), in("previews") + "/", "--to", "webp"}, 0, in("previews/photo.webp") + "\n", ""},
		{[]string{"compress", sample("photo.jpg"), in("tiny.jpg"), "--json"}, 0, `{"inputs":["` + sample("photo.jpg") + `"],"outputs":["` + in("tiny.jpg") + `"]}` + "\n", ""},
		{[]string{"compress", sample("photo.jpg"), in("tiny.jpg"), "--json"}, 1, `{"inputs":["` + sample("photo.jpg") + `"],"outputs":[],"error":{"code":"exists","message":"\"` + in("tiny.jpg") + `\" exists; use --force to replace it"}}` + "\n", "--force"},
		{[]string{"unlock", in("locked.pdf"), in("open2.pdf"), "--param", "password=wrong", "--json"}, 1, "*", "password"},
		{[]string{"compress", in("none.pdf"), in("tiny.pdf"), "--json"}, 1, `{"inputs":["` + in("none.pdf") + `"],"outputs":[],"error":{"code":"not_found","message":"cannot read \"` + in("none.pdf") + `\": no such file or directory"}}` + "\n", "no such file"},
		{[]string{"compress", sample("photo.jpg"), "-", "--json"}, 2, "", "name a file"},
		{[]string{"run", "compress", "--output", in("batch"), sample("photo.jpg")}, 2, "", "with a slash at its end it is created"},
		{[]string{"run", "compress", "--output", in("batch") + "/", sample("photo.jpg")}, 0, in("batch/photo.jpg") + "\n", ""},
		{[]string{"compres", "a", "b"}, 2, "", "did you mean compress"},
	} {
		var out, errs bytes.Buffer
		args := slices.Clone(tt.args)
		if args[0] != "compres" {
			args = append(args, withoutEngines()...)
		}
		code := runWith(t.Context(), args, strings.NewReader("x\n5\n"), &out, &errs, noEnv)
		if code != tt.code || !strings.Contains(errs.String(), tt.err) || out.String() != tt.out && tt.out != "*" {
			t.Errorf("%v: exit code %d, output %q, errors %q; want %d, %q, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.err)
		}
		switch tt.args[0] {
		case "unlock":
			if slices.Contains(tt.args, "--json") && !strings.Contains(out.String(), `"code":"wrong_password"`) {
				t.Errorf("unlock --json: %s", out.String())
			}
		case "inspect":
			if !strings.Contains(out.String(), `"width": 960`) {
				t.Errorf("inspect: %s", out.String())
			}
		case "convert":
			if code == 0 && !strings.Contains(out.String(), "5") {
				t.Errorf("piped: %q", out.String())
			}
		}
	}
	z, err := zip.OpenReader(in("a.zip"))
	systest.NoError(t, err)
	defer z.Close()
	if len(z.File) != 2 || z.File[0].Name != "stdin.csv" {
		t.Errorf("archive of %v", z.File)
	}
	for _, name := range []string{"none", "failed"} {
		if isDir(in(name)) {
			t.Errorf("a failed command created the directory %s", name)
		}
	}
	if left, _ := filepath.Glob(in(".refserver-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Lists are JSON for programs.
func TestJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refserver := func(v any, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs, noEnv); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		if v == nil {
			return
		}
		systest.NoError(t, json.Unmarshal(out.Bytes(), v))
	}
	var formats []struct {
		Format    string
		Actions   []string
		ConvertTo []string `json:"convert_to"`
	}
	refserver(&formats, append([]string{"formats", "csv", "--json"}, withoutEngines()...)...)
	if len(formats) != 2 || formats[0].Format != "any" || formats[1].Format != "csv" || !slices.Contains(formats[1].Actions, "convert") || !slices.Contains(formats[1].ConvertTo, "json") {
		t.Errorf("formats: %+v", formats)
	}
	refserver(nil, "keys", "create", "--name", "one", "--account", "shop", "--scopes", "read", "--data-dir", dir)
	var keys []struct {
		Name      string
		AccountID string `json:"account_id"`
		Scopes    []string
		Valid     bool
		LastUsed  *string `json:"last_used"`
	}
	refserver(&keys, "keys", "list", "--json", "--data-dir", dir)
	if len(keys) != 1 || keys[0].Name != "one" || keys[0].AccountID != "shop" || !slices.Equal(keys[0].Scopes, []string{"read"}) || !keys[0].Valid || keys[0].LastUsed != nil {
		t.Errorf("keys: %+v", keys)
	}
	var accounts []struct {
		ID, Name string
		Disabled *string
	}
	refserver(&accounts, "accounts", "list", "--json", "--data-dir", dir)
	if len(accounts) != 1 || accounts[0].ID != "shop" || accounts[0].Name != "" || accounts[0].Disabled != nil {
		t.Errorf("accounts: %+v", accounts)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"doctor", "--json"}, withoutEngines()...), &out, &errs, noEnv)
	var doctor struct {
		Engines []struct {
			Name, Error string
			OK          bool
		}
		Sandbox struct{ Tier int }
	}
	systest.NoError(t, json.Unmarshal(out.Bytes(), &doctor))
	working, missing := 0, 0
	for _, e := range doctor.Engines {
		if e.OK != (e.Error == "") {
			t.Errorf("doctor: %+v", e)
		}
		if e.OK {
			working++
		} else {
			missing++
		}
	}
	if code != 1 || working == 0 || missing == 0 || !strings.Contains(errs.String(), fmt.Sprintf("%d engines are missing", missing)) {
		t.Errorf("doctor: exit code %d, %+v, %s", code, doctor, errs.String())
	}
}

// The server says who listens on its port, before it creates its data directory.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	systest.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "data")
	for _, flag := range []string{"listen", "metrics-listen", "debug-listen"} {
		args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--" + flag, ln.Addr().String()}
		var out bytes.Buffer
		code := run(t.Context(), args, &out, &out, noEnv)
		name, err := os.ReadFile("/proc/self/comm")
		systest.NoError(t, err)
		want := fmt.Sprintf("refserver: port %s is in use by %s (process %d); choose another address with --%s\n", port, strings.TrimSpace(string(name)), os.Getpid(), flag)
		if code != 1 || out.String() != want {
			t.Errorf("exit code %d, %q; want 1, %q", code, out.String(), want)
		}
	}
	if isDir(dir) {
		t.Error("the data directory was created")
	}
	if who := portHolder("127.0.0.1:0"); who != "another program" {
		t.Errorf("nobody listens on port 0, but %s", who)
	}
}

// Each action of the standard engines has a command.
func TestCommandsOfActions(t *testing.T) {
	t.Parallel()
	set := standard.Probe(t.Context(), &standard.Options{CacheDir: systest.CodeCache()})
	t.Cleanup(func() { set.Close() })
	reg, err := fileops.NewRegistry(set.Actions()...)
	systest.NoError(t, err)
	for _, name := range reg.Names() {
		if !slices.ContainsFunc(deeds, func(d deed) bool { return d.action == name }) {
			t.Errorf("%s has no command", name)
		}
	}
	for _, d := range deeds {
		joint := false
		for a := range reg.Actions() {
			joint = joint || a.Spec().Name == d.action && a.Spec().Joint
		}
		if joint != d.joint {
			t.Errorf("%s: joint is %v", d.action, joint)
		}
		var out bytes.Buffer
		if code := run(context.Background(), []string{d.action, "--help"}, &out, &out, noEnv); code != 0 || !strings.Contains(out.String(), fmt.Sprintf("refserver %s [flags] %s", d.action, d.use)) {
			t.Errorf("%s --help: %d %s", d.action, code, out.String())
		}
	}
}

// Commands on local files keep compiled code in the cache of the user, if they can write there.
func TestUserCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("LocalAppData", dir) // Windows
	t.Setenv("HOME", dir)         // macOS: in Library/Caches
	got := userCache()
	if st, err := os.Stat(got); err != nil || !st.IsDir() || filepath.Base(got) != "filewright" || !strings.HasPrefix(got, dir) {
		t.Fatalf("cache %q, error %v", got, err)
	}
	if left, err := os.ReadDir(got); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, error %v", left, err)
	}
	systest.NoError(t, os.Remove(got))
	systest.NoError(t, os.WriteFile(got, nil, 0o600))
	if got := userCache(); got != "" {
		t.Errorf("cache %q, which is a file", got)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, "")
	}
	if got := userCache(); got != "" {
		t.Errorf("cache %q without a home", got)
	}
}
