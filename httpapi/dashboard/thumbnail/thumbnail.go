// Package thumbnail draws small pictures of stored files, for pages that list files.
//
// Pictures are drawn on demand by the actions "thumbnail" of pictures and PDFs. Of office documents
// it shows the preview that many of them contain. A [Drawer] keeps recent pictures in memory, draws
// few at once and gives up after some seconds: a list is complete without them.
package thumbnail

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/objectfile"
	"github.com/filewright/filewright/internal/safezip"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// A Resolver finds the action for a file, as [fileops.Registry] does.
type Resolver interface {
	Resolve(action string, inputs []format.Format, args fileops.Args) (fileops.Action, fileops.Params, error)
}

// Config configures a [Drawer]. Only Actions is required.
type Config struct {
	Actions Resolver
	TempDir string // scratch space; "": os.TempDir

	MaxBytes int64         // size of the largest file that is drawn; 0: 64 MiB
	AtOnce   int           // files that are drawn at the same time; 0: 2
	Waiting  int           // requests that wait for that; 0: 64
	Timeout  time.Duration // for one file; 0: 10 seconds
	Cache    int64         // bytes of pictures that are kept; 0: 16 MiB

	Log *slog.Logger // nil discards
}

// A Picture is a thumbnail.
type Picture struct {
	Type    string // media type
	Content []byte
}

// ErrNone reports that there is no picture of a file.
var ErrNone = errors.New("the file has no thumbnail")

// ErrBusy reports that too many requests wait, or that the file could not be read now.
var ErrBusy = errors.New("the thumbnail cannot be drawn now")

// Longest sides of pictures in pixels.
const (
	Small = 96
	Large = 480
)

// maxPicture is the size of the largest picture in bytes.
const maxPicture = 256 << 10

// A Drawer draws thumbnails. It is safe for concurrent use.
type Drawer struct {
	cfg   Config
	slots chan struct{} // of drawing
	queue chan struct{} // of drawing and waiting
	cache cache
}

// New returns a Drawer.
func New(cfg Config) *Drawer {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 64<<20)
	cfg.AtOnce = cmp.Or(cfg.AtOnce, 2)
	cfg.Waiting = cmp.Or(cfg.Waiting, 64)
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.Cache = cmp.Or(cfg.Cache, 16<<20)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Drawer{
		cfg: cfg, slots: make(chan struct{}, cfg.AtOnce), queue: make(chan struct{}, cfg.AtOnce+cfg.Waiting),
		cache: cache{limit: cfg.Cache, order: list.New(), entries: make(map[string]*list.Element)},
	}
}

// previewsIn returns the names that a picture in files of a format may have, or nil.
func previewsIn(f format.Format) []string {
	switch f.Plain() {
	case format.ODT, format.ODS, format.ODP, format.ODG:
		return []string{"Thumbnails/thumbnail.png"}
	case format.DOCX, format.XLSX, format.PPTX:
		return []string{"docProps/thumbnail.jpeg", "docProps/thumbnail.jpg", "docProps/thumbnail.png"}
	}
	return nil
}

// Can reports whether a file of this name and size may have a thumbnail.
func (d *Drawer) Can(name string, size int64) bool {
	if size <= 0 || size > d.cfg.MaxBytes {
		return false
	}
	f := format.Parse(name)
	if previewsIn(f) != nil {
		f = format.PNG
	}
	_, _, err := d.resolve(f, size, Large)
	return err == nil
}

// resolve returns the action for a file.
func (d *Drawer) resolve(f format.Format, size int64, side int) (a fileops.Action, p fileops.Params, err error) {
	for _, to := range []string{"webp", "jpg"} { // the page behind a WebP picture can have any colour
		a, p, err = d.cfg.Actions.Resolve("thumbnail", []format.Format{f}, fileops.Args{"convert_to": to, "width": side, "height": side})
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, p, err
	}
	if family := a.Spec().Family; family != "image" && family != "pdf" {
		return nil, p, ErrNone // sheets of a video take long
	}
	return a, p, a.Spec().CheckSize(size)
}

