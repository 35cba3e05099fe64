package main

import (
	"errors"
	"flag"
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

// envPrefix is the prefix of the environment variables for flags.
const envPrefix = "FILEWRIGHT_"

// envName returns the variable of a flag: FILEWRIGHT_DATA_DIR for data-dir.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flags returns the flag set of a command. about is the text of its help.
func (c *cli) flags(name, args, about string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // parse prints errors and help
	fs.Usage = func() {
		fmt.Fprintf(c.out, "Usage: refserver %s [flags]%s\n\n%s\n", name, args, about)
		first := true
		fs.VisitAll(func(f *flag.Flag) {
			if first {
				fmt.Fprint(c.out, "\nFlags (default in brackets):\n")
				first = false
			}
			kind, text := flag.UnquoteUsage(f)
			if kind != "" {
				kind = " " + kind
			}
			def := ""
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
				def = " [" + f.DefValue + "]"
			}
			fmt.Fprintf(c.out, "  --%s%s\n        %s%s\n", f.Name, kind, text, def)
		})
	}
	return fs
}

// parse parses the command line, and takes flags that are not in it from the environment. It
// requires between min and max arguments. Flags may follow arguments; after "--" there are only
// arguments.
func (c *cli) parse(fs *flag.FlagSet, args []string, min, max int) error {
	// Package flag prints flags with one dash; this program uses two.
	dashes := strings.NewReplacer("for flag -", "for --", "not defined: -", "not defined: --", "needs an argument: -", "needs an argument: --")
	wrong := func(err error) error {
		fmt.Fprintf(c.err, "refserver %s: %s\nrefserver %s --help tells more.\n", fs.Name(), dashes.Replace(err.Error()), fs.Name())
		return errUsage
	}
	usage := fs.Usage
	fs.Usage = func() {} // package flag also calls it for an invalid flag
	if err := parseAnywhere(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return err
		}
		return wrong(err)
	}
	given := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var bad error
	fs.VisitAll(func(f *flag.Flag) {
		if v, ok := c.env(envName(f.Name)); ok && !given[f.Name] && bad == nil {
			if err := fs.Set(f.Name, v); err != nil {
				bad = fmt.Errorf("%s: %w", envName(f.Name), err)
			}
		}
	})
	if bad != nil {
		return wrong(bad)
	}
	if n := fs.NArg(); n < min || n > max {
		return wrong(fmt.Errorf("%d arguments, expected %s", n, map[bool]string{true: strconv.Itoa(min), false: fmt.Sprintf("%d to %d", min, max)}[min == max]))
	}
	return nil
}

// parseAnywhere is fs.Parse with flags between the arguments.
func parseAnywhere(fs *flag.FlagSet, args []string) error {
	var plain []string
	for {
		if err := fs.Parse(args); err != nil {
			return err
		}
		rest := fs.Args()
		if n := len(args) - len(rest); len(rest) == 0 || n > 0 && args[n-1] == "--" {
			return fs.Parse(append(append([]string{"--"}, plain...), rest...))
		}
		plain, args = append(plain, rest[0]), rest[1:]
	}
}

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
	headerTime time.Duration
	idleTime   time.Duration
	rate       float64
	logFormat  string
	logLevel   slog.Level
	metricsLn  string // address for metrics and details; "": the API's
	debugLn    string // address for profiles; "": none
	engines    engineConfig
	cluster    clusterConfig
	dashboard  bool
	webhooks   webhookConfig
	api        httpapi.Config

	limits      account.Limits // of new accounts
	sessionTime time.Duration
}

