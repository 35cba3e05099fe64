package pdfops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/filewright/filewright/fileops"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// parallel is how many pictures are worked on at once.
const parallel = 2

// Compress returns the action "compress" for PDF files.
//
// Pictures are scaled down to the resolution of the level (220, 150 or 96 dpi at
// the size they are drawn in) and encoded as JPEG of its quality (85, 73 or 50),
// where that gains enough; those with few colours get a palette, those of one bit
// become JBIG2, without loss. Embedded fonts keep the glyphs that are shown
// somewhere, and all of them if form fields can be filled in with the font; Type 1
// fonts become CFF. Metadata lose the histories of editing programs, profiles the
// fine grain of what only a press would ask them. Everything is stored as tightly
// as possible, equal objects once, and unused ones not at all. Text, links,
// bookmarks, forms, tags, annotations, page labels, attachments and the marks of
// PDF/A stay. Pictures masked by colour stay as they are.
//
// With a Renderer (see [Tools]) pages of the result are compared with the
// original. What differs in text or colour, or is less similar than the level
// allows (0.99, 0.95 or 0.90), is done again at a gentler level, and in the end
// not at all.
//
// A signed file is returned as it is, because any change breaks the signature,
// and so is one that would not become 3 % smaller. A file that is encrypted but
// opens without a password is compressed like any other. Its result is not
// encrypted, and restricts nothing.
func (t Tools) Compress() fileops.Action {
	spec := t.spec("compress", "Makes a PDF file smaller.", fileops.Schema{fileops.Compression("How much quality may be given up for a smaller file.")})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		f := job.Input()
		original, err := f.ReadAll(maxFile)
		if err != nil {
			return err
		}
		d, err := t.loadData(ctx, job, f, original, "the file")
		if err != nil {
			return err
		}
		job.Progress(0.1)
		if d.signed() {
			job.Log.Info("signed file kept as it is")
			return job.Keep(f)
		}
		pages, err := d.pages()
		if err != nil {
			return err
		}
		shown := newComparison(ctx, t.Renderer, original, d)
		defer shown.stop()
		for _, lv := range levelOf(job.Params.Get("compression_value")).fallbacks() {
			if d == nil { // used up
				if d, err = t.loadData(ctx, job, f, original, "the file"); err != nil {
					return err
				}
				if pages, err = d.pages(); err != nil {
					return err
				}
			}
			look, err := t.compress(ctx, job, d, pages, lv)
			if err != nil {
				return err
			}
			done, err := t.finishCompress(ctx, job, d, lv, len(pages), func(made []byte) error { return shown.same(ctx, made, look, lv) })
			if done || err != nil {
				return err
			}
			d = nil
		}
		return job.Keep(f)
	})
}

func levelOf(name string) level {
	switch name {
	case fileops.LessCompression:
		return level{dpi: 220, excess: 1.5, quality: 85, similar: 0.995, jpeg: 0.995, hopeful: true, page: 0.991, tint: 2}
	case fileops.ExtremeCompression:
		return level{dpi: 96, excess: 1.3, quality: 50, similar: leastSimilarity, jpeg: leastSimilarity, private: true, page: 0.915, tint: 8}
	}
	return level{dpi: 150, excess: 1.4, quality: 73, similar: 0.9, jpeg: leastSimilarity, private: true, page: 0.955, tint: 4}
}

// compress changes a document, and returns the pages to look at.
func (t Tools) compress(ctx context.Context, job *fileops.Job, d *document, pages []page, lv level) ([]int, error) {
	if lv.rewrite {
		return changes{}.choose(slices.Repeat([]*sight{{}}, len(pages))), t.repack(ctx, job, d)
	}
	d.mergeEqual(ctx) // what is there twice has to be worked on only once
	w := newWalker(d)
	for i, p := range pages {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := w.page(ctx, p); err != nil {
			return nil, err
		}
		job.Progress(0.1 + 0.1*float64(i+1)/float64(len(pages)))
	}
	if err := w.rest(ctx); err != nil {
		return nil, err
	}
	before, forms := d.record(w)
	if !w.complete() {
		job.Log.Info("content is too complex or damaged; pictures are not scaled")
	}
	r := &recoder{
		doc: d, codec: t.Images, level: lv, scale: w.complete(),
		logErr: func(nr int, err error) { job.Log.Debug("picture kept as it is", "object", nr, "err", err) },
	}
	if r.codec == nil {
		r.codec = goCodec{}
	}
	tasks := d.pictures(w.sizes)
	losses := make([]float64, len(tasks))
	err := inParallel(ctx, len(tasks), func(i int) (err error) {
		losses[i], err = r.picture(ctx, tasks[i])
		return err
	}, func(done float64) { job.Progress(0.2 + 0.5*done) })
	if err != nil {
		return nil, err
	}
	if err := d.recodeOneBit(ctx); err != nil {
		return nil, err
	}
	if w.complete() {
		if err := d.subsetFonts(ctx, w.fonts, func(float64) {}); err != nil {
			return nil, err
		}
	}
	changed := d.since(before, forms, w)
	for i, k := range tasks {
		if _, ok := changed.kinds[k.nr]; ok {
			changed.risks[k.nr] = losses[i] * k.size.width * k.size.height
		}
	}
	d.strip(pages, lv)
	return changed.choose(w.shown), t.repack(ctx, job, d)
}

