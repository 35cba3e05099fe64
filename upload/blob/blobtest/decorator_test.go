package blobtest_test

import (
	"context"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A counter counts calls of Open.
type counter struct {
	blob.Store
	opened *int
}

func (c counter) Unwrap() blob.Store { return c.Store }

func (c counter) Open(ctx context.Context, key string) (blob.Object, error) {
	*c.opened++
	return c.Store.Open(ctx, key)
}

// A store that only embeds another one has no more than the four methods.
type bare struct{ blob.Store }

func TestDecorator(t *testing.T) {
	t.Parallel()
	blobtest.RunDecorator(t, func(s blob.Store) blob.Store { return unwrapper{unwrapper{s}} })
}

type unwrapper struct{ blob.Store }

func (u unwrapper) Unwrap() blob.Store { return u.Store }

// A decorator keeps the staging of a directory, and its own methods are called, too.
func TestDecoratedDirectory(t *testing.T) {
	t.Parallel()
	dir, err := fsblob.New(t.TempDir())
	systest.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	opened := 0
	s := counter{dir, &opened}
	if got, ok := blob.As[blob.Stager](s); !ok || got != blob.Stager(dir) {
		t.Errorf("As = %v, %v", got, ok)
	}
	if _, err := blob.Stat(t.Context(), s, "missing"); err == nil || opened != 1 {
		t.Errorf("Stat = %v, opened %d times", err, opened)
	}
	for _, s := range []blob.Store{bare{dir}, memblob.New(), unwrapper{bare{dir}}} {
		if _, ok := blob.As[blob.Stager](s); ok {
			t.Errorf("%T is a Stager", s)
		}
	}
}
