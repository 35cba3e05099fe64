package engine

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// groups is the cgroup v2 directory that contains one group for each run
// (Documentation/admin-guide/cgroup-v2.rst).
type groups struct {
	dir    string
	limits bool // the groups limit memory and the number of processes
}

// findGroups prepares the hierarchy that is delegated to this process. proc is
// /proc/self, or a stand-in in tests. unlimited is the reason why groups cannot have
// limits; nil if they can.
func findGroups(proc string) (g *groups, unlimited, err error) {
	own, err := ownGroup(proc)
	if err != nil {
		return nil, nil, err
	}
	base := own
	if filepath.Base(own) == "server" { // moved by enable, or by systemd's DelegateSubgroup=
		base = filepath.Dir(own)
	}
	g = &groups{dir: filepath.Join(base, "engines")}
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("not delegated: %w", err)
	}
	if unlimited = g.enable(base); unlimited == nil {
		g.limits = true
	}
	g.clean()
	return g, unlimited, nil
}

// ownGroup returns the directory of this process in the v2 hierarchy (cgroups(7),
// proc_pid_mountinfo(5)).
func ownGroup(proc string) (string, error) {
	b, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return "", err
	}
	_, path, ok := strings.Cut("\n"+string(b), "\n0::")
	if !ok {
		return "", errors.New("this host has no cgroup v2 hierarchy")
	}
	path, _, _ = strings.Cut(path, "\n")
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(f) < 5 {
			continue
		}
		if rel, err := filepath.Rel(f[3], path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f[4], rel), nil
		}
	}
	return "", errors.New("this process cannot see its cgroup v2")
}

// enable lets the groups limit memory and processes. The kernel permits that only if
// base itself contains no process, so this process moves to a sibling group.
func (g *groups) enable(base string) error {
	const controllers = "+memory +pids"
	has := func(file string) bool {
		b, _ := os.ReadFile(file)
		all := strings.Fields(string(b))
		n := 0
		for _, c := range all {
			if c == "memory" || c == "pids" {
				n++
			}
		}
		return n == 2
	}
	control := filepath.Join(base, "cgroup.subtree_control")
	if !has(filepath.Join(base, "cgroup.controllers")) {
		return errors.New("the controllers memory and pids are not delegated")
	}
	if !has(control) {
		b, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
		if err != nil {
			return err
		}
		self := strconv.Itoa(os.Getpid())
		if others := strings.Fields(string(b)); len(others) > 1 || len(others) == 1 && others[0] != self {
			return errors.New("other processes are in the cgroup of this one")
		}
		server := filepath.Join(base, "server")
		if err := os.Mkdir(server, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := write(server, "cgroup.procs", self); err != nil {
			return err
		}
		if err := write(base, "cgroup.subtree_control", controllers); err != nil {
			return err
		}
	}
	return write(g.dir, "cgroup.subtree_control", controllers)
}

func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// clean kills and removes the groups that earlier processes left behind.
func (g *groups) clean() {
	dirs, _ := os.ReadDir(g.dir) // an unreadable directory is left alone
	for _, d := range dirs {
		owner, _, _ := strings.Cut(d.Name(), "-")
		if pid, err := strconv.Atoi(owner); err == nil && d.IsDir() && unix.Kill(pid, 0) == unix.ESRCH {
			_ = (&group{dir: filepath.Join(g.dir, d.Name())}).remove() // the next start tries again
		}
	}
}

// A group is the cgroup of one run. A nil group does nothing.
type group struct {
	dir    string
	fd     *os.File // the directory, for clone3(2)
	limits bool
}

// group creates a group with limits for a run that writes to scratch.
func (g *groups) group(l Limits, scratch []string) (_ *group, err error) {
	n := &group{dir: filepath.Join(g.dir, strconv.Itoa(os.Getpid())+"-"+rand.Text()), limits: g.limits}
	if err = os.Mkdir(n.dir, 0o755); err == nil {
		if n.fd, err = os.Open(n.dir); err == nil {
			err = n.limit(l, scratch)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", errors.Join(err, n.remove()))
	}
	return n, nil
}

// add moves a process into the group.
func (g *group) add(pid int) error { return write(g.dir, "cgroup.procs", strconv.Itoa(pid)) }

const (
	// The kernel also charges a group for page tables, buffers and the like, which watch
	// does not count. The group limits what a run can use between two checks of watch.
	kernelMemory = 16 << 20

	// The kernel counts threads as processes.
	threadsEach = 512
)

// limit sets the limits of l, and removes those that are zero in l. Files in scratch
// count as memory if scratch is in memory (tmpfs).
func (g *group) limit(l Limits, scratch []string) error {
	if g == nil || !g.limits {
		return nil
	}
	memory, pids := "max", "max"
	if l.Resident > 0 {
		most := l.Resident + l.Resident/8 + kernelMemory
		for _, dir := range scratch {
			var st unix.Statfs_t
			if unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC {
				if most += l.Scratch; l.Scratch == 0 {
					most = 0
				}
				break
			}
		}
		if most > 0 {
			memory = strconv.FormatInt(most, 10)
		}
	}
	if l.Processes > 0 {
		pids = strconv.Itoa(l.Processes * threadsEach)
	}
	err := errors.Join(write(g.dir, "memory.max", memory), write(g.dir, "memory.oom.group", "1"), write(g.dir, "pids.max", pids))
	if serr := write(g.dir, "memory.swap.max", "0"); !errors.Is(serr, fs.ErrNotExist) { // a kernel without swap
		err = errors.Join(err, serr)
	}
	return err
}

// members returns the processes of the group.
func (g *group) members() []int {
	b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range bytes.Fields(b) {
		if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// outOfMemory reports whether the kernel has killed a process because of the group's
// limit.
func (g *group) outOfMemory() bool {
	if g == nil || !g.limits {
		return false
	}
	b, _ := os.ReadFile(filepath.Join(g.dir, "memory.events")) // fails if the group is already removed
	for line := range bytes.Lines(b) {
		if n, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			return string(bytes.TrimSpace(n)) != "0"
		}
	}
	return false
}

// kill kills all processes of the group atomically, including processes that are just
// being forked.
func (g *group) kill() error { return write(g.dir, "cgroup.kill", "1") }

// remove kills the processes in the group, and removes it.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	g.fd.Close() // nil for the group of another process
	err := os.Remove(g.dir)
	if errors.Is(err, unix.EBUSY) {
		_ = g.kill() // if this fails, the removal fails too
		for wait := time.Millisecond; errors.Is(err, unix.EBUSY) && wait < 4*time.Second; wait *= 2 {
			time.Sleep(wait) // killed processes take a moment to exit
			err = os.Remove(g.dir)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
