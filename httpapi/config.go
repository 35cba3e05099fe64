// Package httpapi is the file-processing service as an http.Handler.
//
// [New] wires actions, storage and a task tracker into the endpoints under /api/v1 and /v1. The
// package links no engine: Config.Actions decides what the service can do.
//
//	svc, err := httpapi.New(httpapi.Config{
//		Actions: standard.Probe(ctx, nil).Actions(),
//		Auth:    httpapi.StaticKeys(key),
//	})
//	go func() { log.Fatal(svc.Run(ctx)) }()
//	http.ListenAndServe("127.0.0.1:8080", svc)
//
// # Endpoints
//
// The original interface has initiate-upload, the presigned PUT, complete-upload, do,
// supported-operation, status and download. Long poll, events, cancelling, listing, formats,
// deletion, health and metrics are additions. The OpenAPI document at /openapi.json describes all
// of them.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// Config configures a [Service]. Only Auth is required. The defaults of the other fields suit one
// process without persistence.
type Config struct {
	Actions []fileops.Action // what the service can do, in order of preference
	Auth    Authenticator    // required; see StaticKeys and AllowAll

	Blobs      blob.Store        // nil: in memory
	Files      upload.Store      // nil: in memory
	Operations status.Store      // nil: in memory
	Dispatcher status.Dispatcher // nil: in this process

	// Shared means that other processes also process the items of Operations, or use Blobs and
	// Files. Without it, Run resumes at once the items of an earlier process and removes its
	// partial files. With it, another process restarts an item if its own process sends no
	// heartbeat for Lease (0: 15 seconds). Locker separates processes that share Files; nil: there
	// is one process. See Service.Offer for the capabilities that clients see.
	Shared bool
	Lease  time.Duration
	Locker upload.Locker

	// BaseURL is the public address in upload URLs. nil means the address of each request;
	// X-Forwarded-Proto and X-Forwarded-Host count only if TrustProxy is set.
	BaseURL    *url.URL
	TrustProxy bool

	// Secrets sign upload URLs and encrypt the parameters of queued operations. The first secret is
	// used for new data; all are accepted. Each has at least 16 bytes. nil means one random secret:
	// upload URLs and queued parameters then do not survive a restart.
	Secrets [][]byte

	Envelope         Envelope // position of the members of a response
	AbsoluteLinks    bool     // download links start with BaseURL, which is then required
	PrivateDownloads bool     // download links work only with the owner's key

	// RedirectDownloads redirects downloads to Blobs, if that is a blob.Linker. The bytes then
	// bypass the service. Anyone who obtains the redirect's target can use it, for at most an hour.
	RedirectDownloads bool

	Origins []string // web origins that may call from a browser, "*" for all; nil: none
	TempDir string   // scratch space; saves copies if it is on the file system of Blobs

	// Concurrency limits the items that run at once for each family of actions ("office", "image",
	// …). The default of a family is GOMAXPROCS. With 0, this process does not run the family. An
	// empty map that is not nil makes a process that only accepts requests.
	Concurrency map[string]int

	Limits    Limits
	Retention Retention
	Quota     Quota // nil: none

	// Extensions add endpoints. New calls each function once with the service that it is about to
	// return. The function must not use the service before New has returned.
	Extensions []func(*Service) Extension

	// Engines are listed by formats and readyz, including missing engines.
	Engines []Engine

	// Sandbox describes the confinement of the engines, for readyz and metrics. nil: unknown.
	Sandbox *Sandbox

	// Checks are the readiness checks by name. readyz runs them, and Run does every few seconds. A
	// check that fails, or does not return within 1.5 seconds, makes the service not ready. A check
	// is not called again while it runs.
	Checks map[string]func(context.Context) error

	// Starting reports whether engines are still being started. The service is not ready then, although
	// it accepts requests: those that need such an engine wait for it. nil: never.
	Starting func() bool

	// Outages receives the results of Checks; Log should write through it. May be nil.
	Outages *Outages

	// Node names this process, for example by host name and process ID. readyz shows it. It may be
	// empty.
	Node string

	// HideDetails reduces readyz to ready or not ready, and hides metrics. Service.Internal still
	// shows both, and so do requests with "Authorization: Bearer" and MetricsToken, if that is not
	// empty.
	HideDetails  bool
	MetricsToken string

	// Collectors are added to /metrics beside the service's own metrics.
	Collectors []prometheus.Collector

	// Registerer receives the service's own metrics and Collectors as one collector. nil: only
	// /metrics shows them. /metrics always shows them together with the metrics of the Go runtime
	// and the process, which Registerer does not receive. A Registerer shared by several services
	// needs prometheus.WrapRegistererWith, because their metric names are the same.
	Registerer prometheus.Registerer

	OnFinal func(context.Context, *status.Operation) // called after an operation has become final; may be nil
	Log     *slog.Logger                             // nil: slog.Default()

	// Tracer records spans of requests and of the work on operations. nil: none. Requests continue the
	// trace of their traceparent header, and an operation that of the request that submitted it.
	Tracer trace.Tracer

	// LogRequests logs every answered request at slog.LevelInfo, except successful probes.
	// Otherwise requests are logged at slog.LevelDebug.
	LogRequests bool
}

