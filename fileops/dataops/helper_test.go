package dataops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/internal/systest"
)

// convert runs the action on content. It returns the name and content of the
// result.
func convert(tb testing.TB, name, content string, args fileops.Args) (string, string, error) {
	tb.Helper()
	var gotName, got string
	r := fileops.Runner{TempDir: tb.TempDir()}
	err := r.Run(tb.Context(), dataops.Convert(), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		gotName, got = f.Name(), string(b)
		return err
	}), fileops.Bytes(name, []byte(content)))
	return gotName, got, err
}

func to(format string) fileops.Args { return fileops.Args{"convert_to": format} }

// python runs a program with in as JSON on its standard input, and decodes its
// JSON output into out.
func python(t *testing.T, program string, in, out any) {
	t.Helper()
	b, err := json.Marshal(in)
	systest.NoError(t, err)
	tool(t, b, out, "/usr/bin/python3", "-c", "import sys, json, csv, io\nd = json.load(sys.stdin)\n"+program)
}

func tool(t *testing.T, in []byte, out any, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.String())
	}
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatalf("%s: %v in %.200s", name, err, b)
	}
}
