//go:build linux

package kills

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

// A wire forwards TCP connections to a server. A cut wire forwards nothing in either direction and
// does not close connections, like a network partition. Bytes in transit arrive after mend.
type wire struct {
	addr   string // to connect to
	mu     sync.Mutex
	mended chan struct{} // closed while the wire is whole
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{mended: make(chan struct{})}
	close(w.mended)
	w.addr = systest.Proxy(t, to, w.carry)
	return w
}

func (w *wire) whole() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mended
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mended = make(chan struct{})
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.mended)
}

func (w *wire) carry(c, d *net.TCPConn) {
	var both sync.WaitGroup
	for _, dir := range [][2]*net.TCPConn{{c, d}, {d, c}} {
		both.Go(func() {
			from, to := dir[0], dir[1]
			defer to.CloseWrite()
			b := make([]byte, 32<<10)
			for {
				n, err := from.Read(b)
				<-w.whole()
				if n > 0 {
					if _, err := to.Write(b[:n]); err != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// A node is a server of a cluster, with its own wires to the shared services.
type node struct {
	*host
	*run
	name     string
	database *wire
	bucket   *wire // nil: files are in a directory
}

// A cluster is a set of servers that share a database, and a bucket or a directory.
type cluster struct {
	pg      *pgtest.Server
	s3      *s3test.Server
	dir     string // without a bucket
	url     string // of the database
	nodes   []*node
	lease   time.Duration // 0: the default
	patient *host         // all addresses that customers use
}

// add adds a node. If it is private, all uploads pass through it. Otherwise single-part uploads go
// to the bucket, on the node's wire.
func (c *cluster) add(t *testing.T, name, role string, private bool, flags ...string) {
	t.Helper()
	db, err := url.Parse(c.url)
	systest.NoError(t, err)
	n := &node{name: name, database: newWire(t, db.Host)}
	db.Host = n.database.addr
	blobs := c.dir
	if c.s3 != nil {
		s3, err := url.Parse(c.s3.Endpoint)
		systest.NoError(t, err)
		n.bucket = newWire(t, s3.Host)
		s3.Host = n.bucket.addr
		blobs = fmt.Sprintf("s3://files?endpoint=%s&region=%s&path_style=true&private=%t", url.QueryEscape(s3.String()), s3test.Region, private)
	}
	n.host = &host{dir: filepath.Join(t.TempDir(), name), addr: systest.FreeAddr(t), client: c.patient.client,
		env:   []string{"AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey},
		flags: append([]string{"--role", role, "--database-url", db.String(), "--drain", "200ms", "--blob-url", blobs}, flags...)}
	if c.lease > 0 {
		n.flags = append(n.flags, "--lease", c.lease.String())
	}
	c.nodes = append(c.nodes, n)
	if role != "worker" {
		c.patient.addrs = append(c.patient.addrs, n.addr)
	}
}

// number returns the result of a query for one number.
func (c *cluster) number(t *testing.T, text string) (n int) {
	t.Helper()
	c.scan(t, text, &n)
	return n
}

// scan stores the only value of the only row of a query in to.
func (c *cluster) scan(t *testing.T, text string, to any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url)
	systest.NoError(t, err)
	defer conn.Close(context.Background())
	systest.NoError(t, conn.QueryRow(t.Context(), text).Scan(to))
}

// work waits until customers have started more operations.
func (c *cluster) work(t *testing.T, operations int) {
	t.Helper()
	want := c.number(t, "SELECT count(*) FROM operations") + operations
	systest.Until(t, "the customers go on", func() bool { return c.number(t, "SELECT count(*) FROM operations") >= want })
}

// Two API servers and three workers share a database, and a bucket or a directory. Each server is
// killed, frozen and cut off in turn while customers use the cluster, and so are the database and
// the bucket. At the end all acknowledged data exists, every item has finished once, and no result
// is without a record.
func TestCluster(t *testing.T) {
	t.Parallel()
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		s3 := s3test.Own(t, "files")
		testCluster(t, &cluster{s3: s3})
	})
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		testCluster(t, &cluster{dir: t.TempDir()})
	})
}

// setUp starts two API nodes and some workers, and waits until they know each other.
func (c *cluster) setUp(t *testing.T, workers int, flags ...string) {
	t.Helper()
	c.pg, c.patient = pgtest.Own(t), &host{client: newClient(10 * time.Second)}
	c.url = c.pg.Database(t)
	out, err := exec.Command(binary, "keys", "create", "--database-url", c.url, "--name", "test").Output()
	if err != nil {
		t.Fatalf("keys create: %v", err)
	}
	c.patient.key = strings.TrimSpace(string(out))
	for i := range 2 {
		c.add(t, fmt.Sprint("api", i), "api", i == 0, flags...)
	}
	for i := range workers {
		c.add(t, fmt.Sprint("worker", i), "worker", true, append(flags, "--concurrency", "image=1,pdf=1,archive=1")...)
	}
	for _, n := range c.nodes {
		n.run = n.start(t)
		t.Cleanup(func() { n.cmd.Process.Kill() })
	}
	for _, n := range c.nodes {
		n.wait(t)
	}
	for _, addr := range c.patient.addrs {
		one := &host{addrs: []string{addr}, key: c.patient.key, client: c.patient.client}
		systest.Until(t, "some node converts pictures", func() bool {
			a := one.ask(t.Context(), "POST", "/api/v1/supported-operation", map[string]any{"ext": "png", "action": "convert"})
			return a != nil && a.body["supported"] == true
		})
	}
}

// Two rounds of rolling restarts stop and start one node of each kind after the other, while
// customers use the cluster. Customers repeat only requests that no server has received. No item is
// lost, done twice or failed, and every request succeeds in the end.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := &cluster{dir: t.TempDir()}
	c.setUp(t, 2, "--drain", "20s")
	c.patient.strict = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	customers := c.patient.crew(t, 4, 0)
	for _, cu := range customers {
		wg.Go(func() { cu.work(ctx) })
	}
	for range 2 {
		for _, n := range c.nodes {
			c.work(t, 3)
			n.end(t, n.run, syscall.SIGTERM)
			c.work(t, 1)
			n.run = n.start(t)
			n.wait(t)
		}
	}
	c.work(t, 5)
	stop()
	wg.Wait()
	c.account(t, customers)
	if n := c.number(t, "SELECT count(*) FROM items i JOIN operations o ON o.id = i.operation WHERE o.cancelled = 0 AND i.state <> 'completed'"); n > 0 {
		t.Errorf("%d items failed", n)
	}
	for _, n := range c.nodes {
		if len(n.trouble) > 0 {
			t.Errorf("%s: %q", n.name, n.trouble)
		}
	}
}

func testCluster(t *testing.T, c *cluster) {
	c.lease = 4 * time.Second
	c.setUp(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	customers := c.patient.crew(t, 4, 0)
	for _, cu := range customers {
		wg.Go(func() { cu.work(ctx) })
	}

	// longer than a lease, so that other workers restart the node's items
	long := c.lease + 3*time.Second
	rng := rand.New(rand.NewPCG(5, 6))
	pause := func() { time.Sleep(time.Duration(300+rng.IntN(700)) * time.Millisecond) }
	// With -short two rounds, in which an API node and a worker meet each kind of trouble.
	for i := 0; i < len(c.nodes); i += scale(0, 1, 3) {
		n := c.nodes[i]
		pause()
		n.end(t, n.run, syscall.SIGKILL)
		pause()
		n.run = n.start(t)
		n.wait(t)

		pause()
		frozen, cutOff := c.nodes[(i+1)%len(c.nodes)], c.nodes[(i+3)%len(c.nodes)]
		systest.NoError(t, frozen.cmd.Process.Signal(syscall.SIGSTOP))
		cutOff.database.cut()
		alone := i%2 == 1 && cutOff.bucket != nil
		if alone {
			cutOff.bucket.cut()
		}
		time.Sleep(long)
		if alone {
			cutOff.bucket.mend()
		}
		cutOff.database.mend()
		systest.NoError(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
	}
	pause()
	systest.NoError(t, c.pg.Kill())
	pause()
	systest.NoError(t, c.pg.Up())
	if c.s3 != nil {
		pause()
		c.s3.Kill()
		pause()
		systest.NoError(t, c.s3.Start())
	}
	c.work(t, 4)
	stop()
	wg.Wait()
	c.account(t, customers)
}

// account compares the customers' records with the cluster's data, and stops the cluster.
func (c *cluster) account(t *testing.T, customers []*customer) {
	t.Helper()
	found := audit(t, c.patient, customers)
	if found.uploads < 30 || found.operations < 30 || found.removed == 0 || found.cancelled == 0 {
		t.Fatalf("%+v: the test shows nothing", found)
	}
	for _, line := range c.patient.trouble {
		t.Error(line)
	}
	// Upload IDs of the bucket do not have the 26 characters of the service's IDs.
	direct := c.number(t, "SELECT count(*) FROM files WHERE state = 'ready' AND upload_id <> '' AND length(upload_id) <> 26")
	if c.s3 != nil && (direct == 0 || direct == c.number(t, "SELECT count(*) FROM files WHERE state = 'ready' AND upload_id <> ''")) {
		t.Errorf("%d uploads went to the bucket: the test shows less than it should", direct)
	}
	// Operations from the last requests of customers finish too.
	systest.Until(t, "all operations end", func() bool { return c.number(t, "SELECT count(*) FROM operations WHERE finished_ms IS NULL") == 0 })
	for _, n := range c.nodes {
		n.end(t, n.run, syscall.SIGTERM)
	}
	var unknown []string
	c.scan(t, `SELECT array_agg(format('%s %s: of %s at %s; %s', o.action, o.id, f.file_key, f.created_ms,
				(SELECT string_agg(format('item %s %s, claim %s, %s to %s', i.idx, i.state, i.token, i.started_ms, i.finished_ms), ', ') FROM items i WHERE i.operation = o.id)))
			FROM files f JOIN operations o ON o.id = f.task
		WHERE f.state = 'ready' AND o.cancelled = 0 AND NOT EXISTS (
			SELECT 1 FROM items i, jsonb_array_elements(COALESCE(i.results, '[]')::jsonb) r WHERE i.operation = o.id AND r ->> 'key' = f.file_key)`, &unknown)
	if len(unknown) > 0 {
		t.Errorf("%d results exist that no operation lists: %q", len(unknown), unknown)
	}
	if n := c.number(t, "SELECT count(*) FROM operations"); n < found.operations || n > found.operations+len(customers) {
		t.Errorf("%d operations exist, %d were acknowledged", n, found.operations)
	}
	if n := c.number(t, "SELECT count(*) FROM operations WHERE args IS NOT NULL"); n != 0 {
		t.Errorf("%d final operations still have their parameters", n)
	}
	if n, want := c.number(t, "SELECT COALESCE(sum(items - failed), 0)::bigint FROM usage"), c.number(t, "SELECT count(*) FROM items WHERE state = 'completed'"); n != want {
		t.Errorf("%d items are accounted for, %d were completed", n, want)
	}
	for _, n := range c.nodes {
		if left := systest.Regular(t, filepath.Join(n.dir, "scratch")); len(left) > 0 {
			t.Errorf("%s has left %v", n.name, left)
		}
	}
	t.Logf("%+v, %d uploads to the bucket", found, direct)
}
