package documentops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
)

// inMemory is the largest part in bytes that is compressed in memory and stored if
// compression does not help. Larger parts are compressed directly into the result.
const inMemory = 64 << 20

// write writes the archive with its entries in order, except that the media type of
// OpenDocument and EPUB files comes first, uncompressed (OpenDocument 1.3 part 2, 3.3).
func (a *archive) write(ctx context.Context, job *fileops.Job, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := &packer{zip: zip.NewWriter(out)}
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	if m := a.find("mimetype"); m != nil {
		err = w.store(ctx, m)
	}
	total := len(a.entries)
	for i, e := range a.entries {
		if err != nil {
			break
		}
		if e.drop || e == a.find("mimetype") {
			continue
		}
		err = w.write(ctx, e)
		job.Progress(0.8 + 0.18*float64(i+1)/float64(total))
	}
	if err == nil {
		err = w.zip.Close()
	}
	return errors.Join(err, out.Close())
}

// A packer writes entries.
type packer struct {
	zip   *zip.Writer
	flate *flate.Writer
}

func header(e *entry, method uint16) *zip.FileHeader {
	return &zip.FileHeader{
		Name: e.name, NonUTF8: e.NonUTF8, Method: method,
		ModifiedDate: e.ModifiedDate, ModifiedTime: e.ModifiedTime, ExternalAttrs: e.ExternalAttrs, CreatorVersion: e.CreatorVersion,
	}
}

func (w *packer) store(ctx context.Context, e *entry) error {
	b, err := e.read(ctx, maxIndex)
	if err != nil {
		return err
	}
	return w.raw(header(e, zip.Store), b, b)
}

// raw writes an entry from already compressed data.
func (w *packer) raw(h *zip.FileHeader, content, packed []byte) error {
	h.CRC32 = crc32.ChecksumIEEE(content)
	h.UncompressedSize64, h.CompressedSize64 = uint64(len(content)), uint64(len(packed))
	out, err := w.zip.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = out.Write(packed)
	return err
}

func (w *packer) write(ctx context.Context, e *entry) error {
	switch {
	case e.path != "":
		b, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		return w.raw(header(e, zip.Store), b, b) // a JPEG or PNG
	case e.data != nil:
		return w.deflate(e, e.data, nil)
	case e.UncompressedSize64 == 0, e.Method != zip.Deflate && e.Method != zip.Store, dense(e):
		if err := e.check(ctx); err != nil {
			return err
		}
		return w.copy(ctx, e)
	case e.UncompressedSize64 <= inMemory:
		b, err := e.read(ctx, inMemory)
		if err != nil {
			return err
		}
		return w.deflate(e, b, func() error { return w.copy(ctx, e) })
	}
	r, err := e.Open()
	if err != nil {
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	defer r.Close()
	out, err := w.zip.CreateHeader(header(e, zip.Deflate))
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, fileops.ContextReader(ctx, r)); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	return nil
}

// deflate compresses and writes content. If that is not smaller than the present data
// of e and instead is not nil, it calls instead.
func (w *packer) deflate(e *entry, content []byte, instead func() error) error {
	var packed bytes.Buffer
	var err error
	if w.flate == nil {
		if w.flate, err = flate.NewWriter(&packed, flate.BestCompression); err != nil {
			return err
		}
	} else {
		w.flate.Reset(&packed)
	}
	if _, err = w.flate.Write(content); err == nil {
		err = w.flate.Close()
	}
	if err != nil {
		return err
	}
	switch {
	case instead != nil && uint64(packed.Len()) >= e.CompressedSize64:
		return instead()
	case packed.Len() >= len(content):
		return w.raw(header(e, zip.Store), content, content)
	}
	return w.raw(header(e, zip.Deflate), content, packed.Bytes())
}

// copy copies an entry unchanged.
func (w *packer) copy(ctx context.Context, e *entry) error {
	r, err := e.OpenRaw()
	if err != nil {
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	h := header(e, e.Method)
	h.CRC32, h.UncompressedSize64, h.CompressedSize64 = e.CRC32, e.UncompressedSize64, e.CompressedSize64
	out, err := w.zip.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, fileops.ContextReader(ctx, r))
	return err
}

// dense reports whether an entry has a format that is already compressed.
func dense(e *entry) bool {
	switch strings.ToLower(path.Ext(e.Name)) {
	case ".jpg", ".jpeg", ".png", ".gif", ".webp", ".mp4", ".m4a", ".m4v", ".mov", ".mp3", ".wmv", ".wma", ".avi", ".mkv", ".webm", ".ogg",
		".docx", ".xlsx", ".pptx", ".zip", ".wdp", ".emz", ".wmz", ".svgz", ".woff", ".woff2":
		return true
	}
	return false
}
