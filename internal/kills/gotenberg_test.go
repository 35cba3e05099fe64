//go:build linux

package kills

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

var gotenbergKillsFlag = flag.Int("gotenberg-kills", 0, "how often the server of TestGotenbergWebhooks is killed; 0: 12, or 3 with -short")

// An inbox receives the webhooks of Gotenberg's clients, and refuses every eighth request at first.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	n      int
	healed bool
	got    map[string]map[string]int // requests by correlation ID and path
	bad    []string
}

func newInbox(t *testing.T) *inbox {
	b := &inbox{got: make(map[string]map[string]int)}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			return // the server was killed while sending
		}
		if b.n++; b.n%8 == 0 && !b.healed {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		trace := r.Header.Get("Gotenberg-Trace")
		if b.got[trace] == nil {
			b.got[trace] = make(map[string]int)
		}
		b.got[trace][r.URL.Path]++
		if r.URL.Path == "/result" && !bytes.HasPrefix(body, []byte("%PDF-")) || r.URL.Path == "/event" && !bytes.Contains(body, []byte(`"webhook.success"`)) || r.URL.Path == "/error" {
			b.bad = append(b.bad, fmt.Sprintf("%s %s: %.200q", trace, r.URL.Path, body))
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// missing counts those of the requests whose result or event has not arrived.
func (b *inbox) missing(traces []string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trace := range traces {
		if b.got[trace]["/result"] == 0 || b.got[trace]["/event"] == 0 {
			n++
		}
	}
	return n
}

// The server is killed repeatedly while clients of Gotenberg send forms whose results go to webhooks.
// Each accepted form has its result and its event, and nothing of it is left.
func TestGotenbergWebhooks(t *testing.T) {
	t.Parallel()
	hooks := newInbox(t)
	h := newHost(t, "--gotenberg", "--webhook-allow", "127.0.0.0/8")
	page, err := specimen.Of(t, format.PDF).ReadAll(1 << 20)
	systest.NoError(t, err)
	form, contentType := systest.Form(t, systest.Part{"files", "a.pdf", string(page)}, systest.Part{"files", "b.pdf", string(page)},
		systest.Part{"rotateAngle", "", "90"}, systest.Part{"flatten", "", "true"})

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var accepted []string
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for client := range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				trace := fmt.Sprintf("form-%d-%d", client, n)
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.addr+"/forms/pdfengines/merge", bytes.NewReader(form))
				if err != nil {
					t.Error(err)
					return
				}
				for name, v := range map[string]string{"Content-Type": contentType, "Authorization": "Bearer " + h.key, "Gotenberg-Trace": trace,
					"Gotenberg-Webhook-Url": hooks.URL + "/result", "Gotenberg-Webhook-Error-Url": hooks.URL + "/error", "Gotenberg-Webhook-Events-Url": hooks.URL + "/event"} {
					r.Header.Set(name, v)
				}
				resp, err := h.client.Do(r)
				if err != nil {
					time.Sleep(20 * time.Millisecond) // the server is down
					continue
				}
				resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusNoContent:
					mu.Lock()
					accepted = append(accepted, trace)
					mu.Unlock()
				case http.StatusTooManyRequests, http.StatusServiceUnavailable:
					time.Sleep(50 * time.Millisecond)
				default:
					t.Errorf("%s: status %d", trace, resp.StatusCode)
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	kills := scale(*gotenbergKillsFlag, 12, 3)
	interrupted := 0
	for i := range kills {
		r := h.start(t)
		r.wait(t)
		time.Sleep(time.Duration(100+rng.IntN(900)) * time.Millisecond)
		sig := syscall.SIGKILL
		if i%3 == 1 {
			sig = syscall.SIGTERM
		}
		h.end(t, r, sig)
		mu.Lock()
		interrupted += hooks.missing(accepted)
		mu.Unlock()
	}
	stop()
	wg.Wait()
	hooks.mu.Lock()
	hooks.healed = true
	hooks.mu.Unlock()

	r := h.start(t)
	r.wait(t)
	systest.Until(t, "the results of all accepted forms", func() bool { return hooks.missing(accepted) == 0 })
	left := func() int { return query(t, h.dir, "SELECT count(*) FROM transfers WHERE kind = 'gotenberg'") }
	systest.Until(t, "the end of all accepted forms", func() bool { return left() == 0 })
	h.end(t, r, syscall.SIGTERM)
	if len(accepted) == 0 || interrupted == 0 {
		t.Errorf("%d forms were accepted and %d interrupted: the test shows nothing", len(accepted), interrupted)
	}
	for _, bad := range hooks.bad {
		t.Errorf("a webhook got %s", bad)
	}
	// Files of a form that was not accepted expire. All others are deleted.
	if n := query(t, h.dir, "SELECT count(*) FROM files WHERE state = 'ready' AND task <> ''"); n != 0 {
		t.Errorf("%d results are left", n)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM operations WHERE state NOT IN ('completed', 'failed', 'cancelled')"); n != 0 {
		t.Errorf("%d operations are not final", n)
	}
	for _, line := range h.trouble {
		if !strings.Contains(line, "request failed") {
			t.Errorf("a server logs: %s", line)
		}
	}
	repeated := 0
	for _, paths := range hooks.got {
		if paths["/result"] > 1 {
			repeated++
		}
	}
	t.Logf("%d kills, %d accepted forms, %d of them unfinished at a kill, %d results were sent twice, %d operations", kills, len(accepted), interrupted, repeated, query(t, h.dir, "SELECT count(*) FROM operations"))
}
