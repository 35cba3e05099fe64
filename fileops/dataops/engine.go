package dataops

import (
	"context"

	"github.com/filewright/filewright/fileops"
)

// Options configure [New]. There are no options yet.
type Options struct{}

// An Engine provides the actions of this package. It implements
// [fileops.Engine].
type Engine struct{}

// New returns an engine. It never fails.
func New(context.Context, Options) (*Engine, error) { return &Engine{}, nil }

// Actions implements [fileops.Engine].
func (*Engine) Actions() []fileops.Action { return []fileops.Action{Convert(), Inspect()} }

// Dependencies implements [fileops.Engine]. This engine has no dependencies.
func (*Engine) Dependencies() []fileops.Dependency { return nil }