// Draw returns the thumbnail of a file, whose content open opens; side is Small or Large. It fails
// with ErrNone if there is none, and with ErrBusy if it may be there later.
func (d *Drawer) Draw(ctx context.Context, f *upload.File, side int, open func(context.Context) (blob.Object, error)) (*Picture, error) {
	id := fmt.Sprint(f.Key, " ", f.ETag, " ", side)
	if p, ok := d.cache.get(id); ok {
		return found(p)
	}
	if !d.Can(f.Name, f.Size) {
		return nil, ErrNone
	}
	select {
	case d.queue <- struct{}{}:
		defer func() { <-d.queue }()
	default:
		return nil, ErrBusy
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, ErrBusy
	}
	if p, ok := d.cache.get(id); ok { // drawn while this request waited
		return found(p)
	}
	limited, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	p, err := d.draw(limited, f, side, open)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, upload.ErrExpired), errors.Is(err, blob.ErrUnavailable), errors.Is(err, fileops.ErrUnavailable):
		return nil, ErrBusy
	default:
		d.cfg.Log.Debug("no thumbnail", "file", f.Key, "err", err)
		p = nil
	}
	d.cache.put(id, p)
	return found(p)
}

func found(p *Picture) (*Picture, error) {
	if p == nil {
		return nil, ErrNone
	}
	return p, nil
}

// draw draws a file.
func (d *Drawer) draw(ctx context.Context, f *upload.File, side int, open func(context.Context) (blob.Object, error)) (*Picture, error) {
	obj, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	remove := func() {}
	defer func() { remove() }()
	var in *fileops.File
	if names := previewsIn(format.Parse(f.Name)); names != nil {
		in, err = preview(obj, names)
	} else {
		in, err = objectfile.File(f.Name, obj, func() (*os.File, error) {
			copied, err := os.CreateTemp(d.cfg.TempDir, "thumbnail-")
			if err == nil {
				remove = func() { os.Remove(copied.Name()) }
			}
			return copied, err
		})
	}
	if err != nil {
		return nil, err
	}
	action, params, err := d.resolve(in.Format(), in.Size(), side)
	if err != nil {
		return nil, err
	}
	var p *Picture
	sink := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := f.ReadAll(maxPicture)
		p = &Picture{f.Format().MIME(), b}
		return err
	})
	r := fileops.Runner{TempDir: d.cfg.TempDir, MaxOutput: maxPicture, Owner: f.Owner}
	if err := r.Do(ctx, action, params, sink, in); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, ErrNone
	}
	return p, nil
}

// maxPreview is the size of the largest picture in a document that is read.
const maxPreview = 2 << 20

// preview returns the picture in a document that has one of the names.
func preview(obj blob.Object, names []string) (*fileops.File, error) {
	z, err := safezip.Limits{}.Open(obj, obj.Info().Size)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		for _, e := range z.File {
			if e.Name != name {
				continue
			}
			b, err := readPreview(e)
			if err != nil {
				return nil, err
			}
			return fileops.Bytes("preview"+name[strings.LastIndexByte(name, '.'):], b), nil
		}
	}
	return nil, ErrNone
}

func readPreview(e *zip.File) ([]byte, error) {
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxPreview+1))
	if err == nil && len(b) > maxPreview {
		err = ErrNone
	}
	return b, err
}

// A cache keeps the pictures that were used last. nil stands for a file without a picture, and is kept
// for a limited time: perhaps the server was too busy to draw it.
type cache struct {
	limit int64

	mu      sync.Mutex
	size    int64
	order   *list.List // of *cached, most recently used first
	entries map[string]*list.Element
}

type cached struct {
	id    string
	p     *Picture
	until time.Time // without a picture
}

// noneTime is how long a file counts as one without a picture.
const noneTime = 10 * time.Minute

// bytes is about the memory that an entry takes.
func (c *cached) bytes() int64 {
	n := int64(500 + len(c.id))
	if c.p != nil {
		n += int64(len(c.p.Content))
	}
	return n
}

func (c *cache) get(id string) (*Picture, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		return nil, false
	}
	one := e.Value.(*cached)
	if one.p == nil && time.Now().After(one.until) {
		c.remove(e)
		return nil, false
	}
	c.order.MoveToFront(e)
	return one.p, true
}

func (c *cache) put(id string, p *Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[id] != nil {
		return // drawn twice at the same time
	}
	one := &cached{id, p, time.Now().Add(noneTime)}
	c.entries[id] = c.order.PushFront(one)
	c.size += one.bytes()
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	one := c.order.Remove(e).(*cached)
	delete(c.entries, one.id)
	c.size -= one.bytes()
}
