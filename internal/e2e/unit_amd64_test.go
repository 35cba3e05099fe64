//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/internal/systest"
)

// filteredEnv makes the test program a launcher: it applies the system call filter of the unit for
// systemd to itself and executes its arguments.
const filteredEnv = "E2E_FILTERED"

// groups are the system call groups of systemd that the unit denies, as systemd-analyze
// syscall-filter lists them for amd64.
var groups = map[string][]uint32{
	"@clock":         {unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY},
	"@cpu-emulation": {unix.SYS_MODIFY_LDT},
	"@keyring":       {unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY},
	"@module":        {unix.SYS_DELETE_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_INIT_MODULE},
	"@obsolete": {
		unix.SYS__SYSCTL, unix.SYS_AFS_SYSCALL, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_GETPMSG, unix.SYS_PUTPMSG,
		unix.SYS_QUERY_MODULE, unix.SYS_SECURITY, unix.SYS_SYSFS, unix.SYS_TUXCALL, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_VSERVER,
	},
	"@raw-io": {unix.SYS_IOPERM, unix.SYS_IOPL},
	"@reboot": {unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT},
	"@swap":   {unix.SYS_SWAPOFF, unix.SYS_SWAPON},
}

// deniedGroups returns the groups that the unit denies.
func deniedGroups() ([]string, error) {
	unit, err := os.ReadFile(filepath.Join("..", "..", "examples", "deploy", "filewright.service"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(unit)) {
		if list, ok := strings.CutPrefix(line, "SystemCallFilter=~"); ok {
			return strings.Fields(list), nil
		}
	}
	return nil, errors.New("the unit has no list of denied system calls")
}

// executeFiltered executes argv without what the unit forbids: other architectures, personalities,
// and the denied system calls.
func executeFiltered(argv []string) error {
	runtime.LockOSThread()
	names, err := deniedGroups()
	if err != nil {
		return err
	}
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		answer  = unix.BPF_RET | unix.BPF_K
		x32     = 0x40000000
	)
	refuse := unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	filter := []unix.SockFilter{
		{Code: load, K: 4}, // the architecture
		{Code: equal, K: unix.AUDIT_ARCH_X86_64, Jt: 1},
		refuse,
		{Code: load, K: 0}, // the number of the call
		{Code: atLeast, K: x32, Jf: 1},
		refuse,
	}
	denied := []uint32{unix.SYS_PERSONALITY}
	for _, name := range names {
		calls, ok := groups[name]
		if !ok {
			return fmt.Errorf("the calls of %s are not known", name)
		}
		denied = append(denied, calls...)
	}
	for _, nr := range denied {
		filter = append(filter, unix.SockFilter{Code: equal, K: nr, Jf: 1}, refuse)
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return err
	}
	if _, err := unix.Adjtimex(new(unix.Timex)); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the filter does not work: %w", err)
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

func init() {
	if os.Getenv(filteredEnv) != "" {
		os.Unsetenv(filteredEnv)
		log.Fatal("filtered: ", executeFiltered(os.Args[1:]))
	}
}

// The server and its engines work with the system calls that the unit for systemd permits, and in
// the same sandbox.
func TestUnitFilter(t *testing.T) {
	t.Parallel()
	names, err := deniedGroups()
	systest.NoError(t, err)
	if known := slices.Sorted(maps.Keys(groups)); !slices.Equal(slices.Sorted(slices.Values(names)), known) {
		t.Errorf("the unit denies %v, the test %v", names, known)
	}
	self, err := os.Executable()
	systest.NoError(t, err)
	s, err := launchBy([]string{"/usr/bin/env", filteredEnv + "=1", self}, filepath.Join(t.TempDir(), "data"))
	systest.NoError(t, err)
	t.Cleanup(s.kill)
	tier := func(s *server) string { return fmt.Sprint(s.ready(t).body["sandbox"]) }
	if got, want := tier(s), tier(shared); got != want {
		t.Errorf("the sandbox is %s, without the filter %s", got, want)
	}
	page := file{"page.html", []byte("<!doctype html><title>T</title><h1>Hello</h1>")}
	pdf := s.one(t, "convert", map[string]any{"convert_to": "pdf"}, page) // Chromium
	for _, tt := range []struct {
		to   string
		in   file
		want string
	}{
		{"pdf", sampleFile(t, "report.docx"), "%PDF-"}, // LibreOffice
		{"png", pdf, "\x89PNG"},                        // pdfium
		{"webp", sampleFile(t, "photo.jpg"), "RIFF"},   // libvips in an isolated process
		{"mp3", sampleFile(t, "clip.mp4"), ""},         // ffmpeg
		{"rst", file{"a.md", []byte("# Hello\n")}, "Hello"},
	} {
		out := s.one(t, "convert", map[string]any{"convert_to": tt.to}, tt.in)
		if !bytes.HasPrefix(out.b, []byte(tt.want)) || len(out.b) == 0 {
			t.Errorf("%s to %s: %.20q", tt.in.name, tt.to, out.b)
		}
	}
}
