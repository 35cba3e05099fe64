package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine/internal/confine"
	"github.com/filewright/filewright/internal/worktime"
)

// A ForkServer is a waiting process of a program that has loaded all its libraries and
// done nothing else. It forks whenever a process of the program is needed (fork(2)). For
// a program with many libraries that takes a fraction of its start time.
//
// The program must support this. It starts with [ForkServerEnv] in its environment and a
// Unix socket as descriptor 3. Before anything else, it reads requests from the socket
// and answers them. Requests and responses are messages of one packet each, with numbers
// in native byte order:
//
//	'F' n dir…   fork; with n+3 or n+2 descriptors: a pipe to wait for, standard
//	             error, the n other descriptors of the process (3 and up), and
//	             optionally a ruleset of Landlock to put in force
//	'R' pid      forget a process that has ended: its id may be reused
//	'P' pid      there is a new process; a negative number is an error (errno(3))
//	'X' pid st   a process has ended, with a status as in wait(2)
//
// The new process joins a group of its own, waits for a byte in the pipe, changes to
// dir, and continues as if it had just started.
type ForkServer struct {
	prog *Program
	proc *Process
	conn *net.UnixConn

	calls sync.Mutex // held while one caller waits for a fork
	forks chan int   // responses 'P'
	dead  chan struct{}

	mu    sync.Mutex
	exits map[int]chan syscall.WaitStatus
}

// ForkServerEnv is the environment variable that makes a program a [ForkServer].
const ForkServerEnv = "FILEWRIGHT_FORK_SERVER"

// forkTimeout limits how long a fork server may take to respond.
const forkTimeout = time.Minute

// ForkServer starts p as a fork server, as described by c. Its processes have the same
// environment and arguments. Their directories must be below c.Dir, and their access
// must be part of c.Access. c.Files and the input and output of c are not used. The
// server runs until ctx is done or [ForkServer.Close] is called.
func (p *Program) ForkServer(ctx context.Context, c Cmd) (*ForkServer, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "fork server"), os.NewFile(uintptr(pair[1]), "fork server")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	f := &ForkServer{
		prog: p, conn: conn.(*net.UnixConn), forks: make(chan int, 1), dead: make(chan struct{}), exits: make(map[int]chan syscall.WaitStatus),
	}
	c.Env = append([]string{ForkServerEnv + "=1"}, c.Env...)
	c.Files, c.forks = []*os.File{theirs}, true
	// The server has no mark: each of its processes gets its own.
	if f.proc, err = p.start(ctx, c, mark{}); err != nil {
		f.conn.Close()
		return nil, err
	}
	go f.read()
	return f, nil
}

// Close kills the server and all its processes.
func (f *ForkServer) Close() error {
	f.proc.Kill()
	_ = f.proc.Wait() // it was killed, so an error is expected
	<-f.dead
	return nil
}

// Ended reports whether the server has stopped.
func (f *ForkServer) Ended() bool {
	select {
	case <-f.dead:
		return true
	default:
		return false
	}
}

// read handles the server's responses until the server ends.
func (f *ForkServer) read() {
	defer close(f.dead)
	defer func() {
		f.conn.Close()
		f.proc.Kill()
		_ = f.proc.Wait() // it was killed, so an error is expected
	}()
	buf := make([]byte, 64)
	for {
		n, err := f.conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		switch {
		case buf[0] == 'P' && n == 5:
			pid := int(int32(binary.NativeEndian.Uint32(buf[1:])))
			if pid > 0 {
				f.mu.Lock()
				f.exits[pid] = make(chan syscall.WaitStatus, 1)
				f.mu.Unlock()
			}
			f.forks <- pid
		case buf[0] == 'X' && n == 9:
			pid, st := int(binary.NativeEndian.Uint32(buf[1:])), binary.NativeEndian.Uint32(buf[5:])
			f.mu.Lock()
			if c := f.exits[pid]; c != nil && len(c) == 0 {
				c <- syscall.WaitStatus(st)
			}
			f.mu.Unlock()
		default:
			return
		}
	}
}

