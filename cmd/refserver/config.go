package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// defaultListen is the default of --listen.
const defaultListen = "127.0.0.1:8080"

// serverConfig is the configuration of a server.
type serverConfig struct {
	listen     string
	dataDir    string
	blobURL    string
	bucket     *s3blob.Config // nil: a directory
	blobDir    string         // "": in the data directory
	adopt      bool           // the files belong to the database, whatever their identity says
	publicURL  string
	envelope   string
	headerTime time.Duration
	idleTime   time.Duration
	rate       float64
	runTimeout time.Duration
	logFormat  string
	logLevel   slog.Level
	metricsLn  string // address for metrics and details; "": the API's
	debugLn    string // address for profiles; "": none
	engines    engineConfig
	cluster    clusterConfig
	tracing    tracingConfig
	dashboard  bool
	mcp        bool
	gotenberg  gotenbergConfig
	webhooks   webhookConfig
	urls       urlConfig
	api        httpapi.Config

	login       loginConfig
	limits      account.Limits // of new accounts
	sessionTime time.Duration
	auditTTL    time.Duration
}

func (s *serverConfig) register(fs *flagSet) {
	fs.section("Network", s.registerNetwork)
	fs.section("API", s.registerAPI)
	fs.section("Storage", s.registerStorage)
	fs.section("Lifetimes", s.registerLifetimes)
	fs.section("Request limits", s.registerRequestLimits)
	fs.section("Processing", s.registerProcessing)
	fs.section("Accounts", s.registerAccounts)
	fs.section("Sign-in", s.login.register)
	fs.section("Webhooks", s.webhooks.register)
	fs.section("URLs", s.urls.register)
	fs.section("Logs, metrics and profiles", s.registerMonitoring)
	fs.section("Traces", s.tracing.register)
	fs.section("Cluster", s.cluster.register)
	s.engines.register(fs)
}

func (s *serverConfig) registerNetwork(fs *flagSet) {
	fs.StringVar(&s.listen, "listen", defaultListen, "`address` to listen on")
	fs.StringVar(&s.publicURL, "public-url", "", "`URL` at which clients reach the server; upload URLs start with it; default: the address that the request was sent to")
	fs.BoolVar(&s.api.TrustProxy, "trust-proxy", false, "trust X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For; only behind a proxy that sets them")
	fs.list(&s.api.Origins, "cors-origins", "comma-separated web `origins` that may call the API from a browser; * for all; default: none")
	s.api.Limits.MinRate = 16 << 10
	fs.sizeOrZero(&s.api.Limits.MinRate, -1, "min-rate", "minimum average transfer rate of a client in bytes per second, as a `size`; 0: unlimited [16KiB]")
	fs.DurationVar(&s.api.Limits.Stall, "stall-time", 30*time.Second, "maximum `duration` of a pause in a transfer; --min-rate is averaged over this time")
	fs.DurationVar(&s.headerTime, "header-time", 10*time.Second, "maximum `duration` of reading the headers of a request")
	fs.DurationVar(&s.idleTime, "idle-time", 2*time.Minute, "`duration` after which an idle connection is closed")
}

func (s *serverConfig) registerAPI(fs *flagSet) {
	fs.BoolVar(&s.dashboard, "dashboard", true, "serve the dashboard at /dashboard/")
	fs.BoolVar(&s.mcp, "mcp", true, "serve the Model Context Protocol at /mcp, for agents with an API key")
	s.gotenberg.register(fs)
	s.envelope = "dual"
	fs.choice(&s.envelope, "envelope", "`position` of the members of responses: at the top (plain), under \"data\" (data) or both (dual)", "dual", "plain", "data")
	fs.DurationVar(&s.runTimeout, "run-timeout", 10*time.Minute, "maximum `duration` that a client may wait for the result of POST /api/v1/run/ACTION; 0: this endpoint is off")
	fs.BoolVar(&s.api.AbsoluteLinks, "absolute-links", false, "return download links that start with --public-url")
	fs.BoolVar(&s.api.PrivateDownloads, "private-downloads", false, "require the owner's API key for download links")
	fs.BoolVar(&s.api.RedirectDownloads, "redirect-downloads", false, "redirect downloads to the bucket of --blob-url")
}

