package engine

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A mark is what the processes of one run have in common, whatever they do: a
// limit that nothing uses is set to a number that no other run has. Children
// inherit it, and in a [Sandbox] cannot change it; a process group can be left.
type mark struct {
	resource int
	value    uint64 // 0: no mark

	first int // the process that all others come from
	since time.Time
}

// newMark returns a mark that is not in use. A run inside of another one has
// that one's mark too, and another resource for its own.
func newMark() mark {
	for _, m := range []mark{
		{resource: unix.RLIMIT_LOCKS},  // not looked at since Linux 2.4
		{resource: unix.RLIMIT_RTTIME}, // for the scheduling class of real time
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

// members returns the processes that have the mark.
func (m mark) members() []int {
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
		if unix.Prlimit(pid, m.resource, nil, &l) == nil && l.Max == m.value { // else ended, or somebody else's
			pids = append(pids, pid)
		}
	}
	return pids
}

// onlyYounger tells whether all processes of the run have numbers above that of
// the first. Numbers are given out in turn, and start again from below after
// pid_max; with millions of them that takes more than a minute of nothing but
// starting processes. Most processes of a machine are older than a run, and to
// look at each takes longer than many a run.
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

// kill ends all processes with the mark. They are stopped first, so that none
// starts another while it is looked for.
func (m mark) kill() {
	stopped := make(map[int]bool)
	for range 100 {
		found := false
		for _, pid := range m.members() {
			if !stopped[pid] {
				stopped[pid], found = true, true
				syscall.Kill(pid, syscall.SIGSTOP)
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
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// memory returns how many bytes of memory the processes have for themselves:
// what is resident and not shared (proc_pid_statm(5)).
func memory(pids []int) int64 {
	var total int64
	for _, pid := range pids {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
		if err != nil {
			continue
		}
		if f := bytes.Fields(b); len(f) > 2 {
			resident, _ := strconv.ParseInt(string(f[1]), 10, 64)
			shared, _ := strconv.ParseInt(string(f[2]), 10, 64)
			total += (resident - shared) * int64(os.Getpagesize())
		}
	}
	return total
}

// used returns how many bytes the files below dir take on disk, or more than most if
// that is more.
func used(dir string, most int64) int64 {
	var total int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				total += st.Blocks * 512
			}
		}
		if total > most {
			return filepath.SkipAll
		}
		return nil
	})
	return total
}
