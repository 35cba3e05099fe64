package documentops_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// A judge runs LibreOffice to open and save documents with passwords.
type judge struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	once sync.Once
	err  error
	dir  string
}

var libreOffice judge

func TestMain(m *testing.M) {
	code := m.Run()
	libreOffice.stop()
	os.Exit(code)
}

func (j *judge) start() {
	j.dir, j.err = os.MkdirTemp("", "judge-")
	if j.err != nil {
		return
	}
	j.cmd = exec.Command("/usr/bin/python3", "testdata/office.py", "soffice", j.dir)
	j.cmd.Stderr = os.Stderr
	in, err := j.cmd.StdinPipe()
	out, err2 := j.cmd.StdoutPipe()
	if j.err = errors.Join(err, err2, j.cmd.Start()); j.err == nil {
		j.in, j.out = in, bufio.NewScanner(out)
	}
}

func (j *judge) stop() {
	if j.in != nil {
		j.in.Close()
		j.cmd.Wait()
	}
	if j.dir != "" {
		os.RemoveAll(j.dir)
	}
}

// convert makes LibreOffice open a file and save it with a filter. Both
// passwords are optional.
func (j *judge) convert(in, password, out, filter, newPassword string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.once.Do(j.start)
	if j.err != nil {
		return j.err
	}
	r := map[string]string{"in": in, "out": out, "filter": filter}
	if password != "" {
		r["password"] = password
	}
	if newPassword != "" {
		r["newPassword"] = newPassword
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		return err
	}
	if !j.out.Scan() {
		return errors.New("LibreOffice ended")
	}
	var answer struct {
		OK     bool
		Detail string
	}
	if err := json.Unmarshal(j.out.Bytes(), &answer); err != nil {
		return err
	}
	if !answer.OK {
		return errors.New(answer.Detail)
	}
	return nil
}

// save writes a file for an external program.
func save(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// run runs an action and returns its only result.
func run(ctx context.Context, a fileops.Action, args fileops.Args, in ...*fileops.File) (name string, b []byte, err error) {
	n := 0
	err = fileops.Run(ctx, a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		n++
		name = f.Name()
		var err error
		b, err = io.ReadAll(f.Reader())
		return err
	}), in...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d results", n)
	}
	return name, b, err
}

func must(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) []byte {
	t.Helper()
	_, b, err := run(t.Context(), a, args, in...)
	systest.NoError(t, err)
	return b
}

func content(t testing.TB, f *fileops.File) []byte {
	t.Helper()
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("not in memory")
	}
	return bytes.Clone(b)
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run
