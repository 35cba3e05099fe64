package documentops

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

const (
	less        = fileops.LessCompression
	recommended = fileops.RecommendedCompression
	extreme     = fileops.ExtremeCompression
)

// A level says what may be lost.
type level struct {
	dpi     float64 // pixels per inch that a picture of known size needs
	pixels  int     // most along the longer side of any picture
	quality int     // of JPEG
	palette int     // quality of the palette of PNG; 0 loses no colours
	photo   float64 // a PNG becomes JPEG if that is smaller by this factor
	extras  bool    // drop previews and printer settings
}

// levelOf returns a level. The numbers are from measuring size and similarity
// of rendered pages of real documents.
func levelOf(name string) level {
	switch name {
	case less:
		return level{dpi: 220, pixels: 2560, quality: 85, photo: 0.4}
	case extreme:
		return level{dpi: 96, pixels: 1024, quality: 50, palette: 50, photo: 0.85, extras: true}
	}
	return level{dpi: 150, pixels: 1600, quality: 72, palette: 90, photo: 0.8, extras: true}
}

// unchanged is the share of its size from which on a document stays as it is.
const unchanged = 0.97

// Compress returns the action "compress" for documents that are ZIP archives:
// Office Open XML, OpenDocument and EPUB.
//
// Pictures are scaled to what the place they are shown in is worth at the level
// that compression_value chooses, and encoded anew; where a picture changes its
// format everything that refers to it is changed too. Text, formatting, comments,
// macros and vector pictures stay. What nothing refers to is dropped, and so
// are, except at the lowest level, the preview of the document and the
// settings of the author's printer. The rest is compressed anew without loss. A
// document that would gain less than 3 % stays as it is. A signed document
// fails with [fileops.ErrUnsupportedInput].
//
// A nil codec leaves pictures as they are; l may be nil.
func Compress(codec PictureCodec, l *Limits) fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "compress", Engine: "documentops", Family: "office",
		Summary: "Makes documents, slides, sheets and books smaller in bytes.",
		Accepts: []fileops.Accept{{
			Formats: []format.Format{format.DOCX, format.PPTX, format.XLSX, format.ODT, format.ODP, format.ODS, format.EPUB},
			Params:  fileops.Schema{fileops.Compression("How much detail of pictures may be lost to save space.")},
		}},
	}, func(ctx context.Context, job *fileops.Job) error { return compress(ctx, job, codec, l.orDefault()) })
}

func compress(ctx context.Context, job *fileops.Job, codec PictureCodec, l Limits) error {
	in := job.Input()
	lv := levelOf(job.Params.Get("compression_value"))
	a, err := openArchive(in, l)
	if err != nil {
		return err
	}
	switch in.Format() {
	case format.DOCX, format.PPTX, format.XLSX:
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

// compressEPUB leaves names alone: references are in too many kinds of files.
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

// shrink merges equal pictures and encodes what is left anew.
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
