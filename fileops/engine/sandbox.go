package engine

import (
	"fmt"
	"slices"
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
// own. Where the host delegates a cgroup, each run has one, and most programs have a PID
// namespace: see [Sandbox.Grouped]. A nil Sandbox confines nothing but the process group, the environment and the
// [Limits].
type Sandbox struct {
	layers  layers
	missing []string
	always  Access
}

// layers are the protections in force.
type layers struct {
	landlock   int // version of its interface; 0 if there is none
	seccomp    bool
	namespaces bool
	groups     *groups // nil without namespaces of processes and cgroups
}

// Basic returns a sandbox like s without namespaces and cgroups, even where the host permits
// them. With nil it returns nil.
func (s *Sandbox) Basic() *Sandbox {
	if s == nil || !s.layers.namespaces {
		return s
	}
	t := *s
	t.layers.namespaces, t.layers.groups = false, nil
	t.missing = append(slices.Clone(s.missing), "namespaces: switched off", grouped+": switched off")
	return &t
}

// Namespaced reports whether programs have namespaces of their own. It is false for nil.
func (s *Sandbox) Namespaced() bool { return s != nil && s.layers.namespaces }

// Grouped reports whether each run also has a PID namespace and a cgroup of its own. It is false
// for nil.
func (s *Sandbox) Grouped() bool { return s != nil && s.layers.groups != nil }

// grouped names the layer of [Sandbox.Grouped].
const grouped = "PID namespace and cgroup"

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
	return s != nil && s.layers.landlock > 0 && s.layers.seccomp
}

// Layers names what is in force: "landlock 7", "seccomp", "namespaces", "PID namespace and
// cgroup".
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

// Missing says which layers this host lacks, and why: "landlock: the kernel does
// not have it". It is for people.
func (s *Sandbox) Missing() []string {
	if s == nil {
		return []string{"landlock: not asked for", "seccomp: not asked for", "namespaces: not asked for", grouped + ": not asked for"}
	}
	return slices.Clone(s.missing)
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
