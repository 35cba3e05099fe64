package documentops

import (
	"bytes"
	"context"
	"errors"
	"io"
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
// An encrypted Office Open XML document needs its password, and the result is encrypted
// with the same one, as by [Lock].
//
// A nil codec leaves pictures unchanged; l may be nil.
func Compress(codec PictureCodec, l *Limits) fileops.Action {
	amount := fileops.Compression("How much picture detail may be lost to save space.")
	return fileops.Func(fileops.Spec{
		Name: "compress", Engine: "documentops", Family: "office", Encrypted: true,
		Summary: "Makes documents, slides, sheets and books smaller.",
		Accepts: []fileops.Accept{
			{Formats: lockable, Params: fileops.Schema{amount, {
				Name: "password", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
				Doc: "Password of an encrypted file; the result has the same one.",
			}}},
			{Formats: append(format.WithVariants(format.ODT, format.ODP, format.ODS), format.ODG, format.EPUB), Params: fileops.Schema{amount}},
		},
	}, func(ctx context.Context, job *fileops.Job) error { return compress(ctx, job, codec, l.orDefault()) })
}

func compress(ctx context.Context, job *fileops.Job, codec PictureCodec, l safezip.Limits) error {
	if encrypted(job.Input()) {
		return compressLocked(ctx, job, codec, l)
	}
	path, smaller, err := compressPackage(ctx, job, job.Input().Reader(), job.Input().Size(), codec, l)
	if err == nil {
		job.WarnPasswordUnused()
	}
	switch {
	case err != nil:
		return err
	case !smaller:
		return job.Keep(job.Input())
	}
	return job.Best(job.Input(), path)
}

// compressLocked compresses an encrypted document and encrypts the result.
func compressLocked(ctx context.Context, job *fileops.Job, codec PictureCodec, l safezip.Limits) error {
	in, password := job.Input(), job.Params.Get("password")
	if password == "" {
		return fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; give it in the parameter password")
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	plain := filepath.Join(dir, "plain."+string(in.Format()))
	if err := unlock(ctx, l, in, password, plain); err != nil {
		return err
	}
	p, size, err := opened(plain)
	if err != nil {
		return err
	}
	defer p.Close()
	path, smaller, err := compressPackage(ctx, job, p, size, codec, l)
	switch {
	case err != nil:
		return err
	case !smaller:
		return job.Keep(in)
	}
	r, size, err := opened(path)
	if err != nil {
		return err
	}
	defer r.Close()
	if size > maxLock {
		return job.Keep(in)
	}
	locked := filepath.Join(dir, "locked."+string(in.Format()))
	w, err := os.OpenFile(locked, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(encrypt(ctx, r, size, password, w), w.Close()); err != nil {
		return err
	}
	return job.Best(in, locked)
}

// opened opens a file of the scratch directory.
func opened(path string) (f *os.File, size int64, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// compressPackage writes the document of size bytes in r, compressed, to the returned
// path, and reports whether it is much smaller.
func compressPackage(ctx context.Context, job *fileops.Job, r io.ReaderAt, size int64, codec PictureCodec, l safezip.Limits) (path string, smaller bool, err error) {
	f, lv := job.Input().Format(), levelOf(job.Params.Get("compression_value"))
	a, err := openPackage(r, size, l)
	if err != nil {
		return "", false, err
	}
	switch f.Plain() {
	case format.DOCX, format.PPTX, format.XLSX, format.XLSB:
		err = compressOPC(ctx, job, a, codec, lv)
	case format.EPUB:
		err = compressEPUB(ctx, job, a, codec, lv)
	default:
		err = compressODF(ctx, job, a, codec, lv)
	}
	if err != nil {
		return "", false, err
	}
	dir, err := job.Dir()
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(dir, "compressed."+string(f))
	if err := a.write(ctx, job, path); err != nil {
		return "", false, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", false, err
	}
	return path, float64(st.Size()) <= unchanged*float64(size), nil
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
