package webhook_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// snippet returns the program in docs/webhooks.md in the given language.
func snippet(t *testing.T, language string) string {
	t.Helper()
	doc := systest.ReadFile(t, "../../docs/webhooks.md")
	_, rest, ok := strings.Cut(string(doc), "\n```"+language+"\n")
	code, _, end := strings.Cut(rest, "\n```\n")
	if !ok || !end {
		t.Fatalf("the document has no program in %s", language)
	}
	return code
}

// TestReceivers runs the receivers in the documentation: they accept each delivery
// once, with either secret, and reject forged ones.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, dir string) *exec.Cmd{
		"go": func(t *testing.T, dir string) *exec.Cmd {
			path := filepath.Join(dir, "receiver")
			systest.NoError(t, systest.Build(path, "../../examples/webhooks"))
			return exec.CommandContext(t.Context(), path)
		},
		"node": func(t *testing.T, dir string) *exec.Cmd {
			path := filepath.Join(dir, "receiver.mjs")
			systest.NoError(t, os.WriteFile(path, []byte(snippet(t, "js")), 0o600))
			return exec.CommandContext(t.Context(), "node", path)
		},
		"python": func(t *testing.T, dir string) *exec.Cmd {
			path := filepath.Join(dir, "receiver.py")
			systest.NoError(t, os.WriteFile(path, []byte(snippet(t, "python")), 0o600))
			return exec.CommandContext(t.Context(), "/usr/bin/python3", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := systest.FreeAddr(t)
			db := openSQLite(t)
			w := newHooks(t, db, nil)
			url := "http://" + addr + "/"
			e, old := create(t, w, "alice", url)
			fresh, err := w.Rotate(t.Context(), "alice", e.ID)
			systest.NoError(t, err)
			// This receiver gets every delivery too, so that the test can tamper with
			// it.
			spy := receive(t, nil)
			create(t, w, "alice", spy.URL, webhook.OperationCompleted)

			cmd := start(t, t.TempDir())
			var out logtest.Buffer
			_, port, _ := net.SplitHostPort(addr)
			cmd.Env = append(os.Environ(), "ADDR="+addr, "PORT="+port, "WEBHOOK_SECRETS="+old)
			cmd.Stdout = &out
			systest.NoError(t, cmd.Start())
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			wait(t, "the receiver", func() bool {
				c, err := net.Dial("tcp", addr)
				if err == nil {
					c.Close()
				}
				return err == nil
			})
			run(t, w)
			one(t, db, "alice", "op1")
			list, err := w.Deliveries(t.Context(), "alice", webhook.Query{Endpoint: e.ID})
			if err != nil || len(list) != 2 {
				t.Fatalf("%d deliveries, error %v", len(list), err)
			}
			for _, d := range list {
				settled(t, w, "alice", d.ID, webhook.Delivered)
				if _, err := w.Replay(t.Context(), "alice", d.ID); err != nil {
					t.Fatal(err)
				}
				wait(t, "a replay", func() bool { d, _ := delivery(t, w, "alice", d.ID); return d.Attempts == 2 })
			}
			if d, err := w.Test(t.Context(), "alice", e.ID); err != nil {
				t.Error(err)
			} else {
				settled(t, w, "alice", d.ID, webhook.Delivered)
			}
			wait(t, "output", func() bool { return strings.Count(out.String(), "\n") >= 3 })
			if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "fileTask.completed op1") ||
				!strings.Contains(got, "/v1/download/op1-out") || !strings.Contains(got, "operation.completed op1") || !strings.Contains(got, "webhook.test") {
				t.Errorf("the receiver says\n%s", got)
			}

			// Forged: another body, ID, time or secret, or no signature.
			m := spy.wait(t, 1)[0]
			for name, forge := range map[string]func(h http.Header, body []byte) []byte{
				"other secret": func(_ http.Header, b []byte) []byte { return b },
				"no signature": func(h http.Header, b []byte) []byte { h.Del("webhook-signature"); return b },
				"no headers":   func(h http.Header, b []byte) []byte { clear(h); return b },
			} {
				if got := post(t, url, m.header, m.body, forge); got != http.StatusUnauthorized {
					t.Errorf("%s: status %d", name, got)
				}
			}
			genuine := sign(t, fresh, old, m.body, time.Now())
			for name, c := range map[string]struct {
				header http.Header
				forge  func(h http.Header, body []byte) []byte
				want   int
			}{
				"genuine":    {genuine, func(_ http.Header, b []byte) []byte { return b }, http.StatusNoContent},
				"other body": {genuine, func(_ http.Header, b []byte) []byte { return bytes.Replace(b, []byte("op1"), []byte("op2"), 1) }, http.StatusUnauthorized},
				"other id":   {genuine, func(h http.Header, b []byte) []byte { h.Set("webhook-id", "msg_2"); return b }, http.StatusUnauthorized},
				"other time": {genuine, func(h http.Header, b []byte) []byte { h.Set("webhook-timestamp", itoa(time.Now().Unix()-7)); return b }, http.StatusUnauthorized},
				"odd time":   {genuine, func(h http.Header, b []byte) []byte { h.Set("webhook-timestamp", "NaN"); return b }, http.StatusUnauthorized},
				"old":        {sign(t, old, old, m.body, time.Now().Add(-time.Hour)), func(_ http.Header, b []byte) []byte { return b }, http.StatusUnauthorized},
				"future":     {sign(t, old, old, m.body, time.Now().Add(time.Hour)), func(_ http.Header, b []byte) []byte { return b }, http.StatusUnauthorized},
			} {
				if got := post(t, url, c.header, m.body, c.forge); got != c.want {
					t.Errorf("%s: status %d, want %d", name, got, c.want)
				}
			}
		})
	}
}

// sign returns headers signed with two secrets.
func sign(t *testing.T, first, second string, body []byte, at time.Time) http.Header {
	t.Helper()
	h := make(http.Header)
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", itoa(at.Unix()))
	var signatures []string
	for _, s := range []string{first, second} {
		signatures = append(signatures, signature(t, s, "msg_1", at, body))
	}
	h.Set("webhook-signature", strings.Join(signatures, " "))
	return h
}

func post(t *testing.T, url string, h http.Header, body []byte, forge func(http.Header, []byte) []byte) int {
	t.Helper()
	h = h.Clone()
	body = forge(h, bytes.Clone(body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	systest.NoError(t, err)
	for name, v := range h {
		if strings.HasPrefix(strings.ToLower(name), "webhook-") || strings.HasPrefix(name, "X-") {
			req.Header[name] = v
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(fmt.Errorf("the receiver does not answer: %w", err))
	}
	resp.Body.Close()
	return resp.StatusCode
}
