// Command gotenbergtest runs the scenarios of Gotenberg's own tests against a server with the routes of
// package httpapi/gotenberg, and reports which pass. It reads them from a checkout of
// https://github.com/gotenberg/gotenberg, of which this repository has no part.
//
//	go build -o refserver ./cmd/refserver
//	go run ./internal/gotenbergtest -checkout ../gotenberg -server ./refserver
//
// Steps about log lines are left out. Scenarios about settings of Gotenberg's programs do not apply.
// The checks need pdfinfo, pdftotext, pdfimages, pdfdetach and qpdf; with verapdf in PATH, PDF/A and
// PDF/UA are validated, otherwise only the claim is checked and the report counts such scenarios.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.checkout, "checkout", "", "`directory` with a checkout of Gotenberg")
	flag.StringVar(&o.server, "server", "", "`path` of refserver")
	flag.StringVar(&o.args, "args", "", "more `flags` for the server, separated by spaces")
	flag.StringVar(&o.version, "version", "8", "`version` that the server returns")
	flag.IntVar(&o.workers, "workers", 2, "`number` of scenarios at the same time")
	flag.BoolVar(&o.verbose, "v", false, "list all scenarios")
	only := flag.String("run", "", "regular `expression` of the scenarios to run, of file:line and name")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	checkout, server, args, version string
	workers                         int
	verbose                         bool
	only                            *regexp.Regexp
}

// The outcomes of a scenario.
const (
	passed = "passed"
	failed = "failed"
	claims = "passed, PDF/A or PDF/UA not validated"
	other  = "not applicable"
)

type result struct {
	scenario
	outcome, reason string
}

