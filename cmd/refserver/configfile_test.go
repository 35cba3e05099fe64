package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

func configFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "filewright.yaml")
	systest.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// The command line takes precedence over the environment, and the environment over the file.
func TestConfigFile(t *testing.T) {
	t.Parallel()
	path := configFile(t, `
# comment
listen: 127.0.0.1:1
data-dir: /from/file
file-ttl: 2h
cors-origins: [https://a.example, https://b.example]
concurrency: {office: 1, image: 3}
private-downloads: true
max-files: 7
queue-time: 3h
`)
	cfg, out, err := parse(t, map[string]string{"FILEWRIGHT_CONFIG": path, "FILEWRIGHT_DATA_DIR": "/from/env", "FILEWRIGHT_LISTEN": "127.0.0.1:3"}, "--listen", "127.0.0.1:2")
	if err != nil {
		t.Fatal(err, out)
	}
	if cfg.listen != "127.0.0.1:2" || cfg.dataDir != "/from/env" || cfg.api.Retention.Files != 2*time.Hour || strings.Join(cfg.api.Origins, " ") != "https://a.example https://b.example" ||
		cfg.api.Concurrency["office"] != 1 || cfg.api.Concurrency["image"] != 3 || !cfg.api.PrivateDownloads || cfg.api.Limits.Files != 7 || cfg.api.Limits.QueueTime != 3*time.Hour {
		t.Errorf("%+v", cfg)
	}
	if cfg, _, err := parse(t, nil, "--config", configFile(t, "")); err != nil || cfg.listen != defaultListen {
		t.Errorf("an empty file: %s, %v", cfg.listen, err)
	}
}

func TestBadConfigFile(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"lisen: x":                   "filewright.yaml:1: lisen: unknown setting",
		"\nconfig: other.yaml":       "filewright.yaml:2: config: unknown setting",
		"listen: a:1\nlisten: a:2":   "filewright.yaml:2: listen: set twice",
		"file-ttl: soon":             `filewright.yaml:1: file-ttl: invalid value "soon"`,
		"listen:":                    "filewright.yaml:1: listen: expected a value",
		"cors-origins: [[a]]":        "the values of a list must be single values",
		"concurrency: {office: [1]}": "the values of a map must be single values",
		"- listen":                   "filewright.yaml:1: expected lines such as listen",
		"listen: [":                  "filewright.yaml: yaml",
	} {
		var out bytes.Buffer
		code := run(t.Context(), []string{"config", "--config", configFile(t, content)}, &out, &out, noEnv)
		if code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%q: exit code %d, %s", content, code, &out)
		}
	}
	var out bytes.Buffer
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if code := run(t.Context(), []string{"config", "--config", missing}, &out, &out, noEnv); code != 2 || !strings.Contains(out.String(), "no such file") {
		t.Errorf("a missing file: exit code %d, %s", code, &out)
	}
}

// The output of config is a file for --config with the same effect.
func TestShowConfig(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		v, ok := map[string]string{
			"FILEWRIGHT_FILE_TTL": "2h", "FILEWRIGHT_DATABASE_URL": "postgres://user:hidden@host/name", "FILEWRIGHT_BLOB_URL": "/files",
			"FILEWRIGHT_METRICS_TOKEN": "0123456789abcdef",
		}[name]
		return v, ok
	}
	path := configFile(t, "max-files: 7\ncors-origins: ['*']\n")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"config", "--config", path, "--listen", "127.0.0.1:2"}, &out, &errs, env); code != 0 {
		t.Fatal(code, errs.String())
	}
	for _, want := range []string{
		"listen: 127.0.0.1:2  # command line\n",
		"file-ttl: 2h0m0s  # FILEWRIGHT_FILE_TTL\n",
		"max-files: 7  # " + path + ":1\n",
		"cors-origins: '*'  # " + path + ":2\n",
		"# drain: 30s  # default\n",
		"# database-url: postgres://user:xxxxx@host/name  # FILEWRIGHT_DATABASE_URL\n",
		"# metrics-token: (hidden)  # FILEWRIGHT_METRICS_TOKEN\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	if s := out.String(); strings.Contains(s, "user:hidden@") || strings.Contains(s, "0123456789abcdef") {
		t.Errorf("a secret is printed:\n%s", s)
	}
	again, text, err := parse(t, nil, "--config", configFile(t, out.String()))
	if err != nil || again.listen != "127.0.0.1:2" || again.api.Limits.Files != 7 || again.api.Retention.Files != 2*time.Hour {
		t.Errorf("read again: %+v, %v, %s", again, err, text)
	}

	out.Reset()
	if code := run(t.Context(), []string{"config", "--json"}, &out, &errs, env); code != 0 {
		t.Fatal(code, errs.String())
	}
	var all []effective
	systest.NoError(t, json.Unmarshal(out.Bytes(), &all))
	found := 0
	for _, e := range all {
		switch e {
		case effective{Name: "file-ttl", Value: "2h0m0s", Origin: "FILEWRIGHT_FILE_TTL"}, effective{Name: "listen", Value: defaultListen, Origin: "default"},
			effective{Name: "metrics-token", Value: "(hidden)", Origin: "FILEWRIGHT_METRICS_TOKEN", Hidden: true}:
			found++
		}
	}
	if found != 3 {
		t.Errorf("%+v", all)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"completion", "bash"}, "bash completion"},
		{[]string{"__complete", "serve", "--isolation", ""}, "namespaces\n"},
		{[]string{"__complete", "ke"}, "keys"},
		{[]string{"completion", "--help"}, "bash"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), tt.args, &out, &bytes.Buffer{}, noEnv); code != 0 || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: exit code %d, %s", tt.args, code, &out)
		}
	}
}
