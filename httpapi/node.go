package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/upload"
)

// A Node is a process that processes items but has no API. It serves /healthz, /readyz and
// /metrics. A [Service] is a Node with the API.
type Node struct {
	cfg          Config
	log          *slog.Logger
	worker       *worker.Worker
	uploads      *upload.Manager
	tracker      *status.Tracker
	metrics      *metrics
	dependencies []*dependency
	engines      atomic.Pointer[[]Engine]
	router       *httprouter.Router

	// closing is done when Run is about to stop. It belongs to the node, not to a request:
	// requests that wait for an operation are then answered.
	closing context.Context
	close   context.CancelFunc

	discards chan struct{} // holds a token for each deletion in the background
}

// NewNode checks cfg and returns a node. It needs no Config.Auth and starts nothing.
func NewNode(cfg Config) (*Node, error) {
	n, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.route(n.probes()); err != nil {
		return nil, err
	}
	return n, nil
}

func newNode(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Log, dependencies: newDependencies(cfg.Checks)}
	n.closing, n.close = context.WithCancel(context.Background())
	n.discards = make(chan struct{}, maxDiscards)
	reg, err := fileops.NewRegistry(cfg.Actions...)
	if err != nil {
		return nil, err
	}
	if n.worker, err = worker.New(n.workerConfig(capability.New(reg, aliases))); err != nil {
		return nil, err
	}
	n.uploads, n.tracker = n.worker.Uploads(), n.worker.Operations()
	n.ShowEngines(cfg.Engines)
	n.metrics, err = newMetrics(&cfg, append(n.worker.Collectors(), dependencyCollector(n.dependencies)))
	return n, err
}

// workerConfig returns the worker's part of the configuration.
func (n *Node) workerConfig(actions worker.Resolver) worker.Config {
	cfg := n.cfg
	files := cfg.Files
	if cfg.Quota != nil {
		if files == nil {
			files = new(upload.MemStore)
		}
		files = quotaFiles{files, n}
	}
	operations, dispatcher := cfg.Operations, cfg.Dispatcher
	if operations == nil {
		operations = status.NewMemStore()
	}
	if dispatcher == nil {
		dispatcher = status.NewLocal(operations, &status.LocalOptions{OverflowWait: cfg.Limits.OverflowWait, Log: cfg.Log})
	}
	return worker.Config{
		Actions: actions,
		Blobs:   cfg.Blobs,
		Uploads: upload.Options{
			Store: files, Secrets: cfg.Secrets, URLPath: uploadPath,
			URLTTL: cfg.Retention.URLs, SessionTTL: cfg.Retention.Sessions, FileTTL: cfg.Retention.Files, KeepExpired: cfg.Retention.Expired, Quarantine: cfg.Retention.Quarantine, Exclusive: !cfg.Shared,
			MaxSize: cfg.Limits.FileSize, MaxParts: cfg.Limits.Parts, MinFree: cfg.Limits.MinFree, Locker: cfg.Locker,
		},
		Operations: status.Config{
			Store: operations, Dispatcher: dispatcher,
			Limits: cfg.concurrency(), MaxAttempts: cfg.Limits.MaxAttempts, MaxRestarts: cfg.Limits.MaxRestarts, MaxWait: cfg.Limits.MaxWait,
			MaxQueued: max(0, cfg.Limits.QueuedTotal), MaxQueuedPerOwner: cfg.Limits.Queued,
			QueueTimeout: cfg.Limits.QueueTime,
			WorkTimeout:  func(string) time.Duration { return cfg.Limits.TaskTime },
			Retention:    cfg.Retention.Operations,
			Exclusive:    !cfg.Shared, Lease: cfg.Lease, Node: cfg.Node,
			OnFinal: cfg.OnFinal, Tracer: cfg.Tracer,
		},
		TempDir: cfg.TempDir, MaxOutput: cfg.Limits.Output, MaxStepFiles: cfg.Limits.StepFiles, Drain: cfg.Limits.Drain, Sweep: cfg.Retention.Sweep, Log: cfg.Log,
	}
}

// Run does the background work until ctx is done: it recovers from a crash, processes items,
// removes expired data and runs Config.Checks. When ctx is done, running items get Limits.Drain to
// finish. The others are released and resume at the next start. Call it once.
func (n *Node) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, n.close)()
	beside, stop := context.WithCancel(ctx)
	var checks sync.WaitGroup
	checks.Go(func() { n.watchDependencies(beside) })
	err := n.worker.Run(ctx)
	stop()
	checks.Wait()
	n.close() // also if the worker failed
	n.finishDiscards()
	return err
}

// ServeHTTP answers requests.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) { n.serve(w, r, new(requestInfo)) }

// Uploads returns the file manager, for programs that use it from Go.
func (n *Node) Uploads() *upload.Manager { return n.uploads }

// Operations returns the tracker of the operations.
func (n *Node) Operations() *status.Tracker { return n.tracker }

// ShowEngines replaces the engines in readyz, initially Config.Engines. It is safe to call at any
// time.
func (n *Node) ShowEngines(engines []Engine) { n.engines.Store(&engines) }

// Engines returns the engines in readyz, including missing engines.
func (n *Node) Engines() []Engine { return *n.engines.Load() }

// Sandbox describes the confinement of this process's engines; nil: unknown.
func (n *Node) Sandbox() *Sandbox { return n.cfg.Sandbox }

var _ http.Handler = (*Node)(nil)
