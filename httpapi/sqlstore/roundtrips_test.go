package sqlstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
	"github.com/filewright/filewright/upload"
)

// A tripCounter counts the round trips to a PostgreSQL server behind a proxy: after
// each, the server sends ReadyForQuery. Connections with asynchronous commits do not
// count: they carry heartbeats and notifications, not requests.
type tripCounter struct{ n atomic.Int64 }

func (c *tripCounter) hand(client, server *net.TCPConn) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(client, size); err != nil {
		return
	}
	startup := make([]byte, binary.BigEndian.Uint32(size)-4)
	if _, err := io.ReadFull(client, startup); err != nil {
		return
	}
	if _, err := server.Write(append(size, startup...)); err != nil {
		return
	}
	counts := !bytes.Contains(startup, []byte("synchronous_commit\x00off"))
	go func() { io.Copy(server, client); server.Close() }()
	for {
		head, body, err := readMessage(server)
		if err != nil {
			return
		}
		if counts && head[0] == 'Z' { // ReadyForQuery
			c.n.Add(1)
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// measure returns how many round trips f takes once its statements are prepared. It
// takes the minimum of a few calls, because clocks are compared and counters refreshed
// now and then.
func (c *tripCounter) measure(f func()) int64 {
	f()
	f()
	least := int64(1 << 62)
	for range 4 {
		before := c.n.Load()
		f()
		least = min(least, c.n.Load()-before)
	}
	return least
}

func counted(t *testing.T) (*sqlstore.DB, *tripCounter) {
	c := new(tripCounter)
	// One connection prepares each statement once.
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: proxied(t, c.hand), Connections: 1, Cache: -1})
	systest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db, c
}

// Reads by primary key take one round trip.
func TestReadRoundTrips(t *testing.T) {
	t.Parallel()
	db, c := counted(t)
	ctx, now := t.Context(), time.Now()
	must := func(err error) {
		t.Helper()
		systest.NoError(t, err)
	}
	session := &account.Session{Token: [32]byte{1}, Account: "alice", Created: now, Seen: now}
	must(db.Accounts().Create(ctx, &account.Account{ID: "alice", Name: "Alice", Password: "hash", Created: now}))
	must(db.Keys().Create(ctx, &account.Key{ID: "key", Account: "alice", Hash: [32]byte{1}, Created: now}))
	must(db.Sessions().Create(ctx, session, "hash"))
	must(db.Webhooks().Create(ctx, &webhook.StoredEndpoint{Endpoint: webhook.Endpoint{ID: "hook", Account: "alice", Created: now}, Secret: []byte("x")}, 10))
	_, err := db.Files().Create(ctx, &upload.File{Key: "file", Owner: "alice", State: upload.Open, Size: 10, Parts: 2, Created: now})
	must(err)
	must(db.Files().AddPart(ctx, "file", upload.Part{Number: 1, Size: 5}))
	_, err = db.Operations().Create(ctx, &status.Operation{ID: "op", Owner: "alice", Created: now, Items: make([]status.Item, 3)})
	must(err)
	_, err = db.SetSettingOnce(ctx, "name", []byte("value"))
	must(err)
	for name, read := range map[string]func() error{
		"file":      func() error { _, err := db.Files().Get(ctx, "file"); return err },
		"files":     func() error { _, err := db.Files().GetAll(ctx, []string{"file"}); return err },
		"parts":     func() error { _, _, err := db.Files().Parts(ctx, "file"); return err },
		"operation": func() error { _, err := db.Operations().Get(ctx, "op"); return err },
		"account":   func() error { _, err := db.Accounts().Get(ctx, "alice"); return err },
		"key":       func() error { _, err := db.Keys().Get(ctx, "key"); return err },
		"grants":    func() error { _, err := db.Keys().Grants(ctx, [32]byte{1}); return err },
		"session":   func() error { _, _, err := db.Sessions().Get(ctx, session.Token); return err },
		"webhook":   func() error { _, err := db.Webhooks().Get(ctx, "alice", "hook"); return err },
		"setting":   func() error { _, err := db.Setting(ctx, "name"); return err },
	} {
		if n := c.measure(func() { must(read()) }); n != 1 {
			t.Errorf("%s: %d round trips, want 1", name, n)
		}
	}
	// One more round trip reads the items of the whole page.
	list := func() { must(drain(db.Operations().List(ctx, status.Query{Owner: "alice"}))) }
	if n := c.measure(list); n != 2 {
		t.Errorf("list of operations: %d round trips, want 2", n)
	}
}

