package fileops_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
)

func TestContextReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := fileops.ContextReader(ctx, strings.NewReader("before after"))
	b := make([]byte, 6)
	if n, err := io.ReadFull(r, b); n != 6 || err != nil || string(b) != "before" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	why := errors.New("why")
	cancel(why)
	if n, err := r.Read(b); n != 0 || !errors.Is(err, why) {
		t.Errorf("after the end of the context: %d bytes, %v", n, err)
	}
}
