package officeops

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// largeEntry is the size in bytes from which [Limits.Ratio] applies to a part.
const largeEntry = 10 << 20

// check validates a document before an engine reads it. LibreOffice silently repairs
// damaged documents and reports success for half a document. errMaybeProtected means
// that only the engine can decide.
func (l Limits) check(ctx context.Context, f *fileops.File) error {
	switch f.Format() {
	case format.DOCX, format.PPTX, format.XLSX, format.ODT, format.ODP, format.ODS, format.EPUB:
		return l.checkZIP(ctx, f)
	case format.DOC, format.PPT, format.XLS:
		return checkOLE(ctx, f)
	case format.RTF:
		return checkRTF(ctx, f.Reader())
	case format.FODT, format.FODP, format.FODS:
		if f.Format() == format.FODS {
			if err := (&cellCounter{most: l.Cells}).check(ctx, f.Reader()); err != nil {
				return err
			}
		}
		return checkXML(ctx, f.Reader())
	}
	return nil
}

func damaged(cause error) error {
	return fileops.Fail(fileops.ErrCorruptInput, cause, "the document is damaged")
}

func protected() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; remove it before uploading")
}

func (l Limits) checkZIP(ctx context.Context, f *fileops.File) error {
	src := &directoryLimiter{r: f.Reader(), left: max(maxDirectory, int64(l.Entries)<<10)}
	z, err := zip.NewReader(src, f.Size())
	if errors.Is(err, fileops.ErrLimit) {
		return err
	}
	if err != nil {
		return damaged(err)
	}
	src.left = math.MaxInt64 // from here on the parts are read one after the other
	if len(z.File) > l.Entries {
		return fileops.Fail(fileops.ErrLimit, nil, "the document has %d parts, more than the limit of %d; split it first", len(z.File), l.Entries)
	}
	total, compressed := uint64(0), uint64(0)
	for _, e := range z.File {
		total += min(e.UncompressedSize64, uint64(l.Unpacked)+1)
		compressed += min(e.CompressedSize64, uint64(l.Unpacked)+1)
		tooDense := e.UncompressedSize64 > largeEntry && e.UncompressedSize64/max(e.CompressedSize64, 1) > uint64(l.Ratio)
		if total > uint64(l.Unpacked) || tooDense {
			return fileops.Fail(fileops.ErrLimit, nil, "the document expands to more than the limit of %d bytes, or more than %d times its size", l.Unpacked, l.Ratio)
		}
		if e.Flags&1 != 0 {
			return protected()
		}
	}
	if compressed > uint64(f.Size()) { // entries share their data
		return damaged(errors.New("zip: entries overlap"))
	}
	for _, e := range z.File {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := checkEntry(ctx, f.Format(), e); err != nil {
			return err
		}
		if f.Format() == format.ODS && e.Name == "content.xml" {
			if err := l.checkCells(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxDirectory is a size in bytes that every ZIP directory may have. An entry that takes
// 46 bytes there takes ten times as much in memory.
const maxDirectory = 8 << 20

// A directoryLimiter fails when more than left bytes are read.
type directoryLimiter struct {
	r    io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (d *directoryLimiter) ReadAt(p []byte, off int64) (int, error) {
	if d.left -= int64(len(p)); d.left < 0 {
		return 0, fileops.Fail(fileops.ErrLimit, nil, "the document has more parts than are allowed; split it first")
	}
	return d.r.ReadAt(p, off)
}

// checkCells counts the cells of an OpenDocument workbook.
func (l Limits) checkCells(ctx context.Context, e *zip.File) error {
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil
	}
	if err != nil {
		return damaged(err)
	}
	defer r.Close()
	return (&cellCounter{most: l.Cells}).check(ctx, r)
}

// checkEntry reads an entry, which verifies its size and checksum.
func checkEntry(ctx context.Context, f format.Format, e *zip.File) error {
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil // the engine may support it
	}
	if err != nil {
		return damaged(err)
	}
	defer r.Close()
	var keep bytes.Buffer
	w := io.Discard
	manifest := e.Name == "META-INF/manifest.xml" || e.Name == "META-INF/encryption.xml"
	if manifest && e.UncompressedSize64 < 16<<20 {
		w = &keep
	}
	if _, err := io.Copy(w, fileops.ContextReader(ctx, r)); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	switch {
	case !manifest:
	case f != format.EPUB && bytes.Contains(keep.Bytes(), []byte("encryption-data")): // OpenDocument 1.3 part 2, 4.4
		return protected()
	case f == format.EPUB && bytes.Contains(keep.Bytes(), []byte("html\"")): // fonts alone may be obfuscated
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the book is protected by digital rights management")
	}
	return nil
}

// checkXML returns an error if flat XML is not well-formed. It rejects document type
// declarations, which could declare entities that expand without end.
func checkXML(ctx context.Context, r io.Reader) error {
	d := xml.NewDecoder(&tokenLimiter{r: fileops.ContextReader(ctx, r)})
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for n := 0; ; n++ {
		t, err := d.RawToken()
		if errors.Is(err, io.EOF) && n > 0 {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, fileops.ErrLimit) {
			return err
		}
		if err != nil {
			return damaged(err)
		}
		if dir, ok := t.(xml.Directive); ok && bytes.HasPrefix(bytes.ToUpper(dir), []byte("DOCTYPE")) {
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document has a document type declaration, which is not accepted")
		}
	}
	return nil
}

const (
	maxXMLTag  = 1 << 20  // bytes of a tag
	maxXMLText = 64 << 20 // bytes of the text between two tags, such as an embedded picture
)

// A tokenLimiter fails when its XML contains a tag or a text that is too long: the
// parser holds each in memory, and multiplies the size of a tag with attributes. "<"
// starts a tag even in quotes, where the parser refuses it.
type tokenLimiter struct {
	r     io.Reader
	n     int     // bytes since the last "<"
	tag   bool    // inside a tag
	quote byte    // quote of the current attribute value, or 0
	end   string  // end of the current comment, CDATA section or instruction, or ""
	last  [2]byte // the two previous bytes
}

// Read implements io.Reader.
func (l *tokenLimiter) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for _, c := range p[:n] {
		l.step(c)
		if l.n > maxXMLText || l.tag && l.n > maxXMLTag {
			return 0, fileops.Fail(fileops.ErrLimit, nil, "an element of the document has a tag of more than %d MiB, or text of more than %d MiB", maxXMLTag>>20, maxXMLText>>20)
		}
	}
	return n, err
}

func (l *tokenLimiter) step(c byte) {
	l.n++
	last := l.last
	l.last = [2]byte{last[1], c}
	switch {
	case l.end != "":
		if c == '>' && strings.HasSuffix(string(last[:])+">", l.end) {
			l.end = ""
		}
	case c == '<':
		l.n, l.tag, l.quote = 0, true, 0
	case l.tag && l.n == 1 && c == '?':
		l.tag, l.end = false, "?>"
	case l.tag && l.n == 2 && last[1] == '!' && (c == '-' || c == '['):
		l.tag, l.end = false, map[byte]string{'-': "-->", '[': "]]>"}[c]
		l.last = [2]byte{}
	case l.tag && l.quote != 0:
		if c == l.quote {
			l.quote = 0
		}
	case l.tag && (c == '"' || c == '\''):
		l.quote = c
	case l.tag && c == '>':
		l.tag = false
	}
}

// checkRTF returns an error if the outermost group of the file is not closed. Braces
// after a backslash or in binary data do not count (Rich Text Format Specification
// 1.9.1, "RTF Syntax").
func checkRTF(ctx context.Context, r io.Reader) error {
	src := fileops.ContextReader(ctx, r)
	buf := make([]byte, 64<<10)
	depth := 0
	skip := int64(0)   // remaining bytes of binary data
	var control []byte // the current control word, without its backslash
	inControl := false // after a backslash
	closed := false    // the outermost group is closed
	endControl := func() {
		if n, ok := strings.CutPrefix(string(control), "bin"); ok {
			fmt.Sscanf(n, "%d", &skip)
		}
		control, inControl = control[:0], false
	}
	for {
		n, err := src.Read(buf)
		for i := 0; i < n && !closed; i++ {
			c := buf[i]
			if skip > 0 {
				step := min(skip, int64(n-i))
				skip -= step
				i += int(step) - 1
				continue
			}
			if inControl {
				letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c >= '0' && c <= '9'
				switch {
				case letter && len(control) < 32:
					control = append(control, c)
					continue
				case len(control) == 0: // a control symbol: \{ \} \\ \'
					inControl = false
					continue
				}
				endControl()
				if c == ' ' { // belongs to the control word
					continue
				}
				if skip > 0 {
					skip--
					continue
				}
			}
			switch c {
			case '\\':
				inControl = true
			case '{':
				depth++
			case '}':
				depth--
				closed = depth == 0
			}
		}
		switch {
		case closed:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return damaged(errors.New("rtf: the outermost group is not closed"))
		case err != nil:
			return err
		}
	}
}