// Limits bound the resources that clients can use. Zero fields mean the default.
type Limits struct {
	FileSize    int64         // bytes of one file; 5 TiB
	Parts       int           // of one upload; 10000
	Files       int           // per operation; 100
	Steps       int           // per operation; 10
	StepFiles   int           // of a later step, unless it takes all files together; 1000
	Queued      int           // queued items of one account; 10000
	QueuedTotal int           // queued items of all accounts; 100000, negative: no limit
	BodyBytes   int64         // of a JSON request; 1 MiB
	TaskTime    time.Duration // work on one item, as processor time of its engines; by the clock five times as much, and more on a busy host; 30 minutes
	Output      int64         // bytes of all results of one item; 20 GiB
	QueueTime   time.Duration // time in the queue of one item; 24 hours
	MaxAttempts int           // failed attempts of one item, by an engine crash or an internal error; 3
	MaxRestarts int           // restarts of one item after its process died; 1000
	MaxWait     time.Duration // longest wait of an item for storage, database, disk space or an engine; 24 hours, negative: no limit
	Drain       time.Duration // time for running items to finish at shutdown; 30 seconds
	LongPoll    time.Duration // longest wait of a status request; 60 seconds

	// MinRate is the least average rate, in bytes per second over Stall, at which a client must
	// send a body and read a response. Slower clients are disconnected. 0: 16 KiB; negative: any
	// rate within Stall. Stall is also the longest pause of a client; 0: 30 seconds. The service's
	// own time does not count.
	MinRate int64
	Stall   time.Duration

	// Rate limits the requests of one key unless Principal.Rate is set. Zero: 1000 per second, burst
	// 10,000.
	Rate Rate

	// InvalidKeys limits requests with invalid API keys from one client address (IPv6: one /64
	// network). Zero: 1 per second, burst 50. Keys that were recently valid are exempt.
	InvalidKeys Rate

	// MinFree is the free space in bytes that uploads must leave in Blobs, if Blobs reports it, so
	// that processing can continue. An upload that would need this space is refused. 0: 256 MiB;
	// negative: none.
	MinFree int64

	// OverflowWait bounds the wait of an account without a running item while another account holds
	// every slot of a family. After it, the item runs in an extra slot. 0: 2 seconds; negative:
	// never, so that Concurrency is never exceeded. A Dispatcher ignores it.
	OverflowWait time.Duration
}

// Retention sets how long data is kept. Zero fields mean the default.
type Retention struct {
	URLs       time.Duration // upload URLs; 1 hour, at most 7 days
	Sessions   time.Duration // incomplete uploads; 24 hours
	Files      time.Duration // uploads and results; 24 hours, negative: forever
	Operations time.Duration // final operations; 7 days, negative: forever
	Expired    time.Duration // names of expired files, whose requests get 410; 7 days, negative: none
	Quarantine time.Duration // finished content without a record, before its deletion; 7 days, negative: none
	Sweep      time.Duration // interval between deletion rounds; 1 minute
}

// An Engine is a program or library that actions depend on.
type Engine struct {
	Name    string
	Version string
	Err     error  // why it cannot be used; nil if it works
	Hint    string // how to fix Err, for people
}

// A Sandbox describes the confinement of engines that read untrusted files.
type Sandbox struct {
	// Tier is the level of confinement: 0 only environment and limits; 1 either files or system
	// calls; 2 both; 3 engines also have namespaces of their own; 4 each run also has a cgroup, and
	// most engines a PID namespace.
	Tier    int      `json:"tier"`
	Layers  []string `json:"layers"`  // active layers, such as "landlock 7"
	Missing []string `json:"missing"` // inactive layers with the reason, for people
}

func (c Config) withDefaults() (Config, error) {
	if c.AbsoluteLinks && c.BaseURL == nil {
		return c, errors.New("httpapi: Config.AbsoluteLinks requires Config.BaseURL")
	}
	for _, s := range c.Secrets {
		if len(s) < 16 {
			return c, errors.New("httpapi: a secret in Config.Secrets is shorter than 16 bytes")
		}
	}
	def(&c.Limits.FileSize, 5<<40)
	def(&c.Limits.Parts, 10000)
	def(&c.Limits.Files, 100)
	def(&c.Limits.Steps, 10)
	def(&c.Limits.StepFiles, 1000)
	def(&c.Limits.Queued, 10000)
	def(&c.Limits.BodyBytes, 1<<20)
	def(&c.Limits.TaskTime, 30*time.Minute)
	def(&c.Limits.Output, 20<<30)
	def(&c.Limits.QueueTime, 24*time.Hour)
	def(&c.Limits.MaxAttempts, 3)
	def(&c.Limits.MaxRestarts, 1000)
	def(&c.Limits.MaxWait, 24*time.Hour)
	def(&c.Limits.Drain, 30*time.Second)
	def(&c.Limits.QueuedTotal, 100000)
	def(&c.Limits.MinRate, 16<<10)
	def(&c.Limits.Stall, 30*time.Second)
	def(&c.Limits.OverflowWait, 2*time.Second)
	def(&c.Limits.Rate, Rate{PerSecond: 1000, Burst: 10_000})
	def(&c.Limits.InvalidKeys, Rate{PerSecond: 1, Burst: 50})
	def(&c.Limits.LongPoll, time.Minute)
	def(&c.Retention.URLs, time.Hour)
	def(&c.Retention.Files, 24*time.Hour)
	def(&c.Retention.Operations, 7*24*time.Hour)
	def(&c.Retention.Sweep, time.Minute)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, nil
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// concurrency returns the limit of every family of the actions.
func (c Config) concurrency() map[string]int {
	limits := make(map[string]int)
	if c.Shared {
		limits[""] = -1 // other processes have the engines
	}
	for _, a := range c.Actions {
		f := a.Spec().Family
		n, ok := c.Concurrency[f]
		switch {
		case ok && n > 0:
			limits[f] = n
		case ok, c.Concurrency != nil && len(c.Concurrency) == 0:
			limits[f] = -1 // status omits families with a negative limit
		default:
			limits[f] = runtime.GOMAXPROCS(0)
		}
	}
	return limits
}
