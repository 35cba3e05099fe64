package s3blob_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// server is the one that most tests share. Each has a prefix of its own.
var server *s3test.Server

const bucket = "tests"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if server, err = s3test.New(); err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		if err := server.MakeBucket(context.Background(), bucket); err != nil {
			log.Fatal(err)
		}
		return m.Run()
	}())
}

var prefixes atomic.Int64

// config returns what leads to a prefix that nobody else has.
func config() s3blob.Config {
	c := server.Config(bucket)
	c.Prefix = fmt.Sprint("test/", prefixes.Add(1))
	return c
}

func open(t testing.TB, c s3blob.Config) *s3blob.Store {
	t.Helper()
	s, err := s3blob.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, config()) })
}

// Without memory every request is passed on as it comes.
func TestStoreWithoutMemory(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		c := config()
		c.Memory = 1
		return open(t, c)
	})
}

// Whoever knows nothing of the optional interfaces must do as well.
func TestStoreWithoutExtras(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return struct{ blob.Store }{open(t, config())} })
}
