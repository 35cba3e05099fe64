package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// checkTime bounds every readiness check, so that readyz answers within two seconds even if a
	// check hangs.
	checkTime = 1500 * time.Millisecond

	// checkEvery is the interval of the background checks.
	checkEvery = 5 * time.Second
)

// errNoAnswer reports that a check did not return in time.
var errNoAnswer = errors.New("no answer")

// A dependency is something that the service needs, with the result of its last check.
type dependency struct {
	name  string
	check func(context.Context) error

	mu      sync.Mutex
	running chan struct{} // closed when the running check returns; nil: no check runs
	state   dependencyState
}

// A dependencyState is the state of a dependency.
type dependencyState struct {
	err     error
	since   time.Time // start of this state; zero: never checked
	latency time.Duration
}

// probe checks the dependency and returns its state after at most checkTime. Concurrent callers
// share one check. While a check hangs, as on a failed disk, no second check starts.
func (d *dependency) probe() dependencyState {
	d.mu.Lock()
	ended := d.running
	if ended == nil {
		ended = make(chan struct{})
		d.running = ended
		go d.run(ended)
	}
	d.mu.Unlock()
	t := time.NewTimer(checkTime)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		d.record(errNoAnswer, checkTime)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (d *dependency) run(ended chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	start := time.Now()
	err := d.check(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	d.record(err, time.Since(start))
	d.mu.Lock()
	d.running = nil
	d.mu.Unlock()
	close(ended)
}

func (d *dependency) record(err error, latency time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := &d.state; s.since.IsZero() || (s.err == nil) != (err == nil) {
		s.since = time.Now()
	}
	d.state.err, d.state.latency = err, latency
}

// A Dependency is something that the service needs, with the result of its last check.
type Dependency struct {
	Name    string
	Err     error         // nil if it works
	Since   time.Time     // start of this state; zero: never checked
	Latency time.Duration // of the last check
}

// Dependencies returns the results of the last checks of Config.Checks, by name. [Node.Run] repeats
// the checks.
func (n *Node) Dependencies() (list []Dependency) {
	for _, d := range n.dependencies {
		d.mu.Lock()
		list = append(list, Dependency{d.name, d.state.err, d.state.since, d.state.latency})
		d.mu.Unlock()
	}
	return list
}

// newDependencies returns the dependencies of Config.Checks, sorted by name.
func newDependencies(checks map[string]func(context.Context) error) []*dependency {
	var all []*dependency
	for name, check := range checks {
		all = append(all, &dependency{name: name, check: check})
	}
	slices.SortFunc(all, func(a, b *dependency) int { return cmp.Compare(a.name, b.name) })
	return all
}

// checkAll checks all dependencies concurrently.
func (n *Node) checkAll() []dependencyState {
	states := make([]dependencyState, len(n.dependencies))
	var wg sync.WaitGroup
	for i, d := range n.dependencies {
		wg.Go(func() {
			states[i] = d.probe()
			switch {
			case n.cfg.Outages == nil:
			case states[i].err == nil:
				n.cfg.Outages.back(d.name)
			default:
				n.cfg.Outages.failing(d.name, "readiness check", states[i].err, true)
			}
		})
	}
	wg.Wait()
	return states
}

// watchDependencies runs the checks periodically, for the log and the metrics.
func (n *Node) watchDependencies(ctx context.Context) {
	if len(n.dependencies) == 0 && n.cfg.Outages == nil {
		return
	}
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	for {
		n.checkAll()
		if o := n.cfg.Outages; o != nil {
			o.tick(func(name string) bool {
				return slices.ContainsFunc(n.dependencies, func(d *dependency) bool { return d.name == name })
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// A dependencyEntry describes a dependency in readyz responses.
type dependencyEntry struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`           // "ok", "failed" or "no answer"
	Since   time.Time `json:"since"`           // start of this state
	Latency float64   `json:"latency_seconds"` // duration of the last check
}

// readyz reports whether the service is ready. Callers who may see details also get every
// dependency by name and the engines, including missing engines.
func (n *Node) readyz(w http.ResponseWriter, r *http.Request) {
	details := n.mayInspect(r)
	resp := readyResponse{Status: "ok", Node: n.cfg.Node, Checks: map[string]string{}, Dependencies: []dependencyEntry{}, Engines: engineEntries(n.Engines()), Sandbox: n.cfg.Sandbox}
	var failed []string
	for i, st := range n.checkAll() {
		e := dependencyEntry{Name: n.dependencies[i].name, State: "ok", Since: stamp(st.since), Latency: st.latency.Seconds()}
		switch {
		case errors.Is(st.err, errNoAnswer):
			e.State = "no answer"
		case st.err != nil:
			e.State = "failed"
		}
		if st.err != nil {
			failed = append(failed, e.Name)
		}
		resp.Checks[e.Name] = e.State
		resp.Dependencies = append(resp.Dependencies, e)
	}
	switch {
	case len(failed) > 0 && details:
		p := problem(http.StatusServiceUnavailable, "unavailable", "not ready: %s", strings.Join(failed, ", "))
		p.Checks, p.Dependencies = resp.Checks, resp.Dependencies
		p.RetryAfter = checkEvery
		n.fail(w, r, p)
	case len(failed) > 0:
		p := problem(http.StatusServiceUnavailable, "unavailable", "not ready")
		p.RetryAfter = checkEvery
		n.fail(w, r, p)
	case n.starting():
		p := problem(http.StatusServiceUnavailable, "unavailable", "not ready: engines are starting")
		p.RetryAfter = time.Second
		n.fail(w, r, p)
	case details:
		n.reply(w, resp)
	default:
		n.healthz(w, r)
	}
}

// starting reports whether engines are still being started.
func (n *Node) starting() bool { return n.cfg.Starting != nil && n.cfg.Starting() }

var (
	dependencyUpDesc      = prometheus.NewDesc("filewright_dependency_up", "1 if the last check of the dependency succeeded, else 0.", []string{"dependency"}, nil)
	dependencyLatencyDesc = prometheus.NewDesc("filewright_dependency_check_seconds", "Duration of the last check of the dependency.", []string{"dependency"}, nil)
)

// A dependencyCollector exports the results of the last checks.
type dependencyCollector []*dependency

// Describe implements prometheus.Collector.
func (c dependencyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- dependencyUpDesc
	ch <- dependencyLatencyDesc
}

// Collect implements prometheus.Collector.
func (c dependencyCollector) Collect(ch chan<- prometheus.Metric) {
	for _, d := range c {
		d.mu.Lock()
		st := d.state
		d.mu.Unlock()
		if st.since.IsZero() {
			continue
		}
		up := 0.0
		if st.err == nil {
			up = 1
		}
		ch <- prometheus.MustNewConstMetric(dependencyUpDesc, prometheus.GaugeValue, up, d.name)
		ch <- prometheus.MustNewConstMetric(dependencyLatencyDesc, prometheus.GaugeValue, st.latency.Seconds(), d.name)
	}
}
