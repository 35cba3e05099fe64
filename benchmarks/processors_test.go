// Package benchmarks measures every processor and the service:
//
//	go test -bench . ./benchmarks
//
// Each processor runs as in the service, with inputs and results on disk. Program compare, below,
// runs the same work with other tools.
package benchmarks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// A bench is one operation.
type bench struct {
	name   string
	action string
	args   fileops.Args
	in     func(b *testing.B) []string // paths
}

func convert(to string, more ...any) fileops.Args {
	a := fileops.Args{"convert_to": to}
	for i := 0; i+1 < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}

// benches has every action of every engine, and the different kinds of convert.
var benches = []bench{
	// officeops
	{"docx-pdf", "convert", convert("pdf"), one((*inputs.Set).DOCX)},
	{"pptx-pdf", "convert", convert("pdf"), one((*inputs.Set).PPTX)},
	{"xlsx-pdf", "convert", convert("pdf"), one((*inputs.Set).XLSX)},
	{"csv-xlsx", "convert", convert("xlsx"), csv},
	{"docx-odt", "convert", convert("odt"), one((*inputs.Set).DOCX)},
	{"md-docx", "convert", convert("docx"), markdown},
	{"md-pdf", "convert", convert("pdf"), markdown},
	// pdfread, and conversions through it
	{"pdf-png", "convert", convert("png", "dpi", 150), one((*inputs.Set).PDF)},
	{"pdf-jpg", "convert", convert("jpg", "dpi", 150), one((*inputs.Set).PDF)},
	{"pdf-txt", "convert", convert("txt"), one((*inputs.Set).PDF)},
	{"pdf-docx", "convert", convert("docx"), one((*inputs.Set).PDF)},
	{"pptx-png", "convert", convert("png"), one((*inputs.Set).PPTX)},
	{"thumbnail-pdf", "thumbnail", nil, one((*inputs.Set).PDF)},
	{"thumbnail-mp4", "thumbnail", nil, one((*inputs.Set).Clip)},
	// imageops
	{"thumbnail-jpg", "thumbnail", nil, photo(4000, 3000)},
	{"rotate-jpg", "rotate", fileops.Args{"angle": 90}, photo(4000, 3000)},
	{"jpg-png", "convert", convert("png"), photo(1600, 1250)},
	{"jpg-webp", "convert", convert("webp"), photo(1600, 1250)},
	{"jpg-avif", "convert", convert("avif"), photo(1600, 1250)},
	{"jpg-webp-800px", "convert", convert("webp", "width", 800), photo(4000, 3000)},
	{"compress-jpg", "compress", nil, photo(4000, 3000)},
	// pdfops
	{"jpg-pdf", "convert", convert("pdf"), photo(1600, 1250)},
	{"merge-pdf", "merge", nil, func(b *testing.B) []string { return must(set.PDFs(b.Context(), 100))(b) }},
	{"compress-pdf", "compress", nil, one((*inputs.Set).Scan)},
	{"lock-pdf", "lock", fileops.Args{"password": "s3cret"}, one((*inputs.Set).PDF)},
	{"unlock-pdf", "unlock", fileops.Args{"password": "s3cret"}, locked},
	{"reset-password-pdf", "reset_password", fileops.Args{"old_password": "s3cret", "new_password": "s4cret"}, locked},
	// mediaops
	{"mp4-mp3", "convert", convert("mp3"), one((*inputs.Set).Clip)},
	{"mp4-webm", "convert", convert("webm", "duration", 1), one((*inputs.Set).Clip)},
	{"compress-mp4", "compress", nil, sample("clip.mp4")},
	{"merge-mp4", "merge", nil, func(*testing.B) []string { p := sample("clip.mp4")(nil); return append(p, p...) }},
	// archiveops
	{"zip", "zip", nil, mixed},
	{"compress-zip", "compress", nil, archive},
	{"tar.gz-zip", "convert", convert("zip"), func(b *testing.B) []string { return []string{must(set.TarGZ(b.Context(), 16<<20))(b)} }},
	// dataops
	{"csv-json", "convert", convert("json"), csv},
}

func BenchmarkProcessors(b *testing.B) {
	engines := standard.Probe(b.Context(), &standard.Options{CacheDir: b.TempDir()})
	defer engines.Close()
	reg, err := fileops.NewRegistry(engines.Actions()...)
	systest.NoError(b, err)
	for _, bm := range benches {
		b.Run(bm.name, func(b *testing.B) { processor(b, reg, bm.action, bm.args, bm.in(b)) })
	}
}

