package officeops

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/filewright/filewright/fileops/engine"
)

// allocatorTest is how long LibreOffice may take to start with another allocator.
const allocatorTest = 30 * time.Second

// findAllocator returns the path of jemalloc, with which LibreOffice needs a tenth less processor time than
// with the allocator of glibc, and no more memory. It returns "" if there is none, or if LibreOffice does not
// start with it: one that was built for other memory pages ends each program.
func findAllocator(ctx context.Context, o Options, office *engine.Program) string {
	if office == nil || runtime.GOOS != "linux" || o.Jemalloc == engine.None {
		return ""
	}
	names := []string{o.Jemalloc}
	if o.Jemalloc == "" {
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		names = []string{"/usr/local/lib", "/usr/lib/" + machine + "-linux-gnu", "/usr/lib64", "/usr/lib"}
		for i, dir := range names {
			names[i] = filepath.Join(dir, "libjemalloc.so.2")
		}
	}
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		if err := tryAllocator(ctx, office, name); err != nil {
			o.Log.Warn("LibreOffice does not start with jemalloc, so it runs without", "path", name, "err", err)
			continue
		}
		return name
	}
	return ""
}

// tryAllocator starts LibreOffice with an allocator.
func tryAllocator(ctx context.Context, office *engine.Program, path string) error {
	dir, err := os.MkdirTemp("", "officeops-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := engine.Cmd{Args: []string{"--version"}, Dir: dir, Env: []string{preload(path)}}
	return office.RunWithin(ctx, c, allocatorTest, errors.New("LibreOffice did not report its version in time"))
}

// preload is the environment variable that makes the dynamic linker load a library before all others
// (ld.so(8)).
func preload(path string) string { return "LD_PRELOAD=" + path }
