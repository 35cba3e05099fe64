package archiveops

import (
	"context"

	"github.com/filewright/filewright/fileops"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	Limits Limits
}

// An Engine provides the actions of this package. It implements
// [fileops.Engine].
type Engine struct{ limits Limits }

// New returns an engine. It never fails.
func New(_ context.Context, o Options) (*Engine, error) { return &Engine{o.Limits}, nil }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	l := &e.limits
	return []fileops.Action{Convert(l), Zip(), Compress(l), Lock(l), Unlock(l), ResetPassword(l), Extract(l), Inspect(l)}
}

// Dependencies implements [fileops.Engine]. This engine has no dependencies.
func (*Engine) Dependencies() []fileops.Dependency { return nil }