func (s *serverConfig) registerStorage(fs *flagSet) {
	registerDataDir(fs, &s.dataDir)
	registerBlobURL(fs, &s.blobURL)
	fs.BoolVar(&s.adopt, "adopt", false, "use a database with files whose identity differs; for one start. Files without a record are removed after some days")
	fs.sizeOrZero(&s.api.Limits.MinFree, -1, "min-free", "disk space that uploads leave free, as a `size`; 0: none [256MiB]")
}

func (s *serverConfig) registerLifetimes(fs *flagSet) {
	r := &s.api.Retention
	fs.DurationVar(&r.URLs, "url-ttl", time.Hour, "`lifetime` of upload URLs, at most 168h")
	fs.DurationVar(&r.Sessions, "session-ttl", 24*time.Hour, "`lifetime` of incomplete uploads")
	fs.DurationVar(&r.Files, "file-ttl", 24*time.Hour, "`lifetime` of uploaded files and results; negative: unlimited")
	fs.DurationVar(&r.Operations, "operation-ttl", 7*24*time.Hour, "`lifetime` of finished operations; negative: unlimited")
	fs.DurationVar(&r.Expired, "expired-ttl", 7*24*time.Hour, "`duration` for which requests for an expired file answer 410 Gone; negative: none")
	fs.DurationVar(&r.Quarantine, "quarantine", 7*24*time.Hour, "`duration` for which stored content without a record is kept before it is deleted; 0: 168h; negative: none")
	fs.DurationVar(&r.Sweep, "sweep", time.Minute, "`interval` between two deletions of expired data")
}

func (s *serverConfig) registerRequestLimits(fs *flagSet) {
	l := &s.api.Limits
	fs.size(&l.FileSize, "max-file-size", "maximum `size` of an uploaded file, such as 500MB or 20GiB [5TiB]")
	fs.IntVar(&l.Files, "max-files", 100, "maximum `number` of files of one operation")
	fs.IntVar(&l.Queued, "max-queued", 10000, "maximum `number` of queued files of one account")
	fs.IntVar(&l.QueuedTotal, "max-queued-total", 100000, "maximum `number` of queued files of all accounts; negative: unlimited")
	s.rate = 1000
	fs.Func("rate", "maximum `requests` per second with one API key; 0: unlimited [1000]", func(v string) (err error) {
		s.rate, err = strconv.ParseFloat(v, 64)
		if err == nil && !(s.rate >= 0) {
			err = errors.New("must be a number, not negative")
		}
		return err
	})
	fs.IntVar(&l.Rate.Burst, "rate-burst", 10_000, "maximum `number` of requests in a burst with one API key")
	fs.IntVar(&l.InvalidKeys.Burst, "invalid-keys", 50, "maximum `number` of requests with an invalid API key from one address in a burst, and one more each second; negative: unlimited")
}

func (s *serverConfig) registerProcessing(fs *flagSet) {
	l := &s.api.Limits
	fs.Func("concurrency", "number of files processed at the same time, by engine family: `family=number`, comma-separated, such as office=2,image=4; families: "+strings.Join(families, " ")+" [number of cores for each]", func(v string) (err error) {
		s.api.Concurrency, err = parseConcurrency(v)
		return err
	})
	fs.DurationVar(&l.OverflowWait, "overflow-wait", 2*time.Second, "`duration` after which a waiting account with no running files gets a slot beyond --concurrency, if another account holds all slots; negative: never")
	fs.DurationVar(&l.TaskTime, "task-time", 30*time.Minute, "maximum processing `duration` of one file")
	fs.DurationVar(&l.QueueTime, "queue-time", 24*time.Hour, "maximum `duration` that a file is queued")
	fs.IntVar(&l.MaxAttempts, "max-attempts", 3, "maximum `number` of attempts on a file whose engine dies or that fails with an internal error")
	fs.IntVar(&l.MaxRestarts, "max-restarts", 1000, "maximum `number` of restarts of a file after its server was killed")
	fs.DurationVar(&l.MaxWait, "max-wait", 24*time.Hour, "maximum `duration` that a file waits for storage, the database, disk space or an engine; negative: unlimited")
	fs.DurationVar(&l.Drain, "drain", 30*time.Second, "`duration` for running files to finish when the server stops; the others continue at the next start")
}

