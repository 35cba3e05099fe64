package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/admin"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/gotenberg"
	"github.com/filewright/filewright/httpapi/mcp"
	"github.com/filewright/filewright/httpapi/onecall"
	"github.com/filewright/filewright/httpapi/remote"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status/riverqueue"
	"github.com/filewright/filewright/status/webhook"
	"github.com/filewright/filewright/trace/otlp"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// serve runs the server until it is stopped.
func serve(c *cli) *cobra.Command {
	var cfg serverConfig
	return c.command(spec{
		use: "serve", short: "start the server (the default command)",
		long:  "Starts the server. Its state is in the data directory: accepted operations continue\nafter a crash or a restart.",
		flags: cfg.register,
		run:   func(ctx context.Context, _ []string) error { return c.serve(ctx, cfg) },
	})
}

func (c *cli) serve(ctx context.Context, cfg serverConfig) error {
	if err := cfg.finish(c.env); err != nil {
		return err
	}
	if err := checkListen(&cfg); err != nil {
		return err
	}
	log := cfg.logger(c.err)
	app, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer app.close()

	ln, err := listen("listen", cfg.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	closeOperator, err := app.serveOperator(&cfg)
	if err != nil {
		return err
	}
	defer closeOperator()
	handler, closeDashboard, err := app.handler(ctx, &cfg)
	if err != nil {
		return err
	}
	if app.forms != nil {
		handler = app.forms.Handler(handler)
	}
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cfg.headerTime,
		IdleTimeout:       cfg.idleTime,
		MaxHeaderBytes:    16 << 10,
		// The service sets deadlines for bodies and responses that follow their progress. This
		// deadline applies until then.
		WriteTimeout: time.Minute + cfg.api.Limits.Stall,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(closeDashboard)
	base := "http://" + ln.Addr().String()
	if cfg.publicURL == "" && app.service != nil && !isLoopback(ln.Addr()) {
		log.Warn("--public-url is not set, so upload URLs contain the Host of each request; set it to the URL at which clients reach this server", "listen", ln.Addr().String())
	}
	if cfg.publicURL != "" {
		fmt.Fprintf(c.out, "Listening on %s\n", base)
		base = cfg.publicURL
	}
	var first firstStart
	if app.service != nil {
		if first, err = app.bootstrap(ctx); err != nil {
			return err
		}
	}
	sample := walkthrough
	if cfg.runTimeout > 0 {
		sample = oneCall
	}
	app.welcome(c, base, cfg.dashboard && app.service != nil, first, sample)

	return app.run(ctx, &cfg, srv, ln)
}

// run serves requests and processes items until ctx is done or one of them fails.
func (a *app) run(ctx context.Context, cfg *serverConfig, srv *http.Server, ln net.Listener) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	// Running items are drained while the last responses are sent.
	group.Go(func() error {
		<-running.Done()
		if ctx.Err() != nil {
			a.log.Info("stopping; waiting for running work", "within", cfg.api.Limits.Drain.String())
		}
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(timeout); err != nil {
			srv.Close() // longer uploads can be repeated
		}
		return nil
	})
	group.Go(func() error { return a.work(running) })
	if a.set != nil {
		group.Go(func() error {
			// The server is needed even if an engine hangs.
			defer time.AfterFunc(warmTime, func() { a.warm.Store(true) }).Stop()
			if err := a.set.Warm(running); err != nil && running.Err() == nil {
				a.log.Warn("an engine failed to start", "err", err)
			}
			a.warm.Store(true)
			return nil
		})
	}
	if a.cluster != nil {
		group.Go(func() error { a.cluster.run(running); return nil })
	}
	if a.service != nil {
		group.Go(func() error { a.sendWebhooks(running, cfg.webhooks.ttl); return nil })
		group.Go(func() error { a.accounts.SweepAudit(running, cfg.auditTTL); return nil })
	}
	if a.imports != nil {
		group.Go(func() error { return a.imports.Run(running) })
	}
	if a.deliveries != nil {
		group.Go(func() error { return a.deliveries.Run(running) })
	}
	if a.forms != nil {
		group.Go(func() error { return a.forms.Run(running) })
	}
	err := group.Wait()
	a.log.Info("stopped")
	return err
}

