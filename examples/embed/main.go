// Command embed is the whole service in a dozen lines: everything in memory, with one API key from
// the environment.
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

func main() {
	ctx := context.Background()
	svc, err := httpapi.New(httpapi.Config{
		Actions: standard.Probe(ctx, nil).Actions(),
		Auth:    httpapi.StaticKeys(os.Getenv("API_KEY")),
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(svc.Run(ctx)) }()
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), svc))
}