func (s *serverConfig) register(fs *flag.FlagSet) {
	fs.StringVar(&s.listen, "listen", defaultListen, "`address` to listen on")
	registerDataDir(fs, &s.dataDir)
	registerBlobURL(fs, &s.blobURL)
	fs.BoolVar(&s.adopt, "adopt", false, "use the database and the files together although their identities differ; for one start. Files without a record are removed after some days")
	fs.BoolVar(&s.api.RedirectDownloads, "redirect-downloads", false, "answer downloads with a redirect to the bucket of --blob-url")
	fs.StringVar(&s.publicURL, "public-url", "", "`URL` under which clients reach the server, for upload URLs; default: the address that each request was sent to")
	fs.BoolVar(&s.dashboard, "dashboard", true, "serve the dashboard for people at /dashboard/")
	fs.BoolVar(&s.api.TrustProxy, "trust-proxy", false, "believe X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For; only behind a proxy that sets them")
	fs.Func("cors-origins", "web `origins` that may call from a browser, separated by commas; * for all", func(v string) error {
		s.api.Origins = splitList(v)
		return nil
	})
	fs.Func("envelope", "where responses carry their members: `dual` (at the top and under data), plain or data [dual]", func(v string) error {
		modes := map[string]httpapi.Envelope{"dual": httpapi.EnvelopeDual, "plain": httpapi.EnvelopePlain, "data": httpapi.EnvelopeData}
		mode, ok := modes[v]
		if !ok {
			return errors.New("must be dual, plain or data")
		}
		s.api.Envelope = mode
		return nil
	})
	fs.BoolVar(&s.api.AbsoluteLinks, "absolute-links", false, "download links start with the public URL")
	fs.BoolVar(&s.api.PrivateDownloads, "private-downloads", false, "download links work only with the owner's API key")
	fs.Func("max-file-size", "largest `size` of an uploaded file, such as 500MB or 20GiB [5TiB]", func(v string) (err error) {
		s.api.Limits.FileSize, err = parseSize(v)
		return err
	})
	fs.IntVar(&s.api.Limits.Files, "max-files", 100, "largest `number` of files in one operation")
	fs.DurationVar(&s.api.Limits.TaskTime, "task-time", 30*time.Minute, "longest `time` of work on one file")
	fs.DurationVar(&s.api.Limits.QueueTime, "queue-time", 24*time.Hour, "longest `time` that a file waits for work to begin")
	fs.IntVar(&s.api.Limits.Queued, "max-queued", 10000, "largest `number` of files of one account that wait")
	fs.IntVar(&s.api.Limits.QueuedTotal, "max-queued-total", 100000, "largest `number` of files of all accounts that wait; negative: any")
	fs.DurationVar(&s.api.Limits.GuestWait, "guest-wait", 2*time.Second, "`time` after which an account that has nothing running gets a place beyond --concurrency, if another one holds all; negative: never")
	s.rate = 100
	fs.Func("rate", "`requests` per second with one API key; 0: any [100]", func(v string) (err error) {
		s.rate, err = strconv.ParseFloat(v, 64)
		if err == nil && !(s.rate >= 0) {
			err = errors.New("must be a number, not negative")
		}
		return err
	})
	fs.IntVar(&s.api.Limits.Rate.Burst, "rate-burst", 1000, "largest `number` of requests at once with one API key")
	fs.IntVar(&s.api.Limits.WrongKeys.Burst, "wrong-keys", 50, "largest `number` of requests with a wrong API key from one address at once, one more each second; negative: any")
	s.api.Limits.MinRate = 16 << 10
	fs.Func("min-rate", "bytes per second that a client must send or take, as a `size`; 0: any [16KiB]", func(v string) (err error) {
		if v == "0" {
			s.api.Limits.MinRate = -1
			return nil
		}
		s.api.Limits.MinRate, err = parseSize(v)
		return err
	})
	fs.DurationVar(&s.api.Limits.Stall, "stall-time", 30*time.Second, "longest `time` without a byte in either direction of a transfer, and over which --min-rate is averaged")
	fs.DurationVar(&s.headerTime, "header-time", 10*time.Second, "longest `time` for the headers of a request to come")
	fs.DurationVar(&s.idleTime, "idle-time", 2*time.Minute, "`time` after which a connection without a request is closed")
	fs.Func("min-free", "disk space that uploads leave free, as a `size`; 0: none [256MiB]", func(v string) (err error) {
		if v == "0" {
			s.api.Limits.MinFree = -1
			return nil
		}
		s.api.Limits.MinFree, err = parseSize(v)
		return err
	})
	fs.IntVar(&s.api.Limits.MaxAttempts, "max-attempts", 3, "how often work on a file is started before it fails, if its engine dies or something goes wrong; `number`")
	fs.IntVar(&s.api.Limits.MaxRestarts, "max-restarts", 1000, "how often work on a file is started again because the server was killed, before it fails; `number`")
	fs.DurationVar(&s.api.Limits.MaxWait, "max-wait", 24*time.Hour, "longest `time` that a file waits for the storage, the database, disk space or an engine; negative: no limit")
	fs.DurationVar(&s.api.Limits.Drain, "drain", 30*time.Second, "`time` that running work gets to finish when the server is stopped; the rest goes on at the next start")
	fs.DurationVar(&s.api.Retention.URLs, "url-ttl", time.Hour, "`lifetime` of upload URLs, at most 168h")
	fs.DurationVar(&s.api.Retention.Sessions, "session-ttl", 24*time.Hour, "`lifetime` of uploads that are begun and not completed")
	fs.DurationVar(&s.api.Retention.Files, "file-ttl", 24*time.Hour, "`lifetime` of uploads and results; negative: for ever")
	fs.DurationVar(&s.api.Retention.Operations, "operation-ttl", 7*24*time.Hour, "`lifetime` of finished operations; negative: for ever")
	fs.DurationVar(&s.api.Retention.Expired, "expired-ttl", 7*24*time.Hour, "`time` for which the name of an expired file is kept, so that requests for it answer 410; negative: not at all")
	fs.DurationVar(&s.api.Retention.Quarantine, "quarantine", 7*24*time.Hour, "`time` for which stored content without a record is kept aside before it is deleted; 0: 168h; negative: not at all")
	fs.DurationVar(&s.api.Retention.Sweep, "sweep", time.Minute, "`time` between two rounds of deletion")
	fs.Func("concurrency", "how many files are worked on at once, `by engine family`: office=2,image=4; families: "+strings.Join(families, " ")+" [number of cores for each]", func(v string) (err error) {
		s.api.Concurrency, err = parseConcurrency(v)
		return err
	})
	fs.StringVar(&s.logFormat, "log-format", "text", "`text` or json")
	fs.Func("log-level", "`debug`, info, warn or error [info]", func(v string) error { return s.logLevel.UnmarshalText([]byte(v)) })
	fs.BoolVar(&s.api.LogRequests, "log-requests", true, "log every request that is answered, at the level info")
	fs.StringVar(&s.metricsLn, "metrics-listen", "", "`address` of another listener for /metrics, /readyz with details and /healthz; then --listen answers to /readyz only whether the server is ready, and no metrics")
	fs.Func("metrics-token", fmt.Sprintf("`text` of at least %d characters, without which --listen shows neither metrics nor details of /readyz; clients send it as Authorization: Bearer; better set as %s", minToken, envName("metrics-token")), func(v string) error {
		if len(v) < minToken {
			return fmt.Errorf("must have at least %d characters", minToken)
		}
		s.api.MetricsToken = v
		return nil
	})
	fs.Func("debug-listen", "loopback `address` for profiles of the process (net/http/pprof), such as 127.0.0.1:6060", func(v string) error {
		host, _, err := net.SplitHostPort(v)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return errors.New("profiles show what is in memory: the host must be localhost or a loopback address such as 127.0.0.1")
		}
		s.debugLn = v
		return nil
	})
	registerLimits(fs, "account-", "of a new account", &s.limits)
	fs.DurationVar(&s.sessionTime, "session-time", 7*24*time.Hour, "`time` after which a login that is not used ends; 30 days after it any login does")
	s.engines.register(fs)
	s.cluster.register(fs)
	s.webhooks.register(fs)
}

