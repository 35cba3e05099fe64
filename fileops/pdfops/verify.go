package pdfops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Renderer draws pages, so that a compressed document can be compared with
// what it was made of.
type Renderer interface {
	// Views draws pages, counted from 0, of a PDF file, at a resolution in
	// dots per inch, or less if a page would be too large. A page that
	// cannot be drawn has no pixels.
	Views(ctx context.Context, pdf []byte, pages []int, dpi float64) ([]PageView, error)
}

// A PageView is what a page shows: pixels, of 3 components, and text.
type PageView struct {
	Samples
	Text string
}

const (
	viewDPI     = 100
	viewedPages = 6           // of a document, at most
	viewTime    = time.Minute // for all of them
)

// viewed returns the pages to compare: all, or the first, the last and some
// between.
func viewed(total int) []int {
	n := min(total, viewedPages)
	out := make([]int, n)
	for i := range out {
		out[i] = i
		if total > n {
			out[i] = i * (total - 1) / (n - 1)
		}
	}
	return out
}

// A comparison renders the pages of the original once, and those of what is made
// of it each time.
type comparison struct {
	renderer Renderer
	pages    []int
	before   chan []PageView // one value: nil if they cannot be drawn
	views    []PageView
}

// newComparison starts drawing the original.
func newComparison(ctx context.Context, r Renderer, original []byte, pages int) *comparison {
	c := &comparison{renderer: r, pages: viewed(pages), before: make(chan []PageView, 1)}
	if r == nil {
		return c
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, viewTime)
		defer cancel()
		views, err := r.Views(ctx, original, c.pages, viewDPI)
		if err != nil {
			views = nil
		}
		c.before <- views
	}()
	return c
}

// same returns an error that says in what way a document shows something else
// than the original: more than a level may lose.
func (c *comparison) same(ctx context.Context, made []byte, lv level) error {
	if c.renderer == nil {
		return nil
	}
	if c.views == nil {
		select {
		case c.views = <-c.before:
			c.before <- c.views
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if c.views == nil {
		if lv.rewrite {
			return nil // nothing of what is shown was touched
		}
		return errors.New("the original cannot be drawn")
	}
	limited, cancel := context.WithTimeout(ctx, viewTime)
	defer cancel()
	after, err := c.renderer.Views(limited, made, c.pages, viewDPI)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	for i, p := range c.pages {
		if err := c.views[i].same(after[i], lv); err != nil {
			return fmt.Errorf("page %d: %w", p+1, err)
		}
	}
	return nil
}

func (v PageView) same(w PageView, lv level) error {
	switch {
	case v.Width != w.Width || v.Height != w.Height:
		return fmt.Errorf("%d×%d pixels instead of %d×%d", w.Width, w.Height, v.Width, v.Height)
	case v.Text != w.Text:
		return fmt.Errorf("the text differs")
	case bytes.Equal(v.Pix, w.Pix):
		return nil
	}
	if s := similarity(v.Samples, w.Samples); s < lv.page {
		return fmt.Errorf("similarity %.4f", s)
	}
	if c := colourDifference(v.Samples, w.Samples); c > lv.tint {
		return fmt.Errorf("colours differ by %.1f", c)
	}
	return nil
}

// colourDifference is the mean difference of hues, in steps of 1/255, over
// squares of 8 × 8 pixels, where noise evens out.
func colourDifference(a, b Samples) float64 {
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

// fallbacks are the levels to try, one after the other, until the result shows
// the same: in the end nothing is done but writing the file anew. Where pictures
// are so noisy that the gentlest level gains nothing, each may lose more than it
// asks for, as long as the page does not.
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