func (s *serverConfig) registerAccounts(fs *flagSet) {
	registerLimits(fs, "account-", "of a new account", &s.limits)
	fs.DurationVar(&s.auditTTL, "audit-ttl", 400*24*time.Hour, "`lifetime` of entries of the audit log; negative: unlimited")
	fs.DurationVar(&s.sessionTime, "login-ttl", 7*24*time.Hour, "`duration` after which an unused login ends; every login ends after 30 days")
}

func (s *serverConfig) registerMonitoring(fs *flagSet) {
	s.logFormat = "text"
	fs.choice(&s.logFormat, "log-format", "`format` of log lines: text or json", "text", "json")
	fs.Func("log-level", "minimum `level` of log lines: debug, info, warn or error [info]", func(v string) error { return s.logLevel.UnmarshalText([]byte(v)) })
	fs.BoolVar(&s.api.LogRequests, "log-requests", true, "log every answered request at level info")
	fs.StringVar(&s.metricsLn, "metrics-listen", "", "second `address` to listen on, for /metrics, /healthz and a detailed /readyz; --listen then serves no metrics and a /readyz without details")
	fs.token(&s.api.MetricsToken, minToken, "metrics-token", "`token` of at least %d characters that clients must send as Authorization: Bearer to read /metrics and details of /readyz on --listen")
	fs.Func("debug-listen", "loopback `address` for Go profiles (net/http/pprof), such as 127.0.0.1:6060", func(v string) error {
		host, _, err := net.SplitHostPort(v)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return errors.New("profiles expose memory contents: the host must be localhost or a loopback address such as 127.0.0.1")
		}
		s.debugLn = v
		return nil
	})
}

// minToken is the least length of --metrics-token.
const minToken = 16

// finish checks flags that depend on each other, and reads environment variables without a flag.
func (s *serverConfig) finish(env func(string) (string, bool)) error {
	if err := s.locateBlobs(env); err != nil {
		return err
	}
	if s.api.RedirectDownloads && s.bucket == nil {
		return errors.New("--redirect-downloads requires --blob-url s3://…")
	}
	if err := s.parsePublicURL(); err != nil {
		return err
	}
	if s.api.AbsoluteLinks && s.api.BaseURL == nil {
		return errors.New("--absolute-links requires --public-url")
	}
	s.api.Limits.Rate.PerSecond = s.rate
	if s.rate == 0 {
		s.api.Limits.Rate = httpapi.Unlimited()
	}
	s.api.Limits.InvalidKeys.PerSecond = 1
	if s.api.Limits.InvalidKeys.Burst < 0 {
		s.api.Limits.InvalidKeys = httpapi.Unlimited()
	}
	if err := s.checkNumbers(); err != nil {
		return err
	}
	if err := s.gotenberg.check(s.webhooks.send); err != nil {
		return err
	}
	if err := s.login.check(); err != nil {
		return err
	}
	s.api.Limits.Output = s.engines.output
	s.api.Envelope = map[string]httpapi.Envelope{"dual": httpapi.EnvelopeDual, "plain": httpapi.EnvelopePlain, "data": httpapi.EnvelopeData}[s.envelope]
	s.api.HideDetails = s.metricsLn != "" || s.api.MetricsToken != ""
	return s.cluster.finish(s.blobURL != "")
}

