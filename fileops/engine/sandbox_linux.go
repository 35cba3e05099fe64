package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine/internal/confine"
)

// NewSandbox returns the strongest sandbox that this host supports. It tries each layer
// that the kernel reports, on a separate thread, and drops layers that do not work.
func NewSandbox() *Sandbox {
	has := confine.Available()
	s := &Sandbox{layers: layers{landlock: has.Landlock, seccomp: has.Seccomp}}
	if s.layers.landlock == 0 {
		s.missing = append(s.missing, "landlock: the kernel does not have it, or it is switched off")
	} else if err := try(confine.Layers{Landlock: s.layers.landlock}, noFiles); err != nil {
		s.layers.landlock = 0
		s.missing = append(s.missing, "landlock: "+err.Error())
	}
	if !s.layers.seccomp {
		s.missing = append(s.missing, "seccomp: the kernel does not have it")
	} else if err := try(confine.Layers{Seccomp: true}, noNetwork); err != nil {
		s.layers.seccomp = false
		s.missing = append(s.missing, "seccomp: "+err.Error())
	}
	if !s.Strong() { // without it, namespaces would give programs additional rights
		return s
	}
	if err := tryStart(s.layers, ownNamespaces, nil); err != nil {
		s.missing = append(s.missing, "namespaces: "+err.Error(), grouped+": there are no namespaces")
		return s
	}
	s.layers.namespaces = true
	groups, unlimited, err := findGroups("/proc/self")
	var group *group
	if err == nil {
		group, err = groups.group(Limits{}, nil)
	}
	if err == nil {
		err = errors.Join(tryStart(s.layers, ownNamespaces|unix.CLONE_NEWPID, group), group.kill(), group.remove())
	}
	if err != nil {
		s.missing = append(s.missing, grouped+": "+err.Error())
		return s
	}
	s.layers.groups = groups
	if unlimited != nil {
		s.missing = append(s.missing, "limits of cgroups: "+unlimited.Error())
	}
	return s
}

// tryStart starts this program in namespaces and a group, and kills it before its first
// instruction.
func tryStart(l layers, flags uintptr, g *group) error {
	// Inside a sandbox of this package this fails: no namespaces are available.
	if err := unix.Unshare(0); err != nil {
		return fmt.Errorf("not permitted: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s := start{cmd: exec.Command(self), layers: l, flags: flags, group: g, probe: true}
	s.cmd.Env = []string{}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.policy = &confine.Policy{Execute: append(slices.Clone(hostPrograms), self), Read: hostData}
	done, checked := make(chan error), make(chan struct{})
	defer close(checked)
	confine.Go(func() {
		rules, err := s.policy.Thread(confine.Layers{Landlock: l.landlock})
		if err == nil {
			err = s.traced(rules, s.policy.Filter())
			rules.Close()
		}
		done <- err
		<-checked // the kernel kills the program when this thread ends
	})
	err = <-done
	if perr, ok := errors.AsType[*fs.PathError](err); ok { // its path is of no interest
		err = fmt.Errorf("clone: %w", perr.Err)
	}
	if p := s.cmd.Process; p != nil {
		if err == nil && g != nil && !slices.Contains(g.members(), p.Pid) {
			err = errors.New("it is switched on, but does not hold")
		}
		_ = p.Kill()
		_ = s.cmd.Wait() // it was killed, so an error is expected
	}
	return err
}

// try applies layers to a new thread and calls test on that thread.
func try(l confine.Layers, test func() error) error {
	done := make(chan error)
	confine.Go(func() {
		rules, err := new(confine.Policy).Thread(l)
		if err == nil {
			rules.Close() // nil, or not needed
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

// hostPrograms and hostData are the paths that programs need on any host. Local
// configuration below /usr/local, above all /usr/local/etc, is excluded. Programs,
// libraries and their data below it are included.
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

// brings returns the directories of the libraries that a program ships with: its own
// directory, or its installation directory below /usr/local.
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

// policy returns the permissions of p for the run c.
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
