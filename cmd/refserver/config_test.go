package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/systest"
)

func parse(t *testing.T, env map[string]string, args ...string) (serverConfig, string, error) {
	t.Helper()
	var out bytes.Buffer
	c := &cli{out: &out, err: &out, env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }, sets: make(map[*cobra.Command]*flagSet)}
	var cfg serverConfig
	cmd := c.command(spec{
		use: "serve", long: "About.", flags: cfg.register,
		run: func(context.Context, []string) error { return cfg.finish(c.env) },
	})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return cfg, out.String(), err
}

func TestFlagsAndEnvironment(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, map[string]string{
		"FILEWRIGHT_DATA_DIR": "/from/env", "FILEWRIGHT_LISTEN": "127.0.0.1:1", "FILEWRIGHT_FILE_TTL": "2h",
		"FILEWRIGHT_MAX_FILE_SIZE": "500MB", "FILEWRIGHT_CORS_ORIGINS": "https://a.example, https://b.example",
		"FILEWRIGHT_CONCURRENCY": "office=1,image=3", "FILEWRIGHT_PRIVATE_DOWNLOADS": "true",
	}, "--listen", "127.0.0.1:2", "--public-url", "https://files.example.com", "--envelope", "plain")
	systest.NoError(t, err)
	if cfg.dataDir != "/from/env" || cfg.listen != "127.0.0.1:2" || cfg.api.Retention.Files != 2*time.Hour || cfg.api.Limits.FileSize != 500e6 ||
		len(cfg.api.Origins) != 2 || cfg.api.Concurrency["image"] != 3 || !cfg.api.PrivateDownloads || cfg.api.Envelope != httpapi.EnvelopePlain ||
		cfg.api.BaseURL.String() != "https://files.example.com/" {
		t.Errorf("%+v", cfg)
	}
}

