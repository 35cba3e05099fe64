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

// largeEntry is how many bytes a part must have for [Limits.Ratio] to count.
const largeEntry = 10 << 20

// check looks at a document before an engine does. LibreOffice repairs what is
// damaged as well as it can and says nothing: half a document is a success.
// errMaybeProtected means that only the engine can tell.
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
	src.left = math.MaxInt64 // the parts are read one after the other
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
	if compressed > uint64(f.Size()) { // entries that share their data
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

// maxDirectory is how many bytes a ZIP directory may always have. An entry that takes 46 bytes
// there takes ten times as much in memory.
const maxDirectory = 8 << 20

// A directoryLimiter fails when more is read than is left.
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

// checkEntry reads an entry, which compares its size and checksum with what the
// archive says.
func checkEntry(ctx context.Context, f format.Format, e *zip.File) error {
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil // the engine may know it
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

// checkXML tells whether flat XML is well-formed. A document type is not taken:
// it could declare entities that expand without end.
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
	maxXMLText = 64 << 20 // bytes of the text between two tags, such as a picture
)

// A tokenLimiter fails when the XML that it reads has a tag or a text that is too long: the
// parser holds each in memory, a tag with its attributes many times. "<" begins a tag also in
// quotes, where the parser refuses it.
type tokenLimiter struct {
	r     io.Reader
	n     int     // bytes since the last "<"
	tag   bool    // in a tag
	quote byte    // of the value that it is in; or 0
	end   string  // of the comment, CDATA section or instruction that it is in; or ""
	last  [2]byte // the two bytes before
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

// checkRTF tells whether the outermost group of the file is closed: braces not
// preceded by a backslash, and not in binary data (Rich Text Format
// Specification 1.9.1, "RTF Syntax").
func checkRTF(ctx context.Context, r io.Reader) error {
	src := fileops.ContextReader(ctx, r)
	buf := make([]byte, 64<<10)
	depth := 0
	skip := int64(0)   // bytes of binary data left
	var control []byte // a control word being read, without its backslash
	inControl := false // after a backslash
	closed := false    // the outermost group ended
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
