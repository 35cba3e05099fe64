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

// A ForkServer is a process of a program that waits, with all its libraries loaded and
// nothing done, and divides itself whenever a process of the program is wanted
// (fork(2)). That takes a fraction of what starting the program takes, if there are
// many libraries.
//
// The program must know of it. It is started with [ForkServerEnv] in its environment and
// a Unix socket as descriptor 3, before anything else reads requests from that
// and answers them. Both are messages of one packet each, with numbers in the order of
// the machine:
//
//	'F' n dir…   fork; with n+3 or n+2 descriptors: a pipe to wait for, standard
//	             error, the rest of the process' own descriptors (3 and up), and
//	             perhaps a ruleset of Landlock, which is to be put in force
//	'R' pid      forget a process that has ended: its number may be used again
//	'P' pid      there is a new process; a negative number is an error (errno(3))
//	'X' pid st   one has ended, with a status as wait(2) has it
//
// The new process goes into a group of its own, waits until there is a byte in the
// pipe, goes to dir, and goes on as if it had just been started.
type ForkServer struct {
	prog *Program
	proc *Process
	conn *net.UnixConn

	calls sync.Mutex // one at a time waits for forked
	forks chan int   // answers 'P'
	dead  chan struct{}

	mu    sync.Mutex
	exits map[int]chan syscall.WaitStatus
}

// ForkServerEnv is the variable that tells a program to be a [ForkServer].
const ForkServerEnv = "FILEWRIGHT_FORK_SERVER"

// forkTimeout is how long a fork server may work until it answers.
const forkTimeout = time.Minute

// ForkServer starts p to wait for requests in the way that c says. Processes that it
// makes have the same environment and arguments; their directories must be below c.Dir,
// and what they may touch must be part of what c.Access says. c.Files and what c
// says of input and output are not used. It ends with ctx or [ForkServer.Close].
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
	// Without a mark: each process gets one of its own.
	if f.proc, err = p.start(ctx, c, mark{}); err != nil {
		f.conn.Close()
		return nil, err
	}
	go f.read()
	return f, nil
}

// Close ends the server and all processes that it has made.
func (f *ForkServer) Close() error {
	f.proc.Kill()
	f.proc.Wait() // it was killed: that it did not end well is no news
	<-f.dead
	return nil
}

// Ended tells whether the server does not work any more.
func (f *ForkServer) Ended() bool {
	select {
	case <-f.dead:
		return true
	default:
		return false
	}
}

// read takes what the server says, until it ends.
func (f *ForkServer) read() {
	defer close(f.dead)
	defer f.proc.Wait()
	defer f.proc.Kill()
	defer f.conn.Close()
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

// fork asks for a process.
func (f *ForkServer) fork(dir string, files []*os.File, inherited int) (pid int, exit chan syscall.WaitStatus, err error) {
	var fds []int
	for _, file := range files {
		fds = append(fds, int(file.Fd()))
	}
	f.calls.Lock()
	defer f.calls.Unlock()
	f.conn.SetWriteDeadline(time.Now().Add(forkTimeout))
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

// forget lets the number of a process that has ended be used again.
func (f *ForkServer) forget(pid int) {
	f.mu.Lock()
	delete(f.exits, pid)
	f.mu.Unlock()
	f.conn.Write(binary.NativeEndian.AppendUint32([]byte{'R'}, uint32(pid))) // if not, the server has ended
}

// Start has the server make a process, of which c says the directory, the files, the
// limits and what it may touch. It is like [Program.Start] otherwise.
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
	defer begin.Close() // the process ends then, if it has not begun
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
		case <-f.dead: // which was the end of all its processes
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
		proc.mark.group.remove() // else the next server does
	}
	if err = f.join(proc, c.Limits); err == nil {
		err = setLimits(pid, c.Limits, proc.mark)
	}
	if err == nil {
		_, err = begin.Write([]byte{0})
	}
	if err != nil {
		proc.Kill()
		proc.Wait()
		return nil, fmt.Errorf("start %s: %w", f.prog.Name, err)
	}
	proc.started(c.Limits)
	return proc, nil
}

// join gives a process a cgroup of its own, where the sandbox has them.
func (f *ForkServer) join(p *Process, l Limits) (err error) {
	if s := f.prog.Sandbox; s != nil && s.layers.groups != nil {
		if p.mark.group, err = s.layers.groups.group(l, p.dirs); err == nil {
			err = p.mark.group.add(p.pid)
		}
	}
	return err
}