// BenchmarkIsolated measures the cost of a separate process for each run, without and with
// namespaces. It measures one run at a time, and as many as there are cores.
func BenchmarkIsolated(b *testing.B) {
	for _, isolate := range []string{"false", "basic", "true"} {
		engines := standard.Probe(b.Context(), &standard.Options{CacheDir: b.TempDir(), Isolate: isolate != "false", NoNamespaces: isolate == "basic", FFmpeg: standard.None, LibreOffice: standard.None, Chromium: standard.None})
		defer engines.Close()
		systest.NoError(b, engines.Ready(b.Context()))
		reg, err := fileops.NewRegistry(engines.Actions()...)
		systest.NoError(b, err)
		for _, bm := range append([]bench{
			{"jpg-png-3MP", "convert", convert("png"), photo(2000, 1500)},
			{"jpg-webp-3MP", "convert", convert("webp"), photo(2000, 1500)},
			{"jpg-webp-3MP-800px", "convert", convert("webp", "width", 800), photo(2000, 1500)},
			{"jpg-png-12MP-800px", "convert", convert("png", "width", 800), photo(4000, 3000)},
		}, benches...) {
			switch bm.name {
			case "thumbnail-jpg", "thumbnail-pdf", "jpg-png-3MP", "jpg-webp-3MP", "jpg-webp-3MP-800px", "jpg-png-12MP-800px", "jpg-webp-800px", "compress-jpg", "lock-pdf", "merge-pdf", "csv-json":
				b.Run(fmt.Sprintf("%s/isolate=%s/alone", bm.name, isolate), func(b *testing.B) { processor(b, reg, bm.action, bm.args, bm.in(b)) })
				b.Run(fmt.Sprintf("%s/isolate=%s/load", bm.name, isolate), func(b *testing.B) {
					run := newRun(b, reg, bm.action, bm.args, bm.in(b))
					run()
					b.ResetTimer()
					b.RunParallel(func(p *testing.PB) {
						for p.Next() {
							run()
						}
					})
				})
			}
		}
	}
}

// newRun returns a function that runs an operation once and returns the size of its results in
// bytes.
func newRun(b *testing.B, reg *fileops.Registry, name string, args fileops.Args, paths []string) func() int64 {
	b.Helper()
	dir := b.TempDir()
	var n atomic.Int64
	return func() (out int64) {
		var files []*fileops.File
		var formats []format.Format
		for _, p := range paths {
			f := fileops.Path(p)
			files, formats = append(files, f), append(formats, f.Format())
		}
		action, params, err := reg.Resolve(name, formats, args)
		if err != nil {
			b.Error(err)
			return
		}
		sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
			out += f.Size()
			return fileops.ToDir(dir).Put(ctx, f.Named(fmt.Sprintf("%d-%s", n.Add(1)%4, f.Name())))
		})
		systest.Check(b, (&fileops.Runner{TempDir: dir}).Do(b.Context(), action, params, sink, files...))
		return out
	}
}

func processor(b *testing.B, reg *fileops.Registry, name string, args fileops.Args, paths []string) {
	b.Helper()
	var in, out int64
	for _, p := range paths {
		st, err := os.Stat(p)
		systest.NoError(b, err)
		in += st.Size()
	}
	run := newRun(b, reg, name, args, paths)
	out = run() // engines are warm in a server
	b.SetBytes(in)
	for b.Loop() {
		out = run()
	}
	b.ReportMetric(float64(out), "result-bytes")
	b.ReportMetric(100*float64(out)/float64(in), "%size")
}

// set creates the inputs. TestMain sets its directory.
var set inputs.Set

func TestMain(m *testing.M) {
	standard.Main()
	code := 1
	dir, err := os.MkdirTemp("", "benchmarks-")
	if err == nil {
		set.Dir = dir
		code = m.Run()
		err = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func must[T any](v T, err error) func(*testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		systest.NoError(b, err)
		return v
	}
}

func one(f func(*inputs.Set, context.Context) (string, error)) func(*testing.B) []string {
	return func(b *testing.B) []string { return []string{must(f(&set, b.Context()))(b)} }
}

func photo(width, height int) func(*testing.B) []string {
	return func(b *testing.B) []string { return []string{must(set.Photo(b.Context(), width, height))(b)} }
}

func markdown(b *testing.B) []string { return []string{must(set.Markdown())(b)} }
func csv(b *testing.B) []string      { return []string{must(set.CSV())(b)} }
func mixed(b *testing.B) []string    { return must(set.Mixed(32 << 20))(b) }

// sample returns a sample file of the repository.
func sample(name string) func(*testing.B) []string {
	return func(*testing.B) []string { return []string{filepath.Join("..", "examples", "files", name)} }
}

var making sync.Mutex

// made runs an action once to create the input of another action.
func made(b *testing.B, name, action string, args fileops.Args, in []string) []string {
	b.Helper()
	making.Lock()
	defer making.Unlock()
	path := filepath.Join(set.Dir, name)
	if _, err := os.Stat(path); err == nil {
		return []string{path}
	}
	engines := standard.Probe(b.Context(), nil)
	defer engines.Close()
	reg, err := fileops.NewRegistry(engines.Actions()...)
	systest.NoError(b, err)
	var files []*fileops.File
	var formats []format.Format
	for _, p := range in {
		f := fileops.Path(p)
		files, formats = append(files, f), append(formats, f.Format())
	}
	a, params, err := reg.Resolve(action, formats, args)
	systest.NoError(b, err)
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		return fileops.ToDir(set.Dir).Put(ctx, f.Named(name))
	})
	systest.NoError(b, new(fileops.Runner).Do(b.Context(), a, params, sink, files...))
	return []string{path}
}

func locked(b *testing.B) []string {
	return made(b, "locked.pdf", "lock", fileops.Args{"password": "s3cret"}, one((*inputs.Set).PDF)(b))
}

func archive(b *testing.B) []string {
	return made(b, "fast.zip", "zip", fileops.Args{"level": "fast"}, must(set.Mixed(16<<20))(b))
}
