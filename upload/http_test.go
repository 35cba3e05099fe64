package upload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
)

// handler serves part URLs in the simplest way.
func handler(m *upload.Manager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		etag, err := m.PutPart(r.Context(), r.Method, r.URL, r.Body, upload.PutOptions{Size: r.ContentLength, ContentMD5: r.Header.Get("Content-MD5")})
		switch {
		case err == nil:
			w.Header().Set("ETag", `"`+etag+`"`)
		case errors.Is(err, upload.ErrSignature):
			http.Error(w, err.Error(), http.StatusForbidden)
		case errors.Is(err, upload.ErrTooLarge):
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		default:
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

// TestCurl verifies uploads with curl, md5sum and cmp.
func TestCurl(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out)
	}
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		srv := httptest.NewServer(handler(e.Manager))
		defer srv.Close()
		dir := t.TempDir()
		whole := filepath.Join(dir, "whole")
		systest.NoError(t, os.WriteFile(whole, noise(3<<20+17), 0o600))
		run(t, "split", "-b", "1048582", whole, filepath.Join(dir, "part-"))
		f, urls := e.start(3<<20+17, 3)
		var etags []string
		for i, name := range []string{"part-aa", "part-ab", "part-ac"} {
			part := filepath.Join(dir, name)
			args := []string{"-sS", "-D", "-", "-o", filepath.Join(dir, "body"), "-T", part, srv.URL + urls[i].String()}
			if i == 0 {
				args = append(args, "-H", "Transfer-Encoding: chunked")
			}
			head := run(t, "curl", args...)
			if !strings.Contains(head, " 200 OK\r\n") {
				t.Fatalf("curl: %s", head)
			}
			_, etag, _ := strings.Cut(head, "Etag: ")
			etag, _, _ = strings.Cut(etag, "\r\n")
			if sum, _, _ := strings.Cut(run(t, "md5sum", part), " "); etag != `"`+sum+`"` {
				t.Errorf("ETag is %s, MD5 %s", etag, sum)
			}
			etags = append(etags, etag)
		}
		done, _, err := e.Complete(t.Context(), "alice", f.Key, f.Object, f.UploadID, list(etags...))
		systest.NoError(t, err)
		got := filepath.Join(dir, "got")
		systest.NoError(t, os.WriteFile(got, e.content(done), 0o600))
		run(t, "cmp", whole, got)
	})
}

// A connection that breaks while a part is sent.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	e := newEnv(t, newFS(t, t.TempDir()), upload.Options{})
	f, urls := e.start(1<<20, 1)
	srv := httptest.NewServer(handler(e.Manager))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+urls[0].String(),
		io.MultiReader(bytes.NewReader(noise(1<<19)), readerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })))
	systest.NoError(t, err)
	r.ContentLength = 1 << 20
	resp, err := srv.Client().Do(r)
	if err == nil {
		resp.Body.Close()
		t.Errorf("the client sees %s", resp.Status)
	}
	srv.Close() // waits for the handler
	if _, parts, err := e.store.Parts(t.Context(), f.Key); len(parts) != 0 || err != nil {
		t.Errorf("%v are recorded, %v", parts, err)
	}
	etag := e.put(urls[0], noise(1<<20))
	if done, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(etag)); err != nil || !bytes.Equal(e.content(done), noise(1<<20)) {
		t.Errorf("Complete = %+v, %v", done, err)
	}
}
