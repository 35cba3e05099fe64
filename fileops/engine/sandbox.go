package engine

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine/internal/confine"
)

// A Sandbox confines programs, so that one that is taken over by the file it
// reads can do no more than spoil the result: it reads and writes nothing but what
// its [Cmd] names and the libraries of the host, connects to nothing, sees and
// stops no other process, and gains no privilege.
//
// The layers are those of the kernel that need no privilege: Landlock for files,
// a seccomp filter for system calls, and no capabilities for root. They work the
// same in a container. Where an ordinary process may make user namespaces, which most
// containers do not permit, programs also have a network, IPC and a host name of their
// own. A nil Sandbox confines nothing but the process group, the environment and the
// [Limits].
type Sandbox struct {
	layers  confine.Layers
	missing []string
	always  Access
}

// NewSandbox returns the strongest sandbox that this host has. What the kernel
// says that it has is tried, on a thread of its own, and counts only if it holds.
func NewSandbox() *Sandbox {
	s := &Sandbox{layers: confine.Available()}
	if s.layers.Landlock == 0 {
		s.missing = append(s.missing, "landlock: the kernel does not have it, or it is switched off")
	} else if err := try(confine.Layers{Landlock: s.layers.Landlock}, noFiles); err != nil {
		s.layers.Landlock = 0
		s.missing = append(s.missing, "landlock: "+err.Error())
	}
	if !s.layers.Seccomp {
		s.missing = append(s.missing, "seccomp: the kernel does not have it")
	} else if err := try(confine.Layers{Seccomp: true}, noNetwork); err != nil {
		s.layers.Seccomp = false
		s.missing = append(s.missing, "seccomp: "+err.Error())
	}
	if s.Strong() { // the others keep programs from more of them
		s.layers.Namespaces = true
		if err := tryNamespaces(s); err != nil {
			s.layers.Namespaces = false
			s.missing = append(s.missing, "namespaces: "+err.Error())
		}
	}
	return s
}

// Basic returns a sandbox like s without namespaces, also where the host permits them. With
// nil it returns nil.
func (s *Sandbox) Basic() *Sandbox {
	if s == nil || !s.layers.Namespaces {
		return s
	}
	t := *s
	t.layers.Namespaces = false
	t.missing = append(slices.Clone(s.missing), "namespaces: switched off")
	return &t
}

// Namespaced reports whether programs have namespaces of their own. It is false for nil.
func (s *Sandbox) Namespaced() bool { return s != nil && s.layers.Namespaces }

// tryNamespaces starts this program with namespaces of its own. It is ended before its first
// instruction.
func tryNamespaces(s *Sandbox) error {
	// Inside of a sandbox of this package this fails: no more is to be had.
	if err := unix.Unshare(0); err != nil {
		return fmt.Errorf("not permitted: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	done := make(chan error)
	confine.Go(func() {
		key := newKey()
		rules, err := (&confine.Policy{Execute: append(slices.Clone(hostPrograms), self), Read: hostData}).Thread(s.layers, key)
		if err != nil {
			done <- err
			return
		}
		defer rules.Close()
		cmd := exec.Command(self)
		cmd.Env = []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}
		if err = confine.Stopped(cmd.Process.Pid); err == nil {
			err = confine.Settle(cmd.Process.Pid, confine.Start{First: 3, Key: key})
		}
		cmd.Process.Kill()
		cmd.Wait() // it was killed: that it did not end well is no news
		done <- err
	})
	return <-done
}

// newKey returns a number that cannot be guessed.
func newKey() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.NativeEndian.Uint64(b[:]) | 1
}

// With returns a sandbox like s in which all programs have a as well. With nil it
// returns nil.
func (s *Sandbox) With(a Access) *Sandbox {
	if s == nil {
		return nil
	}
	t := *s
	t.always = s.always.and(a)
	return &t
}

// Strong tells whether files and system calls are both confined, which is what
// engines need that read strangers' files. It is false for nil.
func (s *Sandbox) Strong() bool {
	return s != nil && s.layers.Landlock > 0 && s.layers.Seccomp
}

// Layers names what is in force: "landlock 7", "seccomp", "namespaces".
func (s *Sandbox) Layers() []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.layers.Landlock > 0 {
		out = append(out, fmt.Sprintf("landlock %d", s.layers.Landlock))
	}
	if s.layers.Seccomp {
		out = append(out, "seccomp")
	}
	if s.layers.Namespaces {
		out = append(out, "namespaces")
	}
	return out
}

