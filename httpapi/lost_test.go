package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A linkedBlobs is a store with links to its objects. It can be made unavailable.
type linkedBlobs struct {
	blob.Store
	away atomic.Bool
}

func (s *linkedBlobs) Open(ctx context.Context, key string) (blob.Object, error) {
	if s.away.Load() {
		return nil, fmt.Errorf("open: %w", blob.ErrUnavailable)
	}
	return s.Store.Open(ctx, key)
}

func (s *linkedBlobs) Link(context.Context, string, blob.LinkOptions) (*url.URL, error) {
	return url.Parse("https://bucket.example/object")
}

func (s *linkedBlobs) Origin(context.Context) (string, error) { return "https://bucket.example", nil }

// A file whose content is lost has its own error in every endpoint, and cannot be an input. While
// the store is unavailable the response is 503.
func TestContentLost(t *testing.T) {
	t.Parallel()
	for _, redirect := range []bool{false, true} {
		t.Run(fmt.Sprintf("redirect=%v", redirect), func(t *testing.T) {
			t.Parallel()
			blobs := &linkedBlobs{Store: memblob.New()}
			a := serve(t, httpapi.Config{Blobs: blobs, RedirectDownloads: redirect})
			gone, truncated, kept := a.upload(t, "key-a", "gone.txt", "hello"), a.upload(t, "key-a", "short.txt", "hello"), a.upload(t, "key-a", "kept.txt", "hello")
			systest.NoError(t, blobs.Delete(t.Context(), "files/"+gone))
			systest.NoError(t, blobs.Put(t.Context(), "files/"+truncated, strings.NewReader("hell"), 4))
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			ask := func(method, key string, header ...string) *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), method, a.URL+"/v1/download/"+key, nil)
				systest.NoError(t, err)
				req.Header.Set("Authorization", "Bearer key-a")
				if len(header) > 0 {
					req.Header.Set(header[0], header[1])
				}
				resp, err := client.Do(req)
				systest.NoError(t, err)
				resp.Body.Close()
				return resp
			}
			for _, key := range []string{gone, truncated} {
				if st, m := a.call(t, "key-a", "GET", "/v1/download/"+key, ""); st != 410 || m["error"] != "content_lost" || !strings.Contains(fmt.Sprint(m["message"]), "upload it again") {
					t.Errorf("GET: %d, %v", st, m)
				}
				for _, tt := range [][]string{{"HEAD"}, {"GET", "Range", "bytes=0-1"}, {"GET", "If-None-Match", "*"}, {"HEAD", "If-None-Match", "*"}} {
					if resp := ask(tt[0], key, tt[1:]...); resp.StatusCode != 410 || resp.Header.Get("ETag") != "" || resp.Header.Get("Location") != "" {
						t.Errorf("%v: %d, %v", tt, resp.StatusCode, resp.Header)
					}
				}
				_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key))
				_, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), "")
				if f := first(m); m["operation_status"] != "failed" || f["error_code"] != "content_lost" || !strings.Contains(fmt.Sprint(f["error_message"]), "upload it again") {
					t.Errorf("as an input: %v", m)
				}
			}
			if n := strings.Count(a.log.String(), `msg="content lost"`); n != 2 {
				t.Errorf("%d lines about 2 lost files:\n%s", n, a.log)
			}
			if n := strings.Count(a.log.String(), `msg="item failed"`); n != 2 {
				t.Errorf("2 items without input failed in %d attempts", n)
			}
			if _, m := a.call(t, "", "GET", "/metrics", ""); !strings.Contains(fmt.Sprint(m), "filewright_content_lost_total 2") {
				t.Error("the metric filewright_content_lost_total is not 2")
			}
			blobs.away.Store(true)
			for _, key := range []string{gone, kept} {
				for _, method := range []string{"GET", "HEAD"} {
					if resp := ask(method, key); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s with the store away: %d, %v", method, resp.StatusCode, resp.Header)
					}
				}
			}
			blobs.away.Store(false)
			want := map[bool]int{false: 200, true: 307}[redirect]
			if resp := ask("GET", kept); resp.StatusCode != want {
				t.Errorf("a file that is there: %d, want %d", resp.StatusCode, want)
			}
		})
	}
}