// minToken is the least length of --metrics-token.
const minToken = 16

// finish checks flags that depend on each other, and reads environment variables without a flag.
func (s *serverConfig) finish(env func(string) (string, bool)) error {
	if err := s.locateBlobs(env); err != nil {
		return err
	}
	if s.api.RedirectDownloads && s.bucket == nil {
		return errors.New("--redirect-downloads needs --blob-url s3://…")
	}
	if s.publicURL != "" {
		u, err := url.Parse(s.publicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("--public-url must be a URL such as https://files.example.com, not %q", s.publicURL)
		}
		u.Path = strings.TrimSuffix(u.Path, "/") + "/"
		s.api.BaseURL = u
	}
	if s.api.AbsoluteLinks && s.api.BaseURL == nil {
		return errors.New("--absolute-links needs --public-url")
	}
	s.api.Limits.Rate.PerSecond = s.rate
	if s.rate == 0 {
		s.api.Limits.Rate = httpapi.Unlimited()
	}
	s.api.Limits.WrongKeys.PerSecond = 1
	if s.api.Limits.WrongKeys.Burst < 0 {
		s.api.Limits.WrongKeys = httpapi.Unlimited()
	}
	for name, d := range map[string]time.Duration{"header-time": s.headerTime, "idle-time": s.idleTime, "stall-time": s.api.Limits.Stall, "task-time": s.api.Limits.TaskTime, "queue-time": s.api.Limits.QueueTime, "session-time": s.sessionTime} {
		if d <= 0 {
			return fmt.Errorf("--%s must be more than nothing", name)
		}
	}
	for name, n := range map[string]int{"max-attempts": s.api.Limits.MaxAttempts, "max-restarts": s.api.Limits.MaxRestarts} {
		if n <= 0 {
			return fmt.Errorf("--%s must be at least 1", name)
		}
	}
	if s.api.Limits.Queued <= 0 {
		return errors.New("--max-queued must be at least 1")
	}
	if s.rate > 0 && s.api.Limits.Rate.Burst <= 0 {
		return errors.New("--rate-burst must be at least 1")
	}
	s.api.Limits.Output = s.engines.output
	s.api.HideDetails = s.metricsLn != "" || s.api.MetricsToken != ""
	if s.logFormat != "text" && s.logFormat != "json" {
		return errors.New("--log-format must be text or json")
	}
	return s.cluster.finish(s.blobURL != "")
}

