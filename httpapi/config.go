// Package httpapi is the file-processing service as an http.Handler.
//
// [New] wires actions, storage and a task tracker into the endpoints under
// /api/v1 and /v1. It links no engine: what the service can do is what is
// passed in Config.Actions.
//
//	svc, err := httpapi.New(httpapi.Config{
//		Actions: standard.Probe(ctx, nil).Actions(),
//		Auth:    httpapi.StaticKeys(key),
//	})
//	go svc.Run(ctx)
//	http.ListenAndServe("127.0.0.1:8080", svc)
//
// # Endpoints
//
// initiate-upload, the presigned PUT, complete-upload, do, supported-operation,
// status and download are those of the interface; long poll, events,
// cancelling, listing, formats, deletion, health and metrics are additions. The
// OpenAPI document at /openapi.json describes them all.
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
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// Config configures a [Service]. Only Auth is required; every other field has
// a default that works for one process without persistence.
type Config struct {
	Actions []fileops.Action // what the service can do, in order of preference
	Auth    Authenticator    // required; see StaticKeys and AllowAll

	Blobs      blob.Store        // nil: in memory
	Files      upload.Store      // nil: in memory
	Operations status.Store      // nil: in memory
	Dispatcher status.Dispatcher // nil: in this process

	// Shared says that other processes work on the items of Operations too, or
	// use Blobs and Files. Otherwise what an earlier process left running goes
	// on at once, and what it left half written is removed. Items whose process
	// gives no sign of life for Lease (0: 15 seconds) are begun again by another
	// one. Locker keeps processes that share Files apart; nil: there is one.
	// See Service.Offer for what is told clients.
	Shared bool
	Lease  time.Duration
	Locker upload.Locker

	// BaseURL is the public address, for upload URLs; nil takes that of each
	// request, believing X-Forwarded-Proto and X-Forwarded-Host only if
	// TrustProxy is set.
	BaseURL    *url.URL
	TrustProxy bool

	// Secrets sign upload URLs and seal the parameters of waiting
	// operations: the first is used, all are accepted. nil: one random
	// secret, so that both do not survive a restart. Each needs 16 bytes at
	// least.
	Secrets [][]byte

	Envelope         Envelope // where responses carry their members
	AbsoluteLinks    bool     // download links start with BaseURL, which is required then
	PrivateDownloads bool     // download links work only with the owner's key

	// RedirectDownloads answers downloads with a redirect to Blobs, if that is
	// a blob.Linker: the bytes do not pass through the service. What leads
	// there works for everybody who gets hold of it, for an hour at most.
	RedirectDownloads bool

	Origins []string // web origins that may call from a browser, "*" for all; nil: none
	TempDir string   // scratch space; on the same file system as Blobs it saves copies

	// Concurrency is how many items of a family of actions ("office",
	// "image", …) are worked on at once; a family that is not listed gets
	// GOMAXPROCS. A family with 0 is not worked on in this process. Empty,
	// not nil, makes a process that only accepts.
	Concurrency map[string]int

	Limits    Limits
	Retention Retention
	Quota     Quota // nil: none

	// Extensions add endpoints. New calls each function once, with the service that it
	// is about to return; the service must not be used before New has returned.
	Extensions []func(*Service) Extension

	// Engines are shown by formats and readyz, also those that are missing.
	Engines []Engine

	// Sandbox says what confines the engines; readyz and metrics show it. nil: it
	// is not known.
	Sandbox *Sandbox

	// Checks are asked by readyz, and every few seconds by Run, by name; a failure
	// makes the service not ready, and so does no answer within 1.5 seconds. A check
	// is not called again while it runs.
	Checks map[string]func(context.Context) error

	// Outages, if Log writes through it, is told what Checks find. nil: nothing is.
	Outages *Outages

	// Node names this process, such as by its host name and process ID; readyz
	// shows it. It may be empty.
	Node string

	// HideDetails makes readyz answer clients only whether the service is ready, and
	// metrics not at all: both are then for Service.Internal, and for requests with
	// "Authorization: Bearer" and MetricsToken, if that is not empty.
	HideDetails  bool
	MetricsToken string

	// Collectors are shown by metrics beside the service's own numbers.
	Collectors []prometheus.Collector

	// Registerer gets the service's own numbers and Collectors as one collector. nil:
	// only /metrics shows them. /metrics always shows them, and beside them those of the
	// Go runtime and the process, which Registerer does not get. A Registerer of several
	// services needs prometheus.WrapRegistererWith, because their names are the same.
	Registerer prometheus.Registerer

	OnFinal func(context.Context, *status.Operation) // called once an operation is final; may be nil
	Log     *slog.Logger                             // nil: slog.Default()

	// LogRequests logs every request that is answered at slog.LevelInfo, but for
	// probes that succeed; else they are logged at slog.LevelDebug.
	LogRequests bool
}

