package documentops

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

const (
	less        = fileops.LessCompression
	recommended = fileops.RecommendedCompression
	extreme     = fileops.ExtremeCompression
)

// A level limits the loss of quality.
type level struct {
	dpi     float64 // pixels per inch for a picture of known display size
	pixels  int     // most pixels along the longer side of any picture
	quality int     // of JPEG
	palette int     // quality of a PNG palette; 0 keeps all colours
	photo   float64 // a PNG becomes JPEG if that is this fraction of its size or less
	extras  bool    // drop previews and printer settings
}

// levelOf returns a level. The numbers come from measurements of size and
// similarity on rendered pages of real documents.
func levelOf(name string) level {
	switch name {
	case less:
		return level{dpi: 220, pixels: 2560, quality: 85, photo: 0.4}
	case extreme:
		return level{dpi: 96, pixels: 1024, quality: 50, palette: 50, photo: 0.85, extras: true}
	}
	return level{dpi: 150, pixels: 1600, quality: 72, palette: 90, photo: 0.8, extras: true}
}

// unchanged is the ratio of result size to input size from which on the result is the
// input.
const unchanged = 0.97

// Compress returns the action "compress" for documents that are ZIP archives:
// Office Open XML, OpenDocument and EPUB.
//
// Pictures are scaled to the resolution that their display size needs at the
// level of compression_value, and encoded again. If the format of a picture
// changes, all references change too. Text, formatting, comments, macros and
// vector pictures stay unchanged. Unreferenced media are dropped. Except at the
// lowest level, the preview of the document and the author's printer settings are
// dropped too. Everything else is recompressed losslessly. If the result would be less
// than 3 % smaller, the result is the input. A signed document fails with
// [fileops.ErrUnsupportedInput].
//
// A nil codec leaves pictures unchanged; l may be nil.
func Compress(codec PictureCodec, l *Limits) fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "compress", Engine: "documentops", Family: "office",
		Summary: "Makes documents, slides, sheets and books smaller.",
		Accepts: []fileops.Accept{{
			Formats: append(format.WithVariants(format.DOCX, format.PPTX, format.XLSX, format.ODT, format.ODP, format.ODS), format.XLSB, format.ODG, format.EPUB),
			Params:  fileops.Schema{fileops.Compression("How much picture detail may be lost to save space.")},
		}},
	}, func(ctx context.Context, job *fileops.Job) error { return compress(ctx, job, codec, l.orDefault()) })
}

func compress(ctx context.Context, job *fileops.Job, codec PictureCodec, l safezip.Limits) error {
	in := job.Input()
	lv := levelOf(job.Params.Get("compression_value"))
	a, err := openArchive(in, l)
	if err != nil {
		return err
	}
	switch in.Format().Plain() {
	case format.DOCX, format.PPTX, format.XLSX, format.XLSB:
		err = compressOPC(ctx, job, a, codec, lv)
	case format.EPUB:
		err = compressEPUB(ctx, job, a, codec, lv)
	default:
		err = compressODF(ctx, job, a, codec, lv)
	}
	if err != nil {
		return err
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "compressed."+string(in.Format()))
	if err := a.write(ctx, job, path); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if float64(st.Size()) > unchanged*float64(in.Size()) {
		return job.Keep(in)
	}
	return job.Best(in, path)
}

func compressOPC(ctx context.Context, job *fileops.Job, a *archive, codec PictureCodec, lv level) error {
	p, err := openOPC(ctx, a)
	if err != nil {
		return err
	}
	sizes, err := p.needs(ctx)
	if err != nil {
		return err
	}
	if err := p.strip(ctx, lv.extras); err != nil {
		return err
	}
	moved, err := shrink(ctx, job, a, codec, lv, sizes, true)
	if err != nil {
		return err
	}
	return p.finish(ctx, moved)
}

func compressODF(ctx context.Context, job *fileops.Job, a *archive, codec PictureCodec, lv level) error {
	d, err := openODF(ctx, a)
	if err != nil {
		return err
	}
	sizes, err := d.needs()
	if err != nil {
		return err
	}
	d.strip(lv.extras)
	moved, err := shrink(ctx, job, a, codec, lv, sizes, true)
	if err != nil {
		return err
	}
	return d.finish(moved)
}

// compressEPUB renames no files, because too many kinds of files contain references
// to them.
func compressEPUB(ctx context.Context, job *fileops.Job, a *archive, codec PictureCodec, lv level) error {
	if a.find("META-INF/signatures.xml") != nil { // EPUB OCF 3.3, 4.2.6.3.5
		return errSigned()
	}
	if e := a.find("META-INF/encryption.xml"); e != nil {
		text, err := e.read(ctx, maxIndex)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(`html"`)) { // fonts alone may be obfuscated
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the book is protected by digital rights management")
		}
	}
	if codec == nil {
		return nil
	}
	return recode(ctx, job, a, codec, lv, nil, false)
}

// shrink merges equal pictures and encodes the remaining pictures again.
func shrink(ctx context.Context, job *fileops.Job, a *archive, codec PictureCodec, lv level, sizes needs, rename bool) (map[*entry]*entry, error) {
	moved, err := merge(ctx, a)
	if err != nil {
		return nil, err
	}
	for from, to := range moved {
		if n := sizes[from]; n != nil {
			sizes.of(to).join(n)
		}
	}
	if codec == nil {
		return moved, nil
	}
	return moved, recode(ctx, job, a, codec, lv, sizes, rename)
}

func (n *need) join(m *need) {
	n.width, n.height = max(n.width, m.width), max(n.height, m.height)
	n.unknown, n.fixed = n.unknown || m.unknown, n.fixed || m.fixed
}
