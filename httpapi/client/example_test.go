package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/client"
)

func Example() {
	svc, err := httpapi.New(httpapi.Config{Actions: []fileops.Action{capitals()}, Auth: httpapi.StaticKeys("secret"), TempDir: os.TempDir()})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go svc.Run(ctx)
	srv := httptest.NewServer(svc)
	defer srv.Close()

	c := &client.Client{BaseURL: srv.URL, Key: "secret"}
	key, err := c.Upload(ctx, "hello.txt", strings.NewReader("hello"), 5, nil)
	if err != nil {
		log.Fatal(err)
	}
	id, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "md"}})
	if err != nil {
		log.Fatal(err)
	}
	op, err := c.Wait(ctx, id, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := op.Err(); err != nil {
		log.Fatal(err)
	}
	for _, f := range op.Files {
		var content bytes.Buffer
		if _, err := c.Download(ctx, f.DownloadLink, &content); err != nil {
			log.Fatal(err)
		}
		fmt.Println(f.Name, content.String())
	}
	// Output: hello.md HELLO
}
