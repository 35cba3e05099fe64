package fileops

import (
	"context"
	"io"
)

// ContextReader returns a reader of r that fails with the cause of ctx once ctx is
// done. A read of r that has begun is not interrupted.
func ContextReader(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx, r} }

// A contextReader lives no longer than the call whose context it has.
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