// locateBlobs parses --blob-url.
func (s *serverConfig) locateBlobs(env func(string) (string, bool)) error {
	switch scheme, _, isURL := strings.Cut(s.blobURL, "://"); {
	case s.blobURL == "":
	case isURL && scheme == "file":
		return errors.New("--blob-url: write the path of a directory as it is, without file://")
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
		return nil, errors.New("--blob-url needs both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither")
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

func registerDataDir(fs *flag.FlagSet, dir *string) {
	fs.StringVar(dir, "data-dir", "data", "`directory` that holds everything the server knows; created if it is missing")
}

func registerBlobURL(fs *flag.FlagSet, url *string) {
	fs.StringVar(url, "blob-url", "", "where the files are kept, a `URL`: s3://bucket/prefix?region=…&endpoint=… for a bucket, or the path of a directory, which several servers may share; default: in the data directory. Credentials for a bucket: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN in the environment, or else the role of the host")
}

// engineConfig configures the engines.
type engineConfig struct {
	standard.Options
	sandbox   string
	isolation string
	output    int64
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

func (e *engineConfig) register(fs *flag.FlagSet) {
	for _, p := range []struct {
		path *string
		name string
	}{{&e.FFmpeg, "ffmpeg"}, {&e.FFprobe, "ffprobe"}, {&e.LibreOffice, "soffice"}, {&e.Python, "python"}, {&e.Pandoc, "pandoc"}, {&e.QPDF, "qpdf"}, {&e.Chromium, "chromium"}, {&e.Tesseract, "tesseract"}} {
		fs.StringVar(p.path, p.name, "", "`path` of "+p.name+"; default: searched for in PATH; none: not used")
	}
	e.sandbox = sandboxAuto
	fs.BoolVar(&e.Isolate, "isolate", true, "read each file with libvips, pdfcpu and the like in a confined process of its own; false: in the server, if all files are trusted")
	fs.IntVar(&e.OfficeDocuments, "office-documents", 50, "after how many documents a LibreOffice process is replaced; 1: none reads a second one; `number`")
	fs.Func("sandbox", "how engines are confined: `auto` (as the host permits; those that it cannot confine are left out), require (or do not start), off (trust every file) [auto]", func(v string) error {
		if v != sandboxAuto && v != sandboxRequire && v != sandboxOff {
			return errors.New("must be auto, require or off")
		}
		e.sandbox, e.Unconfined = v, v == sandboxOff
		return nil
	})
	e.isolation = isolationAuto
	fs.Func("isolation", "what engines get beside the sandbox: `auto` (what the host permits), basic (nothing), namespaces (or do not start), cgroup (namespaces, also of processes, and a cgroup for each run, or do not start) [auto]", func(v string) error {
		if !slices.Contains([]string{isolationAuto, isolationBasic, isolationNamespaces, isolationCgroup}, v) {
			return errors.New("must be auto, basic, namespaces or cgroup")
		}
		e.isolation, e.NoNamespaces = v, v == isolationBasic
		return nil
	})
	fs.Func("sandbox-allow", "`engines` that may be used even if the host cannot confine them, separated by commas: libreoffice,ffmpeg", func(v string) error {
		e.AllowWeak = splitList(v)
		return nil
	})
	e.registerLimits(fs)
	fs.StringVar(&e.CacheDir, "cache-dir", "", "`directory` for what is compiled once; default: in the data directory")
}

// registerLimits registers the flags for the limits of one file.
func (e *engineConfig) registerLimits(fs *flag.FlagSet) {
	l := &e.Limits
	size := func(name string, to *int64, usage string) {
		fs.Func(name, usage, func(v string) (err error) {
			*to, err = parseSize(v)
			return err
		})
	}
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
				return fmt.Errorf("%q is not a time such as 90s, 10m or 2h", v)
			}
			*to = d
			return nil
		})
	}
	number("max-pixels", func(n int64) { l.Pixels = n }, "largest picture, frame of a video or page as a picture: `number` of pixels, width times height [100000000]")
	number("max-frames", func(n int64) { l.Frames = int(n) }, "largest `number` of frames of an animation and of pages of a TIFF [1000]")
	number("max-pages", func(n int64) { l.Pages = int(n) }, "largest `number` of pages of a PDF that are worked on, and of all that are merged [5000; for character recognition 500]")
	span("max-duration", &l.Duration, "longest recording, and all that are merged: `time` such as 90s, 10m or 2h [24h]")
	number("max-entries", func(n int64) { l.Entries = int(n) }, "largest `number` of entries of an archive and of parts of a document [10000]")
	size("max-unpacked", &l.Unpacked, "largest `size` of all entries of an archive or parts of a document, unpacked [4GiB for archives, 1 or 2GiB for documents]")
	number("max-ratio", func(n int64) { l.Ratio = n }, "how many times its compressed size an entry of more than 10 MiB may have; `number` [200]")
	number("max-cells", func(n int64) { l.Cells = n }, "largest `number` of filled cells of an OpenDocument workbook [10000000]")
	span("cpu-time", &l.CPU, "longest processor `time` of one run of a program, of all its threads together [1m for qpdf, 2m for a page in Tesseract, 1h for what --isolate isolates, at least 10m for each thread of ffmpeg]")
	size("max-memory", &l.Memory, "largest `size` of the memory of one run of a program [3 or 4GiB, as the program needs]")
	size("max-scratch", &l.Scratch, "largest `size` of the files that one run of a program may have while it works [20GiB]")
	number("max-processes", func(n int64) { l.Processes = int(n) }, "largest `number` of processes of one run of a program [64]")
	span("document-time", &l.Document, "longest `time` of work on one document in LibreOffice, pandoc or Chromium [2m]")
	size("max-output", &e.output, "largest `size` of all results of the work on one file [20GiB]")
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
		return fmt.Errorf("there is no engine family %q; there are %s", name, strings.Join(families, ", "))
	}
	return nil
}

func parseConcurrency(v string) (map[string]int, error) {
	out := make(map[string]int)
	for _, part := range splitList(v) {
		family, text, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(text)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not of the form family=number", part)
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
