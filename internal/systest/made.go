package systest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Made returns the path of a file that a program makes for tests. The file is kept beside
// [CodeCache] for later runs of the tests, because many programs take longer to start than to
// work. write writes the file if it is not there. key identifies its content: [Program] and its
// arguments and inputs. Tests must not change the file.
func Made(name, key string, write func(path string) error) (string, error) {
	key = name + "\x00" + key
	// The libraries of a program matter too. Debian notes here each package that it installs.
	if info, err := os.Stat("/var/lib/dpkg/status"); err == nil {
		key += info.ModTime().String()
	}
	sum := sha256.Sum256([]byte(key))
	all := CodeCache() + "-files"
	dir := filepath.Join(all, hex.EncodeToString(sum[:16]))
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", err
	}
	forget(all)
	made, err := os.MkdirTemp(all, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := write(filepath.Join(made, name)); err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil {
		if _, err := os.Stat(path); err != nil { // no other test made it at the same time
			return "", fmt.Errorf("keep %s: %w", name, err)
		}
	}
	return path, nil
}

// MadeBy returns the path of a file that a program writes under the name in its current directory, see
// [Made]. input is for its standard input. Files whose absolute paths are arguments are inputs too.
func MadeBy(t testing.TB, name, input string, argv ...string) string {
	t.Helper()
	key, err := Program(argv[0])
	NoError(t, err)
	key += "\x00" + input
	for _, a := range argv[1:] {
		if filepath.IsAbs(a) {
			a = string(ReadFile(t, a))
		}
		key += "\x00" + a
	}
	path, err := Made(name, key, func(path string) error {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdin = filepath.Dir(path), strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", argv, err, out)
		}
		return nil
	})
	NoError(t, err)
	return path
}

// forget removes what was made long ago: its test may have changed since.
func forget(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 60*24*time.Hour {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// Program returns a key for a program on the host that changes with its version.
func Program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()), nil
}
