package dataops

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/filewright/filewright/fileops"
)

// splitValues writes the members of a JSON array, or values that are no array, as JSON
// Lines.
func splitValues(src *source, w io.Writer) error {
	return eachValue(src, true, func(v []byte) error {
		_, err := w.Write(append(v, '\n'))
		return err
	})
}

// joinValues writes the values of JSON Lines as an array.
func joinValues(src *source, w io.Writer) error {
	sep, end := "[\n  ", "[]\n"
	err := eachValue(src, false, func(v []byte) error {
		_, err := w.Write(append([]byte(sep), v...))
		sep, end = ",\n  ", "\n]\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, end)
	return err
}

// eachValue calls f with each value of a file without white space outside of strings.
// With split, an array at the start counts as its members. A value may have maxRow bytes.
func eachValue(src *source, split bool, f func([]byte) error) error {
	in := &valueReader{r: src.text(), left: maxRow}
	d := json.NewDecoder(in)
	var value json.RawMessage
	var out bytes.Buffer
	next := func() error {
		in.left = maxRow
		if err := d.Decode(&value); err != nil {
			return err
		}
		out.Reset()
		if err := json.Compact(&out, value); err != nil {
			return err
		}
		return f(out.Bytes())
	}
	if split {
		if err := skipTo(in); err != nil {
			return invalid(err)
		}
		if in.ahead[0] == '[' {
			if _, err := d.Token(); err != nil {
				return invalid(err)
			}
			for d.More() {
				if err := next(); err != nil {
					return invalid(err)
				}
			}
			if _, err := d.Token(); err != nil {
				return invalid(err)
			}
		}
	}
	for {
		err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return invalid(err)
		}
	}
}

// skipTo reads white space up to the first other character, which stays ahead.
func skipTo(in *valueReader) error {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(in.r, b); err != nil {
			return err
		}
		if !bytes.ContainsAny(b, " \t\r\n") {
			in.ahead = b
			return nil
		}
	}
}

// invalid returns the error for a file that is not JSON.
func invalid(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is not valid JSON: %s after %d bytes", syntax.Error(), syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is not valid JSON: it ends too early")
	}
	return err
}

// A valueReader fails if a single value takes too many bytes, because the decoder holds it
// in memory.
type valueReader struct {
	r     io.Reader
	ahead []byte // was read already
	left  int
}

// Read implements io.Reader.
func (v *valueReader) Read(p []byte) (int, error) {
	if v.left <= 0 {
		return 0, fileops.Fail(fileops.ErrLimit, nil, "a value in the file has more than %d MiB", maxRow>>20)
	}
	if len(v.ahead) > 0 {
		n := copy(p, v.ahead)
		v.ahead = v.ahead[n:]
		return n, nil
	}
	n, err := v.r.Read(p[:min(len(p), chunk)])
	v.left -= n
	return n, err
}
