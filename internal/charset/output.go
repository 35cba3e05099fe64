package charset

import (
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/filewright/filewright/fileops"
)

const (
	outputParam = "output_encoding"
	bomParam    = "bom"
)

// OutputParams returns the parameters for the encoding of a text that is written.
func OutputParams() fileops.Schema {
	return fileops.Schema{
		{
			Name: bomParam, Type: fileops.Boolean,
			Doc: "Whether the result starts with a byte order mark, which Excel needs to read UTF-8. By default only UTF-16 has one.",
		},
		{
			Name: outputParam, Min: 1, Max: 40, Pattern: `[A-Za-z0-9_:.-]+`,
			Doc: "Character encoding of the result, such as windows-1252, shift_jis or utf-16le; utf-8 by default.",
		},
	}
}

// An Output is the encoding of a text that is written.
type Output struct {
	enc  encoding.Encoding
	bom  bool
	lost int
}

// OutputOf returns the encoding that parameters choose.
func OutputOf(p fileops.Params) (*Output, error) {
	o := &Output{bom: p.Bool(bomParam)}
	label := p.Get(outputParam)
	if label == "" {
		return o, nil
	}
	enc, err := htmlindex.Get(label)
	if err != nil || enc == encoding.Replacement {
		return nil, &fileops.ParamError{Param: outputParam, Reason: "is not a known character encoding"}
	}
	name := Name(enc)
	if name != "utf-8" {
		o.enc = enc
	}
	if IsUTF16(enc) && !p.Has(bomParam) {
		o.bom = true
	}
	if o.bom && name != "utf-8" && !IsUTF16(enc) {
		return nil, &fileops.ParamError{Param: bomParam, Reason: "is only for utf-8 and utf-16"}
	}
	return o, nil
}

// Plain reports whether the text stays as it is: UTF-8 without a byte order mark.
func (o *Output) Plain() bool { return o.enc == nil && !o.bom }

// Warn warns about the characters that the encoding lacks. Call it after the text has
// been written.
func (o *Output) Warn(job *fileops.Job) {
	switch {
	case o.lost == 1:
		job.Warn(fileops.WarnContentDropped, "1 character became a question mark, because %s does not have it.", Name(o.enc))
	case o.lost > 1:
		job.Warn(fileops.WarnContentDropped, "%d characters became question marks, because %s does not have them.", o.lost, Name(o.enc))
	}
}

// Copy writes the UTF-8 text of write in the encoding to w.
func (o *Output) Copy(w io.Writer, write func(io.Writer) error) error {
	if o.Plain() {
		return write(w)
	}
	e := &encoder{o: o, w: w}
	if o.enc != nil {
		e.t = o.enc.NewEncoder().Transformer
	}
	if o.bom {
		if _, err := e.Write([]byte("\ufeff")); err != nil {
			return err
		}
	}
	if err := write(e); err != nil {
		return err
	}
	return e.close()
}

// An encoder encodes UTF-8 text.
type encoder struct {
	o       *Output
	w       io.Writer
	t       transform.Transformer // nil for UTF-8
	pending []byte                // an incomplete character
	buf     [4096]byte
}

func (e *encoder) Write(p []byte) (int, error) {
	if e.t == nil {
		return e.w.Write(p)
	}
	e.pending = append(e.pending, p...)
	rest, err := e.encode(e.pending, false)
	e.pending = append(e.pending[:0], rest...)
	return len(p), err
}

func (e *encoder) close() error {
	if e.t == nil {
		return nil
	}
	_, err := e.encode(e.pending, true)
	return err
}

// encode writes src and returns the rest, which is incomplete.
func (e *encoder) encode(src []byte, end bool) ([]byte, error) {
	for {
		d, s, err := e.t.Transform(e.buf[:], src, end)
		if _, werr := e.w.Write(e.buf[:d]); werr != nil {
			return nil, werr
		}
		src = src[s:]
		switch {
		case err == nil, errors.Is(err, transform.ErrShortSrc) && !end:
			return src, nil
		case errors.Is(err, transform.ErrShortDst):
		default: // the encoding lacks a character, or the text is not UTF-8
			if len(src) == 0 {
				return nil, err
			}
			_, n := utf8.DecodeRune(src)
			e.o.lost++
			if _, err := e.encode([]byte("?"), false); err != nil {
				return nil, err
			}
			src = src[n:]
		}
	}
}