// Missing says which layers this host lacks, and why: "landlock: the kernel does
// not have it". It is for people.
func (s *Sandbox) Missing() []string {
	if s == nil {
		return []string{"landlock: not asked for", "seccomp: not asked for", "namespaces: not asked for"}
	}
	return slices.Clone(s.missing)
}

// try applies layers to a new thread and calls test there.
func try(l confine.Layers, test func() error) error {
	done := make(chan error)
	confine.Go(func() {
		rules, err := new(confine.Policy).Thread(l, 0)
		if err == nil {
			rules.Close() // nil, or not wanted
			err = test()
		}
		done <- err
	})
	return <-done
}

func noFiles() error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return errors.New("it is switched on, but does not hold")
	}
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	return nil
}

func noNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return errors.New("it is switched on, but does not hold")
	}
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// Access is what a program may touch in a [Sandbox] beyond its directory, the
// programs and libraries of the host (/usr and what belongs to it), its fonts and
// its time zone. Paths that do not exist do no harm.
type Access struct {
	Read    []string // files, and directories with all below them
	Write   []string // directories: for everything but starting programs in them
	Sockets []string // directories: for making and removing Unix sockets

	// Connect allows connections to Unix sockets, also to those of other
	// programs that this user may connect to. No program that reads strangers'
	// files should have it.
	Connect bool

	// Namespaces allows new namespaces and lowering limits of resources of the calling
	// process, for a program that has a sandbox of its own. That also has to write in
	// /proc.
	Namespaces bool

	// SharedMemory allows memory that processes share (memfd_create(2), MAP_SHARED), which counts
	// for [Limits].Resident.
	SharedMemory bool

	// Unwritable has access(2) say that nothing may be written. It is for a program that
	// would choose a directory of the host, such as /tmp, over its own where it
	// seems to be allowed. Files are opened and made as without it.
	Unwritable bool

	// Limits allows lowering limits of resources, for a program that starts
	// others by this package.
	Limits bool
}

// and returns what a or b allow.
func (a Access) and(b Access) Access {
	return Access{
		Read: slices.Concat(a.Read, b.Read), Write: slices.Concat(a.Write, b.Write), Sockets: slices.Concat(a.Sockets, b.Sockets),
		Connect: a.Connect || b.Connect, Namespaces: a.Namespaces || b.Namespaces, Limits: a.Limits || b.Limits,
		Unwritable: a.Unwritable || b.Unwritable, SharedMemory: a.SharedMemory || b.SharedMemory,
	}
}

// hostPrograms and hostData are what programs need of any host. What administrators keep in
// /usr/local, /usr/local/etc above all, is not part of it, but for programs, libraries and
// their data.
var (
	hostPrograms = []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/share",
		"/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/libexec", "/usr/local/share",
	}
	hostData = []string{
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
		"/etc/fonts", "/var/cache/fontconfig", "/sys/devices/system/cpu",
	}
)

// brings returns where a program has the libraries that it brings: beside it, or in the
// directory below /usr/local that it was installed in.
func brings(program string) []string {
	for _, dir := range hostPrograms {
		if strings.HasPrefix(program, dir+"/") {
			return nil
		}
	}
	if below, ok := strings.CutPrefix(program, "/usr/local/"); ok {
		if dir, _, ok := strings.Cut(below, "/"); ok && dir != "etc" && dir != "src" && dir != "sbin" {
			return []string{"/usr/local/" + dir}
		}
	}
	return []string{filepath.Dir(program)}
}

// policy returns what p may do for c.
func (p *Program) policy(c Cmd) *confine.Policy {
	programs := append(slices.Clone(hostPrograms), p.Path)
	if real, err := filepath.EvalSymlinks(p.Path); err == nil && !p.Alone {
		programs = append(programs, brings(real)...)
	}
	a := p.Sandbox.always.and(c.Access)
	pol := &confine.Policy{
		Execute: programs,
		Read:    append(a.Read, hostData...),
		Write:   a.Write,
		Sockets: a.Sockets, Connect: a.Connect, Namespaces: a.Namespaces, Limits: a.Limits,
		Unwritable: a.Unwritable, SharedMemory: a.SharedMemory,
	}
	if c.Dir != "" && c.Dir != "/" {
		pol.Write = append(pol.Write, c.Dir)
	}
	return pol
}
