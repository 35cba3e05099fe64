//go:build linux

package standard_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
)

// TestTrapWorks checks that the trap notices a visit.
func TestTrapWorks(t *testing.T) {
	t.Parallel()
	x := hostile.NewTrap(t)
	if x.Opened() || x.Called() {
		t.Fatal("touched by nobody")
	}
	if _, err := os.ReadFile(x.Path); err != nil || !x.Opened() {
		t.Errorf("an open is not noticed: %v", err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(x.URL, "http://")); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	systest.Until(t, "a call is noticed", x.Called)
}

// atOnce is the number of files that are tried concurrently.
const atOnce = 3

// attempts calls do for each way to process f with one of actions and targets. With -short, it selects
// two of the targets, which differ from one value of turn to the next.
func attempts(t *testing.T, reg *fileops.Registry, f *fileops.File, turn int, actions, targets []string, do func(what string, a fileops.Action, p fileops.Params)) (n int) {
	t.Helper()
	try := func(action string, args fileops.Args) {
		if a, p, err := reg.Resolve(action, []format.Format{f.Format()}, args); err == nil {
			n++
			do(fmt.Sprint(f.Name(), ": ", action, " ", args["convert_to"]), a, p)
		}
	}
	for _, action := range actions {
		switch action {
		case "convert":
			offered := slices.DeleteFunc(slices.Clone(targets), func(to string) bool {
				_, _, err := reg.Resolve(action, []format.Format{f.Format()}, fileops.Args{"convert_to": to})
				return err != nil
			})
			for k := range min(len(offered), systest.Scale(len(offered), 2)) {
				try(action, fileops.Args{"convert_to": offered[(2*turn+k)%len(offered)]})
			}
		case "lock", "unlock":
			try(action, fileops.Args{"password": "pw"})
		case "reset_password":
			try(action, fileops.Args{"password": "pw", "new_password": "new"})
		default:
			try(action, fileops.Args{})
		}
	}
	return n
}

// sorted returns files by name; with -short, a selection.
func sorted(files []*fileops.File) []*fileops.File {
	slices.SortFunc(files, func(a, b *fileops.File) int { return strings.Compare(a.Name(), b.Name()) })
	return hostile.Scaled(files)
}

// No content of a file makes an engine open another file or call a server, whatever the
// action.
func TestHostileFilesStayInside(t *testing.T) {
	t.Parallel()
	if !set.Sandbox().Strong() {
		t.Fatalf("no sandbox: %v", set.Sandbox().Missing())
	}
	reg := registry(t, set)
	for part := range atOnce {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			x := hostile.NewTrap(t) // one for each file, so that a visit shows its cause
			for i, f := range sorted(hostile.Files(x.Path, x.URL)) {
				if i%atOnce == part {
					stayInside(t, reg, x, f, i)
				}
			}
		})
	}
}

func stayInside(t *testing.T, reg *fileops.Registry, x *hostile.Trap, f *fileops.File, turn int) {
	actions := []string{"convert", "compress", "merge", "lock", "unlock", "reset_password"}
	targets := []string{"pdf", "txt", "png", "docx", "html", "mp3", "mp4", "gif", "csv", "xlsx", "json", "zip"}
	if testing.Short() {
		targets = []string{"pdf", "txt", "png", "mp3", "xlsx", "zip"} // one for each kind
	}
	if format.Check(f.Format(), f.Reader(), f.Size()) != nil {
		targets = targets[:4] // it will not get far
	}
	n := attempts(t, reg, f, turn, actions, targets, func(what string, a fileops.Action, p fileops.Params) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		r := fileops.Runner{TempDir: t.TempDir()}
		err := r.Do(ctx, a, p, fileops.SinkFunc(func(_ context.Context, out *fileops.File) error {
			if strings.Contains(text(t, out), hostile.Canary) {
				t.Errorf("%s: has the secret", what)
			}
			return nil
		}), f)
		if code := fileops.Code(err); err != nil && (code == "internal_error" || code == "timeout") {
			t.Errorf("%s: %v", what, err)
		}
		if x.Opened() {
			t.Errorf("%s: opened the file", what)
		}
		if x.Called() {
			t.Errorf("%s: called the server", what)
		}
		if es, err := os.ReadDir(r.TempDir); err != nil || len(es) > 0 {
			t.Errorf("%s: left %v in the scratch space, %v", what, es, err)
		}
	})
	if n == 0 {
		t.Errorf("%s: nothing takes it", f.Name())
	}
}

// A page that keeps pdfium in a loop blocks nobody else. The garbage collector stops all
// goroutines and cannot interrupt WebAssembly code. In this process, the loop would stop
// the whole program, including deadlines.
func TestPageThatNeverEnds(t *testing.T) {
	t.Parallel()
	reg := registry(t, set)
	for _, f := range hostile.Bombs() {
		if f.Name() != "pattern.pdf" {
			continue
		}
		for _, args := range []fileops.Args{{"convert_to": "png"}, {"convert_to": "txt"}, {"convert_to": "odt"}} {
			a, p, err := reg.Resolve("convert", []format.Format{f.Format()}, args)
			systest.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(systest.Scale(3, 2))*time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				r := fileops.Runner{TempDir: t.TempDir()}
				done <- r.Do(ctx, a, p, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), f)
			}()
			for waiting := true; waiting; {
				runtime.GC()
				select {
				case err := <-done:
					t.Logf("%v: %v", args, err)
					waiting = false
				case <-time.After(50 * time.Millisecond):
				}
			}
		}
		return
	}
	t.Fatal("no such file")
}

// Files that demand many resources are refused, or processed within the limits, and
// leave nothing behind. Their memory use is measured in internal/e2e, on a server
// without the race detector.
func TestBombs(t *testing.T) {
	t.Parallel()
	reg := registry(t, set)
	known := []string{"limit_exceeded", "corrupt_input", "format_mismatch", "engine_failed", "unsupported_input", "password_required", "wrong_password", "not_encrypted", "timeout"}
	bombs := sorted(hostile.Bombs())
	for part := range atOnce {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for i, f := range bombs {
				if i%atOnce != part {
					continue
				}
				attempts(t, reg, f, i, []string{"convert", "compress"}, []string{"pdf", "png", "txt", "zip"}, func(what string, a fileops.Action, p fileops.Params) {
					began := time.Now()
					r := fileops.Runner{TempDir: t.TempDir()}
					// Some work until their timeout.
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(systest.Scale(4, 2))*time.Second)
					defer cancel()
					err := r.Do(ctx, a, p, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), f)
					t.Logf("%s: %v after %v", what, err, time.Since(began).Round(time.Millisecond))
					if err != nil && !slices.Contains(known, fileops.Code(err)) {
						t.Errorf("%s: %q: %v", what, fileops.Code(err), err)
					}
					if took := time.Since(began); took > time.Minute {
						t.Errorf("%s: did not end when its time was over, but after %v", what, took)
					}
					if es, err := os.ReadDir(r.TempDir); err != nil || len(es) > 0 {
						t.Errorf("%s: left %v in the scratch space, %v", what, es, err)
					}
				})
			}
		})
	}
}
