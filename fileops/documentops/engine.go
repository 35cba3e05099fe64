package documentops

import (
	"context"

	"github.com/filewright/filewright/fileops"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	Pictures PictureCodec // for Compress; nil leaves pictures unchanged
	Limits   Limits
}

// An Engine provides the actions of this package. It implements
// [fileops.Engine].
type Engine struct{ opts Options }

// New returns an engine. It never fails.
func New(_ context.Context, o Options) (*Engine, error) { return &Engine{o}, nil }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	l := &e.opts.Limits
	return []fileops.Action{Convert(l), Compress(e.opts.Pictures, l), Lock(l), Unlock(l), ResetPassword(l), Inspect(l)}
}

// Dependencies implements [fileops.Engine]. This engine has no dependencies.
func (*Engine) Dependencies() []fileops.Dependency { return nil }
