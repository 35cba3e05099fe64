package compress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/filewright/filewright/internal/worktime"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A renderer draws pages; see pdfops.Renderer.
type renderer interface {
	Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]raster.Page, error)
}

const (
	// If no picture changes, only a missing or wrong glyph can differ. A lower
	// resolution shows that too.
	pictureDPI = 100
	glyphDPI   = 72

	viewTime = time.Minute // work time for all pages of a document
)

// A comparison draws pages of the original once, and the same pages of each
// result.
type comparison struct {
	renderer renderer
	original []byte
	dpi      float64
	cancel   context.CancelFunc
	first    sync.WaitGroup // draws the first page

	views map[int]raster.Page
	err   error // why the original could not be drawn
}

// newComparison starts to draw the first page of the original in the background,
// because it is always compared. The caller must call stop.
func newComparison(ctx context.Context, r renderer, original []byte, d *pdf.Document) *comparison {
	c := &comparison{renderer: r, original: original, dpi: glyphDPI, views: make(map[int]raster.Page)}
	if hasPictures(d) {
		c.dpi = pictureDPI
	}
	ctx, c.cancel = context.WithCancel(ctx)
	if r != nil {
		c.first.Go(func() { c.draw(ctx, []int{0}) })
	}
	return c
}

// stop cancels drawing and waits for it to stop.
func (c *comparison) stop() {
	c.cancel()
	c.first.Wait()
}

// hasPictures reports whether the document has pictures that may lose quality.
func hasPictures(d *pdf.Document) bool {
	for _, o := range d.Objects {
		s, ok := o.(*types.StreamDict)
		if ok && d.Name(s.Dict["Subtype"]) == "Image" && !d.Boolean(s.Dict["ImageMask"]) &&
			d.Integer(s.Dict["BitsPerComponent"]) != 1 && len(s.Raw) >= smallStream {
			return true
		}
	}
	return false
}

// draw draws the pages of the original that are not in c.views.
func (c *comparison) draw(ctx context.Context, pages []int) {
	pages = slices.DeleteFunc(slices.Clone(pages), func(p int) bool { _, ok := c.views[p]; return ok })
	if c.err != nil || len(pages) == 0 {
		return
	}
	var views []raster.Page
	if views, c.err = c.render(ctx, c.original, pages); c.err == nil {
		for i, p := range pages {
			c.views[p] = views[i]
		}
	}
}

// render draws pages of a file within the time limit.
func (c *comparison) render(ctx context.Context, pdf []byte, pages []int) ([]raster.Page, error) {
	limited, cancel := worktime.Context(ctx, viewTime, context.DeadlineExceeded, worktime.Process())
	defer cancel()
	views, err := c.renderer.Views(limited, pdf, pages, c.dpi)
	if err == nil && len(views) != len(pages) {
		err = fmt.Errorf("%d views of %d pages", len(views), len(pages))
	}
	return views, err
}

// same returns an error unless pages of a result look like the original, within
// the loss that the level allows.
func (c *comparison) same(ctx context.Context, made []byte, pages []int, lv level) error {
	if c.renderer == nil {
		return nil
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		c.first.Wait()
		if c.draw(both, pages); c.err != nil {
			cancel()
		}
	})
	after, err := c.render(both, made, pages)
	if err != nil && both.Err() == nil {
		// The result is useless, but the next level needs the pages of the original.
		wg.Wait()
		return err
	}
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.err != nil && lv.rewrite:
		return nil // nothing visible changed
	case c.err != nil:
		return errors.New("the original cannot be drawn")
	}
	for i, p := range pages {
		if err := samePage(c.views[p], after[i], lv); err != nil {
			return fmt.Errorf("page %d: %w", p+1, err)
		}
	}
	return nil
}

// samePage returns an error unless w looks like v, within the loss that the
// level allows.
func samePage(v, w raster.Page, lv level) error {
	switch {
	case v.Width != w.Width || v.Height != w.Height:
		return fmt.Errorf("%d×%d pixels instead of %d×%d", w.Width, w.Height, v.Width, v.Height)
	case v.Text != w.Text:
		return fmt.Errorf("the text differs")
	case bytes.Equal(v.Pix, w.Pix):
		return nil
	}
	if s := imagefile.Similarity(imagefile.Luma(v.Samples), imagefile.Luma(w.Samples)); s < lv.page {
		return fmt.Errorf("similarity %.4f", s)
	}
	if c := colourDifference(v.Samples, w.Samples); c > lv.tint {
		return fmt.Errorf("colours differ by %.1f", c)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

// colourDifference returns the mean difference of hues in steps of 1/255. It
// averages over squares of 8 × 8 pixels, to cancel noise.
func colourDifference(a, b raster.Samples) float64 {
	total, n := 0.0, 0
	for y := 0; y < a.Height; y += 8 {
		for x := 0; x < a.Width; x += 8 {
			var d [3]int
			k := 0
			for j := y; j < min(y+8, a.Height); j++ {
				for i := x; i < min(x+8, a.Width); i++ {
					at := 3 * (j*a.Width + i)
					for c := range d {
						d[c] += int(a.Pix[at+c]) - int(b.Pix[at+c])
					}
					k++
				}
			}
			mean := (d[0] + d[1] + d[2]) / 3
			total += float64(max(abs(d[0]-mean), abs(d[1]-mean), abs(d[2]-mean))) / float64(k)
			n++
		}
	}
	return total / math.Max(1, float64(n))
}

// fallbacks returns the levels to try in order, until a result looks like the
// original. The last level only rewrites the file. If noisy pictures gain
// nothing at the gentlest level, another level lets each picture lose more, as
// long as the page does not.
func (lv level) fallbacks() []level {
	out := []level{lv}
	for _, name := range []string{"recommended_compression", "less_compression"} {
		if gentler := levelOf(name); gentler.dpi > lv.dpi {
			gentler.page, gentler.tint, gentler.hopeful = lv.page, lv.tint, false
			out = append(out, gentler)
		}
	}
	if lv.hopeful {
		noisy := lv
		noisy.similar, noisy.jpeg, noisy.page, noisy.hopeful = 0.99, 0.98, 0.993, false
		out = append(out, noisy)
	}
	plain := out[len(out)-1]
	plain.rewrite = true
	return slices.Concat(out, []level{plain})
}
