package documentops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"image"
	"image/color"
	_ "image/jpeg" // registers the decoder for image headers
	_ "image/png"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	_ "golang.org/x/image/bmp" // sizes of bitmaps by image.DecodeConfig

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
)

// A PictureCodec encodes the pictures of a document again. Package imageops
// provides an implementation. Implementations must be safe for concurrent use.
type PictureCodec interface {
	// Reduce encodes a JPEG, PNG or BMP file again as described by r. It must keep
	// the colour profile, may drop all other metadata, and must not apply the EXIF
	// orientation. Reduce fails if transparency would be lost or the result is
	// unusable. The picture then stays unchanged.
	Reduce(ctx context.Context, data []byte, r raster.Reduction) ([]byte, error)
}

const (
	minPicture = 4 << 10 // bytes: smaller pictures are not worth recoding
	minPixels  = 32      // width or height below which nothing is scaled
	slack      = 1.25    // do not scale pictures with up to this many times the needed pixels
	worthwhile = 0.95    // largest size of a useful result, relative to the picture
)

// recode encodes the pictures of a document again. needs may be nil. With rename
// a picture may change its format.
func recode(ctx context.Context, job *fileops.Job, a *archive, codec PictureCodec, lv level, needs needs, rename bool) error {
	dir, err := job.TempDir("pictures-")
	if err != nil {
		return err
	}
	var work []*entry
	for _, e := range a.entries {
		if !e.drop && e.CompressedSize64 >= minPicture && e.UncompressedSize64 <= maxPicture && pictureName(e.Name) {
			work = append(work, e)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		done atomic.Int64
		name sync.Mutex
	)
	for range min(len(work), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(work) || ctx.Err() != nil {
					return
				}
				e := work[i]
				to, b, err := recodeOne(ctx, e, codec, lv, needs[e], rename)
				switch {
				case ctx.Err() != nil:
					return
				case errors.Is(err, fileops.ErrCorruptInput): // the entry itself is damaged, not only the picture in it
					cancel(err)
					return
				case err != nil:
					job.Log.Debug("picture kept", "err", err)
				case b != nil:
					e.path = filepath.Join(dir, strconv.Itoa(i))
					if err := os.WriteFile(e.path, b, 0o600); err != nil {
						cancel(err)
						return
					}
					if to != "" {
						name.Lock()
						e.name = a.unused(e.Name, to)
						a.byName[strings.ToLower(e.name)] = e
						name.Unlock()
					}
				}
				job.Progress(0.05 + 0.75*float64(done.Add(1))/float64(len(work)))
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// pictureName reports whether a name may belong to a picture that a codec reads.
// The content determines the actual format.
func pictureName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".dib", ".tmp", "":
		return true
	}
	return false
}

// recodeOne returns the new content and extension of a picture. Content nil or
// extension "" means no change.
func recodeOne(ctx context.Context, e *entry, codec PictureCodec, lv level, n *need, rename bool) (ext string, b []byte, err error) {
	data, err := e.read(ctx, maxPicture)
	if err != nil {
		return "", nil, err
	}
	from := format.Sniff(bytes.NewReader(data), int64(len(data)))
	if from != format.JPG && from != format.PNG && from != format.BMP || from == format.BMP && !rename {
		return "", nil, nil
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return "", nil, err
	}
	if c.ColorModel == color.CMYKModel || from == format.PNG && bytes.Contains(data[:min(len(data), 4096)], []byte("acTL")) {
		return "", nil, nil // CMYK pictures and animations
	}
	w, h := box(c.Width, c.Height, lv, n)
	scaled := w > 0
	reduce := func(r raster.Reduction) ([]byte, error) {
		r.Width, r.Height = w, h
		return codec.Reduce(ctx, data, r)
	}
	limit := worthwhile * float64(e.CompressedSize64)
	if from == format.JPG {
		b, err := reduce(raster.Reduction{To: format.JPG, Quality: lv.quality})
		if err != nil || float64(len(b)) > limit {
			return "", nil, err
		}
		// Some programs apply the orientation of a picture in a document and others do
		// not, so it has to stay.
		info, _ := imagefile.ReadJPEG(data)
		return "", imagefile.WithOrientation(b, info.Orientation), nil
	}
	best, to, err := recodePNG(reduce, lv, len(data), limit, rename)
	if err != nil {
		return "", nil, err
	}
	if float64(len(best)) > limit && !(scaled && float64(len(best)) < float64(e.CompressedSize64)) {
		return "", nil, ctx.Err()
	}
	switch to {
	case from:
		return "", best, nil
	case format.JPG:
		return ".jpeg", best, nil
	}
	return ".png", best, nil
}

// recodePNG returns a lossless or paletted PNG or, if rename is set, a JPEG if that is much smaller. size is
// that of the picture now, limit the largest useful one, in bytes.
func recodePNG(reduce func(raster.Reduction) ([]byte, error), lv level, size int, limit float64, rename bool) (best []byte, to format.Format, err error) {
	if lv.palette > 0 {
		best, err = reduce(raster.Reduction{To: format.PNG, Quality: lv.palette, Palette: true})
	}
	if best == nil || size < 1<<20 || float64(len(best)) > limit {
		// A lossless encoding of a drawing with few colours may be smaller.
		if b, err2 := reduce(raster.Reduction{To: format.PNG}); best == nil || err2 == nil && len(b) < len(best) {
			best, err = b, err2
		}
	}
	if err != nil {
		return nil, "", err
	}
	to = format.PNG
	if rename && len(best) > 8*minPicture {
		// A photograph is much smaller as JPEG, a drawing is not. A picture with
		// transparency fails.
		if j, err := reduce(raster.Reduction{To: format.JPG, Quality: lv.quality}); err == nil && float64(len(j)) < lv.photo*float64(len(best)) {
			best, to = j, format.JPG
		}
	}
	return best, to, nil
}

// box returns the size in pixels to which a picture is scaled down, or 0, 0 if
// it keeps its size.
func box(width, height int, lv level, n *need) (w, h int) {
	if n != nil && n.fixed || min(width, height) < minPixels {
		return 0, 0
	}
	scale := math.Min(1, float64(lv.pixels)/float64(max(width, height)))
	if n != nil && !n.unknown && n.width > 0 && n.height > 0 {
		// Use the direction that needs more pixels.
		if s := math.Max(n.width*lv.dpi/float64(width), n.height*lv.dpi/float64(height)); s*slack < 1 {
			scale = math.Min(scale, s)
		}
	}
	if scale >= 1 {
		return 0, 0
	}
	up := func(v int) int { return max(minPixels, int(math.Ceil(float64(v)*scale))) }
	return up(width), up(height)
}

// merge drops pictures that are equal to another, byte for byte. It returns the
// replacement of each.
func merge(ctx context.Context, a *archive) (map[*entry]*entry, error) {
	moved := make(map[*entry]*entry)
	bySize := make(map[uint64][]*entry)
	for _, e := range a.entries {
		if low := strings.ToLower(e.Name); !e.drop && (strings.Contains(low, "/media/") || strings.HasPrefix(low, "pictures/")) && e.UncompressedSize64 > 0 {
			key := e.UncompressedSize64<<32 | uint64(e.CRC32)
			bySize[key] = append(bySize[key], e)
		}
	}
	for _, same := range bySize {
		if len(same) < 2 || same[0].UncompressedSize64 > maxPicture {
			continue
		}
		first := make(map[string]*entry)
		for _, e := range same {
			b, err := e.read(ctx, maxPicture)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(b)
			key := string(sum[:]) + strings.ToLower(path.Ext(e.Name))
			if f := first[key]; f != nil {
				e.drop, moved[e] = true, f
			} else {
				first[key] = e
			}
		}
	}
	return moved, nil
}