func TestWebhookFlags(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, nil)
	if err != nil || !cfg.webhooks.send || cfg.webhooks.allow != nil || cfg.webhooks.ttl != 7*24*time.Hour {
		t.Errorf("%+v, error %v", cfg.webhooks, err)
	}
	cfg, _, err = parse(t, map[string]string{"FILEWRIGHT_WEBHOOK_ALLOW": "10.1.2.3/16, 127.0.0.1,fd00::/8"}, "--webhooks=false", "--webhook-ttl", "1h")
	if got := fmt.Sprint(cfg.webhooks.allow); err != nil || got != "[10.1.0.0/16 127.0.0.1/32 fd00::/8]" || cfg.webhooks.send || cfg.webhooks.ttl != time.Hour {
		t.Errorf("%+v, %s, error %v", cfg.webhooks, got, err)
	}
	if cfg, _, err = parse(t, nil, "--webhook-allow", "all"); err != nil || fmt.Sprint(cfg.webhooks.allow) != "[0.0.0.0/0 ::/0]" {
		t.Errorf("%v, error %v", cfg.webhooks.allow, err)
	}
	for _, bad := range []string{"private", "10.0.0.0/33", "example.com", "::ffff:10.0.0.1", "fe80::1%eth0"} {
		if _, _, err := parse(t, nil, "--webhook-allow", bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"unknown flag":       {nil, []string{"--nonsense"}, "nonsense"},
		"argument":           {nil, []string{"x"}, `unexpected argument "x"`},
		"bad duration":       {nil, []string{"--file-ttl", "soon"}, "file-ttl"},
		"bad environment":    {map[string]string{"FILEWRIGHT_DRAIN": "soon"}, nil, "FILEWRIGHT_DRAIN"},
		"bad URL":            {nil, []string{"--public-url", "files.example.com"}, "--public-url"},
		"links without base": {nil, []string{"--absolute-links"}, "--public-url"},
		"no pixels":          {nil, []string{"--max-pixels", "0"}, "max-pixels"},
		"half a page":        {nil, []string{"--max-pages", "0.5"}, "max-pages"},
		"bad limit of time":  {nil, []string{"--max-duration", "-1h"}, "max-duration"},
		"bad limit of size":  {nil, []string{"--max-memory", "much"}, "max-memory"},
		"bad size":           {nil, []string{"--max-file-size", "big"}, "size"},
		"bad concurrency":    {nil, []string{"--concurrency", "office"}, "family=number"},
		"bad envelope":       {nil, []string{"--envelope", "none"}, "dual"},
		"bad rate":           {nil, []string{"--rate", "-1"}, "rate"},
		"no burst":           {nil, []string{"--rate-burst", "0"}, "--rate-burst"},
		"bad least rate":     {nil, []string{"--min-rate", "fast"}, "size"},
		"bad free space":     {nil, []string{"--min-free", "some"}, "size"},
		"no time":            {nil, []string{"--stall-time", "0s"}, "--stall-time"},
		"no header time":     {nil, []string{"--header-time", "-1s"}, "--header-time"},
		"no queue":           {nil, []string{"--max-queued", "0"}, "--max-queued"},
		"no attempts":        {nil, []string{"--max-attempts", "0"}, "--max-attempts"},
		"negative restarts":  {nil, []string{"--max-restarts", "-1"}, "--max-restarts"},
		"bad bucket":         {nil, []string{"--blob-url", "https://files"}, "s3://"},
		"unknown parameter":  {nil, []string{"--blob-url", "s3://files?regoin=x"}, "regoin"},
		"half a key":         {map[string]string{"AWS_ACCESS_KEY_ID": "a"}, []string{"--blob-url", "s3://files"}, "AWS_SECRET_ACCESS_KEY"},
		"redirect to nobody": {nil, []string{"--redirect-downloads"}, "--blob-url"},
		"bad log format":     {nil, []string{"--log-format", "xml"}, "text or json"},
	} {
		_, out, err := parse(t, tt.env, tt.args...)
		if err == nil || !strings.Contains(out+err.Error(), tt.want) {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

func TestBucketConfiguration(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, map[string]string{
		"FILEWRIGHT_BLOB_URL": "s3://files/x?endpoint=http://127.0.0.1:9000", "FILEWRIGHT_REDIRECT_DOWNLOADS": "true",
		"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c",
	})
	systest.NoError(t, err)
	keys, err := cfg.bucket.Credentials.GetWithContext(nil)
	if err != nil || keys.AccessKeyID != "a" || keys.SecretAccessKey != "b" || keys.SessionToken != "c" {
		t.Errorf("credentials %+v, %v", keys, err)
	}
	if cfg.bucket.Bucket != "files" || cfg.bucket.Prefix != "x" || cfg.bucket.Endpoint != "http://127.0.0.1:9000" || !cfg.api.RedirectDownloads {
		t.Errorf("%+v", cfg.bucket)
	}
	if cfg, _, err := parse(t, nil, "--data-dir", "x"); err != nil || cfg.bucket != nil {
		t.Errorf("by default: %+v, %v", cfg.bucket, err)
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "10MB": 10e6, "10 MiB": 10 << 20, "1.5GiB": 3 << 29, "5TiB": 5 << 40, "2g": 2e9, "0": 0, "-1": 0, "x": 0, "1XB": 0, "": 0} {
		got, err := parseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	empty, made := t.TempDir(), t.TempDir()
	var note bytes.Buffer // about the new directory: the name may be a typo
	if code := run(t.Context(), []string{"keys", "create", "--data-dir", made, "--name", "a"}, io.Discard, &note, noEnv); code != 0 || !strings.Contains(note.String(), made+" was no data directory") {
		t.Fatal("no database")
	}
	missing := filepath.Join(empty, "typo")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--help"}, 0, "Commands:"},
		{[]string{"help"}, 0, "doctor"},
		{[]string{"--version"}, 0, "dev"},
		{[]string{"version"}, 0, "dev"},
		{[]string{"version", "--json"}, 0, `"version":"dev","go":"go1.`},
		{[]string{"serve", "--help"}, 0, "--data-dir"},
		{[]string{"keys"}, 2, "create"},
		{[]string{"keys", "help"}, 0, "revoke"},
		{[]string{"keys", "fold"}, 2, "fold"},
		{[]string{"keys", "create"}, 2, "--name"},
		{[]string{"keys", "create", "--name", "a", "--scopes", "all"}, 2, "upload, operate, read, admin"},
		{[]string{"keys", "create", "--name", "a", "--scopes", ""}, 2, "must have a scope"},
		{[]string{"keys", "create", "--name", "a", "--rate-burst", "3"}, 2, "--rate"},
		{[]string{"keys", "create", "--name", "a", "--addresses", "10.0.0.0/8,nowhere"}, 2, "nowhere"},
		{[]string{"accounts"}, 2, "create"},
		{[]string{"accounts", "help"}, 0, "disable"},
		{[]string{"accounts", "fold"}, 2, "fold"},
		{[]string{"accounts", "fold"}, 2, "list, create, password, second-factor-off, disable, enable"},
		{[]string{"accounts", "-h"}, 0, "Usage: refserver accounts list|create|password|second-factor-off|disable|enable"},
		{[]string{"accounts", "enable", "--help"}, 0, "Re-enables"},
		{[]string{"accounts", "create"}, 2, "--name"},
		{[]string{"accounts", "create", "--name", "a", "--stored", "much"}, 2, "size"},
		{[]string{"accounts", "create", "--name", "a", "--parallel", "-1"}, 2, "number"},
		{[]string{"accounts", "create", "--name", "a/b", "--data-dir", t.TempDir()}, 1, "slash"},
		{[]string{"accounts", "enable", "--data-dir", made, "nobody"}, 1, "no account"},
		{[]string{"serve", "--isolation", "most"}, 2, "must be auto, basic, namespaces or cgroup"},
		{[]string{"doctor", "--isolation", ""}, 2, "must be auto, basic, namespaces or cgroup"},
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"help", "serve"}, 0, "--data-dir"},
		{[]string{"help", "keys"}, 0, "revoke"},
		{[]string{"help", "nonsense"}, 2, "nonsense"},
		{[]string{"serve", "--concurrency", "offices=2"}, 2, "office, web"},
		{[]string{"serve", "--queues", "offices"}, 2, "office, web"},
		{[]string{"formats", "nonsense"}, 1, `"nonsense"`},
		{[]string{"convert", "a"}, 2, "missing arguments: expected IN OUT"},
		{[]string{"keys", "revoke", "--data-dir", made, "nonsense"}, 1, "no API key"},
		{[]string{"keys", "revoke", "nonsense", "--data-dir", made}, 1, "no API key"},
		{[]string{"keys", "revoke", "--data-dir", made, "--", "--nonsense"}, 1, "no API key"},
		{[]string{"keys", "revoke", "nonsense", "--data-dir", made, "x"}, 2, "too many arguments: expected ID"},
		{[]string{"keys", "list", "--data-dir", missing}, 1, "not a data directory"},
		{[]string{"keys", "revoke", "--data-dir", missing, "x"}, 1, "not a data directory"},
		{[]string{"accounts", "list", "--data-dir", missing}, 1, "not a data directory"},
		{[]string{"accounts", "password", "--data-dir", missing, "x"}, 1, "not a data directory"},
		{[]string{"accounts", "list", "--data-dir", empty}, 1, "not a data directory"},
	} {
		var out bytes.Buffer
		code := run(context.Background(), tt.args, &out, &out, noEnv)
		if code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: exit code %d, output %q", tt.args, code, out.String())
		}
		// Commands with subcommands list them.
		if n := strings.Count(out.String(), "\n"); code != 0 && n > 2 && len(tt.args) > 1 {
			t.Errorf("%v: the error has %d lines: %s", tt.args, n, out.String())
		}
	}
	if es, err := os.ReadDir(empty); err != nil || len(es) > 0 {
		t.Errorf("commands that only look have made %v, %v", es, err)
	}
}

