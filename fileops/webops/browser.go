package webops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
)

// startTimeout limits how long a browser may work until it responds.
const startTimeout = time.Minute

// flags returns the arguments of the browser. They ensure that nothing reaches the
// network, that nothing stays running or on disk, and that a page looks the same
// everywhere.
func flags(profile string, sandbox bool) []string {
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + profile,

		// No name resolves, not even an IP address. Everything else must use a proxy
		// that does not exist. Without the bypass rule the browser would connect to this
		// machine directly.
		"--host-resolver-rules=MAP * ~NOTFOUND",
		"--proxy-server=socks5://0.0.0.0:1", "--proxy-bypass-list=<-loopback>",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--dns-prefetch-disable", "--no-pings", "--disable-quic",
		"--disable-background-networking", "--disable-component-update", "--disable-domain-reliability",
		"--disable-client-side-phishing-detection", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,InterestFeedContentSuggestions,AcceptCHFrame,WebUsb,WebBluetooth",

		"--user-agent=Chromium", "--disable-crashpad-for-testing",
		"--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--disable-breakpad", "--disable-crash-reporter",
		"--password-store=basic", "--use-mock-keychain", "--metrics-recording-only", "--disable-search-engine-choice-screen",
		"--disable-dev-shm-usage", "--disable-gpu", "--disable-gpu-shader-disk-cache", "--disk-cache-size=1", "--mute-audio",
		"--disable-hang-monitor", "--disable-prompt-on-repost", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
		"--disable-backgrounding-occluded-windows",

		// Scripts are off. If one runs anyway, it is not compiled.
		"--js-flags=--jitless",

		"--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", "--lang=en-US", "--hide-scrollbars",
	}
	if !sandbox {
		args = append(args, "--no-sandbox")
	}
	return append(args, "about:blank")
}

// A browser is a running Chromium with its own profile directory.
type browser struct {
	proc *engine.Process
	conn *conn
	dir  string
	done chan struct{} // closed when the process and everything it has started have ended

	tooLarge atomic.Bool // it was killed because of its memory

	// Guarded by the pool's lock.
	users     int
	documents int
	retired   string // why it gets no new documents; "" if it gets some
}

// startBrowser starts a browser and waits until it responds. The browser runs until ctx
// is done or [browser.stop] is called. version is the version of the browser.
func startBrowser(ctx context.Context, prog *engine.Program, o Options) (b *browser, version string, err error) {
	dir, err := os.MkdirTemp(o.TempDir, "webops-")
	if err != nil {
		return nil, "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", err
	}
	fail := func(err error) (*browser, string, error) {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		inW.Close()
		return fail(err)
	}
	defer outW.Close()
	var write []string
	if !o.NoSandbox {
		write = append(write, "/proc") // its sandbox writes the id maps of a namespace
	}
	proc, err := prog.Start(ctx, engine.Cmd{
		Dir: dir, Args: flags(filepath.Join(dir, "profile"), !o.NoSandbox),
		Env: []string{
			"XDG_CONFIG_HOME=" + dir, "XDG_CACHE_HOME=" + dir,
			// No session bus: the browser would request desktop settings from it.
			"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
		},
		Files: []*os.File{inR, outW},
		Access: engine.Access{
			Read:       []string{"/proc", "/etc/chromium", "/etc/chromium.d"},
			Write:      write,
			Namespaces: !o.NoSandbox, SharedMemory: true,
		},
	})
	if err != nil {
		inW.Close()
		outR.Close()
		return fail(err)
	}
	b = &browser{proc: proc, dir: dir, conn: newConn(outR, inW), done: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		err := proc.Wait() // the process group has been killed
		b.conn.close()
		<-b.conn.done
		if rerr := removeAll(dir); rerr != nil {
			o.Log.Error("browser profile not removed", "err", rerr)
		}
		ended <- err
		close(b.done)
	}()
	ctx, cancel := worktime.Context(ctx, startTimeout, errors.New("the browser did not answer in time"), proc.Work())
	defer cancel()
	var v struct {
		Product string `json:"product"`
	}
	if err := b.conn.call(ctx, "", "Browser.getVersion", nil, &v); err != nil {
		b.stop()
		return nil, "", errors.Join(err, <-ended)
	}
	return b, v.Product, nil
}

// removeAll removes a directory in which recently killed processes may still create
// files.
func removeAll(dir string) error {
	var err error
	for range 20 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// stop kills the browser and waits until all its processes and files are gone. It may be
// called several times and concurrently.
func (b *browser) stop() {
	b.proc.Kill()
	<-b.done
}

func (b *browser) ended() bool {
	select {
	case <-b.done:
		return true
	case <-b.conn.done:
		return true
	default:
		return false
	}
}

// watch kills the browser when it uses more than limit bytes of memory, until ctx is
// done.
func (b *browser) watch(ctx context.Context, limit int64) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.done:
			return
		case <-tick.C:
			if b.proc.Memory() > limit {
				b.tooLarge.Store(true)
				b.proc.Kill()
				return
			}
		}
	}
}
