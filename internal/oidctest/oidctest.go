// Package oidctest runs a real OpenID Connect provider for tests: the one of github.com/zitadel/oidc. It is
// built from a separate module, internal/tools/oidcprovider, so that this module does not depend
// on it.
package oidctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// The client of every [Provider], and the password of its users: ada is in the groups staff and admins,
// bob in staff, eve in none.
const (
	ClientID     = "filewright"
	ClientSecret = "secret"
	Password     = "verysecure"
)

// program builds the provider once and returns its path.
var program = sync.OnceValues(func() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	cmd := exec.Command("go", "tool", "-n", "oidcprovider")
	cmd.Dir = filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "internal", "tools", "oidcprovider")
	// The race detector and similar flags are for our own code.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build oidcprovider: %w: %s", err, &stderr)
	}
	return strings.TrimSpace(string(path)), nil
})

// Address returns a free address on the loopback interface.
func Address(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// Start runs a provider until the test ends, and returns its issuer URL. Its client has the given
// redirect URI, and may come back to afterLogout.
func Start(t testing.TB, redirect, afterLogout string) (issuer string) {
	t.Helper()
	path, err := program()
	systest.NoError(t, err)
	for try := 1; ; try++ { // another process may take the port first
		address := Address(t)
		err := run(t, path, address, redirect, afterLogout)
		if err == nil {
			return "http://" + address
		}
		if try == 5 {
			t.Fatal(err)
		}
	}
}

func run(t testing.TB, path, address, redirect, afterLogout string) error {
	cmd := exec.Command(path, address, redirect, afterLogout)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	// If the tests are killed, the provider must stop too.
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	systest.DieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/.well-known/openid-configuration", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			t.Cleanup(stop)
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the provider stopped: %s", &log)
		case <-ctx.Done():
			stop()
			return errors.Join(ctx.Err(), fmt.Errorf("the provider does not respond: %s", &log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
