package fileops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// onAny is a joint action on files of any format.
func onAny(do func(context.Context, *fileops.Job) error) fileops.Action {
	return fileops.Func(fileops.Spec{Name: "work", Joint: true, Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}}}, do)
}

// runJob runs do with the inputs and returns the results. It checks that the scratch
// space is empty afterwards.
func runJob(t *testing.T, do func(*fileops.Job) error, inputs ...*fileops.File) (*collector, error) {
	t.Helper()
	scratch := t.TempDir()
	c := new(collector)
	r := fileops.Runner{TempDir: scratch}
	err := r.Run(t.Context(), onAny(func(_ context.Context, job *fileops.Job) error { return do(job) }), nil, c, inputs...)
	leftover(t, scratch)
	return c, err
}

func TestJobPath(t *testing.T) {
	t.Parallel()
	const content = "some content"
	for _, tt := range []struct{ name, ext string }{
		{"report.txt", ".txt"}, {"photo.JPEG", ".jpg"}, {"a.tar.gz", ".tar.gz"}, {"noext", ".bin"}, {"x.unknown", ".bin"}, {"-rf.txt", ".txt"},
		{"a b;$(id).txt", ".txt"}, {"x.so", ".bin"}, {"x.p\ndf", ".bin"}, {"file.txt\x00", ".bin"}, {strings.Repeat("n", 400) + ".txt", ".txt"},
		{"x." + strings.Repeat("e", 300), ".bin"}, {"Ünï.çode", ".bin"}, {"..", ".bin"},
	} {
		for _, backing := range []string{"memory", "disk"} {
			t.Run(fmt.Sprintf("%.20q/%s", tt.name, backing), func(t *testing.T) {
				t.Parallel()
				path := writeFile(t, "stored", content)
				in := fileops.Path(path).Named(tt.name)
				if backing == "memory" {
					in = fileops.Bytes(tt.name, []byte(content))
				}
				_, err := runJob(t, func(job *fileops.Job) error {
					p, err := job.Path(job.Input())
					if err != nil {
						return err
					}
					if !filepath.IsAbs(p) || strings.Trim(filepath.Base(p), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || !strings.HasSuffix(p, tt.ext) {
						t.Errorf("the path is %q", p)
					}
					if b, err := os.ReadFile(p); err != nil || string(b) != content {
						t.Errorf("got %q, %v", b, err)
					}
					if again, err := job.Path(job.Input()); err != nil || again != p {
						t.Errorf("again: %q, %v", again, err)
					}
					// Engines may not write to the directory of the inputs.
					dir, err := job.Dir()
					if err != nil {
						return err
					}
					if strings.HasPrefix(p, dir+"/") || filepath.Dir(filepath.Dir(p)) != filepath.Dir(dir) {
						t.Errorf("the path %s lies in %s, or far from it", p, dir)
					}
					if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
						t.Errorf("the directory has the mode %v, %v", st.Mode(), err)
					}
					if again, err := job.Dir(); err != nil || again != dir {
						t.Errorf("another directory: %s, %v", again, err)
					}
					return job.WriteBytes("r.txt", []byte("x"))
				}, in)
				systest.Check(t, err)
				if b, err := os.ReadFile(path); err != nil || string(b) != content {
					t.Errorf("the input became %q, %v", b, err)
				}
			})
		}
	}
}

// Inputs of the same name get different paths, also with concurrent calls.
func TestJobPathOfSeveral(t *testing.T) {
	t.Parallel()
	var ins []*fileops.File
	for i := range 20 {
		ins = append(ins, fileops.Bytes("same.txt", fmt.Append(nil, i)))
	}
	_, err := runJob(t, func(job *fileops.Job) error {
		paths := make([]string, len(ins))
		var wg sync.WaitGroup
		for i, f := range job.Inputs {
			wg.Go(func() {
				p, err := job.Path(f)
				if b, rerr := os.ReadFile(p); err != nil || rerr != nil || string(b) != fmt.Sprint(i) {
					t.Errorf("%d: %q, %v, %v", i, b, err, rerr)
				}
				paths[i] = p
			})
		}
		wg.Wait()
		slices.Sort(paths)
		if len(slices.Compact(paths)) != len(ins) {
			t.Errorf("paths are %v", paths)
		}
		return job.WriteBytes("r.txt", []byte("x"))
	}, ins...)
	systest.Check(t, err)
}

// A symbolic link is resolved once: engines and sinks see a regular file.
func TestJobSymbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const content = "behind the link"
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "target"), []byte(content), 0o600))
	link := filepath.Join(dir, "link.txt")
	systest.NoError(t, os.Symlink("target", link))
	c, err := runJob(t, func(job *fileops.Job) error {
		p, err := job.Path(job.Input())
		if err != nil {
			return err
		}
		if st, err := os.Lstat(p); err != nil || !st.Mode().IsRegular() {
			t.Errorf("the path is %v, %v", st, err)
		}
		if b, err := os.ReadFile(p); err != nil || string(b) != content {
			t.Errorf("got %q, %v", b, err)
		}
		return job.Keep(job.Input())
	}, fileops.Path(link))
	if err != nil || len(c.contents) != 1 || c.contents[0] != content {
		t.Errorf("got %v, %v", c.contents, err)
	}
}

