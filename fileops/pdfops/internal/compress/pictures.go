package compress

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// parallel is the number of pictures that are recoded concurrently.
const parallel = 2

// A pictureTask is a picture to re-encode. mask is set for soft masks, in which
// artefacts show as halos.
type pictureTask struct {
	nr     int
	stream *types.StreamDict
	size   drawnSize
	mask   bool
}

// pictures returns the drawn pictures and their soft masks, in a fixed order.
func pictures(d *pdf.Document, sizes map[int]drawnSize) []pictureTask {
	masks := make(map[int]drawnSize)
	var tasks []pictureTask
	for _, nr := range slices.Sorted(maps.Keys(sizes)) {
		s := d.Stream(pdf.Ref(nr))
		if s == nil {
			continue
		}
		if mask := d.Stream(s.Dict["SMask"]); mask != nil {
			if mask.Dict["Matte"] != nil {
				continue // the mask determines the colours, pixel by pixel
			}
			if ref, ok := s.Dict["SMask"].(types.IndirectRef); ok {
				m := masks[ref.ObjectNumber.Value()]
				masks[ref.ObjectNumber.Value()] = drawnSize{max(m.width, sizes[nr].width), max(m.height, sizes[nr].height)}
			}
		}
		tasks = append(tasks, pictureTask{nr: nr, stream: s, size: sizes[nr]})
	}
	for _, nr := range slices.Sorted(maps.Keys(masks)) {
		if _, drawnToo := sizes[nr]; !drawnToo {
			tasks = append(tasks, pictureTask{nr: nr, stream: d.Stream(pdf.Ref(nr)), size: masks[nr], mask: true})
		}
	}
	return tasks
}

// inParallel calls f for 0 to n-1, a few concurrently, until a call fails or ctx
// is done. A panic in f becomes an error.
func inParallel(ctx context.Context, n int, f func(int) error, progress func(float64)) error {
	var (
		next, done atomic.Int64
		wg         sync.WaitGroup
		once       sync.Once
		first      error
	)
	fail := func(err error) {
		once.Do(func() { first = err })
		next.Store(int64(n))
	}
	for range min(parallel, n) {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					fail(fileops.Fail(fileops.ErrCorruptInput, fmt.Errorf("panic: %v", p), "the file is damaged"))
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if ctx.Err() != nil {
					fail(context.Cause(ctx))
					return
				}
				if err := f(i); err != nil {
					fail(err)
					return
				}
				progress(float64(done.Add(1)) / float64(n))
			}
		})
	}
	wg.Wait()
	return first
}

// strip removes thumbnails, which every viewer can create, and thins metadata.
// If the level says so, it also removes private application data and output
// intents. Output intents are for printing presses; PDF/A and PDF/X need them.
func strip(d *pdf.Document, pages []pdf.Page, lv level) {
	catalog := d.Catalog()
	for _, p := range pages {
		delete(p.Dict, "Thumb")
		if lv.private {
			delete(p.Dict, "PieceInfo")
		}
	}
	thinMetadata(d, lv.private)
	if !lv.private {
		return
	}
	delete(catalog, "PieceInfo")
	info := d.Dict(pdf.Ref(d.Info))
	_, pdfx := info["GTS_PDFXVersion"]
	if !pdfx && !d.Claims("pdfaid:part", "pdfxid:GTS_PDFXVersion", "pdfx:GTS_PDFXVersion", "pdfe:ISO_PDFEVersion") {
		delete(catalog, "OutputIntents")
	}
}
