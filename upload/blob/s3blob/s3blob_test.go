package s3blob_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// where is the bucket that most tests share. Each test has its own prefix.
var where s3blob.Config

var (
	bucketURL = flag.String("bucket-url", "", "`URL` of a bucket on another server to test with, s3://bucket?endpoint=…&region=…; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are the key to it")
	run       = rand.Text()
	prefixes  atomic.Int64
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if *bucketURL != "" {
			var err error
			if where, err = s3blob.ParseURL(*bucketURL); err != nil {
				log.Fatal(err)
			}
			where.Credentials = credentials.NewEnvAWS()
			if own, err := where.Credentials.GetWithContext(nil); err != nil || own.AccessKeyID == "" {
				log.Fatal("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: ", err)
			}
			return m.Run()
		}
		server, err := s3test.New()
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		if err := server.MakeBucket(context.Background(), bucket); err != nil {
			log.Fatal(err)
		}
		where = server.Config(bucket)
		return m.Run()
	}())
}

const bucket = "tests"

// config returns the configuration for a new prefix.
func config() s3blob.Config {
	c := where
	c.Prefix = fmt.Sprint(run, "/", prefixes.Add(1))
	return c
}

func open(t testing.TB, c s3blob.Config) *s3blob.Store {
	t.Helper()
	s, err := s3blob.New(c)
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, config()) })
}

// Without memory every body is passed on as it arrives.
func TestStoreWithoutMemory(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		c := config()
		c.Memory = 1
		return open(t, c)
	})
}

// A store without its optional roles must pass the tests, too.
func TestStoreWithoutExtras(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { return struct{ blob.Store }{open(t, config())} })
}
