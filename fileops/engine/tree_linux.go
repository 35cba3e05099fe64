package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A mark identifies the processes of one run: an unused resource limit is set to a value
// that no other run has. Children inherit it, and in a [Sandbox] they cannot change it.
// A process group is not enough, because a process can leave it.
type mark struct {
	resource int
	value    uint64 // 0: no mark

	first int // process id of the run's first process
	since time.Time

	group *group // cgroup of the run; may be nil
	leads bool   // the first process is the init process of a PID namespace
}

// newMark returns an unused mark. A nested run also has the mark of the outer run, so it
// uses another resource.
func newMark() mark {
	for _, m := range []mark{
		{resource: unix.RLIMIT_LOCKS},  // unused since Linux 2.4
		{resource: unix.RLIMIT_RTTIME}, // for real-time scheduling
	} {
		var now unix.Rlimit
		if unix.Getrlimit(m.resource, &now) == nil && now.Max == unix.RLIM_INFINITY {
			var b [8]byte
			rand.Read(b[:])
			m.since = time.Now()
			m.value = 1<<60 | binary.LittleEndian.Uint64(b[:])>>8
			return m
		}
	}
	return mark{}
}

// members returns the ids of the processes that have the mark.
func (m mark) members() []int {
	if m.group != nil {
		return m.group.members()
	}
	if m.value == 0 {
		return nil
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	younger := m.onlyYounger()
	var pids []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || younger && pid < m.first {
			continue
		}
		var l unix.Rlimit
		if unix.Prlimit(pid, m.resource, nil, &l) == nil && l.Max == m.value { // else it has ended, or belongs to another run
			pids = append(pids, pid)
		}
	}
	return pids
}

// onlyYounger reports whether all processes of the run have ids above that of the first.
// The kernel assigns ids in ascending order and wraps around after pid_max. With
// millions of ids that takes more than a minute of nothing but forks. Most processes of
// a machine are older than a run, and checking each of them takes longer than many a
// run.
func (m mark) onlyYounger() bool {
	if time.Since(m.since) > time.Minute {
		return false
	}
	number := func(path string, field int) int {
		b, err := os.ReadFile(path)
		if f := bytes.Fields(b); err == nil && field < len(f) {
			n, _ := strconv.Atoi(string(f[field]))
			return n
		}
		return 0
	}
	return number("/proc/sys/kernel/pid_max", 0) >= 1<<20 && number("/proc/loadavg", 4) >= m.first
}

// kill kills the process group of the first process and all processes with the mark. It
// stops them first, so that none forks during the search.
func (m mark) kill() {
	if m.group != nil && m.group.kill() == nil {
		return
	}
	_ = syscall.Kill(-m.first, syscall.SIGKILL)
	stopped := make(map[int]bool)
	for range 100 {
		found := false
		for _, pid := range m.members() {
			if !stopped[pid] {
				stopped[pid], found = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if len(stopped) == 0 {
			return
		}
		if !found {
			break
		}
	}
	for _, pid := range m.members() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// memory returns the private memory of the processes in bytes, resident or swapped out:
// memory that is not file-backed and not shared (proc_pid_status(5)).
func memory(pids []int) int64 {
	var total int64
	for _, pid := range pids {
		b, err := os.ReadFile(procPath(pid, "status"))
		if err != nil {
			continue // it has ended
		}
		for line := range bytes.Lines(b) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			if string(name) == "RssAnon" || string(name) == "VmSwap" {
				kb, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
				total += kb << 10
			}
		}
	}
	return total
}

func procPath(pid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + name
}

// hidden returns the bytes that the processes hold in files without a directory entry:
// removed files on the file systems of dirs, and shared memory, which the kernel treats
// as an unnamed file (memfd_create(2), MAP_SHARED with MAP_ANONYMOUS). Such a file
// exists while a process has it open or mapped. The kernel does not report the size of a
// file that is only mapped, so hidden counts up to the end of the mapping. Without
// mappings, only open files count.
func hidden(pids []int, dirs []string, mappings bool) (files, shared int64) {
	scratch := make(map[uint64]bool) // devices
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil {
			scratch[st.Dev] = true
		}
	}
	type inode struct{ dev, ino uint64 }
	open, mapped := make(map[inode]int64), make(map[inode]int64)
	for _, pid := range pids {
		fds, _ := os.ReadDir(procPath(pid, "fd"))
		for _, fd := range fds {
			var st unix.Stat_t
			if unix.Stat(filepath.Join(procPath(pid, "fd"), fd.Name()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 {
				open[inode{st.Dev, st.Ino}] = st.Blocks * 512
			}
		}
		if !mappings {
			continue
		}
		maps, _ := os.ReadFile(procPath(pid, "maps"))
		for line := range bytes.Lines(maps) {
			// 7f0000000000-7f0000001000 rw-s 00000000 00:01 1234    /dev/zero (deleted)
			if !bytes.HasSuffix(line, []byte(" (deleted)\n")) {
				continue
			}
			var start, end, offset, major, minor, ino uint64
			var mode string
			if n, _ := fmt.Sscanf(string(line), "%x-%x %s %x %x:%x %d", &start, &end, &mode, &offset, &major, &minor, &ino); n == 7 {
				i := inode{unix.Mkdev(uint32(major), uint32(minor)), ino}
				mapped[i] = max(mapped[i], int64(offset+end-start))
			}
		}
	}
	for i, size := range mapped {
		if _, ok := open[i]; !ok {
			open[i] = size
		}
	}
	for i, size := range open {
		if scratch[i.dev] {
			files += size
		} else {
			shared += size
		}
	}
	return files, shared
}

// onDisk returns the bytes that a file occupies on disk.
func onDisk(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

// limitGroup also applies the limits l to the process's group, until stop is called.
// Errors do not matter: watch enforces the limits too.
func (p *Process) limitGroup(l Limits) (stop func()) {
	set := func(l Limits) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ended {
			_ = p.mark.group.limit(l.Or(p.watched), p.dirs)
		}
	}
	set(l)
	return func() { set(Limits{}) }
}

// ignored returns the limit signal that the process ignored as the init process of a PID
// namespace (pid_namespaces(7)), or 0. Instead of SIGXCPU the kernel kills it with
// SIGKILL one second later, and instead of SIGXFSZ the write fails.
func (p *Process) ignored(err error) syscall.Signal {
	if !p.mark.leads {
		return 0
	}
	p.mu.Lock()
	l, exceeded := p.watched, p.exceeded
	p.mu.Unlock()
	if st, _ := waitStatus(err); l.CPU > 0 && exceeded == "" && st.Signaled() && st.Signal() == syscall.SIGKILL {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.UserTime()+exit.SystemTime() >= l.CPU {
			return sigXCPU
		}
	}
	if exceeded == "" {
		for path, size := range largeFiles(p.dirs, l.FileSize) {
			if before, ok := p.large[path]; !ok || size != before {
				return sigXFSZ
			}
		}
	}
	return 0
}
