// Command ownauth mounts the service in a backend that has users already: the
// session decides who owns which files, and the backend's other routes stay as
// they are.
package main

import (
	"cmp"
	"context"
	"log"
	"net/http"
	"os"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
)

// sessions stands for what the backend knows of its users.
var sessions = map[string]string{"cookie-of-ada": "ada", "cookie-of-bob": "bob"}

// user is an httpapi.AuthFunc: it takes over the user of the session.
func user(r *http.Request) (httpapi.Principal, error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	name, ok := sessions[cookie.Value]
	if !ok {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	return httpapi.Principal{Account: name}, nil
}

func main() {
	ctx := context.Background()
	svc, err := httpapi.New(httpapi.Config{
		Actions: standard.Probe(ctx, nil).Actions(),
		Auth:    httpapi.AuthFunc(user),
	})
	if err != nil {
		log.Fatal(err)
	}
	go svc.Run(ctx)

	mux := http.NewServeMux()
	mux.Handle("/api/v1/", svc)
	mux.Handle("/v1/", svc)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("the backend's own page\n")) })
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), mux))
}