func noEnv(string) (string, bool) { return "", false }

// The server does not start where the requested namespaces of engines are unavailable. doctor
// reports the tier that is in force.
func TestIsolation(t *testing.T) {
	t.Parallel()
	var none []string
	for _, engine := range []string{"soffice", "ffmpeg", "ffprobe", "chromium", "pandoc", "qpdf", "tesseract", "python"} {
		none = append(none, "--"+engine, "none")
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--sandbox", "off", "--isolate=false", "--isolation", "namespaces"},
			[]string{"does not permit namespaces for engines (landlock: not asked for; seccomp: not asked for; namespaces: not asked for; PID namespace and cgroup: not asked for)", "--isolation auto"},
		},
		{
			[]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--sandbox", "off", "--isolate=false", "--isolation", "cgroup"},
			[]string{"does not permit a PID namespace and a cgroup for each run (landlock: not asked for; ", "--isolation auto"},
		},
		{[]string{"doctor", "--isolation", "basic"}, []string{"seccomp (tier 2 of 4).\n", "\n  without namespaces: switched off\n", "\n  without PID namespace and cgroup: switched off\n"}},
		{[]string{"doctor", "--sandbox", "off"}, []string{"nothing (tier 0 of 4).\n", "\n  without namespaces: not asked for\n"}},
	} {
		var out bytes.Buffer
		code := run(t.Context(), append(tt.args, none...), &out, &out, noEnv)
		for _, want := range tt.want {
			if code != 1 || !strings.Contains(out.String(), want) {
				t.Errorf("%v: exit code %d, output without %q:\n%s", tt.args, code, want, &out)
			}
		}
	}
}

