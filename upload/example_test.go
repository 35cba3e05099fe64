package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func Example() {
	ctx := context.Background()
	m, err := upload.NewManager(memblob.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	f, urls, err := m.Start(ctx, upload.Request{Owner: "alice", Name: `C:\docs\hello.txt`, ContentType: "text/plain", Size: 10, Parts: 2})
	if err != nil {
		log.Fatal(err)
	}

	// Bodies that clients send to the URLs go to PutPart.
	var parts []blob.Part
	for i, body := range []string{"hello", "world"} {
		etag, err := m.PutPart(ctx, http.MethodPut, urls[i], strings.NewReader(body), upload.PutOptions{Size: 5})
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, blob.Part{Number: i + 1, ETag: etag})
	}

	// After a mistake the session can still be completed.
	_, _, err = m.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, parts[:1])
	fmt.Println(err, errors.Is(err, upload.ErrMissingPart))
	f, _, err = m.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, parts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Name, f.State, f.ETag)

	_, o, err := m.Open(ctx, "alice", f.Key)
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(blob.NewReader(o))
	fmt.Println(string(data), err)
	// Output:
	// part 2 of 2 is not listed true
	// hello.txt ready 065947336a2f2a95ba8899f3675c3be6-2
	// helloworld <nil>
}
