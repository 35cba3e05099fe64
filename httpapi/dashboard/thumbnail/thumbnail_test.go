package thumbnail_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi/dashboard/thumbnail"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A picture is a PNG of one colour.
func picture(t *testing.T, c color.Color) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 2, 2))
	for i := range 4 {
		m.Set(i%2, i/2, c)
	}
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

func document(t *testing.T, entries map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range entries {
		w, err := z.Create(name)
		systest.NoError(t, err)
		_, err = w.Write(content)
		systest.NoError(t, err)
	}
	systest.NoError(t, z.Close())
	return b.Bytes()
}

// engine draws pictures by copying them. It counts its runs, and waits for hold.
type engine struct {
	runs atomic.Int64
	hold chan struct{}
	err  error
}

func (e *engine) actions(t *testing.T) *fileops.Registry {
	t.Helper()
	params := fileops.Schema{
		{Name: "convert_to", Doc: "Format.", Enum: []string{"jpg", "webp"}, Default: "jpg"},
		{Name: "width", Doc: "Width.", Type: fileops.Integer}, {Name: "height", Doc: "Height.", Type: fileops.Integer},
	}
	spec := func(family string, formats ...format.Format) fileops.Spec {
		return fileops.Spec{Name: "thumbnail", Engine: "copy", Family: family, Summary: "Copies.", Accepts: []fileops.Accept{{Formats: formats, Params: params}}}
	}
	run := func(ctx context.Context, job *fileops.Job) error {
		e.runs.Add(1)
		if e.hold != nil {
			select {
			case <-e.hold:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if e.err != nil {
			return e.err
		}
		b, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		return job.WriteBytes("a.png", append(b, fmt.Sprint(job.Params.Int("width"), job.Params.Get("convert_to"))...))
	}
	reg, err := fileops.NewRegistry(fileops.Func(spec("image", format.PNG, format.JPG), run), fileops.Func(spec("media", format.MP4), run))
	systest.NoError(t, err)
	return reg
}

// A store has files by name.
type store struct {
	t     *testing.T
	blobs *memblob.Store
}

func (s store) file(name string, content []byte) (*upload.File, func(context.Context) (blob.Object, error)) {
	s.t.Helper()
	systest.NoError(s.t, s.blobs.Put(s.t.Context(), name, bytes.NewReader(content), int64(len(content))))
	return &upload.File{Key: name, Name: name, ETag: "e", Owner: "ada", Size: int64(len(content))},
		func(ctx context.Context) (blob.Object, error) { return s.blobs.Open(ctx, name) }
}

func TestDraw(t *testing.T) {
	t.Parallel()
	e := new(engine)
	d := thumbnail.New(thumbnail.Config{Actions: e.actions(t), TempDir: t.TempDir(), MaxBytes: 100_000})
	s := store{t, memblob.New()}
	red, blue := picture(t, color.RGBA{255, 0, 0, 255}), picture(t, color.RGBA{0, 0, 255, 255})
	for name, tt := range map[string]struct {
		content []byte
		want    []byte // nil: none
		can     bool
	}{
		"a.png":       {red, red, true},
		"b.odt":       {document(t, map[string][]byte{"content.xml": []byte("x"), "Thumbnails/thumbnail.png": blue}), blue, true},
		"c.odt":       {document(t, map[string][]byte{"content.xml": []byte("x")}), nil, true},
		"d.docx":      {document(t, map[string][]byte{"docProps/thumbnail.png": red}), red, true},
		"e.pptx":      {[]byte("no archive"), nil, true},
		"f.ods":       {document(t, map[string][]byte{"Thumbnails/thumbnail.png": append(red, make([]byte, 3<<20)...)}), nil, true},
		"g.mp4":       {[]byte("video"), nil, false},
		"h.exe":       {[]byte("MZ"), nil, false},
		"i.png":       {nil, nil, false},
		"damaged.png": {[]byte("no picture"), nil, true},
		"large.png":   {append(red, make([]byte, 100_000)...), nil, false},
	} {
		f, open := s.file(name, tt.content)
		if got := d.Can(f.Name, f.Size); got != tt.can {
			t.Errorf("%s can have a thumbnail: %v", name, got)
		}
		for range 2 { // the second time from memory
			p, err := d.Draw(t.Context(), f, thumbnail.Small, open)
			switch {
			case tt.want == nil:
				if !errors.Is(err, thumbnail.ErrNone) {
					t.Errorf("%s: %v, %v", name, p, err)
				}
			case err != nil || p.Type != "image/png" || string(p.Content) != string(tt.want)+"96webp":
				t.Errorf("%s: %+v, %v", name, p, err)
			}
		}
	}
	if n := e.runs.Load(); n != 3 { // a damaged picture is refused before
		t.Errorf("the engine ran %d times for three pictures", n)
	}
	f, open := s.file("a.png", red)
	if p, err := d.Draw(t.Context(), f, thumbnail.Large, open); err != nil || !strings.HasSuffix(string(p.Content), "480webp") {
		t.Errorf("large: %+v, %v", p, err)
	}
	f.Key = "gone"
	if _, err := d.Draw(t.Context(), f, thumbnail.Large, func(context.Context) (blob.Object, error) { return nil, fs.ErrNotExist }); !errors.Is(err, thumbnail.ErrBusy) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// Few files are drawn at once, few requests wait, and nothing is remembered of a request that left.
func TestBusy(t *testing.T) {
	t.Parallel()
	e := &engine{hold: make(chan struct{})}
	d := thumbnail.New(thumbnail.Config{Actions: e.actions(t), TempDir: t.TempDir(), AtOnce: 1, Waiting: 1})
	s := store{t, memblob.New()}
	f, open := s.file("a.png", picture(t, color.Black))
	ctx, leave := context.WithCancel(t.Context())
	results := make(chan error, 2)
	draw := func(ctx context.Context) { _, err := d.Draw(ctx, f, thumbnail.Small, open); results <- err }
	go draw(ctx)
	systest.Until(t, "the first run", func() bool { return e.runs.Load() == 1 })
	waits, end := context.WithCancel(t.Context())
	go draw(waits)
	systest.Until(t, "a full queue", func() bool {
		busy, stop := context.WithCancel(t.Context())
		stop()
		_, err := d.Draw(busy, f, thumbnail.Small, open)
		return errors.Is(err, thumbnail.ErrBusy)
	})
	end()
	leave()
	for range 2 {
		if err := <-results; !errors.Is(err, thumbnail.ErrBusy) {
			t.Errorf("a request that left: %v", err)
		}
	}
	close(e.hold)
	if _, err := d.Draw(t.Context(), f, thumbnail.Small, open); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The memory for pictures is bounded, and an engine that hangs is stopped.
func TestBounds(t *testing.T) {
	t.Parallel()
	e := new(engine)
	d := thumbnail.New(thumbnail.Config{Actions: e.actions(t), TempDir: t.TempDir(), Cache: 2000})
	s := store{t, memblob.New()}
	for _, name := range []string{"a.png", "b.png", "a.png", "c.png", "d.png", "b.png", "d.png"} {
		f, open := s.file(name, picture(t, color.White))
		_, err := d.Draw(t.Context(), f, thumbnail.Small, open)
		systest.NoError(t, err)
	}
	if n := e.runs.Load(); n != 5 {
		t.Errorf("%d runs, want 5: the cache keeps less than four pictures", n)
	}
	// A file without a picture is tried again after some minutes.
	synctest.Test(t, func(t *testing.T) {
		e := &engine{hold: make(chan struct{})}
		d := thumbnail.New(thumbnail.Config{Actions: e.actions(t), TempDir: t.TempDir()})
		f, open := store{t, memblob.New()}.file("a.png", picture(t, color.White))
		for runs := range 2 {
			for range 2 {
				if _, err := d.Draw(t.Context(), f, thumbnail.Small, open); !errors.Is(err, thumbnail.ErrNone) {
					t.Errorf("an engine that hangs: %v", err)
				}
			}
			if n := e.runs.Load(); n != int64(runs+1) {
				t.Errorf("%d runs, want %d", n, runs+1)
			}
			time.Sleep(11 * time.Minute)
		}
	})
}