// Limits bound what one client can ask for. Zero fields mean the default.
type Limits struct {
	FileSize    int64         // bytes of one file; 5 TiB
	Parts       int           // of one upload; 10000
	Files       int           // per operation; 100
	Queued      int           // items that wait, of one account; 10000
	QueuedTotal int           // items that wait, of all accounts; 100000, negative: any
	BodyBytes   int64         // of a JSON request; 1 MiB
	TaskTime    time.Duration // work on one item; 30 minutes
	Output      int64         // bytes of all results of one item; 20 GiB
	QueueTime   time.Duration // waiting of one item; 24 hours
	MaxAttempts int           // of one item that fail because its engine died or something went wrong; 3
	MaxRestarts int           // of one item because the process that worked on it died; 1000
	MaxWait     time.Duration // longest wait of an item for storage, database, disk space or an engine; 24 hours, negative: no limit
	Drain       time.Duration // time for running items when stopping; 30 seconds
	LongPoll    time.Duration // longest wait of a status request; 60 seconds

	// MinRate is how many bytes per second a client must send of a body, and
	// take of a response, on the average over Stall; one that is slower is
	// cut off. 0: 16 KiB; negative: any rate, but for Stall. Stall is also
	// how long a client may stand still. 0: 30 seconds. Time that the
	// service needs itself does not count.
	MinRate int64
	Stall   time.Duration

	// Rate limits the requests with one key, where Principal.Rate does not
	// say otherwise. Zero: 100 per second, 1000 at once.
	Rate Rate

	// WrongKeys limits the requests with an API key that is not valid, of one
	// client address (with IPv6 of one /64 network). Zero: 1 per second, 50
	// at once. A key that was valid a moment ago is not concerned.
	WrongKeys Rate

	// MinFree is how many bytes uploads leave free where the files are kept,
	// if Blobs can tell, so that work can go on; what would need them is
	// refused. 0: 256 MiB; negative: none.
	MinFree int64

	// GuestWait is how long an item waits whose account has none running while
	// another account holds all places of its family; then it is worked on
	// in one place more. 0: 2 seconds; negative: for ever, so that
	// Concurrency is never exceeded. It is of no effect with a Dispatcher.
	GuestWait time.Duration
}

// Retention says how long things are kept. Zero fields mean the default.
type Retention struct {
	URLs       time.Duration // upload URLs; 1 hour, at most 7 days
	Sessions   time.Duration // uploads that are not completed; 24 hours
	Files      time.Duration // uploads and results; 24 hours, negative: for ever
	Operations time.Duration // after they are final; 7 days, negative: for ever
	Expired    time.Duration // names of expired files, so that requests for them answer 410; 7 days, negative: none
	Quarantine time.Duration // finished content that no record knows, before it is deleted; 7 days, negative: none
	Sweep      time.Duration // between two rounds of deletion; 1 minute
}

// An Engine is something that actions are built on.
type Engine struct {
	Name    string
	Version string
	Err     error  // why it cannot be used; nil if it can
	Hint    string // what to do about it, for people
}

// A Sandbox says what confines engines that read strangers' files.
type Sandbox struct {
	// Tier is 4 if each run also has a cgroup and most engines a PID namespace, 3 if engines have other namespaces of their own, 2 if files and system calls are both confined, 1 if one of them is,
	// and 0 if nothing is but the environment and the limits.
	Tier    int      `json:"tier"`
	Layers  []string `json:"layers"`  // in force: "landlock 7"
	Missing []string `json:"missing"` // and why, for people
}

func (c Config) withDefaults() (Config, error) {
	if c.AbsoluteLinks && c.BaseURL == nil {
		return c, errors.New("httpapi: Config.AbsoluteLinks needs Config.BaseURL")
	}
	for _, s := range c.Secrets {
		if len(s) < 16 {
			return c, errors.New("httpapi: a secret in Config.Secrets has less than 16 bytes")
		}
	}
	def(&c.Limits.FileSize, 5<<40)
	def(&c.Limits.Parts, 10000)
	def(&c.Limits.Files, 100)
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
	def(&c.Limits.GuestWait, 2*time.Second)
	def(&c.Limits.Rate, Rate{PerSecond: 100, Burst: 1000})
	def(&c.Limits.WrongKeys, Rate{PerSecond: 1, Burst: 50})
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

// concurrency returns the limits of all families of the actions.
func (c Config) concurrency() map[string]int {
	limits := make(map[string]int)
	if c.Shared {
		limits[""] = -1 // others have what it takes
	}
	for _, a := range c.Actions {
		f := a.Spec().Family
		n, ok := c.Concurrency[f]
		switch {
		case ok && n > 0:
			limits[f] = n
		case ok, c.Concurrency != nil && len(c.Concurrency) == 0:
			limits[f] = -1 // what status calls not at all
		default:
			limits[f] = runtime.GOMAXPROCS(0)
		}
	}
	return limits
}
