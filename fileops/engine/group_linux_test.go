package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// findGroups prepares a delegated directory for groups with limits, or returns a reason
// if the kernel would not permit that. A directory stands in for the hierarchy.
func TestFindGroups(t *testing.T) {
	t.Parallel()
	self := strconv.Itoa(os.Getpid())
	for name, tt := range map[string]struct {
		cgroup, mounts, controllers, procs, enabled string // of /proc/self and of the group

		unlimited, err string
		moved          bool
	}{
		"delegated":         {cgroup: "0::/x/unit\n", controllers: "cpu memory pids", procs: self + "\n", moved: true},
		"hybrid":            {cgroup: "4:memory:/y\n0::/x/unit\n", controllers: "memory pids", procs: self, moved: true},
		"server already":    {cgroup: "0::/x/unit/server\n", controllers: "memory pids", enabled: "memory pids"},
		"subgroup of unit":  {cgroup: "0::/x/unit/server\n", controllers: "memory pids", moved: true},
		"no controllers":    {cgroup: "0::/x/unit\n", controllers: "cpu", procs: self, unlimited: "not delegated"},
		"one controller":    {cgroup: "0::/x/unit\n", controllers: "memory", procs: self, unlimited: "not delegated"},
		"others in it":      {cgroup: "0::/x/unit\n", controllers: "memory pids", procs: "1\n" + self, unlimited: "other processes"},
		"version 1":         {cgroup: "4:memory:/y\n", err: "no cgroup v2"},
		"not mounted":       {cgroup: "0::/x/unit\n", mounts: "30 1 0:1 / / rw - ext4 /dev/vda rw\n", err: "cannot see"},
		"mounted elsewhere": {cgroup: "0::/../other\n", err: "cannot see"},
		"not ours":          {cgroup: "0::/x/none/none\n", err: "not delegated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc, mount := t.TempDir(), t.TempDir()
			unit := filepath.Join(mount, "unit")
			if tt.mounts == "" {
				tt.mounts = "30 1 0:1 / / rw - ext4 /dev/vda rw\n41 31 0:38 /x " + mount + " rw,relatime shared:1 - cgroup2 cgroup2 rw\n"
			}
			for path, content := range map[string]string{
				proc + "/cgroup": tt.cgroup, proc + "/mountinfo": tt.mounts,
				unit + "/cgroup.controllers": tt.controllers, unit + "/cgroup.procs": tt.procs, unit + "/cgroup.subtree_control": tt.enabled,
				unit + "/server/cgroup.procs": "", unit + "/engines/cgroup.subtree_control": "",
				unit + "/engines/1-running/cgroup.kill": "", unit + "/engines/other/file": "",
			} {
				systest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				systest.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			}
			systest.NoError(t, os.Mkdir(unit+"/engines/2000000000-left", 0o700))
			g, unlimited, err := findGroups(proc)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			systest.NoError(t, err)
			if got := unlimited; (got == nil) != (tt.unlimited == "") || got != nil && !strings.Contains(got.Error(), tt.unlimited) {
				t.Errorf("got reason %v, want %q", got, tt.unlimited)
			}
			if g.dir != unit+"/engines" || g.limits != (tt.unlimited == "") {
				t.Errorf("got %+v", g)
			}
			if b, _ := os.ReadFile(unit + "/server/cgroup.procs"); (string(b) == self) != tt.moved {
				t.Errorf("in the group of the server: %q", b)
			}
			for path, want := range map[string]bool{unit: tt.moved, unit + "/engines": g.limits} {
				if b, _ := os.ReadFile(path + "/cgroup.subtree_control"); (string(b) == "+memory +pids") != want {
					t.Errorf("%s: controllers %q", path, b)
				}
			}
			dirs, err := os.ReadDir(g.dir)
			names := make([]string, len(dirs))
			for i, d := range dirs {
				names[i] = d.Name()
			}
			if err != nil || !slices.Equal(names, []string{"1-running", "cgroup.subtree_control", "other"}) {
				t.Errorf("left: %v, %v", names, err)
			}
		})
	}
}

// A group has the limits of its run, with some room for the kernel's own memory. Files
// in memory count, and a kernel without swap has no file for it.
func TestGroupLimits(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		limits       Limits
		scratch      string
		memory, pids string
	}{
		"none":            {Limits{}, "/", "max", "max"},
		"both":            {Limits{Resident: 800 * mib, Processes: 2}, "/", strconv.Itoa(916 * mib), "1024"},
		"scratch on disk": {Limits{Resident: 800 * mib, Scratch: 100 * mib}, "/", strconv.Itoa(916 * mib), "max"},
		"in memory":       {Limits{Resident: 800 * mib, Scratch: 100 * mib}, "/dev/shm", strconv.Itoa(1016 * mib), "max"},
		"without limit":   {Limits{Resident: 800 * mib}, "/dev/shm", "max", "max"},
	} {
		for _, files := range [][]string{{"memory.max", "pids.max", "memory.oom.group", "memory.swap.max"}, {"memory.max", "pids.max", "memory.oom.group"}} {
			g := &group{dir: t.TempDir(), limits: true}
			for _, f := range files {
				systest.NoError(t, os.WriteFile(filepath.Join(g.dir, f), nil, 0o600))
			}
			if err := g.limit(tt.limits, []string{tt.scratch}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for i, want := range []string{tt.memory, tt.pids, "1", "0"}[:len(files)] {
				if b, err := os.ReadFile(filepath.Join(g.dir, files[i])); err != nil || string(b) != want {
					t.Errorf("%s: %s is %q, want %q, error %v", name, files[i], b, want, err)
				}
			}
		}
	}
	if err := (&group{dir: t.TempDir(), limits: true}).limit(Limits{}, nil); err == nil {
		t.Error("a group without files has limits")
	}
}

// A process that the kernel killed for memory exceeded the memory limit.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]bool{"low 0\noom 1\noom_kill 0\noom_group_kill 0\n": false, "oom 1\noom_kill 3\noom_group_kill 1\n": true, "": false} {
		g := &group{dir: t.TempDir(), limits: true}
		systest.NoError(t, os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte(events), 0o600))
		if got := g.outOfMemory(); got != want {
			t.Errorf("%q: got %v", events, got)
		}
	}
}
