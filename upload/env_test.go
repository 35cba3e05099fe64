package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/blob/memblob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// A clock advances only when told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// An env is a Manager with its stores and clock.
type env struct {
	*upload.Manager
	t     testing.TB
	blobs blob.Store
	store upload.Store
	clock *clock
	opts  upload.Options
}

// link reads a record and returns it with a link to the content.
func (e *env) link(ctx context.Context, owner, key string, o blob.LinkOptions) (*upload.File, *url.URL, error) {
	f, err := e.Get(ctx, owner, key)
	if err != nil {
		return nil, nil, err
	}
	u, err := e.Link(ctx, owner, f, o)
	return f, u, err
}

func newFS(t testing.TB, dir string) *fsblob.Store {
	t.Helper()
	s, err := fsblob.New(dir)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// backends are the kinds of store on which a Manager must behave alike.
var backends = []struct {
	name string
	open func(t testing.TB) blob.Store
}{
	{"memory", func(testing.TB) blob.Store { return memblob.New() }},
	{"files", func(t testing.TB) blob.Store { return newFS(t, t.TempDir()) }},
	{"bucket", newBucket},
	{"files without extras", func(t testing.TB) blob.Store { return struct{ blob.Store }{newFS(t, t.TempDir())} }},
}

// pairs are the combinations of record stores and blob stores in use. records and blobs
// open new, empty ones.
var pairs = []struct {
	name    string
	records func(t testing.TB) upload.Store
	blobs   func(t testing.TB) blob.Store
}{
	{"memory", func(testing.TB) upload.Store { return new(upload.MemStore) }, func(testing.TB) blob.Store { return memblob.New() }},
	{"SQLite, directory", newSQLite, func(t testing.TB) blob.Store { return newFS(t, t.TempDir()) }},
	{"PostgreSQL, shared directory", newPostgres, newSharedFS},
	{"PostgreSQL, bucket", newPostgres, newBucket},
}

func newSQLite(t testing.TB) upload.Store {
	return openRecords(t, sqlstore.Options{Path: filepath.Join(t.TempDir(), "filewright.db")})
}

func newPostgres(t testing.TB) upload.Store {
	return openRecords(t, sqlstore.Options{URL: pgtest.New(t)})
}

func openRecords(t testing.TB, o sqlstore.Options) upload.Store {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), o)
	systest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db.Files()
}

func newSharedFS(t testing.TB) blob.Store {
	t.Helper()
	s, err := fsblob.NewShared(t.TempDir())
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// eachPair runs a test on every pair of stores.
func eachPair(t *testing.T, f func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store)) {
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			f(t, p.records, p.blobs)
		})
	}
}

var (
	s3Server   *s3test.Server
	s3Prefixes atomic.Int64
)

const s3Bucket = "tests"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if s3Server, err = s3test.New(); err != nil {
			log.Fatal(err)
		}
		defer s3Server.Close()
		if err := s3Server.MakeBucket(context.Background(), s3Bucket); err != nil {
			log.Fatal(err)
		}
		return pgtest.Main(m)
	}())
}

// openBucket returns a store with its own prefix in the bucket.
func openBucket(t testing.TB, private bool) *s3blob.Store {
	t.Helper()
	c := s3Server.Config(s3Bucket)
	c.Prefix = fmt.Sprint("test/", s3Prefixes.Add(1))
	c.Private = private
	s, err := s3blob.New(c)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// newBucket returns a bucket to which all parts go through the Manager. For direct
// uploads see direct_test.go.
func newBucket(t testing.TB) blob.Store {
	s := openBucket(t, true)
	return struct {
		blob.Store
		blob.Composer
		blob.Remote
	}{s, s, s}
}

func newEnv(t testing.TB, b blob.Store, o upload.Options) *env {
	t.Helper()
	e := &env{t: t, blobs: b, store: o.Store, clock: &clock{t: time.Now()}}
	if e.store == nil {
		e.store = new(upload.MemStore)
	}
	o.Store = e.store
	o.SetClock(e.clock.now)
	m, err := upload.NewManager(b, &o)
	systest.NoError(t, err)
	e.Manager, e.opts = m, o
	t.Cleanup(func() {
		if !m.Idle() {
			t.Error("a lock is still held")
		}
	})
	return e
}

// each runs a test on every kind of store.
func each(t *testing.T, o upload.Options, f func(t *testing.T, e *env)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			f(t, newEnv(t, b.open(t), o))
		})
	}
}