// The requests of a conversion, at a node of a cluster, take a fixed number of round trips.
func TestRequestRoundTrips(t *testing.T) {
	t.Parallel()
	db, c := counted(t)
	accounts := auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db})
	key, _, err := accounts.Keys().Create(t.Context(), auth.NewKey{Name: "test", Rate: httpapi.Rate{PerSecond: -1}})
	systest.NoError(t, err)
	action := fileops.Func(fileops.Spec{Name: "convert", Engine: "go", Family: "text", Summary: "Does nothing.", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md")},
	}}}, func(context.Context, *fileops.Job) error { return nil })
	svc, err := httpapi.New(httpapi.Config{
		Auth: accounts, Actions: []fileops.Action{action}, Files: db.Files(), Operations: db.Operations(),
		Shared: true, Locker: db, TempDir: t.TempDir(),
	})
	systest.NoError(t, err)
	request := func(method, path string, body []byte, answer any) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		svc.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if answer == nil {
			return
		}
		systest.NoError(t, json.Unmarshal(w.Body.Bytes(), answer))
	}
	type file struct {
		Key  string   `json:"file_key"`
		URLs []string `json:"presigned_urls"`
	}
	content := []byte("hello")
	const etag = "5d41402abc4b2a76b9719d911017c592"
	begin := func() (f file) {
		request("POST", "/api/v1/initiate-upload", fmt.Appendf(nil, `{"file_name":"a.txt","size":%d,"mime_type":"text/plain"}`, len(content)), &f)
		return f
	}
	put := func(f file) { request("PUT", f.URLs[0], content, nil) }
	complete := func(f file) {
		request("POST", "/api/v1/complete-upload", fmt.Appendf(nil, `{"file_key":%q,"parts":[{"part_number":1,"etag":%q}]}`, f.Key, etag), nil)
	}
	// each measures one request for each of a few prepared files.
	each := func(prepare func(file), do func(file)) int64 {
		var files []file
		for range 6 {
			f := begin()
			prepare(f)
			files = append(files, f)
		}
		return c.measure(func() {
			do(files[0])
			files = files[1:]
		})
	}
	ready := func(f file) { put(f); complete(f) }
	mine := begin()
	ready(mine)
	result, err := svc.Uploads().Add(t.Context(), upload.File{Owner: "alice", Name: "a.md", Size: 5, Task: "op"}, bytes.NewReader(content), "")
	systest.NoError(t, err)
	keys := make([]string, 100)
	for i := range keys {
		f := begin()
		ready(f)
		keys[i] = f.Key
	}
	hundred, err := json.Marshal(map[string]any{"action": "convert", "file_keys": keys, "parameters": map[string]any{"convert_to": "md"}})
	systest.NoError(t, err)
	got := map[string]int64{
		"initiate-upload":        c.measure(func() { begin() }),
		"part":                   each(func(file) {}, put),
		"part sent again":        each(put, put),
		"complete-upload":        each(put, complete),
		"do with 100 files":      c.measure(func() { request("POST", "/api/v1/do", hundred, nil) }),
		"download of a result":   c.measure(func() { request("GET", "/v1/download/"+result.Key, nil, nil) }),
		"download of the upload": c.measure(func() { request("GET", "/v1/download/"+mine.Key, nil, nil) }),
	}
	for name, most := range map[string]int64{
		"initiate-upload": 4, "part": 4, "part sent again": 6, "complete-upload": 6, "do with 100 files": 4,
		"download of a result": 1, "download of the upload": 2,
	} {
		if got[name] > most || got[name] < 1 {
			t.Errorf("%s: %d round trips, want at most %d", name, got[name], most)
		}
	}
}
