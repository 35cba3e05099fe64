// Package pgtest runs real PostgreSQL servers for tests: one per test binary, with its
// own port and directory. Every test gets a new database, which is empty or a copy of a
// prepared one.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		url := pgtest.New(t) // postgres://…
//	}
//
// PostgreSQL must be installed, as scripts/setup.sh does: tests fail without it.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/systest"
)

// shared is the server of the test binary.
var shared atomic.Pointer[Server]

// Main starts a server, runs the tests and stops it. It returns the exit code.
func Main(m *testing.M) int { return MainWith(m, nil) }

// MainWith is like Main, but calls prepare to create tables in a first database. New
// returns copies of it, which is faster than creating the tables each time.
func MainWith(m *testing.M, prepare func(url string) error) int {
	s, err := Start(Options{})
	if err == nil && prepare != nil {
		err = s.Prepare(prepare)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if s != nil {
			s.Close()
		}
		return 1
	}
	shared.Store(s)
	code := m.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// New returns the URL of a new database on the server of the test binary, which is
// empty or a copy of the one that MainWith prepared. It is dropped when the test ends.
func New(t testing.TB) string {
	t.Helper()
	return server(t).Database(t)
}

// Empty returns the URL of a new, empty database on the server of the test binary.
// It is dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	return server(t).database(t, "template1")
}

// Own returns a server for one test, which may stop or freeze it. It is closed when the
// test ends.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := Start(Options{})
	systest.NoError(t, err)
	systest.AtEnd(t, s.Close)
	return s
}

// UntilLocked waits until a statement that contains the given text waits for a lock. db
// is a connection or a pool for that database.
func UntilLocked(t testing.TB, db interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}, text string) {
	t.Helper()
	systest.Until(t, text+" waits for a lock", func() (waits bool) {
		if err := db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%')`, text).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
}

func server(t testing.TB) *Server {
	t.Helper()
	s := shared.Load()
	if s == nil {
		t.Fatal("TestMain does not call pgtest.Main")
	}
	return s
}

// Options configure a [Server].
type Options struct {
	// Durable makes the server wait for the disk, as PostgreSQL does by default.
	Durable bool

	// Settings are additional lines for postgresql.conf.
	Settings []string
}

// A Server is a PostgreSQL server.
type Server struct {
	dir  string
	bin  string
	port int
	attr *syscall.SysProcAttr
	seq  atomic.Int64

	template string // template of new databases

	process *process
}

// Start starts a new server on 127.0.0.1. The caller must close it.
func Start(o Options) (_ *Server, err error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, attr: new(syscall.SysProcAttr), template: "template1"}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	systest.DieWithParent(s.attr, syscall.SIGQUIT)
	if os.Geteuid() == 0 {
		// PostgreSQL refuses to run as root.
		uid, gid, err := account()
		if err != nil {
			return nil, err
		}
		systest.AsUser(s.attr, uid, gid)
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, err
		}
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", s.data(), "-U", "postgres", "-E", "UTF8",
		"--locale=C.UTF-8", "--auth=trust", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.SysProcAttr = dir, s.attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	conf := []string{
		"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 300",
		"shared_buffers = 64MB", "log_min_messages = warning",
	}
	if !o.Durable {
		conf = append(conf, "fsync = off", "full_page_writes = off")
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	for _, line := range slices.Concat(conf, o.Settings) {
		fmt.Fprintln(f, line)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = s.Up(); err == nil {
			break // else another process has taken the port
		}
	}
	return s, err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the URL of a database of the server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Example returns the URL of a new database like New, for examples.
func Example() string {
	url, err := shared.Load().New()
	if err != nil {
		panic(err)
	}
	return url
}

func (s *Server) create(template string) (name string, err error) {
	name = fmt.Sprintf("test%d", s.seq.Add(1))
	return name, s.exec("CREATE DATABASE " + name + " TEMPLATE " + template)
}

// Prepare calls f to create tables in a new database. All databases created later are
// copies of it. f must not leave connections open.
func (s *Server) Prepare(f func(url string) error) error {
	name, err := s.create("template1")
	if err != nil {
		return err
	}
	if err := f(s.URL(name)); err != nil {
		return err
	}
	s.template = name
	return nil
}

// New returns the URL of a new database, for programs that are not tests.
func (s *Server) New() (url string, err error) {
	name, err := s.create(s.template)
	return s.URL(name), err
}

// Database returns the URL of a new database. It is dropped when the test ends.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.database(t, s.template)
}

func (s *Server) database(t testing.TB, template string) string {
	t.Helper()
	name, err := s.create(template)
	systest.NoError(t, err)
	t.Cleanup(func() {
		if s.process == nil {
			return
		}
		systest.Check(t, s.exec("DROP DATABASE "+name+" WITH (FORCE)"))
	})
	return s.URL(name)
}

func (s *Server) exec(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, text)
	return err
}

// Up starts the server after Down or Kill, and returns when it accepts connections.
func (s *Server) Up() error {
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port))
	var out bytes.Buffer
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = s.dir, s.attr, &out, &out
	p, err := run(cmd)
	if err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; {
		err := s.exec("SELECT 1")
		if err == nil {
			s.process = p
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("postgres stopped: %w\n%s", p.err, out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			<-p.done
			return fmt.Errorf("postgres does not respond: %w\n%s", err, out.String())
		}
	}
}

// Down shuts the server down cleanly and at once: it closes connections and loses no
// data.
func (s *Server) Down() error { return s.end(syscall.SIGINT) }

// Kill crashes the server: all its processes quit at once without a checkpoint.
func (s *Server) Kill() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(sig syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	if err := p.cmd.Process.Signal(sig); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Freeze suspends all processes of the server until Thaw: open and new connections get
// no response.
func (s *Server) Freeze() error { return s.signal(systest.Stop) }

// Thaw ends Freeze.
func (s *Server) Thaw() error { return s.signal(systest.Cont) }

// signal sends a signal to the server and then to its children. A frozen server starts
// no further children.
func (s *Server) signal(sig syscall.Signal) error {
	pid := s.process.cmd.Process.Pid
	if err := systest.Signal(pid, sig); err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return err
	}
	for child := range strings.FieldsSeq(string(children)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		if err := systest.Signal(n, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// Close stops the server and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.Down(), os.RemoveAll(s.dir))
}

// A process is a child process that something waits for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // when done
}

// run starts a process from a thread that lives as long as it does: Linux treats the
// exit of that thread as the parent's death.
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	return p, <-started
}

// binaries returns the directory of PostgreSQL's programs.
func binaries() (string, error) {
	// Debian has one directory for every major version, none of them in PATH.
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Reverse(dirs)
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append([]string{filepath.Dir(path)}, dirs...)
		}
	}
	for _, dir := range dirs {
		_, err1 := os.Stat(filepath.Join(dir, "initdb"))
		_, err2 := os.Stat(filepath.Join(dir, "postgres"))
		if err1 == nil && err2 == nil {
			return dir, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed; run scripts/setup.sh test")
}

// account returns the IDs of a user that is not root.
func account() (uid, gid uint32, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, err1 := strconv.ParseUint(u.Uid, 10, 32)
		group, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && id != 0 {
			return uint32(id), uint32(group), nil
		}
	}
	return 0, 0, errors.New("no user to run PostgreSQL as")
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return ln.Addr().(*net.TCPAddr).Port, ln.Close()
}