// parsePublicURL sets the base URL of the API from --public-url.
func (s *serverConfig) parsePublicURL() error {
	if s.publicURL == "" {
		return nil
	}
	u, err := url.Parse(s.publicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--public-url must be a URL such as https://files.example.com, not %q", s.publicURL)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	s.api.BaseURL = u
	return nil
}

// checkNumbers checks the ranges of durations and counts.
func (s *serverConfig) checkNumbers() error {
	for name, d := range map[string]time.Duration{"header-time": s.headerTime, "idle-time": s.idleTime, "url-time": s.urls.time, "stall-time": s.api.Limits.Stall, "task-time": s.api.Limits.TaskTime, "queue-time": s.api.Limits.QueueTime, "login-ttl": s.sessionTime} {
		if d <= 0 {
			return fmt.Errorf("--%s must be positive", name)
		}
	}
	if s.auditTTL == 0 {
		return errors.New("--audit-ttl must not be 0; a negative duration means unlimited")
	}
	for name, n := range map[string]int{"max-attempts": s.api.Limits.MaxAttempts, "max-restarts": s.api.Limits.MaxRestarts} {
		if n <= 0 {
			return fmt.Errorf("--%s must be at least 1", name)
		}
	}
	if s.runTimeout < 0 {
		return errors.New("--run-timeout must not be negative")
	}
	if s.api.Limits.Queued <= 0 {
		return errors.New("--max-queued must be at least 1")
	}
	if s.rate > 0 && s.api.Limits.Rate.Burst <= 0 {
		return errors.New("--rate-burst must be at least 1")
	}
	return nil
}

// locateBlobs parses --blob-url.
func (s *serverConfig) locateBlobs(env func(string) (string, bool)) error {
	switch scheme, _, isURL := strings.Cut(s.blobURL, "://"); {
	case s.blobURL == "":
	case isURL && scheme == "file":
		return errors.New("--blob-url: give the path of a directory without file://")
	case !isURL && !strings.HasPrefix(s.blobURL, "s3:"):
		s.blobDir = s.blobURL
	default:
		c, err := s3blob.ParseURL(s.blobURL)
		if err != nil {
			return fmt.Errorf("--blob-url: %w", err)
		}
		if c.Credentials, err = bucketCredentials(env); err != nil {
			return err
		}
		s.bucket = &c
	}
	return nil
}

// bucketCredentials returns the credentials for the bucket: from the environment, under the usual
// names of S3 clients, or else from the host (EC2, ECS, EKS).
func bucketCredentials(env func(string) (string, bool)) (*credentials.Credentials, error) {
	get := func(name string) string { v, _ := env(name); return v }
	access, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
	switch {
	case access != "" && secret != "":
		return credentials.NewStaticV4(access, secret, get("AWS_SESSION_TOKEN")), nil
	case access != "" || secret != "":
		return nil, errors.New("--blob-url requires both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither")
	}
	return credentials.NewIAM(""), nil
}

// logger returns the server's logger. Every line names the node. Outages of dependencies are
// summarised.
func (s *serverConfig) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: s.logLevel}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if s.logFormat == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	s.api.Node = nodeName()
	s.api.Outages = httpapi.NewOutages(h.WithAttrs([]slog.Attr{slog.String("node", s.api.Node)}), s.dependencyOf)
	return slog.New(s.api.Outages.Handler())
}

// nodeName names this process for people: its host and process ID.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Names of dependencies, in readyz, metrics and log lines.
const (
	dependencyDatabase = "database"
	dependencyStore    = "store"
	dependencyBucket   = "bucket"
	dependencyScratch  = "scratch"
	dependencyDisk     = "disk space"
)

// dependencyOf returns the dependency that an error belongs to, or "".
func (s *serverConfig) dependencyOf(err error) string {
	switch name := httpapi.DependencyOf(err); {
	case name == dependencyStore && s.bucket != nil:
		return dependencyBucket
	case name != "":
		return name
	case sqlstore.IsUnavailable(err):
		return dependencyDatabase
	case errors.Is(err, syscall.ENOSPC):
		return dependencyDisk
	}
	return ""
}

func registerDataDir(fs *flagSet, dir *string) {
	fs.StringVar(dir, "data-dir", "data", "`directory` that holds the server's state; created if missing")
}

