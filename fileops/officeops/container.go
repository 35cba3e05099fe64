package officeops

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/safezip"
)

// check validates a document before an engine reads it, because LibreOffice silently
// repairs damaged documents and converts only a part of them. errMaybeProtected means
// that only the engine can decide whether the document is encrypted.
func (l Limits) check(ctx context.Context, f *fileops.File) error {
	switch f.Format() {
	case format.DOCX, format.PPTX, format.XLSX, format.XLSB, format.ODT, format.ODP, format.ODS, format.ODG, format.VSDX, format.EPUB,
		format.Pages, format.Numbers, format.Key:
		if isCompound(f) { // an encrypted document ([MS-OFFCRYPTO] 2.3.1)
			return protected()
		}
		if errors.Is(format.Check(f.Format(), f.Reader(), f.Size()), format.ErrEncrypted) && !encryptable(f.Format()) {
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document is protected by a password; save it without one, because documents of this kind cannot be decrypted")
		}
		return l.checkZIP(ctx, f)
	case format.EMF, format.WMF:
		return checkMetafile(ctx, f)
	case format.DOC, format.PPT, format.XLS, format.VSD, format.PUB:
		return checkOLE(ctx, f)
	case format.RTF:
		return checkRTF(ctx, f.Reader())
	case format.FB2:
		text, err := charset.NewHTML(f.Reader(), f.Size())
		if err != nil {
			return err
		}
		return checkXML(ctx, text.Reader())
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
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password")
}

func isCompound(f *fileops.File) bool {
	head := make([]byte, len(compound.Magic))
	_, err := f.Reader().ReadAt(head, 0)
	return err == nil && string(head) == compound.Magic
}

func (l Limits) checkZIP(ctx context.Context, f *fileops.File) error {
	limits := safezip.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio}
	z, err := limits.Open(f.Reader(), f.Size())
	if err == nil {
		err = limits.Check(z.File, f.Size(), nil)
	}
	if errors.Is(err, fileops.ErrLimit) {
		return err
	}
	if err != nil {
		return damaged(err)
	}
	for _, e := range z.File {
		if e.Flags&1 != 0 {
			return protected()
		}
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
// declarations, because their entities can expand to any size.
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
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document has a document type declaration, which is not allowed")
		}
	}
	return nil
}

const (
	maxXMLTag  = 1 << 20  // bytes of a tag
	maxXMLText = 64 << 20 // bytes of the text between two tags, such as an embedded picture
)

// A tokenLimiter fails when its XML contains a tag or a text that is too long. The
// parser holds each in memory, and a tag with attributes takes several times its size.
// "<" starts a tag even in quotes, where the parser rejects it.
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
			return 0, fileops.Fail(fileops.ErrLimit, nil, "the document has a tag of more than %d MiB, or a text of more than %d MiB", maxXMLTag>>20, maxXMLText>>20)
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
			if size, err := strconv.ParseInt(n, 10, 64); err == nil {
				skip = size
			}
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