// repack stores everything as tightly as possible.
func (t Tools) repack(ctx context.Context, job *fileops.Job, d *document) error {
	var streams []*types.StreamDict
	for _, nr := range d.reachable() {
		if s, ok := d.objects[nr].(*types.StreamDict); ok {
			streams = append(streams, s)
		}
	}
	err := inParallel(ctx, len(streams), func(i int) error {
		repack(streams[i])
		return nil
	}, func(done float64) { job.Progress(0.7 + 0.2*done) })
	if err != nil {
		return err
	}
	d.mergeEqual(ctx)
	return nil
}

// A pictureTask is a picture to re-encode. mask is set for soft masks, where
// flaws show as halos.
type pictureTask struct {
	nr     int
	stream *types.StreamDict
	size   drawn
	mask   bool
}

// pictures returns the pictures that are drawn, and their soft masks, in a fixed
// order.
func (d *document) pictures(sizes map[int]drawn) []pictureTask {
	masks := make(map[int]drawn)
	var tasks []pictureTask
	for _, nr := range slices.Sorted(maps.Keys(sizes)) {
		s := d.stream(refTo(nr))
		if s == nil {
			continue
		}
		if mask := d.stream(s.Dict["SMask"]); mask != nil {
			if mask.Dict["Matte"] != nil {
				continue // the colours depend on the mask, pixel by pixel
			}
			if ref, ok := s.Dict["SMask"].(types.IndirectRef); ok {
				m := masks[ref.ObjectNumber.Value()]
				masks[ref.ObjectNumber.Value()] = drawn{max(m.width, sizes[nr].width), max(m.height, sizes[nr].height)}
			}
		}
		tasks = append(tasks, pictureTask{nr: nr, stream: s, size: sizes[nr]})
	}
	for _, nr := range slices.Sorted(maps.Keys(masks)) {
		if _, drawnToo := sizes[nr]; !drawnToo {
			tasks = append(tasks, pictureTask{nr: nr, stream: d.stream(refTo(nr)), size: masks[nr], mask: true})
		}
	}
	return tasks
}

// inParallel calls f for 0 to n-1, a few at a time, until one fails or ctx is
// done. A panic in f is turned into an error.
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

// strip removes what no viewer shows: thumbnails, which every viewer makes
// itself, and private data of the producing application. Output intents say how
// a press is to print the file; PDF/A and PDF/X need them.
func (d *document) strip(pages []page, lv level) {
	catalog := d.catalog()
	for _, p := range pages {
		delete(p.dict, "Thumb")
		if lv.private {
			delete(p.dict, "PieceInfo")
		}
	}
	d.thinMetadata(lv.private)
	if !lv.private {
		return
	}
	d.thinProfiles()
	delete(catalog, "PieceInfo")
	info := d.dict(refTo(d.info))
	_, pdfx := info["GTS_PDFXVersion"]
	if !pdfx && !d.claims("pdfaid:part", "pdfxid:GTS_PDFXVersion", "pdfx:GTS_PDFXVersion", "pdfe:ISO_PDFEVersion") {
		delete(catalog, "OutputIntents")
	}
}

// finishCompress writes the document, if it is worth it and shows what it did:
// done tells whether there is a result. The last attempt of all is never worse
// than the input.
func (t Tools) finishCompress(ctx context.Context, job *fileops.Job, d *document, lv level, pages int, same func([]byte) error) (done bool, err error) {
	f := job.Input()
	dir, err := job.Dir()
	if err != nil {
		return false, err
	}
	out, err := os.CreateTemp(dir, "compressed-*.pdf")
	if err != nil {
		return false, err
	}
	err = d.write(out, d.isPDFA1(), nil)
	if err = errors.Join(err, out.Close()); err != nil {
		return false, err
	}
	job.Progress(0.9)
	b, err := os.ReadFile(out.Name())
	if err != nil {
		return false, err
	}
	if float64(len(b)) >= 0.97*float64(f.Size()) {
		if lv.hopeful {
			return false, nil
		}
		return true, job.Keep(f)
	}
	// What was written must be read again, and show the same: better no gain
	// than a loss.
	again, err := parseComplete(ctx, b, t.Limits)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil || errors.Is(err, errIncomplete) && d.incomplete() {
		var p []page
		if p, err = again.pages(); err == nil && len(p) != pages {
			err = fmt.Errorf("%d pages instead of %d", len(p), pages)
		}
	}
	if err == nil {
		err = same(b)
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		job.Log.Info("compressed less, because the result would differ", "err", err)
		return false, nil
	}
	return true, job.Best(f, out.Name())
}
