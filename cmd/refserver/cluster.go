package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

// Values of --role.
const (
	roleAll    = "all"
	roleAPI    = "api"
	roleWorker = "worker"
)

// clusterConfig configures a server of a cluster.
type clusterConfig struct {
	url    string // "": one server with its own database
	role   string
	queues []string // nil: all
	secret string
	lease  time.Duration
}

// minSecret is the least length of --secret.
const minSecret = 32

func (c *clusterConfig) register(fs *flagSet) {
	registerDatabase(fs, &c.url)
	c.role = roleAll
	fs.choice(&c.role, "role", "`role` of this server, with --database-url: api (serves requests, processes no files), worker (processes files, serves only health checks and metrics) or all", roleAll, roleAPI, roleWorker)
	fs.Func("queues", "comma-separated engine `families` whose files this server processes; see --concurrency; default: all", func(v string) error {
		c.queues = splitList(v)
		for _, name := range c.queues {
			if err := checkFamily(name); err != nil {
				return err
			}
		}
		return nil
	})
	fs.token(&c.secret, minSecret, "secret", "`text` of at least %d characters that signs upload URLs and encrypts passwords in parameters, the same for all servers; default: generated once and kept in the database")
	fs.DurationVar(&c.lease, "lease", 3*time.Second, "with --database-url: `duration` without a heartbeat after which other servers restart the work of a server")
}

func registerDatabase(fs *flagSet, url *string) {
	fs.secret["database-url"] = true
	fs.StringVar(url, "database-url", "", "`URL` of a PostgreSQL database that several servers share, such as postgres://user@host/name; default: a SQLite file in the data directory")
}

// finish checks flags that depend on each other. shared reports whether other servers can reach the
// files.
func (c *clusterConfig) finish(shared bool) error {
	switch {
	case c.url == "" && c.role != roleAll:
		return fmt.Errorf("--role %s requires --database-url", c.role)
	case c.url == "" && c.queues != nil:
		return errors.New("--queues requires --database-url: a single server must process all families")
	case c.url != "" && !strings.HasPrefix(c.url, "postgres://") && !strings.HasPrefix(c.url, "postgresql://"):
		return errors.New("--database-url must be a URL such as postgres://user@host/name")
	case c.url != "" && !shared:
		return errors.New("--database-url requires --blob-url: a bucket or a directory that all servers share")
	case c.lease < 3*time.Second:
		return errors.New("--lease must be at least 3s")
	case c.role == roleAPI && c.queues != nil:
		return errors.New("--queues does not apply to --role api")
	}
	return nil
}

// limits restricts concurrency to the queues of this server.
func (c *clusterConfig) limits(concurrency map[string]int, actions []fileops.Action) map[string]int {
	if c.role == roleAPI {
		return map[string]int{}
	}
	if c.queues == nil {
		return concurrency
	}
	var narrow map[string]int // an empty map would mean no family at all
	set := func(family string, n int) {
		if narrow == nil {
			narrow = make(map[string]int)
		}
		narrow[family] = n
	}
	for _, a := range actions {
		f := a.Spec().Family
		if n, ok := concurrency[f]; ok && slices.Contains(c.queues, f) {
			set(f, n)
		} else if !slices.Contains(c.queues, f) {
			set(f, 0)
		}
	}
	return narrow
}

const (
	heartbeatInterval = 2 * time.Second  // interval at which a worker announces its capabilities
	heartbeatTimeout  = 15 * time.Second // timeout of one announcement

	// nodeTTL is how long the capabilities of a stopped server remain offered: it may be
	// restarting, or its machine may be replaced. While no server runs, the last capabilities
	// remain offered and items wait.
	nodeTTL = 10 * time.Minute
)

// nodeInfo describes a server to the other servers.
type nodeInfo struct {
	Version string
	Role    string
	Actions []fileops.Spec // actions of the families that it processes
	Engines []nodeEngine
}

type nodeEngine struct {
	Name, Version, Err, Hint string
}

// A cluster represents the servers that share a database.
type cluster struct {
	db    *sqlstore.DB
	offer func([]fileops.Action, []httpapi.Engine) error
	log   *slog.Logger
	id    string
	info  []byte // nil: this server processes no items
	known []byte // the last offered description

	workers  *prometheus.GaugeVec // by family
	counted  map[string]int       // current values of workers
	families map[string][]string  // by server description
}

// newWorkers returns the metric of the live workers.
func newWorkers() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "filewright_workers", Help: "Live servers that process the actions of a family."}, []string{"family"})
}

// count counts the workers of each family.
func (c *cluster) count(nodes []sqlstore.Node) error {
	known := make(map[string][]string)
	counts := make(map[string]int)
	for family := range c.counted {
		counts[family] = 0 // the last worker may be gone
	}
	for _, n := range nodes {
		families, ok := c.families[string(n.Info)]
		if !ok {
			var info nodeInfo
			if err := json.Unmarshal(n.Info, &info); err != nil {
				return fmt.Errorf("description of another server: %w", err)
			}
			for _, spec := range info.Actions {
				families = append(families, spec.Family)
			}
			slices.Sort(families)
			families = slices.Compact(families)
		}
		known[string(n.Info)] = families
		for _, family := range families {
			counts[family]++
		}
	}
	for family, n := range counts {
		c.workers.WithLabelValues(family).Set(float64(n))
	}
	c.families, c.counted = known, counts
	return nil
}