func TestJobWrite(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5 << 20} {
		for _, chunk := range []int{1 << 30, 1000} {
			t.Run(fmt.Sprintf("%d in %d", size, chunk), func(t *testing.T) {
				t.Parallel()
				content := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
				c, err := runJob(t, func(job *fileops.Job) error {
					return job.Write("dir/out.txt", func(w io.Writer) error {
						for rest := content; len(rest) > 0; {
							n := min(chunk, len(rest))
							if k, err := w.Write(rest[:n]); k != n || err != nil {
								return fmt.Errorf("%d of %d bytes: %w", k, n, err)
							}
							rest = rest[n:]
						}
						return nil
					})
				}, fileops.Bytes("a", nil))
				systest.NoError(t, err)
				if c.names[0] != "out.txt" || c.contents[0] != string(content) || c.onDisk[0] != (size > 1<<20) {
					t.Errorf("got %s of %d bytes, on disk %v", c.names[0], len(c.contents[0]), c.onDisk[0])
				}
			})
		}
	}
}

func TestJobResults(t *testing.T) {
	t.Parallel()
	// Results of all kinds keep the order in which they were added, and their names
	// contain no path.
	c, err := runJob(t, func(job *fileops.Job) error {
		err := errors.Join(
			job.WriteBytes("../../a.txt", []byte("1")),
			job.WriteFile("/etc/b.txt", func(path string) error {
				if filepath.Ext(path) != ".txt" || strings.HasPrefix(path, "/etc") {
					t.Errorf("the path is %s", path)
				}
				return os.WriteFile(path, []byte("2"), 0o600)
			}),
			job.Write("c.txt", func(w io.Writer) error { _, err := io.WriteString(w, "3"); return err }),
			job.Keep(job.Inputs[0]),
			job.Keep(job.Inputs[1]),
			job.WriteBytes("a.txt", []byte("6")),
		)
		return err
	}, fileops.Bytes("mem.txt", []byte("4")), fileops.Path(writeFile(t, "disk.txt", "5")))
	systest.NoError(t, err)
	if !slices.Equal(c.names, []string{"a.txt", "b.txt", "c.txt", "mem.txt", "disk.txt", "a.txt"}) || !slices.Equal(c.contents, []string{"1", "2", "3", "4", "5", "6"}) {
		t.Errorf("got %v, %v", c.names, c.contents)
	}
	// Concurrent adds are allowed.
	c, err = runJob(t, func(job *fileops.Job) error {
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				var err error
				switch name := fmt.Sprintf("%d.txt", i); i % 3 {
				case 0:
					err = job.WriteBytes(name, fmt.Append(nil, i))
				case 1:
					err = job.Write(name, func(w io.Writer) error { _, err := fmt.Fprint(w, i); return err })
				default:
					err = job.WriteFile(name, func(p string) error { return os.WriteFile(p, fmt.Append(nil, i), 0o600) })
				}
				systest.Check(t, err)
			})
		}
		wg.Wait()
		return nil
	}, fileops.Bytes("a", nil))
	if err != nil || len(c.names) != 30 {
		t.Fatalf("%d results, %v", len(c.names), err)
	}
	for i, name := range c.names {
		if name != c.contents[i]+".txt" {
			t.Errorf("%s has the content %s", name, c.contents[i])
		}
	}
}

func TestJobBest(t *testing.T) {
	t.Parallel()
	const content = "0123456789"
	for _, tt := range []struct{ name, candidate, want string }{
		{"smaller", "01234", "01234"},
		{"as large", "abcdefghij", content},
		{"larger", "abcdefghijk", content},
		{"empty", "", content},
	} {
		for _, backing := range []string{"memory", "disk"} {
			t.Run(tt.name+"/"+backing, func(t *testing.T) {
				t.Parallel()
				in := fileops.Path(writeFile(t, "in.txt", content))
				if backing == "memory" {
					in = fileops.Bytes("in.txt", []byte(content))
				}
				c, err := runJob(t, func(job *fileops.Job) error {
					dir, err := job.Dir()
					if err != nil {
						return err
					}
					path := filepath.Join(dir, "candidate")
					if err := os.WriteFile(path, []byte(tt.candidate), 0o600); err != nil {
						return err
					}
					return job.Best(job.Input(), path)
				}, in)
				if err != nil || !slices.Equal(c.contents, []string{tt.want}) || !slices.Equal(c.names, []string{"in.txt"}) {
					t.Errorf("got %v, %v, %v", c.names, c.contents, err)
				}
			})
		}
	}
}

func TestJobLogAndParams(t *testing.T) {
	t.Parallel()
	spec := fileops.Spec{Name: "work", Engine: "tester 1", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.Any}, Params: fileops.Schema{{Name: "n", Doc: "Doc.", Type: fileops.Integer, Default: 7}},
	}}}
	err := fileops.Run(t.Context(), fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		job.Log.Info("goes nowhere")
		if job.Params.Int("n") != 7 || job.Input() != job.Inputs[0] {
			t.Errorf("parameters %v", job.Params)
		}
		return job.Keep(job.Input())
	}), nil, new(collector), fileops.Bytes("a", nil))
	systest.Check(t, err)
}