func (o *options) run() error {
	dir := filepath.Join(o.checkout, "test", "integration")
	files, err := filepath.Glob(filepath.Join(dir, "features", "*.feature"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no features in %s", dir)
	}
	var todo []scenario
	for _, path := range files {
		all, err := readFeature(path)
		if err != nil {
			return err
		}
		for _, s := range all {
			if o.only.MatchString(fmt.Sprintf("%s:%d %s", s.file, s.line, s.name)) {
				todo = append(todo, s)
			}
		}
	}
	work, err := os.MkdirTemp("", "gotenbergtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	open, stop, err := o.start(filepath.Join(work, "open"), "--gotenberg-account", "admin")
	if err != nil {
		return err
	}
	defer stop()
	keyed, stop, err := o.start(filepath.Join(work, "keyed"))
	if err != nil {
		return err
	}
	defer stop()

	results := make([]result, len(todo))
	next := make(chan int)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(func() {
			for i := range next {
				results[i] = o.try(todo[i], dir, filepath.Join(work, fmt.Sprint(i)), open, keyed)
			}
		})
	}
	for i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	o.report(results)
	return nil
}

// start starts a server and returns its URL.
func (o *options) start(dir string, args ...string) (base string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", nil, err
	}
	args = append([]string{"serve", "--listen", address, "--data-dir", dir, "--gotenberg", "--dashboard=false", "--log-requests=false", "--rate", "0"}, args...)
	cmd := exec.Command(o.server, append(args, strings.Fields(o.args)...)...)
	log, err := os.Create(dir + ".log")
	if err != nil {
		return "", nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		log.Close()
	}
	for range 600 {
		resp, err := http.Get("http://" + address + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + address, stop, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	text, _ := os.ReadFile(dir + ".log") // only for the message
	return "", nil, fmt.Errorf("the server does not start: %.2000s", text)
}

// try runs a scenario.
func (o *options) try(s scenario, dir, work, open, keyed string) result {
	if why := inapplicable(s); why != "" {
		return result{s, other, why}
	}
	w := &world{dir: dir, base: open, version: o.version, work: work}
	defer func() {
		if w.receiver != nil {
			w.receiver.server.Close()
		}
	}()
	unchecked := false
	for _, step := range s.steps {
		if strings.Contains(step.text, "environment variable(s)") {
			for _, row := range step.table {
				if row[0] == "API_ENABLE_BASIC_AUTH" {
					w.base = keyed
				}
			}
		}
		if strings.HasSuffix(step.text, " server") && w.receiver == nil {
			r, err := newReceiver(dir, work)
			if err != nil {
				return result{s, failed, err.Error()}
			}
			w.receiver = r
		}
		err := w.run(step)
		switch {
		case errors.Is(err, errUnchecked):
			unchecked = true
		case err != nil:
			return result{s, failed, fmt.Sprintf("%s: %v", step.text, err)}
		}
	}
	if unchecked {
		return result{s, claims, ""}
	}
	return result{s, passed, ""}
}

// settings are environment variables of Gotenberg's programs that make a scenario inapplicable.
var settings = map[string]string{
	"CHROMIUM_DISABLE_ROUTES": "flag: routes off", "LIBREOFFICE_DISABLE_ROUTES": "flag: routes off", "PDFENGINES_DISABLE_ROUTES": "flag: routes off",
	"API_ROOT_PATH": "flag: path prefix", "API_ENABLE_OIDC_AUTH": "flag: OpenID Connect", "API_ENABLE_DEBUG_ROUTE": "flag: debug route",
	"CHROMIUM_ALLOW_LIST": "flag: list of addresses", "CHROMIUM_DENY_LIST": "flag: list of addresses", "CHROMIUM_DISABLE_JAVASCRIPT": "flag: scripts off",
	"WEBHOOK_ENABLE_SYNC_MODE": "flag: synchronous webhooks", "API_DISABLE_DOWNLOAD_FROM": "flag: downloads off",
	"CHROMIUM_DENY_PRIVATE_IPS": "flag: private addresses", "CHROMIUM_CLEAR_STORAGE": "flag: storage of the browser",
}

// inapplicable returns why a scenario does not apply, or "".
func inapplicable(s scenario) string {
	switch s.file {
	case "debug.feature":
		return "debug route"
	case "prometheus_metrics.feature":
		return "its own metrics"
	case "root.feature":
		return "its own start page"
	}
	onlyLogs := true
	for _, step := range s.steps {
		for _, row := range step.table {
			if why := settings[row[0]]; why != "" && strings.Contains(step.text, "environment variable(s)") {
				return why
			}
			if strings.HasSuffix(row[0], "_ENGINES") && row[1] == "pdftk" && (strings.Contains(s.name, "unsupported") || strings.Contains(s.name, "user password only")) {
				return "limits of pdftk"
			}
		}
		if strings.HasPrefix(step.text, "the ") && !strings.Contains(step.text, " log the following") && !strings.Contains(step.text, "status code") {
			onlyLogs = false
		}
	}
	if onlyLogs && strings.Contains(s.name, "No Logging") {
		return "its own log"
	}
	return ""
}

func (o *options) report(results []result) {
	counts := make(map[string]int)
	byFile := make(map[string]map[string]int)
	var order []string
	for _, r := range results {
		counts[r.outcome]++
		if byFile[r.file] == nil {
			byFile[r.file] = make(map[string]int)
			order = append(order, r.file)
		}
		byFile[r.file][r.outcome]++
		if r.outcome == failed || o.verbose {
			fmt.Printf("%-8s %s:%d %s\n", strings.ToUpper(r.outcome[:min(len(r.outcome), 6)]), r.file, r.line, r.name)
			if r.reason != "" {
				fmt.Printf("         %.600s\n", r.reason)
			}
		}
	}
	fmt.Println()
	for _, file := range order {
		c := byFile[file]
		fmt.Printf("%-40s passed %3d  not validated %3d  failed %3d  not applicable %3d\n", file, c[passed], c[claims], c[failed], c[other])
	}
	reasons := make(map[string]int)
	for _, r := range results {
		if r.outcome == other {
			reasons[r.reason]++
		}
	}
	var list []string
	for why, n := range reasons {
		list = append(list, fmt.Sprintf("%s %d", why, n))
	}
	slices.Sort(list)
	applicable := len(results) - counts[other]
	ok := counts[passed] + counts[claims]
	fmt.Printf("\n%d scenarios, %d applicable: %d passed, of which %d without validation; %d failed (%.1f %% passed)\nnot applicable: %s\n",
		len(results), applicable, ok, counts[claims], counts[failed], 100*float64(ok)/float64(max(applicable, 1)), strings.Join(list, ", "))
}
