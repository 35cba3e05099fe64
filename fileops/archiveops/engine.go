package archiveops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	Limits Limits

	BSDTar  string          // path or name; "" means bsdtar in PATH, [engine.None] disables bsdtar
	Sandbox *engine.Sandbox // confines bsdtar; nil means no sandbox
	Run     engine.Limits   // of each run of bsdtar; zero fields mean 10 minutes of processor time and 2 GiB of memory

	// Probed is the result of [Engine.Probed] in another process on this host. It saves
	// one start of bsdtar.
	Probed string
}

// An Engine provides the actions of this package. It implements
// [fileops.Engine].
type Engine struct {
	limits  Limits
	tar     *bsdtar // nil if it is not installed
	missing error   // why bsdtar is unavailable
}

// New looks for bsdtar and returns an engine. Without bsdtar the actions read fewer
// formats and write neither 7z nor tar.bz2 and tar.xz.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{limits: o.Limits}
	if o.Probed != "" {
		var p probed
		if err := json.Unmarshal([]byte(o.Probed), &p); err != nil {
			return nil, fmt.Errorf("archiveops: options: probed: %w", err)
		}
		if p.Path != "" {
			e.tar = &bsdtar{&engine.Program{Name: filepath.Base(p.Path), Path: p.Path, Version: p.Version, Sandbox: o.Sandbox}, o.Run}
		}
		return e, nil
	}
	p, err := o.Sandbox.Find(ctx, []string{"--version"}, cmp.Or(o.BSDTar, "bsdtar"))
	if err != nil {
		e.missing = err
		return e, nil
	}
	e.tar = &bsdtar{p, o.Run}
	return e, nil
}

// probed holds the facts about bsdtar that [New] finds out.
type probed struct {
	Path    string `json:"path"` // "" if there is no bsdtar
	Version string `json:"version"`
}

// Probed returns the facts about bsdtar that [New] found out, for [Options].
func (e *Engine) Probed() string {
	var p probed
	if e.tar != nil {
		p = probed{e.tar.Path, e.tar.Version}
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // impossible: only two strings
	}
	return string(b)
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	l := &e.limits
	c := &converter{limits: l.orDefault(), tar: e.tar}
	return []fileops.Action{c.convert(), Zip(), Compress(l), Lock(l), Unlock(l), ResetPassword(l), c.extract(), c.inspect()}
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := fileops.Dependency{Name: "bsdtar", Purpose: "disc images, cabinets, packages and cpio archives; 7z, tar.xz and tar.bz2 as results", Packages: []string{"libarchive-tools"}, Err: e.missing}
	if e.tar != nil {
		d.Version, d.Path = e.tar.Version, e.tar.Path
	}
	return []fileops.Dependency{d}
}