// doctor names the languages of the text recognition that this host lacks.
func TestDoctorRecommends(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tesseract")
	script := "#!/bin/sh\ncase $1 in --version) echo tesseract 5.3.0;; *) echo 'List (2):'; echo eng; echo osd;; esac\n"
	systest.WriteScript(t, path, script)
	args := []string{"doctor", "--sandbox", "off", "--isolate=false", "--tesseract", path}
	for _, engine := range []string{"soffice", "ffmpeg", "ffprobe", "chromium", "pandoc", "qpdf", "python"} {
		args = append(args, "--"+engine, "none")
	}
	var out bytes.Buffer
	run(t.Context(), args, &out, &out, noEnv)
	if s := out.String(); !strings.Contains(s, "\nRecommended for tesseract:\n  apt-get install --no-install-recommends tesseract-ocr-deu ") || strings.Contains(s, "tesseract-ocr-eng ") {
		t.Errorf("output: %s", s)
	}
}

// convert names the invalid path, and replaces files only with --force.
func TestConvertPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) {
		t.Helper()
		systest.NoError(t, os.WriteFile(in(name), []byte(content), 0o600))
	}
	write("a.csv", "x,y\n1,2\n")
	write("old.json", "old")
	write("bad.json", "{")
	systest.NoError(t, os.Symlink(in("a.csv"), in("link.json")))
	for _, tt := range []struct {
		args []string
		code int
		want string // part of the output
	}{
		{[]string{in("no.csv"), in("b.json")}, 1, fmt.Sprintf("cannot read %q: no such file or directory", in("no.csv"))},
		{[]string{dir, in("b.json")}, 1, fmt.Sprintf("cannot read %q: not a regular file", dir)},
		{[]string{in("a.csv"), in("no/b.json")}, 1, fmt.Sprintf("cannot write to %q: no such file or directory", in("no"))},
		{[]string{in("a.csv"), in("a.csv/b.json")}, 1, "not a directory"},
		{[]string{in("a.csv"), in("old.json")}, 1, "--force"},
		{[]string{in("a.csv"), in("link.json"), "--force"}, 1, "the same file"},
		{[]string{in("a.csv"), in("b.json"), "--param", "nonsense=1"}, 2, "nonsense"},
		{[]string{in("a.csv"), in("b.nonsense")}, 1, "must be one of"},
		{[]string{in("bad.json"), in("b.csv")}, 1, "JSON"},
		{[]string{in("a.csv"), "--force", in("old.json")}, 0, in("old.json")},
		{[]string{in("a.csv"), in("b.json")}, 0, in("b.json")},
		{[]string{in("a.csv"), in("b.json")}, 1, "exists"},
	} {
		var out bytes.Buffer
		code := run(t.Context(), slices.Concat([]string{"convert"}, withoutEngines(), tt.args), &out, &out, noEnv)
		if code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: exit code %d, output %q, want %d, %q", tt.args, code, out.String(), tt.code, tt.want)
		}
	}
	for name, want := range map[string]string{"a.csv": "x,y", "old.json": "[", "b.json": "["} {
		if b, err := os.ReadFile(in(name)); err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if left, _ := filepath.Glob(in(".refserver-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEdgeFlags(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, nil)
	systest.NoError(t, err)
	l := cfg.api.Limits
	if l.Rate != (httpapi.Rate{PerSecond: 1000, Burst: 10_000}) || l.InvalidKeys != (httpapi.Rate{PerSecond: 1, Burst: 50}) || l.MinRate != 16<<10 ||
		l.Stall != 30*time.Second || cfg.headerTime != 10*time.Second || cfg.idleTime != 2*time.Minute || l.Queued != 10000 || l.QueuedTotal != 100000 ||
		l.QueueTime != 24*time.Hour || l.TaskTime != 30*time.Minute || l.OverflowWait != 2*time.Second || l.MinFree != 0 {
		t.Errorf("defaults: %+v", cfg)
	}
	cfg, _, err = parse(t, map[string]string{"FILEWRIGHT_RATE": "0", "FILEWRIGHT_QUEUE_TIME": "1h"},
		"--min-rate", "0", "--min-free", "0", "--invalid-keys", "-1", "--overflow-wait", "-1s", "--max-queued-total", "-1")
	systest.NoError(t, err)
	l = cfg.api.Limits
	if l.Rate != httpapi.Unlimited() || l.InvalidKeys != httpapi.Unlimited() || l.MinRate >= 0 || l.MinFree >= 0 || l.OverflowWait >= 0 || l.QueueTime != time.Hour || l.QueuedTotal >= 0 {
		t.Errorf("switched off: %+v", cfg)
	}
	cfg, _, err = parse(t, nil, "--rate", "2.5", "--rate-burst", "7", "--min-rate", "1KiB", "--min-free", "1GiB")
	if l = cfg.api.Limits; err != nil || l.Rate != (httpapi.Rate{PerSecond: 2.5, Burst: 7}) || l.MinRate != 1<<10 || l.MinFree != 1<<30 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// Every limit has a flag and a variable.
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, map[string]string{"FILEWRIGHT_MAX_PIXELS": "1000", "FILEWRIGHT_CPU_TIME": "90s", "FILEWRIGHT_MAX_OUTPUT": "5MiB"},
		"--max-frames", "2", "--max-pages", "3", "--max-duration", "4m", "--max-entries", "5", "--max-unpacked", "6MB", "--max-ratio", "7", "--max-cells", "8",
		"--max-memory", "9GiB", "--max-scratch", "10MB", "--max-processes", "11", "--document-time", "12s")
	systest.NoError(t, err)
	want := standard.Limits{
		Pixels: 1000, Frames: 2, Pages: 3, Duration: 4 * time.Minute, Entries: 5, Unpacked: 6e6, Ratio: 7, Cells: 8,
		CPU: 90 * time.Second, Memory: 9 << 30, Scratch: 10e6, Processes: 11, Document: 12 * time.Second,
	}
	if cfg.engines.Limits != want || cfg.api.Limits.Output != 5<<20 {
		t.Errorf("%+v, output %d", cfg.engines.Limits, cfg.api.Limits.Output)
	}
}

func TestAccountFlags(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, nil)
	if err != nil || cfg.limits != (account.Limits{}) || cfg.sessionTime != 7*24*time.Hour {
		t.Errorf("defaults: %+v, %v, %v", cfg.limits, cfg.sessionTime, err)
	}
	cfg, _, err = parse(t, map[string]string{"FILEWRIGHT_ACCOUNT_PARALLEL": "4"}, "--account-stored", "10GB", "--account-bytes-per-day", "1GiB", "--account-operations-per-day", "1000", "--login-ttl", "1h")
	if err != nil || cfg.limits != (account.Limits{StoredBytes: 10e9, BytesPerDay: 1 << 30, OperationsPerDay: 1000, Parallel: 4}) || cfg.sessionTime != time.Hour {
		t.Errorf("%+v, %v, %v", cfg.limits, cfg.sessionTime, err)
	}
	if _, _, err = parse(t, nil, "--account-stored", "0", "--login-ttl", "0s"); err == nil || !strings.Contains(err.Error(), "--login-ttl") {
		t.Errorf("no session time: %v", err)
	}
}

