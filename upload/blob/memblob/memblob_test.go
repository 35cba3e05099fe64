package memblob_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"syscall"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func TestStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(*testing.T) blob.Store { return memblob.New() })
}

func TestLimit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &memblob.Store{Limit: 10}
	put := func(key string, n int) error {
		return s.Put(ctx, key, strings.NewReader(strings.Repeat("x", n)), int64(n))
	}
	systest.NoError(t, put("a", 6))
	for _, n := range []int{5, 11} {
		if err := put("b", n); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Put of %d bytes = %v, want ENOSPC", n, err)
		}
	}
	if err := put("a", 10); err != nil {
		t.Errorf("replacing an object: %v", err)
	}
	systest.NoError(t, s.Delete(ctx, "a"))
	if err := put("b", 10); err != nil {
		t.Errorf("after Delete: %v", err)
	}
}

func Example() {
	ctx := context.Background()
	s := memblob.New()
	if err := s.Put(ctx, "greetings/1", strings.NewReader("hello"), 5); err != nil {
		log.Fatal(err)
	}
	o, err := s.Open(ctx, "greetings/1")
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(blob.NewReader(o))
	fmt.Printf("%s %v\n", data, err)
	// Output: hello <nil>
}