func registerBlobURL(fs *flagSet, url *string) {
	fs.StringVar(url, "blob-url", "", "`location` of the stored files: a bucket, s3://bucket/prefix?region=…&endpoint=…, or the path of a directory, which several servers may share; default: in the data directory. Bucket credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else from the role of the host")
}

// engineConfig configures the engines.
type engineConfig struct {
	standard.Options
	sandbox   string
	isolation string
	output    int64
}

// options returns the options of package standard.
func (e *engineConfig) options() *standard.Options {
	o := e.Options
	o.Unconfined, o.NoNamespaces = e.sandbox == sandboxOff, e.isolation == isolationBasic
	return &o
}

// Values of --isolation.
const (
	isolationAuto       = "auto"
	isolationBasic      = "basic"
	isolationNamespaces = "namespaces"
	isolationCgroup     = "cgroup"
)

// Values of --sandbox.
const (
	sandboxAuto    = "auto"
	sandboxRequire = "require"
	sandboxOff     = "off"
)

func (e *engineConfig) register(fs *flagSet) {
	fs.section("Engines", e.registerEngines)
	fs.section("Sandbox", e.registerSandbox)
	fs.section("Limits for one file", e.registerLimits)
}

func (e *engineConfig) registerEngines(fs *flagSet) {
	for _, p := range []struct {
		path *string
		name string
	}{{&e.FFmpeg, "ffmpeg"}, {&e.FFprobe, "ffprobe"}, {&e.LibreOffice, "soffice"}, {&e.Python, "python"}, {&e.Pandoc, "pandoc"}, {&e.QPDF, "qpdf"}, {&e.Chromium, "chromium"}, {&e.Tesseract, "tesseract"}, {&e.BSDTar, "bsdtar"}, {&e.LibRaw, "simple_dcraw"}, {&e.JPEGTran, "jpegtran"}, {&e.Ghostscript, "gs"}, {&e.PDFToCairo, "pdftocairo"}, {&e.Mobitool, "mobitool"}} {
		fs.StringVar(p.path, p.name, "", "`path` of "+p.name+"; none: not used; default: found in PATH")
	}
	fs.IntVar(&e.IsolatedFiles, "isolated-files", 64, "`number` of small files of one account that an isolated process reads before it is replaced; 1: a new process for each file")
	fs.IntVar(&e.OfficeDocuments, "office-documents", 50, "`number` of documents after which a LibreOffice process is replaced; 1: a new process for each document")
	fs.BoolVar(&e.ProofPrint, "proof-print", false, "print each Word document that is made of a PDF file with LibreOffice, compare it with the file, and keep the look of pages that differ; takes several times as long")
	fs.StringVar(&e.CacheDir, "cache-dir", "", "`directory` for compiled code; default: in the data directory, and for commands on local files in the cache of the user")
}

func (e *engineConfig) registerSandbox(fs *flagSet) {
	e.sandbox = sandboxAuto
	fs.choice(&e.sandbox, "sandbox", "sandbox `mode`. auto: run engines in a kernel sandbox, and leave out those that the host cannot confine; require: fail to start instead; off: no sandbox, if all files are trusted", sandboxAuto, sandboxRequire, sandboxOff)
	e.isolation = isolationAuto
	fs.choice(&e.isolation, "isolation", "`layers` beside the sandbox. auto: what the host permits; basic: none; namespaces: required to start; cgroup: these, PID namespaces and a cgroup for each run are required to start", isolationAuto, isolationBasic, isolationNamespaces, isolationCgroup)
	fs.list(&e.AllowWeak, "sandbox-allow", "comma-separated `engines` to run even if the host cannot confine them, such as libreoffice,ffmpeg")
	fs.BoolVar(&e.Isolate, "isolate", true, "run libraries that parse files (libvips, pdfcpu and others) in a sandboxed process for each file; false: in the server, if all files are trusted")
}

