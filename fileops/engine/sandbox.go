package engine

import (
	"fmt"
	"slices"
)

// A Sandbox confines programs. A program that a malicious file has compromised can then
// only spoil its own result: it accesses no files but those named in its [Cmd] and the
// libraries of the host, opens no connections, sees and signals no other process, and
// gains no privileges.
//
// The basic layers need no privilege and also work in containers: Landlock for files, a
// seccomp filter for system calls, and no capabilities for root. If the host permits
// user namespaces, which most containers do not, programs also have a separate network,
// IPC and host name. If the host delegates a cgroup, each run has its own cgroup, and
// most programs have a PID namespace: see [Sandbox.Grouped]. A nil Sandbox only applies
// the process group, the environment and the [Limits].
type Sandbox struct {
	layers  layers
	missing []string
	always  Access
}

// layers are the protections in force.
type layers struct {
	landlock   int // ABI version of Landlock; 0 if unavailable
	seccomp    bool
	namespaces bool
	groups     *groups // nil without PID namespaces and cgroups
}

// Basic returns a sandbox like s without namespaces and cgroups, even if the host
// permits them. It returns nil for nil.
func (s *Sandbox) Basic() *Sandbox {
	if s == nil || !s.layers.namespaces {
		return s
	}
	t := *s
	t.layers.namespaces, t.layers.groups = false, nil
	t.missing = append(slices.Clone(s.missing), "namespaces: switched off", grouped+": switched off")
	return &t
}

// Namespaced reports whether programs run in namespaces. It is false for nil.
func (s *Sandbox) Namespaced() bool { return s != nil && s.layers.namespaces }

// Grouped reports whether each run also has a PID namespace and a cgroup. It is false
// for nil.
func (s *Sandbox) Grouped() bool { return s != nil && s.layers.groups != nil }

// grouped names the layer that [Sandbox.Grouped] reports.
const grouped = "PID namespace and cgroup"

// With returns a sandbox like s in which all programs also have the access a. It returns
// nil for nil.
func (s *Sandbox) With(a Access) *Sandbox {
	if s == nil {
		return nil
	}
	t := *s
	t.always = s.always.and(a)
	return &t
}

// Strong reports whether both files and system calls are confined. Engines that read
// untrusted files need this. It is false for nil.
func (s *Sandbox) Strong() bool {
	return s != nil && s.layers.landlock > 0 && s.layers.seccomp
}

// Layers names the active layers: "landlock 7", "seccomp", "namespaces", "PID namespace
// and cgroup".
func (s *Sandbox) Layers() []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.layers.landlock > 0 {
		out = append(out, fmt.Sprintf("landlock %d", s.layers.landlock))
	}
	if s.layers.seccomp {
		out = append(out, "seccomp")
	}
	if s.layers.namespaces {
		out = append(out, "namespaces")
	}
	if s.layers.groups != nil {
		out = append(out, grouped)
	}
	return out
}

// Missing lists the layers that this host lacks, each with the reason, for users:
// "landlock: the kernel does not have it".
func (s *Sandbox) Missing() []string {
	if s == nil {
		return []string{"landlock: not asked for", "seccomp: not asked for", "namespaces: not asked for", grouped + ": not asked for"}
	}
	return slices.Clone(s.missing)
}

// Access lists what a program may access in a [Sandbox], in addition to its directory,
// the host's programs and libraries (/usr and related directories), fonts and time zone.
// Paths that do not exist are ignored.
type Access struct {
	Read    []string // files, and directories with everything below them
	Write   []string // directories with all rights except executing files in them
	Sockets []string // directories in which Unix sockets may be created and removed

	// Connect allows connections to Unix sockets, including sockets of other programs
	// that this user may connect to. Do not set it for a program that reads untrusted
	// files.
	Connect bool

	// Namespaces allows the program to create namespaces and to lower its own resource
	// limits, for a program with a built-in sandbox. Such a program also needs write
	// access to /proc.
	Namespaces bool

	// SharedMemory allows memory that processes share (memfd_create(2), MAP_SHARED). It
	// counts towards [Limits].Resident.
	SharedMemory bool

	// Unwritable makes access(2) report every path as read-only. It is for a program
	// that otherwise prefers a host directory that looks writable, such as /tmp, to its
	// own. It does not affect opening and creating files.
	Unwritable bool

	// Limits allows the program to lower resource limits, for a program that starts
	// others with this package.
	Limits bool
}

// and returns the union of a and b.
func (a Access) and(b Access) Access {
	return Access{
		Read: slices.Concat(a.Read, b.Read), Write: slices.Concat(a.Write, b.Write), Sockets: slices.Concat(a.Sockets, b.Sockets),
		Connect: a.Connect || b.Connect, Namespaces: a.Namespaces || b.Namespaces, Limits: a.Limits || b.Limits,
		Unwritable: a.Unwritable || b.Unwritable, SharedMemory: a.SharedMemory || b.SharedMemory,
	}
}
