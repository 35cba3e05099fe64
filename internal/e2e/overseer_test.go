//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// plain builds the server without the race detector, whose shadow memory would hide everything
// else.
var plain = sync.OnceValues(func() (string, error) {
	path := binary + "-plain"
	if len(buildFlags) == 0 {
		return binary, nil
	}
	return path, systest.Build(path, "../../cmd/refserver")
})

// allowance limits how much more memory a server may have after its work than before, in bytes.
const allowance = 300 << 20

// An overseer watches a server from outside, with data from the kernel: its processes, their memory
// and descriptors, and the files that they create.
type overseer struct {
	*server
	user uint32 // user of the server and its engines; 0: the user of the tests

	idle    census
	base    int64           // memory of the idle server itself, bytes
	before  map[string]bool // names in the temporary directory before the start
	sockets map[string]bool // sockets that its processes have had there
	peak    int64           // memory, bytes
}

// A census is the state of a server at one time.
type census struct {
	processes map[int]process
	memory    int64          // of all processes, not counting mapped files, bytes
	files     int            // open descriptors of the server itself
	scratch   map[string]int // entries by kind of directory
	sockets   []string       // open sockets in the temporary directory
}

type process struct {
	parent int
	name   string
	cpu    time.Duration
}

// oversee starts a server without the race detector. If the tests have the permission, it runs as a
// separate user, so that its leftovers can be distinguished from those of others.
func oversee(t *testing.T, flags ...string) *overseer {
	t.Helper()
	program, err := plain()
	systest.NoError(t, err)
	o := &overseer{before: make(map[string]bool), sockets: make(map[string]bool)}
	// Not below the test's directory, which other users cannot enter, and not below /tmp itself,
	// which the test inspects.
	dir, err := os.MkdirTemp("", "e2e-hostile-")
	systest.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var as *syscall.Credential
	if os.Getuid() == 0 {
		o.user = 200_000 + rand.Uint32N(1_000_000_000)
		as = &syscall.Credential{Uid: o.user, Gid: o.user}
		for _, d := range []string{dir, filepath.Dir(program)} {
			systest.NoError(t, os.Chmod(d, 0o755))
		}
		systest.NoError(t, os.Chown(dir, int(o.user), int(o.user)))
	}
	for _, e := range o.temporary(t) {
		o.before[e] = true
	}
	if o.server, err = launchProgram([]string{program}, as, filepath.Join(dir, "data"), append([]string{"--isolate", "--sandbox", "require", "--log-level", "warn", "--rate", "0"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	// An ordinary user has the same engines as root.
	if _, missing, ok := strings.Cut(o.banner, "Not available here: "); ok {
		t.Errorf("engines are missing: %s", missing)
	}
	t.Cleanup(func() {
		if err := o.stop(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		// All its processes end with the server.
		o.wait(t, "after its end", func(c census) string {
			if len(c.processes) > 0 {
				return fmt.Sprintf("processes are left: %v", c.processes)
			}
			return o.left(t, c)
		})
		if t.Failed() {
			t.Logf("log of the server:\n%s", tail(o.err.String(), 8000))
		}
	})
	// Warm up all engines that stay warm.
	for _, f := range []file{docx(t), {"a.html", []byte("<p>x</p>")}, {"a.md", []byte("x")}} {
		o.one(t, "convert", map[string]any{"convert_to": "pdf"}, f)
	}
	o.one(t, "convert", map[string]any{"convert_to": "png", "pages": "1"}, pdf(t))
	// Until no process has started or ended for a second.
	for same := 0; same < 10; same++ {
		now := o.census(t)
		if !maps.Equal(now.kinds(), o.idle.kinds()) {
			same = 0
		}
		o.idle = now
		time.Sleep(100 * time.Millisecond)
	}
	o.base = resident(t, o.cmd.Process.Pid, "VmRSS:")
	if len(o.idle.processes) < 2 || o.idle.memory < 10<<20 || len(o.idle.scratch) == 0 {
		t.Fatalf("nothing is seen of the server: %+v", o.idle)
	}
	return o
}

// TestOverseen runs the tests that watch an ordinary server from outside. Each has its own server. With
// -short they share one and run one after another, because a server with all engines takes longer to
// start than such a test.
func TestOverseen(t *testing.T) {
	t.Parallel()
	var one *overseer
	if testing.Short() {
		one = oversee(t)
	}
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *overseer)
	}{{"LargeDocuments", largeDocuments}, {"HostileFiles", hostileFiles}, {"Bombs", bombsAreFreed}, {"Soak", soak}} {
		t.Run(tt.name, func(t *testing.T) {
			o := one
			if o == nil {
				t.Parallel()
				o = oversee(t)
			}
			tt.run(t, o)
		})
	}
}

// temporary lists the names in the temporary directory.
func (o *overseer) temporary(t *testing.T) []string {
	t.Helper()
	es, err := os.ReadDir(os.TempDir())
	systest.NoError(t, err)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// census counts. Processes start and end during it.
func (o *overseer) census(t *testing.T) census {
	t.Helper()
	c := census{processes: make(map[int]process), scratch: make(map[string]int)}
	all := make(map[int]process)
	mine := map[int]bool{o.cmd.Process.Pid: true}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		p, ok := look(d)
		if !ok {
			continue
		}
		all[pid] = p
		// A process belongs to the server by its user, or else by the server's directory in its
		// environment, whatever its parent is now.
		var st syscall.Stat_t
		if o.user != 0 {
			mine[pid] = mine[pid] || syscall.Stat(d, &st) == nil && st.Uid == o.user
		} else if env, err := os.ReadFile(d + "/environ"); err == nil {
			mine[pid] = mine[pid] || bytes.Contains(env, []byte("="+o.dir+"/"))
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if mine[p.parent] && !mine[pid] {
				mine[pid], grown = true, true
			}
		}
	}
	inodes := make(map[string]bool)
	tables := make(map[string][]byte) // Unix sockets by network namespace
	for pid, p := range all {
		if !mine[pid] {
			continue
		}
		d := fmt.Sprintf("/proc/%d/", pid)
		m, ok := anonymous(d + "status")
		if !ok {
			continue // the process has ended
		}
		c.processes[pid] = p
		c.memory += m
		if net, err := os.Readlink(d + "ns/net"); err == nil && tables[net] == nil {
			tables[net], _ = os.ReadFile(d + "net/unix") // fails if the process has ended
		}
		fds, _ := os.ReadDir(d + "fd")
		if pid == o.cmd.Process.Pid {
			c.files = len(fds)
		}
		for _, f := range fds {
			if to, err := os.Readlink(d + "fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
				inodes[strings.Trim(to, "socket:[]")] = true
			}
		}
	}
	o.peak = max(o.peak, c.memory)
	for _, table := range tables {
		for line := range bytes.Lines(table) {
			if f := bytes.Fields(line); len(f) == 8 && inodes[string(f[6])] {
				if name, ok := strings.CutPrefix(string(f[7]), os.TempDir()+"/"); ok {
					c.sockets = append(c.sockets, name)
					o.sockets[name] = true
				}
			}
		}
	}
	es, err := os.ReadDir(filepath.Join(o.dir, "scratch"))
	systest.NoError(t, err)
	for _, e := range es {
		c.scratch[strings.TrimRight(e.Name(), "0123456789")]++
	}
	return c
}

// look parses /proc/PID/stat (proc_pid_stat(5)).
func look(dir string) (process, bool) {
	b, err := os.ReadFile(dir + "/stat")
	i, j := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 || j < i {
		return process{}, false
	}
	f := strings.Fields(string(b[j+1:]))
	if len(f) < 13 || f[0] == "Z" {
		return process{}, false
	}
	n := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	return process{parent: n(1), name: string(b[i+1 : j]), cpu: time.Duration(n(11)+n(12)) * 10 * time.Millisecond}, true
}

// anonymous returns the anonymous memory of a process in bytes.
func anonymous(path string) (bytes int64, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && (f[0] == "RssAnon:" || f[0] == "RssShmem:") {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			bytes, ok = bytes+n<<10, true
		}
	}
	return bytes, ok
}

// left lists the files that remain in the temporary directory.
func (o *overseer) left(t *testing.T, c census) string {
	var out []string
	for _, name := range o.temporary(t) {
		if o.before[name] || slices.Contains(c.sockets, name) {
			continue
		}
		info, err := os.Lstat(filepath.Join(os.TempDir(), name))
		if err != nil {
			continue
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		if strings.HasPrefix(filepath.Dir(o.dir), filepath.Join(os.TempDir(), name)) {
			continue // the directory of the server
		}
		if o.sockets[name] || o.user != 0 && owner == o.user {
			out = append(out, name)
		}
	}
	if len(out) > 0 {
		return fmt.Sprintf("files are left in %s: %q", os.TempDir(), out)
	}
	return ""
}

// wait waits until complaint returns "".
func (o *overseer) wait(t *testing.T, when string, complaint func(census) string) {
	t.Helper()
	var what string
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if what = complaint(o.census(t)); what == "" {
			return
		}
	}
	t.Errorf("%s: %s", when, what)
}

// settled waits until the server is idle as before.
func (o *overseer) settled(t *testing.T, when string) {
	t.Helper()
	o.wait(t, when, func(c census) string {
		if more := c.memory - o.idle.memory; more > allowance {
			return fmt.Sprintf("%d MiB more memory than before, in %v", more>>20, o.largest())
		}
		// Warm processes may have been replaced, but there must be no others.
		if then, now := o.idle.kinds(), c.kinds(); exceeds(now, then) {
			return fmt.Sprintf("processes %v, before %v", now, then)
		}
		if exceeds(c.scratch, o.idle.scratch) {
			return fmt.Sprintf("scratch space %v, before %v", c.scratch, o.idle.scratch)
		}
		if c.files > o.idle.files+30 {
			return fmt.Sprintf("%d descriptors, before %d", c.files, o.idle.files)
		}
		return o.left(t, c)
	})
	r := o.ready(t, "Authorization", "")
	if r.str("status") != "ok" {
		t.Errorf("%s: readyz: %s", when, r.raw)
	}
}

// kinds counts the processes by name.
func (c census) kinds() map[string]int {
	m := make(map[string]int)
	for _, p := range c.processes {
		m[p.name]++
	}
	return m
}

// largest lists the processes with the most memory.
func (o *overseer) largest() (out []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		var st syscall.Stat_t
		p, ok := look(d)
		if m, has := anonymous(d + "/status"); ok && has && m > 100<<20 && syscall.Stat(d, &st) == nil && (o.user == 0 || st.Uid == o.user) {
			out = append(out, fmt.Sprintf("%s %d MiB", p.name, m>>20))
		}
	}
	return out
}

// exceeds reports whether any count is higher than before.
func exceeds(now, before map[string]int) bool {
	for k := range maps.Keys(now) {
		if now[k] > before[k] {
			return true
		}
	}
	return false
}

// watch records the peak memory until the returned function is called.
func (o *overseer) watch(t *testing.T) (stop func() int64) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var peak int64
	wg.Go(func() {
		for ctx.Err() == nil {
			var sum int64
			dirs, _ := filepath.Glob("/proc/[0-9]*")
			for _, d := range dirs {
				var st syscall.Stat_t
				if syscall.Stat(d, &st) == nil && st.Uid == o.user {
					m, _ := anonymous(d + "/status")
					sum += m
				}
			}
			peak = max(peak, sum)
			time.Sleep(300 * time.Millisecond)
		}
	})
	return func() int64 { cancel(); wg.Wait(); return peak }
}
