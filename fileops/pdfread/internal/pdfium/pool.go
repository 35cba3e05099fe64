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

// A Pool runs functions with instances of their own, a limited number at the
// same time. It is safe for concurrent use.
type Pool struct {
	starter *starter
	slots   chan struct{}
	log     *slog.Logger
}

// NewPool returns a pool for size instances. cacheDir keeps compiled code between
// processes; "" means no cache. pdfium is compiled when the first function needs it.
func NewPool(cacheDir string, size int, log *slog.Logger) (*Pool, error) {
	s, err := newStarter(cacheDir, log)
	if err != nil {
		return nil, err
	}
	return &Pool{starter: s, slots: make(chan struct{}, size), log: log}, nil
}

// Size returns how many instances may run at the same time.
func (p *Pool) Size() int { return cap(p.slots) }

// Warm compiles pdfium if that was not done yet.
func (p *Pool) Warm(ctx context.Context) error {
	_, err := p.starter.library(ctx)
	return err
}

// Close releases what the pool holds. No function may run or be started.
func (p *Pool) Close() error { return p.starter.close() }

// killGrace is how long a run waits for an instance that was killed.
const killGrace = 3 * time.Second

// Run calls fn with an instance of its own, when there is a free slot.
func (p *Pool) Run(ctx context.Context, fn func(*Instance) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return p.runSlot(ctx, fn)
}

// TryRun is run, but returns false at once if there is no free slot.
func (p *Pool) TryRun(ctx context.Context, fn func(*Instance) error) (bool, error) {
	select {
	case p.slots <- struct{}{}:
		return true, p.runSlot(ctx, fn)
	default:
		return false, nil
	}
}

// runSlot calls fn in a slot that was taken, and frees the slot. If ctx ends, so
// does the instance, and fn with it. In the worst case fn is left behind, stuck
// in a loop of pdfium that nothing ends; it will not get out of it.
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
		runtime.LockOSThread() // see instance.within
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

// guard calls fn; a panic becomes an error, because no caller could recover it.
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

// explain makes a failure out of an error of pdfium.
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
