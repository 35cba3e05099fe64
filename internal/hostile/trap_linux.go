package hostile

import (
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Canary is the content of a [Trap]'s file.
const Canary = "xylophone canary 4711"

// A Trap is a file and a server that must not be accessed. It is the target of
// [Files].
type Trap struct {
	Path string // of the file, which is world-readable
	URL  string // of the server, without a trailing slash

	watch  int
	called atomic.Int64
}

// NewTrap sets up a trap until the end of the test.
func NewTrap(t testing.TB) *Trap {
	t.Helper()
	dir, err := os.MkdirTemp("", "canary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &Trap{Path: filepath.Join(dir, "canary.txt")}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.Path, []byte(Canary), 0o644); err != nil {
		t.Fatal(err)
	}
	if x.watch, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(x.watch) })
	if _, err := unix.InotifyAddWatch(x.watch, x.Path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			x.called.Add(1)
			c.Close()
		}
	}()
	x.URL = "http://" + l.Addr().String()
	return x
}

// Opened reports whether the file was opened or read since the last call.
func (x *Trap) Opened() bool {
	n, err := unix.Read(x.watch, make([]byte, 64<<10))
	return err == nil && n > 0
}

// Called reports whether a client connected to the server since the last call.
func (x *Trap) Called() bool { return x.called.Swap(0) > 0 }