// fork requests a new process.
func (f *ForkServer) fork(dir string, files []*os.File, inherited int) (pid int, exit chan syscall.WaitStatus, err error) {
	var fds []int
	for _, file := range files {
		fds = append(fds, int(file.Fd()))
	}
	f.calls.Lock()
	defer f.calls.Unlock()
	if err := f.conn.SetWriteDeadline(time.Now().Add(forkTimeout)); err != nil {
		return 0, nil, err
	}
	msg := append([]byte{'F', byte(inherited)}, dir...)
	if _, _, err := f.conn.WriteMsgUnix(append(msg, 0), unix.UnixRights(fds...), nil); err != nil {
		return 0, nil, err
	}
	ctx, stop := worktime.Context(context.Background(), forkTimeout, nil, f.proc.Work())
	defer stop()
	select {
	case pid = <-f.forks:
	case <-f.dead:
		return 0, nil, errors.New("the fork server has ended")
	case <-ctx.Done():
		f.proc.Kill()
		return 0, nil, fmt.Errorf("the fork server did not answer within %v", forkTimeout)
	}
	if pid <= 0 {
		return 0, nil, syscall.Errno(-pid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return pid, f.exits[pid], nil
}

// forget allows the id of an ended process to be reused.
func (f *ForkServer) forget(pid int) {
	f.mu.Lock()
	delete(f.exits, pid)
	f.mu.Unlock()
	_, _ = f.conn.Write(binary.NativeEndian.AppendUint32([]byte{'R'}, uint32(pid))) // on an error the server has ended
}

// Start makes the server fork a process with the directory, files, limits and access of
// c. Otherwise it works like [Program.Start].
func (f *ForkServer) Start(ctx context.Context, c Cmd) (_ *Process, err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	proc := f.prog.process(ctx, c, newMark())
	wait, begin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wait.Close()
	defer begin.Close() // a process that still waits for this pipe then exits
	said, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer say.Close()
	files := append([]*os.File{wait, say}, c.Files...)
	if s := f.prog.Sandbox; s != nil && s.layers.landlock > 0 {
		rules, err := f.prog.policy(c).Ruleset(confine.Layers{Landlock: s.layers.landlock})
		if err != nil {
			said.Close()
			return nil, err
		}
		defer rules.Close()
		files = append(files, rules)
	}
	pid, exit, err := f.fork(c.Dir, files, len(c.Files))
	if err != nil {
		said.Close()
		return nil, fmt.Errorf("start %s: %w", f.prog.Name, err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(proc.errors(), said)
	}()
	proc.pid, proc.mark.first = pid, pid
	proc.end = func() error {
		var st syscall.WaitStatus
		select {
		case st = <-exit:
		case <-f.dead: // which ends all its processes
			select {
			case st = <-exit:
			default:
				st = syscall.WaitStatus(syscall.SIGKILL)
			}
		}
		select {
		case <-copied:
		case <-time.After(pipeDelay):
		}
		said.Close()
		<-copied
		if st != 0 {
			return exited(st)
		}
		return nil
	}
	proc.forget = func() {
		f.forget(pid)
		_ = proc.mark.group.remove() // if this fails, the next server removes the group
	}
	if err = f.join(proc, c.Limits); err == nil {
		err = setLimits(pid, c.Limits, proc.mark)
	}
	if err == nil {
		_, err = begin.Write([]byte{0})
	}
	if err != nil {
		proc.Kill()
		_ = proc.Wait() // it was killed, so an error is expected
		return nil, fmt.Errorf("start %s: %w", f.prog.Name, err)
	}
	proc.started(c.Limits)
	return proc, nil
}

// join puts a process into its own cgroup, if the sandbox has cgroups.
func (f *ForkServer) join(p *Process, l Limits) (err error) {
	if s := f.prog.Sandbox; s != nil && s.layers.groups != nil {
		if p.mark.group, err = s.layers.groups.group(l, p.dirs); err == nil {
			err = p.mark.group.add(p.pid)
		}
	}
	return err
}
