package charset

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/transform"
)

// A Text is a text of any size and known encoding. It is decoded while it is read, so
// it is never in memory as a whole.
type Text struct {
	r       io.ReaderAt
	size    int64
	skip    int64             // bytes of a byte order mark in UTF-8
	enc     encoding.Encoding // nil for UTF-8
	invalid bool              // it has invalid UTF-8, if enc is nil
	guessed bool              // no mark and no declaration names enc
}

// NewTextIn returns a text of size bytes in a known encoding.
func NewTextIn(r io.ReaderAt, size int64, enc encoding.Encoding) *Text {
	return &Text{r: r, size: size, enc: enc}
}

// Guess returns the name of the encoding if it was guessed from the content, and
// "" otherwise.
func (t *Text) Guess() string {
	if !t.guessed {
		return ""
	}
	return Name(t.enc)
}

// Encoding returns the name of the encoding in the WHATWG Encoding Standard, or
// "utf-32le" or "utf-32be".
func (t *Text) Encoding() string {
	if name := Name(t.enc); name != "" {
		return name
	}
	var mark [4]byte // an encoding without a name has one
	n, _ := t.r.ReadAt(mark[:], 0)
	switch b := mark[:n]; {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return "utf-32le"
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return "utf-32be"
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "utf-16le"
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return "utf-16be"
	}
	return ""
}

// NewText detects the encoding of a text of size bytes, by the rules of
// [Detect]. It reads the whole text. It fails only if r fails.
func NewText(r io.ReaderAt, size int64) (*Text, error) {
	t := &Text{r: r, size: size}
	sample := make([]byte, min(size, sampleSize))
	if n, err := r.ReadAt(sample, 0); n < len(sample) {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	enc, ok := marked(sample)
	if ok && enc != nil {
		t.enc = enc
		return t, nil
	}
	if ok {
		t.skip = 3
	} else if t.enc = unmarked(sample); t.enc != nil {
		t.guessed = true
		return t, nil
	}
	valid, shift, err := t.scan()
	switch {
	case err != nil:
		return nil, err
	case ok:
		t.invalid = !valid
	case !valid:
		t.enc, t.guessed = guess(sample, size > sampleSize), true
	case shift:
		t.enc = japanese.ISO2022JP
	}
	return t, nil
}

// NewHTML is [NewText] for a web page, by the rules of [DecodeHTML].
func NewHTML(r io.ReaderAt, size int64) (*Text, error) {
	t, err := NewText(r, size)
	if err != nil || t.enc == nil {
		return t, err
	}
	head := make([]byte, min(size, 1024))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	if _, ok := marked(head); ok {
		return t, nil
	}
	if enc := declaredIn(head); enc != nil {
		t.enc, t.guessed = enc, false
	}
	return t, nil
}

// scan reports whether the text is valid UTF-8, and whether it looks like ISO-2022-JP.
func (t *Text) scan() (valid, shift bool, err error) {
	const keep = max(utf8.UTFMax, longestEscape) // bytes that may belong to the next chunk
	valid = true
	buf := make([]byte, keep+sampleSize/4)
	kept, checked := 0, 0 // bytes kept from the last chunk, and how many of them are valid
	for at := t.skip; at < t.size; {
		n, err := t.r.ReadAt(buf[kept:kept+int(min(t.size-at, int64(len(buf)-kept)))], at)
		if n == 0 {
			return false, false, errors.Join(io.ErrUnexpectedEOF, err)
		}
		at += int64(n)
		b := buf[:kept+n]
		shift = shift || shifts(b)
		end := len(b)
		if at < t.size {
			end -= unfinished(b)
		}
		if valid = valid && utf8.Valid(b[checked:end]); !valid {
			return false, shift, nil
		}
		kept = min(keep, len(b))
		checked = max(0, kept-(len(b)-end))
		copy(buf, b[len(b)-kept:])
	}
	return valid, shift, nil
}

// unfinished returns the length of an incomplete character at the end of b.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Reader returns a reader of the whole text in valid UTF-8, without a byte order
// mark. The result is the same as that of [Decode].
func (t *Text) Reader() io.Reader {
	r := io.Reader(io.NewSectionReader(t.r, t.skip, t.size-t.skip))
	switch {
	case t.enc != nil:
		return t.enc.NewDecoder().Reader(r)
	case t.invalid:
		return transform.NewReader(r, new(repair))
	}
	return r
}

// A repair replaces each run of invalid UTF-8 by U+FFFD.
type repair struct{ inside bool }

// Reset implements transform.Transformer.
func (p *repair) Reset() { p.inside = false }

// Transform implements transform.Transformer.
func (p *repair) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		c, n := utf8.DecodeRune(src[nSrc:])
		bad := c == utf8.RuneError && n == 1
		switch {
		case bad && !atEOF && !utf8.FullRune(src[nSrc:]):
			return nDst, nSrc, transform.ErrShortSrc
		case bad && p.inside:
			nSrc++
			continue
		case nDst+utf8.UTFMax > len(dst):
			return nDst, nSrc, transform.ErrShortDst
		case bad:
			nDst += copy(dst[nDst:], "\ufffd")
		default:
			nDst += copy(dst[nDst:], src[nSrc:nSrc+n])
		}
		p.inside = bad
		nSrc += n
	}
	return nDst, nSrc, nil
}