// warmTime is how long readyz waits for engines that start.
const warmTime = 30 * time.Second

// work processes items until ctx is done.
func (a *app) work(ctx context.Context) error {
	// A crash counts as an attempt, so the isolated processes must be ready first.
	if a.set != nil {
		if err := a.set.Ready(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("cannot start isolated processes", "err", err)
		}
	}
	if err := a.node.Run(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return errors.New("background processing stopped unexpectedly")
}

// sendWebhooks sends webhooks until ctx is done. With webhooks disabled it still deletes old
// deliveries, because perhaps no other server does.
func (a *app) sendWebhooks(ctx context.Context, keep time.Duration) {
	if a.hooks == nil {
		webhook.Sweep(ctx, a.db.Webhooks(), keep, a.log)
		return
	}
	if err := a.hooks.Run(ctx); err != nil {
		a.log.Error("webhook delivery stopped", "err", err)
	}
}

// databaseName is the database file in the data directory.
const databaseName = "filewright.db"

// An app is the service with everything that it uses.
type app struct {
	node       *httpapi.Node
	service    *httpapi.Service // nil: this server has no API, only its node
	db         *sqlstore.DB
	blobs      blobStore
	accounts   *auth.Accounts
	breached   *auth.PasswordList   // nil: there is no list
	signIn     dashboard.SignIn     // nil: users log in with passwords only
	hooks      *webhook.Webhooks    // nil: this server sends no webhooks
	imports    *remote.Imports      // nil: this server does not read from URLs
	deliveries *remote.Deliveries   // nil: this server does not write to URLs
	forms      *gotenberg.Routes    // nil: this server has no routes of Gotenberg
	set        *standard.Set        // nil: this server has no engines
	warm       atomic.Bool          // its engines have started, or failed to
	cluster    *cluster             // nil: this is the only server
	workers    *prometheus.GaugeVec // the metric of cluster
	lock       *os.File             // lock of the data directory, if the database is elsewhere
	dataDir    string
	tracer     *otlp.Tracer // nil: no traces
	log        *slog.Logger
}

// open creates the service. The caller must close the app.
func open(ctx context.Context, cfg serverConfig, log *slog.Logger) (_ *app, err error) {
	dir, err := filepath.Abs(cfg.dataDir)
	if err != nil {
		return nil, err
	}
	a := &app{dataDir: dir, log: log}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	scratch := filepath.Join(dir, "scratch")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	api := cfg.api
	if a.tracer, err = cfg.tracing.newTracer(api.Node, log); err != nil {
		return nil, err
	}
	if a.tracer != nil {
		api.Tracer = a.tracer
	}
	if cfg.cluster.url == "" {
		a.db, err = sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, databaseName), Exclusive: true, Log: log})
	} else {
		err = a.join(ctx, &cfg.cluster, &api)
	}
	if err != nil {
		return nil, err
	}
	// No other process uses the directory now: the scratch files are leftovers of a killed process.
	if err := os.RemoveAll(scratch); err != nil {
		return nil, err
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return nil, err
	}
	if cfg.bucket != nil {
		seconds := newBucketSeconds()
		cfg.bucket.Observer = seconds
		api.Collectors = append(api.Collectors, seconds)
	}
	if a.blobs, err = openBlobs(ctx, cfg, dir); err != nil {
		return nil, err
	}
	secret := []byte(cfg.cluster.secret)
	if len(secret) == 0 {
		if secret, err = a.secret(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.cluster.role != roleAPI {
		if err := a.probe(ctx, &cfg, scratch, &api); err != nil {
			return nil, err
		}
	}
	api.Concurrency = cfg.cluster.limits(api.Concurrency, api.Actions)
	api.Blobs, api.Files, api.Operations = a.blobs, a.db.Files(), a.db.Operations()
	api.Secrets = [][]byte{secret}
	api.TempDir = scratch
	api.Log = log
	api.Starting = func() bool { return a.set != nil && !a.warm.Load() }
	api.Checks = map[string]func(context.Context) error{
		dependencyDatabase: a.db.Ping,
		dependencyScratch:  func(context.Context) error { return writable(scratch) },
	}
	store := dependencyStore
	if cfg.bucket != nil {
		store = dependencyBucket
	}
	api.Checks[store] = func(ctx context.Context) error { return blob.Check(ctx, a.blobs) }
	api.Collectors = append(api.Collectors, a.db.Collectors()...)
	if cfg.cluster.role == roleWorker {
		a.node, err = httpapi.NewNode(api)
	} else {
		err = a.serveAPI(&cfg, api)
	}
	if err != nil {
		return nil, err
	}
	if err := a.bind(ctx, &cfg); err != nil || cfg.cluster.url == "" {
		return a, err
	}
	if a.cluster, err = newCluster(a, &cfg.cluster, api.Concurrency, api.Actions, api.Engines); err != nil {
		return nil, err
	}
	return a, a.cluster.heartbeat(ctx)
}

// serveAPI creates the service: a node with the API, accounts and webhooks.
func (a *app) serveAPI(cfg *serverConfig, api httpapi.Config) (err error) {
	if a.breached, err = cfg.login.breached(); err != nil {
		return err
	}
	a.accounts = auth.New(auth.Config{
		Accounts: a.db.Accounts(), Keys: a.db.Keys(), Sessions: a.db.Sessions(), Usage: a.db, Identities: a.db.Identities(),
		NoPasswords: !cfg.login.passwords, Breached: a.breached, Limits: cfg.limits, SessionTime: cfg.sessionTime, Factors: a.db.Factors(), Passkeys: a.db.Passkeys(), Members: a.db.Members(), Audit: a.db.Audit(), Secrets: api.Secrets, BaseURL: api.BaseURL, TrustProxy: api.TrustProxy, Log: a.log,
	})
	api.Auth = a.accounts
	if a.signIn, err = cfg.login.signIn(api.Secrets, a.log); err != nil {
		return err
	}
	if a.hooks, err = cfg.webhooks.newWebhooks(a.db, &cfg.cluster, &api, func() *httpapi.Service { return a.service }, a.log); err != nil {
		return err
	}
	api.Extensions = admin.New(admin.Config{Accounts: a.accounts, Operations: a.db, Webhooks: a.hooks})
	if cfg.mcp {
		api.Extensions = append(api.Extensions, mcp.New(mcp.Options{Version: version(), Imports: cfg.urls.imports}))
	}
	if err := a.serveGotenberg(cfg, &api); err != nil {
		return err
	}
	if cfg.runTimeout > 0 {
		api.Extensions = append(api.Extensions, onecall.New(onecall.Config{Timeout: cfg.runTimeout}))
	}
	if a.imports, err = a.newImports(cfg, &api); err != nil {
		return err
	}
	if a.imports != nil {
		api.Extensions = append(api.Extensions, a.imports.Extension)
		api.Collectors = append(api.Collectors, a.imports.Collectors()...)
	}
	if a.deliveries, err = a.newDeliveries(cfg, &api); err != nil {
		return err
	}
	if a.deliveries != nil {
		api.Extensions = append(api.Extensions, a.deliveries.Extension)
		api.Collectors = append(api.Collectors, a.deliveries.Collectors()...)
		api.OnFinal = a.deliveries.Ended
	}
	if a.hooks != nil {
		api.Collectors = append(api.Collectors, a.hooks.Collectors()...)
	}
	if a.service, err = httpapi.New(api); err != nil {
		return err
	}
	a.node = a.service.Node
	return nil
}

// offer passes the combined capabilities of a cluster to clients.
func (a *app) offer(actions []fileops.Action, engines []httpapi.Engine) error {
	if a.service == nil {
		a.node.ShowEngines(engines)
		return nil
	}
	return a.service.Offer(actions, engines)
}

// join opens the shared database of a cluster.
func (a *app) join(ctx context.Context, c *clusterConfig, api *httpapi.Config) (err error) {
	// The data directory belongs to this server alone.
	if a.lock, err = sqlstore.LockFile(ctx, filepath.Join(a.dataDir, "node.lock")); err != nil {
		return fmt.Errorf("data directory %s: %w", a.dataDir, err)
	}
	if a.db, err = sqlstore.Open(ctx, sqlstore.Options{URL: c.url, Log: a.log}); err != nil {
		return err
	}
	api.Shared, api.Lease, api.Locker = true, c.lease, a.db
	api.OnFinal = remote.Hasten(a.db.Transfers(), a.log) // servers that run no deliveries end operations too
	a.workers = newWorkers()
	api.Collectors = append(api.Collectors, a.workers)
	api.Dispatcher, err = riverqueue.New(ctx, a.db, &riverqueue.Options{Lease: c.lease, OverflowWait: max(0, api.Limits.OverflowWait), Log: a.log})
	return err
}

// bind checks that the database and the files belong together.
func (a *app) bind(ctx context.Context, cfg *serverConfig) error {
	o := upload.BindOptions{
		Adopt:   cfg.adopt,
		Records: "the database " + filepath.Join(a.dataDir, databaseName),
		Content: "the directory " + cmp.Or(cfg.blobDir, filepath.Join(a.dataDir, "blobs")),
	}
	if cfg.cluster.url != "" {
		o.Records = "the PostgreSQL database"
		if u, err := url.Parse(cfg.cluster.url); err == nil { // without the password
			o.Records += fmt.Sprintf(" %s at %s", strings.TrimPrefix(u.Path, "/"), cmp.Or(u.Host, "the default host"))
		}
	}
	if b := cfg.bucket; b != nil {
		o.Content = fmt.Sprintf("the bucket %s at %s", strings.TrimSuffix(b.Bucket+"/"+b.Prefix, "/"), cmp.Or(b.Endpoint, "Amazon S3"))
	}
	err := a.node.Uploads().Bind(ctx, o)
	if errors.Is(err, upload.ErrIdentity) {
		return fmt.Errorf("%w. Nothing was changed. Use a database and files that belong together, or start once with --adopt; files without a record are then removed after some days", err)
	}
	return err
}

// probe looks for the engines of this host.
func (a *app) probe(ctx context.Context, cfg *serverConfig, scratch string, api *httpapi.Config) error {
	if cfg.engines.CacheDir == "" {
		cfg.engines.CacheDir = filepath.Join(a.dataDir, "cache")
	}
	cfg.engines.TempDir = scratch
	cfg.engines.Log = a.log
	if cfg.engines.OfficeWorkers == 0 {
		// One more than the concurrency, for the overflow slot (Limits.OverflowWait).
		n, ok := cfg.api.Concurrency["office"]
		if !ok {
			n = runtime.GOMAXPROCS(0)
		}
		cfg.engines.OfficeWorkers = n + 1
	}
	a.set = standard.Probe(ctx, cfg.engines.options())
	confined := a.set.Sandbox()
	switch {
	case cfg.engines.isolation == isolationNamespaces && !confined.Namespaced():
		return fmt.Errorf("this host does not permit namespaces for engines (%s); use --isolation auto to run without them", strings.Join(confined.Missing(), "; "))
	case cfg.engines.isolation == isolationCgroup && !confined.Grouped():
		return fmt.Errorf("this host does not permit a PID namespace and a cgroup for each run (%s); use --isolation auto to run without them", strings.Join(confined.Missing(), "; "))
	case confined.Strong():
		a.log.Info("engines run in the sandbox", "tier", len(confined.Layers()), "layers", strings.Join(confined.Layers(), ", "), "missing", strings.Join(confined.Missing(), "; "))
	case cfg.engines.sandbox == sandboxRequire:
		return fmt.Errorf("this host cannot confine the engines (%s); use --sandbox auto to leave out those engines", strings.Join(confined.Missing(), "; "))
	default:
		a.log.Warn("engines are NOT fully sandboxed: a malicious file could read other files or use the network", "missing", strings.Join(confined.Missing(), "; "))
	}
	api.Actions = a.set.Actions()
	api.Engines = engines(a.set)
	api.Sandbox = &httpapi.Sandbox{
		Tier: len(confined.Layers()), Layers: append([]string{}, confined.Layers()...), Missing: append([]string{}, confined.Missing()...),
	}
	return nil
}

// A blobStore stores the files.
type blobStore interface {
	blob.Store
	io.Closer
}

// openBlobs opens the bucket or directory of --blob-url, or else a directory in the data directory.
func openBlobs(ctx context.Context, cfg serverConfig, dir string) (blobStore, error) {
	if cfg.bucket == nil {
		open := fsblob.New
		if cfg.cluster.url != "" {
			open = fsblob.NewShared
		}
		s, err := open(cmp.Or(cfg.blobDir, filepath.Join(dir, "blobs")))
		if err != nil {
			return nil, err // not a nil pointer in a non-nil interface
		}
		return s, nil
	}
	s, err := s3blob.New(*cfg.bucket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.Check(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("--blob-url: %w", err)
	}
	return s, nil
}

// bucketSeconds measures bucket requests.
type bucketSeconds struct{ *prometheus.HistogramVec }

func newBucketSeconds() bucketSeconds {
	return bucketSeconds{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "filewright_bucket_request_seconds", Help: "Time from a request to the bucket until its response header; status none: no response.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"method", "status"})}
}

// Observe implements s3blob.Observer.
func (b bucketSeconds) Observe(method string, status int, took time.Duration) {
	text := "none"
	if status != 0 {
		text = strconv.Itoa(status)
	}
	b.WithLabelValues(method, text).Observe(took.Seconds())
}

func (a *app) close() {
	a.closeTracer()
	if a.set != nil {
		a.set.Close()
	}
	if a.blobs != nil {
		a.blobs.Close()
	}
	if a.db != nil {
		if err := a.db.Close(); err != nil {
			a.log.Error("database not closed", "err", err)
		}
	}
	if a.lock != nil {
		a.lock.Close()
	}
	if a.breached != nil {
		a.breached.Close()
	}
}

// secret returns the secret of the data directory. The first start creates it.
func (a *app) secret(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, 32)
	rand.Read(fresh)
	return a.db.SetSettingOnce(ctx, "secret", fresh)
}

// engines returns the engines of the host for the API.
func engines(set *standard.Set) []httpapi.Engine {
	var out []httpapi.Engine
	for _, e := range set.Dependencies() {
		out = append(out, httpapi.Engine{Name: e.Name, Version: e.Version, Err: e.Err, Hint: e.Hint})
	}
	return out
}

// writable returns an error unless files can be created in dir.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, "ready-")
	if err != nil {
		return err
	}
	_, err = f.WriteString("ready")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// A firstStart holds the credentials that the very first start creates and shows once.
type firstStart struct{ name, password, key string }

// bootstrap creates the first administrator, unless one exists or existed, and a key if none exists. Of
// several servers that start together, one does it.
func (a *app) bootstrap(ctx context.Context) (f firstStart, err error) {
	if f.name, f.password, err = a.accounts.Bootstrap(ctx); err != nil || f.name == "" {
		return f, err
	}
	all, err := a.accounts.Keys().List(ctx, "")
	if err != nil || len(all) > 0 {
		return f, err
	}
	acct, err := a.accounts.ByName(ctx, f.name)
	if err != nil {
		return f, err
	}
	f.key, _, err = a.accounts.Keys().Create(ctx, auth.NewKey{Name: "first key", Account: acct.ID})
	return f, err
}

// welcome prints the server's address and, at the very first start, how to try it. The first
// password and key go to a file if standard output is neither a terminal nor a pipe. try returns
// shell commands that convert a sample file.
func (a *app) welcome(c *cli, base string, dashboard bool, first firstStart, try func(base, key, sample string) string) {
	base = strings.TrimSuffix(base, "/")
	pages := fmt.Sprintf("documentation: %s/docs", base)
	if dashboard {
		pages = fmt.Sprintf("dashboard: %s/dashboard/, %s", base, pages)
	}
	var b strings.Builder // printed at once: programs wait for the first line
	fmt.Fprintf(&b, "Filewright %s is ready at %s (%s)\n", version(), base, pages)
	var missing []string
	if a.set != nil {
		for _, e := range a.set.Dependencies() {
			if e.Err != nil {
				missing = append(missing, e.Name)
			}
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "Not available here: %s. Run \"refserver doctor\" to see what to install.\n", strings.Join(missing, ", "))
	}
	secrets := &b
	if !isTerminal(c.out) && !isPipe(c.out) { // a log file, which other users may read
		secrets = new(strings.Builder)
	}
	if first.name != "" {
		fmt.Fprintf(secrets, "\nThe administrator is %s. The password, shown only this once, must be changed at the first login: %s\n(\"refserver accounts password %s\" resets it.)\n", first.name, first.password, first.name)
	}
	if key := first.key; key != "" {
		fmt.Fprintf(secrets, "\nYour API key, shown only this once: %s\n(\"refserver keys create\" creates more.)\n", key)
		sample, how := "report.docx", "put the name of one of your documents in place of report.docx and paste this into another terminal"
		// The user's other terminal may be in any directory.
		if path, err := filepath.Abs(filepath.Join("examples", "files", "report.docx")); err == nil {
			if _, err := os.Stat(path); err == nil {
				sample, how = path, "paste this into another terminal"
			}
		}
		fmt.Fprintf(secrets, "\nTo try it, %s:\n\n%s\n", how, try(base, key, sample))
	}
	if secrets != &b && secrets.Len() > 0 {
		path := filepath.Join(a.dataDir, firstStartName)
		if err := writeSecrets(path, strings.TrimPrefix(secrets.String(), "\n")); err != nil {
			fmt.Fprintf(&b, "Cannot write the password of %s: %v. Run \"refserver accounts password %s\" to reset it.\n", first.name, err, first.name)
		} else {
			fmt.Fprintf(&b, "The first password and API key are in %s, which only the server's user can read. Delete the file after you have read it.\n", path)
		}
	}
	fmt.Fprint(c.out, b.String())
}

// isPipe reports whether w is a pipe to another program, such as the parent process or a container
// runtime.
func isPipe(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// firstStartName is the file in the data directory with the credentials of the first start.
const firstStartName = "first-start.txt"

// writeSecrets writes a file that only the current user can read.
func writeSecrets(path, text string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// oneCall returns a shell command that converts a document to PDF with curl in one request.
func oneCall(base, key, sample string) string {
	return fmt.Sprintf(`curl -F file=@%s -F convert_to=pdf -H "Authorization: Bearer %s" %s/api/v1/run/convert -o report.pdf`, shellQuote(sample), key, base)
}

// walkthrough returns shell commands that convert a document to PDF with curl.
func walkthrough(base, key, sample string) string {
	return strings.NewReplacer("@BASE@", base, "@KEY@", key, "@SAMPLE@", shellQuote(sample)).Replace(`API=@BASE@ KEY=@KEY@ FILE=@SAMPLE@
get()  { grep -o "\"$1\":\[*\"[^\"]*" | head -n 1 | sed 's/.*"//'; }
post() { curl -sS "$API/api/v1/$1" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d "$2"; }
UP=$(post initiate-upload '{"file_name":"'"${FILE##*/}"'","size":'$(wc -c < "$FILE")',"mime_type":"application/octet-stream"}')
KEYNO=$(echo "$UP" | get file_key)
ETAG=$(curl -sS -T "$FILE" -D - -o /dev/null "$(echo "$UP" | get presigned_urls)" | tr -d '"\r' | sed -n 's/^[Ee][Tt]ag: //p')
post complete-upload '{"file_key":"'$KEYNO'","object_name":"'$(echo "$UP" | get object_name)'","upload_id":"'$(echo "$UP" | get upload_id)'","parts":[{"etag":"'$ETAG'","part_number":1}]}'
TASK=$(post do '{"action":"convert","file_keys":["'$KEYNO'"],"parameters":{"convert_to":"pdf"}}' | get main_task_id)
LINK=$(curl -sS "$API/api/v1/status/$TASK?wait=60s" -H "Authorization: Bearer $KEY" | get download_link)
curl -sS -OJ -w 'saved %{filename_effective}, %{size_download} bytes\n' "$API$LINK"`)
}

// plainWord matches words without special characters of a shell.
var plainWord = regexp.MustCompile(`^[-+./:@_0-9A-Za-z]+$`)

// shellQuote quotes s as one shell word.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
