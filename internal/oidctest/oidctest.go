// Package oidctest runs a real OpenID Connect provider for tests: the one of github.com/zitadel/oidc. It is
// built from a separate module, internal/tools/oidcprovider, so that this module does not depend
// on it.
package oidctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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
var program = sync.OnceValues(func() (string, error) { return systest.Tool("oidcprovider") })

// Start runs a provider until the test ends, and returns its issuer URL. Its client has the given
// redirect URI, and may come back to afterLogout.
func Start(t testing.TB, redirect, afterLogout string) (issuer string) {
	t.Helper()
	path, err := program()
	systest.NoError(t, err)
	for try := 1; ; try++ { // another process may take the port first
		address := systest.FreeAddr(t)
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
