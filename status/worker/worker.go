// Package worker runs the items of operations. It connects operations, files and
// actions.
//
// A [Worker] claims items through a status.Tracker and opens their inputs through an
// upload.Manager. It runs the actions and registers the results as files of the item's
// owner. It decides by the error of an attempt whether the item fails, is retried, or
// waits for a missing resource (see [status.Outcome]).
//
//	w, err := worker.New(worker.Config{
//		Actions: registry,
//		Uploads: upload.Options{Store: files, Secrets: secrets},
//	})
//	err = w.Run(ctx)
//
// Every process that submits operations has a Worker too, because it seals their
// parameters; with negative limits in Config.Operations it runs no items.
//
// The parameters of waiting operations are sealed because some are passwords. The
// secrets are those of Config.Uploads, so all processes must share them.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/internal/worktime"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A Resolver finds the action for an operation, as [fileops.Registry] does.
type Resolver interface {
	Resolve(action string, inputs []format.Format, args fileops.Args) (fileops.Action, fileops.Params, error)
}

// Config configures a [Worker]. Only Actions is required; the other fields have
// defaults for one process without persistence.
type Config struct {
	Actions Resolver

	Blobs      blob.Store     // nil: in memory
	Uploads    upload.Options // of the files; its secrets also seal parameters
	Operations status.Config  // of the operations; the worker sets Handler, Next, Discard and WithTimeout

	TempDir   string // scratch space; on the same file system as Blobs it saves copies
	MaxOutput int64  // bytes of all results of one item; 0: no limit
	// MaxStepFiles limits the files of a later step of an operation of several steps,
	// unless the step takes all files together. 0: 1000.
	MaxStepFiles int

	Drain time.Duration // time for running items when stopping; 0: they are interrupted at once
	Sweep time.Duration // between two rounds of deletion; 0: 1 minute

	Log *slog.Logger // also for Uploads and Operations; nil: slog.Default()
}

// A Worker runs items. [Worker.Run] does so; until then a Worker only stores files and
// operations.
type Worker struct {
	cfg     Config
	log     *slog.Logger
	uploads *upload.Manager
	tracker *status.Tracker
	sealer  seal.Sealer
	results resultKeys
	space   *spaceWatch
	metrics *metrics
}

// New checks cfg and returns a worker. It starts nothing.
func New(cfg Config) (*Worker, error) {
	if cfg.Actions == nil {
		return nil, errors.New("worker: Config.Actions is required")
	}
	if cfg.Blobs == nil {
		cfg.Blobs = memblob.New()
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Sweep = cmp.Or(cfg.Sweep, time.Minute)
	if cfg.Uploads.Secrets == nil {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails, see its documentation
		cfg.Uploads.Secrets = [][]byte{secret}
	}
	w := &Worker{cfg: cfg, log: cfg.Log, space: newSpaceWatch(cfg.TempDir)}
	var err error
	if w.sealer, err = seal.New("filewright parameters v1", cfg.Uploads.Secrets); err != nil {
		return nil, err
	}
	if w.results, err = newResultKeys(cfg.Uploads.Secrets[0]); err != nil {
		return nil, err
	}
	files := cfg.Uploads
	files.Log, files.TempDir = cfg.Log, cfg.TempDir
	if w.uploads, err = upload.NewManager(cfg.Blobs, &files); err != nil {
		return nil, err
	}
	operations := cfg.Operations
	operations.Handler, operations.Discard, operations.OnFinal, operations.Log = status.HandlerFunc(w.handle), w.discard, w.ended, cfg.Log
	operations.Next = w.next
	operations.WithTimeout = worktime.Total
	if w.tracker, err = status.New(operations); err != nil {
		return nil, err
	}
	w.metrics = newMetrics()
	return w, nil
}

// Run finishes uploads that a crash interrupted, runs items, and removes expired files,
// until ctx is done. When ctx is done, running items get Config.Drain to finish; the
// others are released and restart with the next process. Run must be called once.
func (w *Worker) Run(ctx context.Context) error {
	// In the background, because it is slow with many open sessions.
	beside, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { w.recover(beside) })
	loops.Go(func() { w.sweep(beside) })
	err := w.tracker.Run(ctx, w.cfg.Drain)
	stop()
	loops.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // a shutdown, as requested
	}
	return err
}

// recover finishes uploads whose completion a crash interrupted.
func (w *Worker) recover(ctx context.Context) {
	n, err := w.uploads.Recover(ctx)
	switch {
	case ctx.Err() != nil: // the process is stopping
	case err != nil:
		// The others are finished when their owners come back.
		w.log.Error("cannot finish all interrupted uploads", "finished", n, "err", err)
	case n > 0:
		w.log.Info("finished interrupted uploads", "count", n)
	}
}

// sweep removes expired files and uploads periodically.
func (w *Worker) sweep(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.Sweep)
	defer ticker.Stop()
	for {
		if n, err := w.uploads.Sweep(ctx); err != nil && ctx.Err() == nil {
			w.log.Error("sweep of files failed", "err", err)
		} else if n > 0 {
			w.log.Info("expired files removed", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Uploads returns the manager of the files.
func (w *Worker) Uploads() *upload.Manager { return w.uploads }

// Operations returns the tracker of the operations.
func (w *Worker) Operations() *status.Tracker { return w.tracker }

// Collectors returns the metrics of the work, the queues and the files.
func (w *Worker) Collectors() []prometheus.Collector { return w.metrics.collectors(w) }
