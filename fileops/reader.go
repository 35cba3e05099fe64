package fileops

import (
	"context"
	"io"
)

// ContextReader returns a reader of r that fails with the cause of ctx once ctx is done.
// It does not interrupt a running read of r.
func ContextReader(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx, r} }

// A contextReader lives no longer than the call that its context belongs to.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