// The commands show and change the accounts and keys of a data directory.
func TestAccountCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := func(code int, args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		if got := run(t.Context(), append(args[:2:2], append([]string{"--data-dir", dir}, args[2:]...)...), &o, &e, func(string) (string, bool) { return "", false }); got != code {
			t.Errorf("%v: exit code %d, %s", args, got, &e)
		}
		return strings.TrimSpace(o.String()), e.String()
	}
	password, errs := do(0, "accounts", "create", "--name", "Ada", "--stored", "1MB")
	if len(password) != 23 || strings.Contains(errs, password) {
		t.Errorf("password %q, beside it %q", password, errs)
	}
	do(1, "accounts", "create", "--name", "ADA")
	key, _ := do(0, "keys", "create", "--name", "form", "--account", "ada", "--scopes", "upload,read", "--rate", "2", "--rate-burst", "9", "--addresses", "10.1.2.3/8,192.0.2.1")
	if !strings.HasPrefix(key, "fw_") {
		t.Errorf("key %q", key)
	}
	do(0, "keys", "create", "--name", "robot", "--account", "robot")
	keys, _ := do(0, "keys", "list")
	lines := strings.Split(keys, "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "Ada") || !strings.Contains(lines[1], "upload,read") || !strings.Contains(lines[1], "10.0.0.0/8,192.0.2.1") || !strings.Contains(lines[2], "robot") || !strings.Contains(lines[2], "upload,operate,read") || strings.Contains(keys, key) {
		t.Errorf("keys:\n%s", keys)
	}
	if again, _ := do(0, "accounts", "password", "ada"); len(again) != 23 || again == password {
		t.Errorf("another password %q", again)
	}
	do(1, "accounts", "password", "robot") // it has no name
	do(0, "accounts", "disable", "Ada")
	do(0, "accounts", "disable", "robot")
	do(0, "accounts", "enable", "robot")
	list, _ := do(0, "accounts", "list")
	lines = strings.Split(list, "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "disabled") || !strings.HasSuffix(lines[2], "active") {
		t.Errorf("accounts:\n%s", list)
	}
}