// registerLimits registers the flags for the limits of one file.
func (e *engineConfig) registerLimits(fs *flagSet) {
	l := &e.Limits
	number := func(name string, set func(int64), usage string) {
		fs.Func(name, usage, func(v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > 1<<31-1 {
				return fmt.Errorf("%q is not a number from 1 to %d", v, 1<<31-1)
			}
			set(n)
			return nil
		})
	}
	span := func(name string, to *time.Duration, usage string) {
		fs.Func(name, usage, func(v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("%q is not a duration such as 90s, 10m or 2h", v)
			}
			*to = d
			return nil
		})
	}
	number("max-pixels", func(n int64) { l.Pixels = n }, "maximum `number` of pixels (width times height) of a picture, video frame or rendered page [100000000]")
	number("max-frames", func(n int64) { l.Frames = int(n) }, "maximum `number` of frames of an animation or pages of a TIFF [1000]")
	number("max-pages", func(n int64) { l.Pages = int(n) }, "maximum `number` of pages of a PDF, or of all PDFs of a merge [5000; 500 for text recognition]")
	span("max-duration", &l.Duration, "maximum `duration` of a recording, or of all recordings of a merge, such as 90s, 10m or 2h [24h]")
	number("max-entries", func(n int64) { l.Entries = int(n) }, "maximum `number` of entries of an archive or parts of a document [10000]")
	fs.size(&l.Unpacked, "max-unpacked", "maximum unpacked `size` of an archive or document [4GiB for archives, 1 or 2GiB for documents]")
	number("max-ratio", func(n int64) { l.Ratio = n }, "maximum compression `ratio` of an entry larger than 10 MiB [500]")
	number("max-cells", func(n int64) { l.Cells = n }, "maximum `number` of filled cells of an OpenDocument workbook [10000000]")
	span("cpu-time", &l.CPU, "maximum CPU `time` of one run of a program, all threads together [1m for qpdf, 10m to read with bsdtar and 1h to write, 2m for a page in Tesseract, 1h for isolated libraries, at least 10m for each thread of ffmpeg]")
	fs.size(&l.Memory, "max-memory", "maximum memory `size` of one run of a program [3 or 4GiB, depending on the program]")
	fs.size(&l.Scratch, "max-scratch", "maximum `size` of the temporary files of one run of a program [20GiB]")
	number("max-processes", func(n int64) { l.Processes = int(n) }, "maximum `number` of processes of one run of a program [64]")
	span("document-time", &l.Document, "maximum processing `time` of one document in LibreOffice, pandoc or Chromium [2m]")
	fs.size(&e.output, "max-output", "maximum `size` of all results of one file [20GiB]")
}

func splitList(v string) []string {
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// families are the engine families of package standard. Each has a queue.
var families = []string{"office", "web", "image", "media", "pdf", "archive", "data"}

// checkFamily returns an error for an unknown family.
func checkFamily(name string) error {
	if !slices.Contains(families, name) {
		return fmt.Errorf("unknown engine family %q; families are %s", name, strings.Join(families, ", "))
	}
	return nil
}

func parseConcurrency(v string) (map[string]int, error) {
	out := make(map[string]int)
	for _, part := range splitList(v) {
		family, text, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("%q does not have the form family=number", part)
		}
		if err := checkFamily(family); err != nil {
			return nil, err
		}
		out[family] = n
	}
	return out, nil
}

// parseSize parses a number of bytes with an optional unit: 10MB is ten million, 10MiB is 10 × 2^20
// (IEC 80000-13).
func parseSize(v string) (int64, error) {
	i := strings.IndexFunc(v, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	num, unit := v, ""
	if i >= 0 {
		num, unit = v[:i], strings.TrimSpace(v[i:])
	}
	n, err := strconv.ParseFloat(num, 64)
	scale, ok := map[string]float64{
		"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}[strings.ToLower(unit)]
	if err != nil || !ok || n*scale < 1 || n*scale > 1<<62 {
		return 0, fmt.Errorf("%q is not a size such as 500MB or 20GiB", v)
	}
	return int64(n * scale), nil
}
