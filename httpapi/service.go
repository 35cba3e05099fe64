package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A Service is the whole service. It implements http.Handler; [Service.Run]
// does the background work.
type Service struct {
	cfg     Config
	log     *slog.Logger
	matrix  *capability.Matrix // what this process can do
	offered atomic.Pointer[catalogue]
	uploads *upload.Manager
	tracker *status.Tracker
	sealer  *sealer
	metrics *metrics
	rates   *buckets // of keys
	guard   *guard
	space   *spaceWatch

	longAnswers *turnstile // of initiate-upload
	longBodies  *turnstile // of requests in JSON

	dependencies []*dependency

	router *httprouter.Router

	// closing is done when Run is told to stop. It belongs to the service,
	// not to a call: whoever waits for an operation is answered then.
	closing context.Context
	close   context.CancelFunc
}

// aliases are other names of actions that clients use.
var aliases = map[string]string{"create_zip": "zip"}

// New checks cfg and returns a service. It starts nothing.
func New(cfg Config) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Secrets == nil {
		cfg.Secrets = [][]byte{randomSecret()}
	}
	s := &Service{cfg: cfg, log: cfg.Log}
	if err := s.Offer(cfg.Actions, cfg.Engines); err != nil {
		return nil, err
	}
	s.matrix = s.Capabilities()
	s.closing, s.close = context.WithCancel(context.Background())
	s.rates, s.guard = newBuckets(), newGuard(cfg.Limits.WrongKeys)
	s.longAnswers, s.longBodies = newTurnstile(64, 8), newTurnstile(24, 6)
	s.space = newSpaceWatch(cfg.TempDir)
	s.dependencies = newDependencies(cfg.Checks)
	if s.sealer, err = newSealer(cfg.Secrets); err != nil {
		return nil, err
	}
	blobs := cfg.Blobs
	if blobs == nil {
		blobs = memblob.New()
	}
	files := cfg.Files
	if cfg.Quota != nil {
		if files == nil {
			files = new(upload.MemStore)
		}
		files = quotaFiles{files, s}
	}
	s.uploads, err = upload.NewManager(blobs, &upload.Options{
		Store: files, Secrets: cfg.Secrets, URLPath: uploadPath,
		URLTTL: cfg.Retention.URLs, SessionTTL: cfg.Retention.Sessions, FileTTL: cfg.Retention.Files, KeepExpired: cfg.Retention.Expired, Quarantine: cfg.Retention.Quarantine, Exclusive: !cfg.Shared,
		MaxSize: cfg.Limits.FileSize, MaxParts: cfg.Limits.Parts, MinFree: cfg.Limits.MinFree, Locker: cfg.Locker, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	operations, dispatcher := cfg.Operations, cfg.Dispatcher
	if operations == nil {
		operations = status.NewMemStore()
	}
	if dispatcher == nil {
		dispatcher = status.NewLocal(operations, &status.LocalOptions{GuestWait: cfg.Limits.GuestWait, Log: cfg.Log})
	}
	s.tracker, err = status.New(status.Config{
		Store: operations, Dispatcher: dispatcher, Handler: worker{s},
		Limits: cfg.concurrency(), MaxAttempts: cfg.Limits.MaxAttempts, MaxRestarts: cfg.Limits.MaxRestarts, MaxWait: cfg.Limits.MaxWait,
		MaxQueued: max(0, cfg.Limits.QueuedTotal), MaxQueuedPerOwner: cfg.Limits.Queued,
		QueueTimeout: cfg.Limits.QueueTime,
		WorkTimeout:  func(string) time.Duration { return cfg.Limits.TaskTime },
		Retention:    cfg.Retention.Operations,
		Exclusive:    !cfg.Shared, Lease: cfg.Lease,
		Discard: s.discard, OnFinal: s.ended, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s.tracker.Stats, cfg.Engines, cfg.Sandbox)
	s.metrics.registry.MustRegister(dependencyCollector(s.dependencies))
	s.metrics.watchRescues(s.tracker.Rescued)
	s.metrics.watchSpace(s.uploads.FreeSpace)
	s.metrics.watchSweep(s.uploads.SweepRefused)
	s.metrics.watchContents(s.uploads.LostContents)
	for _, c := range cfg.Collectors {
		if err := s.metrics.registry.Register(c); err != nil {
			return nil, fmt.Errorf("httpapi: Config.Collectors: %w", err)
		}
	}
	s.router, err = s.newRouter()
	return s, err
}

// Run does the background work until ctx is done: it repairs what a crash left
// behind, works on items and removes what has expired. When ctx is done, running
// items get Limits.Drain to finish; what is not finished then is given back and
// goes on at the next start. It must be called once.
func (s *Service) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.close)()
	// Beside the work: with many open sessions it takes a while.
	beside, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { s.recover(beside) })
	loops.Go(func() { s.sweep(beside) })
	loops.Go(func() { s.watchDependencies(beside) })
	err := s.tracker.Run(ctx, s.cfg.Limits.Drain)
	stop()
	loops.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to stop, and did
	}
	return err
}

// recover finishes uploads whose completion a crash interrupted.
func (s *Service) recover(ctx context.Context) {
	n, err := s.uploads.Recover(ctx)
	switch {
	case ctx.Err() != nil: // it stops
	case err != nil:
		// The others are finished when their owners come back.
		s.log.Error("not all interrupted uploads were finished", "finished", n, "err", err)
	case n > 0:
		s.log.Info("interrupted uploads finished", "count", n)
	}
}

// sweep removes what has expired, from time to time.
func (s *Service) sweep(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Retention.Sweep)
	defer ticker.Stop()
	for {
		if n, err := s.uploads.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("sweep of files failed", "err", err)
		} else if n > 0 {
			s.log.Info("expired files removed", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Uploads returns the part of the service that keeps files, for programs that
// use it from Go as well.
func (s *Service) Uploads() *upload.Manager { return s.uploads }

// Operations returns the part that keeps and runs operations.
func (s *Service) Operations() *status.Tracker { return s.tracker }

// Capabilities returns what the service offers.
func (s *Service) Capabilities() *capability.Matrix { return s.offered.Load().matrix }

// Engines returns what the actions on offer are built on, also what is missing.
func (s *Service) Engines() []Engine { return s.offered.Load().engines }

// Sandbox returns what confines the engines of this process, nil if that is not known.
func (s *Service) Sandbox() *Sandbox { return s.cfg.Sandbox }

// A catalogue is what clients are told that they can have done.
type catalogue struct {
	empty   bool // no action is on offer: in a cluster, no worker has ever been up
	matrix  *capability.Matrix
	engines []Engine
	formats formatsResponse
	openAPI openAPI
}

// Offer replaces what clients are told that they can have done, which is that of
// Config.Actions and Config.Engines at first. Only the specs of the actions are
// used: with several processes, somebody who works on their families must be able
// to do them. It may be called at any time.
func (s *Service) Offer(actions []fileops.Action, engines []Engine) error {
	reg, err := fileops.NewRegistry(actions...)
	if err != nil {
		return err
	}
	c := &catalogue{empty: len(actions) == 0, matrix: capability.New(reg, aliases), engines: engines}
	c.formats = describeFormats(c.matrix, engines)
	if c.openAPI, err = describeAPI(reg, s.cfg.Envelope, s.cfg.Extensions); err != nil {
		return err
	}
	s.offered.Store(c)
	return nil
}

var _ http.Handler = (*Service)(nil)
