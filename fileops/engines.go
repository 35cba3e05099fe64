package fileops

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
)

// An Engine makes actions with a library that is linked in, with external programs,
// or with plain Go.
//
// An engine package has a constructor New(ctx, Options) (*Engine, error), which looks
// at the host once. New starts a program only to learn what it can do. If the host
// has nothing to work with, New fails with a *[MissingError].
//
// An engine that keeps something running until it is no longer used also implements
// [io.Closer]. One that takes long to start implements [Warmer].
type Engine interface {
	// Actions returns the actions that work on this host, in order of
	// preference. Each call returns the same ones.
	Actions() []Action

	// Dependencies returns the programs and libraries of the engine, including
	// those that are missing. An engine in plain Go has none.
	Dependencies() []Dependency
}

// A Warmer is an [Engine] that can start before its first run.
type Warmer interface {
	// Warm starts the engine and waits until it is ready. What it starts runs
	// until the engine is closed.
	Warm(ctx context.Context) error
}

// A Dependency is a program or library that an [Engine] uses.
type Dependency struct {
	Name    string
	Version string
	Path    string // "" if linked in
	Purpose string // what needs it, for people

	Err      error    // why it cannot be used; nil if it can
	Hint     string   // what to do about Err, for people; "" means to install Packages
	Packages []string // that contain it in Debian and Ubuntu
}

// Module returns the dependency on a Go module that is linked in. The version is "" if
// the program was built without module information.
func Module(name, path, purpose string) Dependency {
	d := Dependency{Name: name, Purpose: purpose}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				d.Version = strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return d
}

// A MissingError says why an [Engine] cannot be used on this host. If nothing but an
// installation is missing, it matches exec.ErrNotFound.
type MissingError struct {
	Dependencies []Dependency // those with an Err are to blame
}

// Missing returns the *[MissingError] of an engine with one dependency.
func Missing(d Dependency, err error) error {
	d.Err = err
	return &MissingError{[]Dependency{d}}
}

// Error implements error.
func (e *MissingError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns the errors of the dependencies.
func (e *MissingError) Unwrap() []error {
	var errs []error
	for _, d := range e.Dependencies {
		errs = append(errs, d.Err)
	}
	return errs
}
