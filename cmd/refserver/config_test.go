package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
)

func parse(t *testing.T, env map[string]string, args ...string) (serverConfig, string, error) {
	t.Helper()
	var out bytes.Buffer
	c := &cli{out: &out, err: &out, env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	var cfg serverConfig
	fs := c.flags("serve", "", "About.")
	cfg.register(fs)
	err := c.parse(fs, args, 0, 0)
	if err == nil {
		err = cfg.finish()
	}
	return cfg, out.String(), err
}

func TestFlagsAndEnvironment(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, map[string]string{
		"FILEWRIGHT_DATA_DIR": "/from/env", "FILEWRIGHT_LISTEN": "127.0.0.1:1", "FILEWRIGHT_FILE_TTL": "2h",
		"FILEWRIGHT_MAX_FILE_SIZE": "500MB", "FILEWRIGHT_CORS_ORIGINS": "https://a.example, https://b.example",
		"FILEWRIGHT_CONCURRENCY": "office=1,image=3", "FILEWRIGHT_PRIVATE_DOWNLOADS": "true",
	}, "--listen", "127.0.0.1:2", "--public-url", "https://files.example.com", "--envelope", "plain")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.dataDir != "/from/env" || cfg.listen != "127.0.0.1:2" || cfg.api.Retention.Files != 2*time.Hour || cfg.api.Limits.FileSize != 500e6 ||
		len(cfg.api.Origins) != 2 || cfg.api.Concurrency["image"] != 3 || !cfg.api.PrivateDownloads || cfg.api.Envelope != httpapi.EnvelopePlain ||
		cfg.api.BaseURL.String() != "https://files.example.com/" {
		t.Errorf("%+v", cfg)
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
		"argument":           {nil, []string{"x"}, "arguments"},
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
		"bad log format":     {nil, []string{"--log-format", "xml"}, "text or json"},
	} {
		_, out, err := parse(t, tt.env, tt.args...)
		if err == nil || !strings.Contains(out+err.Error(), tt.want) {
			t.Errorf("%s: %v %s", name, err, out)
		}
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
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--help"}, 0, "Commands:"},
		{[]string{"help"}, 0, "doctor"},
		{[]string{"--version"}, 0, "dev"},
		{[]string{"version"}, 0, "dev"},
		{[]string{"serve", "--help"}, 0, "--data-dir"},
		{[]string{"keys"}, 2, "create"},
		{[]string{"keys", "help"}, 0, "revoke"},
		{[]string{"keys", "fold"}, 2, "fold"},
		{[]string{"keys", "create"}, 2, "--name"},
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"convert", "a"}, 2, "arguments"},
		{[]string{"keys", "revoke", "--data-dir", t.TempDir(), "nonsense"}, 1, "no key"},
	} {
		var out bytes.Buffer
		code := run(context.Background(), tt.args, &out, &out, func(string) (string, bool) { return "", false })
		if code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: exit code %d, output %q", tt.args, code, out.String())
		}
	}
}

// Every limit has a flag and a variable.
func TestLimitFlags(t *testing.T) {
	t.Parallel()
	cfg, _, err := parse(t, map[string]string{"FILEWRIGHT_MAX_PIXELS": "1000", "FILEWRIGHT_CPU_TIME": "90s", "FILEWRIGHT_MAX_OUTPUT": "5MiB"},
		"--max-frames", "2", "--max-pages", "3", "--max-duration", "4m", "--max-entries", "5", "--max-unpacked", "6MB", "--max-ratio", "7", "--max-cells", "8",
		"--max-memory", "9GiB", "--max-scratch", "10MB", "--max-processes", "11", "--document-time", "12s")
	if err != nil {
		t.Fatal(err)
	}
	want := standard.Limits{
		Pixels: 1000, Frames: 2, Pages: 3, Duration: 4 * time.Minute, Entries: 5, Unpacked: 6e6, Ratio: 7, Cells: 8,
		CPU: 90 * time.Second, Memory: 9 << 30, Scratch: 10e6, Processes: 11, Document: 12 * time.Second,
	}
	if cfg.engines.Limits != want || cfg.api.Limits.Output != 5<<20 {
		t.Errorf("%+v, output %d", cfg.engines.Limits, cfg.api.Limits.Output)
	}
}
