package pdfium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
)

// A Pool runs functions, each with its own instance. It limits their
// concurrency. It is safe for concurrent use.
type Pool struct {
	starter *starter
	slots   chan struct{}
	log     *slog.Logger
}

// NewPool returns a pool for size instances. cacheDir keeps compiled code
// between processes; "" means no cache. Instances can read the fonts in the
// directories fonts, but no other files. pdfium is compiled on first use.
func NewPool(cacheDir string, fonts []string, size int, log *slog.Logger) (*Pool, error) {
	s, err := newStarter(cacheDir, fonts, log)
	if err != nil {
		return nil, err
	}
	return &Pool{starter: s, slots: make(chan struct{}, size), log: log}, nil
}

// Size returns the largest number of concurrent instances.
func (p *Pool) Size() int { return cap(p.slots) }

// Warm compiles pdfium unless it is already compiled.
func (p *Pool) Warm(ctx context.Context) error {
	_, err := p.starter.library(ctx)
	return err
}

// Close releases the resources of the pool. No function may be running or start
// afterwards.
func (p *Pool) Close() error { return p.starter.close() }

// killGrace is the time that a run waits for a killed instance.
const killGrace = 3 * time.Second

// Run waits for a free slot and calls fn with a new instance.
func (p *Pool) Run(ctx context.Context, fn func(*Instance) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return p.runSlot(ctx, fn)
}

// TryRun is Run, but returns false immediately if there is no free slot.
func (p *Pool) TryRun(ctx context.Context, fn func(*Instance) error) (bool, error) {
	select {
	case p.slots <- struct{}{}:
		return true, p.runSlot(ctx, fn)
	default:
		return false, nil
	}
}

// runSlot calls fn in a slot that the caller acquired, and releases the slot. If
// ctx ends, it kills the instance, which stops fn. In the worst case it leaves
// fn behind, stuck in a loop of pdfium that cannot be stopped.
func (p *Pool) runSlot(ctx context.Context, fn func(*Instance) error) error {
	defer func() { <-p.slots }()
	lib, err := p.starter.library(ctx)
	if err != nil {
		if ctx.Err() == nil {
			err = fileops.Fail(fileops.ErrUnavailable, err, "the PDF engine cannot be started")
		}
		return err
	}
	in, err := lib.newInstance()
	if err != nil {
		return fileops.Fail(fileops.ErrUnavailable, err, "the PDF engine cannot be started")
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see Instance.Within
		defer runtime.UnlockOSThread()
		err := guard(in, fn)
		if cause := in.killed(); cause != nil {
			err = cause
		}
		if cerr := in.close(); cerr != nil && err == nil {
			p.log.Warn("pdfium instance not closed cleanly", "err", cerr)
		}
		done <- err
	}()
	defer context.AfterFunc(ctx, func() { in.kill(context.Cause(ctx)) })()
	select {
	case err := <-done:
		return explain(err)
	case <-in.dead:
	}
	deadline := time.NewTimer(killGrace)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-done:
			return explain(err)
		case <-again.C:
			in.kill(nil)
		case <-deadline.C:
			p.log.Error("pdfium instance does not end and is left behind")
			return explain(in.killed())
		}
	}
}

// guard calls fn. A panic becomes an error, because no caller could recover it.
func guard(in *Instance, fn func(*Instance) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", v, debug.Stack()), "")
		}
	}()
	if err := fn(in); err != nil {
		return err
	}
	return in.Err
}

// explain converts an error of pdfium to a failure.
func explain(err error) error {
	var f *fileops.Failure
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errMemory):
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more than the limit of %d MiB of memory; split it first", memoryLimit>>20)
	case strings.HasPrefix(err.Error(), "pdfium: "):
		return fileops.Fail(fileops.ErrEngine, err, "")
	}
	return err
}
