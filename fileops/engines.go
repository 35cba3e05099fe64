package fileops

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
)

// An Engine provides actions based on a linked library, on external programs, or on
// plain Go.
//
// An engine package has a constructor New(ctx, Options) (*Engine, error), which inspects
// the host once. New starts a program only to learn what it supports. If the host lacks
// what the engine needs, New fails with a *[MissingError].
//
// An engine that keeps processes running between runs also implements [io.Closer]. An
// engine that is slow to start implements [Warmer].
type Engine interface {
	// Actions returns the actions that work on this host, in order of preference. All
	// calls return the same actions.
	Actions() []Action

	// Dependencies returns the programs and libraries of the engine, including missing
	// ones. An engine in plain Go has no dependencies.
	Dependencies() []Dependency
}

// A Warmer is an [Engine] that can start before its first run.
type Warmer interface {
	// Warm starts the engine and waits until it is ready. The engine then runs until it
	// is closed.
	Warm(ctx context.Context) error
}

// A Dependency is a program or library that an [Engine] uses.
type Dependency struct {
	Name    string
	Version string
	Path    string // "" if linked in
	Purpose string // what needs it, for users

	Err      error    // why it cannot be used; nil if it can be used
	Hint     string   // how to resolve Err, for users; "" means: install Packages
	Packages []string // Debian and Ubuntu packages that contain it

	// Recommended are Debian and Ubuntu packages that this host lacks and that extend the
	// dependency, such as languages.
	Recommended []string
}

// Module returns the dependency on a linked Go module. The version is "" if the program
// was built without module information.
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

// A MissingError reports why an [Engine] cannot be used on this host. It matches
// exec.ErrNotFound if something is not installed.
type MissingError struct {
	Dependencies []Dependency // those with a non-nil Err are the reason
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
