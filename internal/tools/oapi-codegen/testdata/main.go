// The whole flow with a client that oapi-codegen generated: upload, do, status, download. The last
// arguments are request bodies of do, which must survive the generated types unchanged.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/filewright/filewright/internal/tools/oapi-codegen/api"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	base, key := os.Args[1], os.Args[2]
	c, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}))
	check(err)

	content := "# Hello\n"
	session, err := c.InitiateUploadWithResponse(ctx, nil, api.InitiateUpload{FileName: "hello.md", Size: int64(len(content)), MimeType: "text/markdown"})
	check(err)
	s := session.JSON200
	if s == nil {
		log.Fatalf("initiate-upload: %s", session.Body)
	}
	put, err := http.NewRequest(http.MethodPut, s.PresignedUrls[0], strings.NewReader(content))
	check(err)
	sent, err := http.DefaultClient.Do(put)
	check(err)
	sent.Body.Close()
	complete, err := c.CompleteUploadWithResponse(ctx, api.CompleteUpload{
		FileKey: s.FileKey, ObjectName: s.ObjectName, UploadId: s.UploadId,
		Parts: []api.PartEntry{{PartNumber: 1, Etag: strings.Trim(sent.Header.Get("ETag"), `"`)}},
	})
	check(err)
	if complete.JSON200 == nil {
		log.Fatalf("complete-upload: %s", complete.Body)
	}

	var action api.DoAction
	check(action.FromDoConvert(api.DoConvert{FileKeys: []api.FileKey{s.FileKey}, Parameters: api.ConvertParameters{ConvertTo: "html"}}))
	var do api.Do
	check(do.FromDoAction(action))
	created, err := c.CreateOperationWithResponse(ctx, nil, do)
	check(err)
	if created.JSON200 == nil {
		log.Fatalf("do: %s", created.Body)
	}
	wait := "60s"
	status, err := c.OperationStatusWithResponse(ctx, created.JSON200.MainTaskId, &api.OperationStatusParams{Wait: &wait})
	check(err)
	if status.JSON200 == nil {
		log.Fatalf("status: %s", status.Body)
	}
	file := status.JSON200.FilesData[0]
	if file.Status != "completed" {
		log.Fatalf("status: %s", status.Body)
	}
	result, err := c.DownloadWithResponse(ctx, file.FileKey, nil)
	check(err)
	if !strings.Contains(string(result.Body), "Hello</h1>") {
		log.Fatalf("the result is %s", result.Body)
	}

	for _, body := range os.Args[3:] {
		if !strings.Contains(body, `"steps"`) {
			var action api.DoAction
			check(json.Unmarshal([]byte(body), &action))
			typed, err := action.ValueByDiscriminator()
			check(err)
			roundTrip([]byte(body), typed)
			continue
		}
		roundTrip([]byte(body), api.DoSteps{})
		var all struct{ Steps []json.RawMessage }
		check(json.Unmarshal([]byte(body), &all))
		for _, one := range all.Steps {
			var step api.Step
			check(json.Unmarshal(one, &step))
			typed, err := step.ValueByDiscriminator()
			check(err)
			roundTrip(one, typed)
		}
	}
	fmt.Println("flow completed")
}

// roundTrip decodes a body into the type of a value, which must know all members, and encodes it again.
func roundTrip(body []byte, typed any) {
	v := reflect.New(reflect.TypeOf(typed))
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v.Interface()); err != nil {
		log.Fatalf("%s: %v", body, err)
	}
	again, err := json.Marshal(v.Interface())
	check(err)
	if !bytes.Equal(canonical(body), canonical(again)) {
		log.Fatalf("%s became %s", body, again)
	}
}

func canonical(b []byte) []byte {
	var v any
	check(json.Unmarshal(b, &v))
	b, err := json.Marshal(v)
	check(err)
	return b
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}