func newCluster(a *app, c *clusterConfig, limits map[string]int, actions []fileops.Action, engines []httpapi.Engine) (*cluster, error) {
	cl := &cluster{db: a.db, offer: a.offer, log: a.log, id: nodeName() + "/" + rand.Text(), workers: a.workers} // the nodes table contains host names
	if c.role == roleAPI {
		return cl, nil
	}
	info := nodeInfo{Version: version(), Role: c.role}
	for _, a := range actions {
		spec := a.Spec()
		if n, ok := limits[spec.Family]; !ok || n > 0 {
			info.Actions = append(info.Actions, spec)
		}
	}
	for _, e := range engines {
		ne := nodeEngine{Name: e.Name, Version: e.Version, Hint: e.Hint}
		if e.Err != nil {
			ne.Err = e.Err.Error()
		}
		info.Engines = append(info.Engines, ne)
	}
	var err error
	cl.info, err = json.Marshal(info)
	return cl, err
}

// run announces this server, and offers clients the capabilities of all servers together, until ctx
// is done.
func (c *cluster) run(ctx context.Context) {
	t := time.NewTicker(heartbeatInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := c.heartbeat(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("cannot determine the capabilities of the cluster", "err", err)
		}
	}
}

// heartbeat announces this server once and updates the offer.
func (c *cluster) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	if c.info != nil {
		if err := c.db.Announce(ctx, c.id, c.info); err != nil {
			return fmt.Errorf("announce this server: %w", err)
		}
	}
	nodes, err := c.db.Nodes(ctx, nodeTTL)
	if err != nil {
		return fmt.Errorf("list the servers of the cluster: %w", err)
	}
	if err := c.count(nodes); err != nil {
		return err
	}
	// Most servers have the same description.
	var infos [][]byte
	for _, n := range nodes {
		infos = append(infos, n.Info)
	}
	slices.SortFunc(infos, bytes.Compare)
	infos = slices.CompactFunc(infos, bytes.Equal)
	all := bytes.Join(infos, []byte{'\n'})
	if c.known != nil && bytes.Equal(all, c.known) {
		return nil
	}
	actions, engines, err := union(infos)
	if err != nil {
		return err
	}
	if err := c.offer(actions, engines); err != nil {
		return fmt.Errorf("offer the capabilities of the cluster: %w", err)
	}
	c.known = append([]byte{}, all...)
	return nil
}

// systemNodes describes the servers that process files, for the dashboard.
func (c *cluster) systemNodes(ctx context.Context) ([]dashboard.SystemNode, error) {
	nodes, err := c.db.Nodes(ctx, nodeTTL)
	if err != nil {
		return nil, err
	}
	var list []dashboard.SystemNode
	for _, n := range nodes {
		var info nodeInfo
		if err := json.Unmarshal(n.Info, &info); err != nil {
			return nil, fmt.Errorf("description of another server: %w", err)
		}
		one := dashboard.SystemNode{Name: path.Dir(n.ID), // the rest is random
			Role: info.Role, Version: info.Version, Seen: n.Seen}
		for _, e := range info.Engines {
			if e.Err == "" {
				one.Engines++
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// union returns the combined capabilities of servers. An engine is missing if all servers lack it.
func union(infos [][]byte) (actions []fileops.Action, engines []httpapi.Engine, err error) {
	specs := make(map[string]bool)
	index := make(map[string]int)
	for _, b := range infos {
		var info nodeInfo
		if err := json.Unmarshal(b, &info); err != nil {
			return nil, nil, fmt.Errorf("description of another server: %w", err)
		}
		for _, spec := range info.Actions {
			text, err := json.Marshal(spec)
			if err != nil {
				return nil, nil, err
			}
			if specs[string(text)] {
				continue
			}
			specs[string(text)] = true
			actions = append(actions, fileops.Func(spec, runsElsewhere))
		}
		for _, ne := range info.Engines {
			e := httpapi.Engine{Name: ne.Name, Version: ne.Version, Hint: ne.Hint}
			if ne.Err != "" {
				e.Err = errors.New(ne.Err)
			}
			i, ok := index[e.Name]
			switch {
			case !ok:
				index[e.Name] = len(engines)
				engines = append(engines, e)
			case engines[i].Err != nil && e.Err == nil:
				engines[i] = e
			}
		}
	}
	return actions, engines, nil
}

// runsElsewhere stands in for actions that only other servers can run.
func runsElsewhere(context.Context, *fileops.Job) error {
	return fileops.Fail(fileops.ErrUnavailable, nil, "this action runs on another server")
}

// openPaths are the endpoints of a server with role worker.
var openPaths = []string{"/healthz", "/readyz", "/metrics"}

// workerOnly refuses all paths except openPaths.
func workerOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(openPaths, r.URL.Path) {
			http.Error(w, "this server is a worker; send requests to a server with the role api or all", http.StatusNotFound)
			return
		}
		h.ServeHTTP(w, r)
	})
}
