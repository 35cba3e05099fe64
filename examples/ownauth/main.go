// Command ownauth mounts the service in a backend with its own users. The session determines the
// owner of files, the user's plan limits their size, and the backend's other routes stay unchanged.
package main

import (
	"cmp"
	"context"
	"log"
	"net/http"
	"os"
	"sync"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
)

// sessions stands for the backend's user database.
var sessions = map[string]string{"cookie-of-ada": "ada", "cookie-of-bob": "bob"}

// user is an httpapi.AuthFunc: it returns the user of the session. Bob's plan permits no
// operations.
func user(r *http.Request) (httpapi.Principal, error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	name, ok := sessions[cookie.Value]
	if !ok {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	p := httpapi.Principal{Account: name}
	if name == "bob" {
		p.Scopes = httpapi.ScopeUpload | httpapi.ScopeRead
	}
	return p, nil
}

// plans is an httpapi.Quota: it limits the bytes that a user may keep. A real backend would keep
// the sums in its database.
type plans struct {
	limit int64

	mu   sync.Mutex
	used map[string]int64
}

// Reserve implements httpapi.Quota.
func (p *plans) Reserve(_ context.Context, u httpapi.Use) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used := p.used[u.Account]; used+u.Bytes > p.limit {
		return &httpapi.QuotaError{What: "stored_bytes", Limit: p.limit, Used: used}
	}
	p.used[u.Account] += u.Bytes
	return nil
}

// Settle implements httpapi.Quota. Results are free in these plans: they are not reserved, so
// deleting them frees nothing.
func (p *plans) Settle(_ context.Context, u httpapi.Use, s httpapi.Settlement) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s != httpapi.Kept && !u.Result {
		p.used[u.Account] -= u.Bytes
	}
	return nil
}

func main() {
	ctx := context.Background()
	svc, err := httpapi.New(httpapi.Config{
		Actions: standard.Probe(ctx, nil).Actions(),
		Auth:    httpapi.AuthFunc(user),
		Quota:   &plans{limit: 1000, used: make(map[string]int64)},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(svc.Run(ctx)) }()

	mux := http.NewServeMux()
	mux.Handle("/api/v1/", svc)
	mux.Handle("/v1/", svc)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("the backend's own page\n")) })
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), mux))
}
