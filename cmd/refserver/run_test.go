package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// withoutEngines are flags of commands that need only the engines that are linked in.
func withoutEngines() []string {
	out := []string{"--isolate=false", "--sandbox", "off"}
	for _, engine := range []string{"soffice", "ffmpeg", "ffprobe", "chromium", "pandoc", "qpdf", "tesseract", "python"} {
		out = append(out, "--"+engine, "none")
	}
	return out
}

func TestRunCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"a.csv": "x,y\n1,2\n", "b.csv": "x\n3\n", "bad.json": "{", "to": "json\n"} {
		systest.NoError(t, os.WriteFile(in(name), []byte(content), 0o600))
	}
	systest.NoError(t, os.Mkdir(in("out"), 0o700))
	for _, tt := range []struct {
		args []string
		code int
		out  string // standard output
		err  string // part of standard error
	}{
		{[]string{"convert", "--to", "json", in("a.csv")}, 0, in("a.json") + "\n", ""},
		{[]string{"convert", "--to", "json", in("a.csv")}, 1, "", in("a.json") + " exists; use --force"},
		{[]string{"convert", "--to", ".JSON", "--force", in("a.csv"), in("no.csv")}, 1, in("a.json") + "\n", "no.csv: no such file"},
		{[]string{"convert", "--to", "json", "--output", in("out"), in("b.csv")}, 0, in("out/b.json") + "\n", ""},
		{[]string{"convert", "--param", "convert_to=@" + in("to"), "--output", in("out"), in("a.csv")}, 0, in("out/a.json") + "\n", ""},
		{[]string{"zip", "--output", in("out"), in("a.csv"), in("b.csv")}, 0, in("out/files.zip") + "\n", ""},
		{[]string{"convert", "--to", "csv", "--json", in("bad.json")}, 1, "", ""},
		{[]string{"convert", "--to", "gif", in("a.csv")}, 1, "", "convert_to"},
		{[]string{"convert", "--to", "json", "--force", "--file", "delimiter=" + in("b.csv"), in("a.csv")}, 1, "", "delimiter"},
		{[]string{"paint", in("a.csv")}, 1, "", "paint"},
		{[]string{"convert"}, 2, "", "no files"},
		{[]string{"convert", "--watch", dir}, 2, "", "--output"},
		{[]string{"convert", "--watch", dir, in("a.csv")}, 2, "", "no files"},
		{[]string{"convert", "--output", in("none"), in("a.csv")}, 2, "", "not a directory"},
		{[]string{"lock", "--param", "password=@" + in("none"), in("a.csv")}, 2, "", "cannot read"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), slices.Concat([]string{"run"}, withoutEngines(), tt.args), &out, &errs, noEnv)
		if code != tt.code || !strings.Contains(errs.String(), tt.err) || out.String() != tt.out && !slices.Contains(tt.args, "--json") {
			t.Errorf("%v: exit code %d, output %q, errors %q; want %d, %q, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.err)
		}
		if slices.Contains(tt.args, "--json") {
			var line struct {
				Inputs []string
				Error  struct{ Code, Message string }
			}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Inputs[0] != in("bad.json") || line.Error.Code == "" || line.Error.Message == "" {
				t.Errorf("%v: %s, %v", tt.args, out.String(), err)
			}
		}
	}
}

// TestWatchCommand stops like any program, after it has moved what it processed.
func TestWatchCommand(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{"a.csv": "x,y\n1,2\n", "bad.json": "{"} {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		var stdout, errs bytes.Buffer
		ended <- run(ctx, slices.Concat([]string{"run", "convert"}, withoutEngines(), []string{"--to", "html", "--watch", dir, "--watch-interval", "20ms", "--output", out}), &stdout, &errs, noEnv)
	}()
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	systest.Until(t, "both files", func() bool {
		return exists(filepath.Join(dir, "done", "a.csv")) && exists(filepath.Join(dir, "failed", "bad.json"))
	})
	cancel()
	if code := <-ended; code != 0 || !exists(filepath.Join(out, "a.html")) {
		t.Errorf("exit code %d", code)
	}
}