func (e *env) start(size int64, parts int) (*upload.File, []*url.URL) {
	e.t.Helper()
	f, urls, err := e.Start(e.t.Context(), upload.Request{Owner: "alice", Name: "a.pdf", ContentType: "application/pdf", Size: size, Parts: parts})
	systest.NoError(e.t, err)
	if len(urls) != max(parts, 1) {
		e.t.Fatalf("%d URLs for %d parts", len(urls), parts)
	}
	return f, urls
}

func (e *env) put(u *url.URL, data []byte) string {
	e.t.Helper()
	etag, err := e.PutPart(e.t.Context(), http.MethodPut, u, bytes.NewReader(data), upload.PutOptions{Size: int64(len(data))})
	if err != nil {
		e.t.Fatalf("PutPart = %v", err)
	}
	return etag
}

func (e *env) content(f *upload.File) []byte {
	e.t.Helper()
	_, o, err := e.Open(e.t.Context(), f.Owner, f.Key)
	if err != nil {
		e.t.Fatalf("Open = %v", err)
	}
	defer o.Close()
	b, err := io.ReadAll(blob.NewReader(o))
	systest.NoError(e.t, err)
	return b
}

// objects returns the number of objects and staging areas, without the identity and the
// quarantine.
func (e *env) objects() (n int) {
	e.t.Helper()
	for i, err := range e.blobs.List(e.t.Context(), "") {
		systest.NoError(e.t, err)
		if i.Key != upload.IdentityKey && !strings.HasPrefix(i.Key, "quarantine/") {
			n++
		}
	}
	if s, ok := blob.As[blob.Stager](e.blobs); ok {
		for _, err := range s.ListStaged(e.t.Context()) {
			systest.NoError(e.t, err)
			n++
		}
	}
	return n
}

func wantKind(t testing.TB, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s = %v, want kind %q", what, err, kind)
		return
	}
	var e *upload.Error
	if !errors.As(err, &e) || e.Message == "" {
		t.Errorf("%s = %v, not made for the client", what, err)
	}
}

func list(etags ...string) (l []blob.Part) {
	for i, e := range etags {
		l = append(l, blob.Part{Number: i + 1, ETag: e})
	}
	return l
}

func noise(n int) []byte {
	b := make([]byte, n)
	var seed [32]byte
	seed[0], seed[1], seed[2] = byte(n), byte(n>>8), byte(n>>16)
	rand.NewChaCha8(seed).Read(b)
	return b
}

// etagOf computes the ETag of a file without our code.
func etagOf(parts [][]byte) string {
	if len(parts) == 1 {
		return fmt.Sprintf("%x", md5.Sum(parts[0]))
	}
	var sums []byte
	for _, p := range parts {
		s := md5.Sum(p)
		sums = append(sums, s[:]...)
	}
	return fmt.Sprintf("%x-%d", md5.Sum(sums), len(parts))
}

// cut divides data like clients: equal chunks, the last shorter, then empty ones.
func cut(data []byte, parts int) [][]byte {
	chunk := (len(data) + parts - 1) / parts
	var out [][]byte
	for i := range parts {
		out = append(out, data[min(i*chunk, len(data)):min((i+1)*chunk, len(data))])
	}
	return out
}

func sizes(data []byte, sizes ...int) (out [][]byte) {
	for _, n := range sizes {
		out, data = append(out, data[:n]), data[n:]
	}
	return out
}

// unread is a body that must not be read.
type unread struct{ t testing.TB }

func (r unread) Read([]byte) (int, error) {
	r.t.Error("the body is read")
	return 0, io.EOF
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

var errStore = errors.New("store is down")
