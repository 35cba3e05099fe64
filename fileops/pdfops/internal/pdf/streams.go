package pdf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zlib"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Decode returns the decoded content of a stream without changing the stream. It
// fails with errors.ErrUnsupported for image formats.
func Decode(s *types.StreamDict) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("pdfcpu: panic: %v", p)
		}
	}()
	for _, f := range s.FilterPipeline {
		switch f.Name {
		case "FlateDecode", "LZWDecode", "ASCII85Decode", "ASCIIHexDecode", "RunLengthDecode":
		default:
			return nil, fmt.Errorf("filter %s: %w", f.Name, errors.ErrUnsupported)
		}
	}
	if s.Dict["F"] != nil { // external file
		return nil, errors.ErrUnsupported
	}
	if len(s.FilterPipeline) == 0 {
		return s.Raw, nil
	}
	copied := *s
	copied.Content = nil
	if err := copied.DecodeWithLimit(MaxDecoded); err != nil {
		return nil, err
	}
	return copied.Content, nil
}

// SetContent replaces the encoded content of a stream and its filters.
func SetContent(s *types.StreamDict, raw []byte, filters ...types.PDFFilter) {
	s.Raw, s.Content = raw, nil
	n := int64(len(raw))
	s.StreamLength, s.StreamLengthObjNr = &n, nil
	s.FilterPipeline = filters
	delete(s.Dict, "Filter")
	delete(s.Dict, "DecodeParms")
	var names, parms types.Array
	given := false
	for _, f := range filters {
		names = append(names, types.Name(f.Name))
		if f.DecodeParms == nil {
			parms = append(parms, nil)
		} else {
			parms = append(parms, f.DecodeParms)
			given = true
		}
	}
	switch len(names) {
	case 0:
		return
	case 1:
		s.Dict["Filter"] = names[0]
		if given {
			s.Dict["DecodeParms"] = parms[0]
		}
	default:
		s.Dict["Filter"] = names
		if given {
			s.Dict["DecodeParms"] = parms
		}
	}
}

// Repack recompresses a stream if that makes it smaller. Its content stays the
// same.
func Repack(s *types.StreamDict) {
	if s.Dict["F"] != nil || identity(s) || len(s.Raw) < 64 {
		return
	}
	filters := s.FilterPipeline
	if len(filters) == 0 {
		// Metadata stays uncompressed, for programs that search for it without knowing
		// PDF. PDF/A-1 requires that.
		if t, _ := s.Dict["Type"].(types.Name); t == "Metadata" {
			return
		}
	}
	switch {
	case len(filters) == 1 && filters[0].Name == "FlateDecode":
		// Keep the predictor: redo only the compression.
		b, err := Inflate(s.Raw)
		if err != nil {
			return
		}
		shrink(s, b, filters[0])
	case len(filters) > 1 && pictureFilter(filters[len(filters)-1].Name):
		// A JPEG file within another filter gains little from that filter, and every
		// viewer has to decode it.
		last := filters[len(filters)-1]
		outer := *s
		outer.FilterPipeline = filters[:len(filters)-1]
		b, err := Decode(&outer)
		if err == nil && len(b) <= len(s.Raw)*102/100 {
			SetContent(s, b, last)
		}
	default:
		b, err := Decode(s)
		if err != nil {
			return
		}
		shrink(s, b, types.PDFFilter{Name: "FlateDecode"})
	}
}

func shrink(s *types.StreamDict, b []byte, f types.PDFFilter) {
	if z := Deflate(b); len(z) < len(s.Raw) {
		SetContent(s, z, f)
	}
}

func pictureFilter(name string) bool {
	switch name {
	case "DCTDecode", "JPXDecode", "CCITTFaxDecode", "JBIG2Decode":
		return true
	}
	return false
}

// Inflate decompresses a zlib stream.
func Inflate(b []byte) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, MaxDecoded+1))
	if err == nil && len(out) > MaxDecoded {
		err = errors.New("the content is too large")
	}
	return out, err
}

// MergeEqual merges equal objects into one, repeatedly, because each merge can
// make others equal. It merges only streams and plain values: pages, annotations
// and form fields have an identity.
func (d *Document) MergeEqual(ctx context.Context) {
	order := d.Reachable()
	var values []int
	for _, nr := range order {
		if d.isValue(d.Objects[nr]) {
			values = append(values, nr)
		}
	}
	// The content of each stream is hashed once.
	sums := make(map[int][32]byte)
	for _, nr := range values {
		if s, ok := d.Objects[nr].(*types.StreamDict); ok {
			if ctx.Err() != nil {
				return
			}
			sums[nr] = sha256.Sum256(s.Raw)
		}
	}
	for range 8 {
		first := make(map[[32]byte]int)
		to := make(map[int]int)
		for _, nr := range values {
			o := d.Objects[nr]
			var text []byte
			if s, ok := o.(*types.StreamDict); ok {
				dict := maps.Clone(s.Dict)
				delete(dict, "Length")
				sum := sums[nr]
				text = append(AppendObject(nil, dict), sum[:]...)
			} else {
				text = AppendObject(nil, o)
			}
			key := sha256.Sum256(text)
			if keep, ok := first[key]; ok {
				to[nr] = keep
			} else {
				first[key] = nr
			}
		}
		if len(to) == 0 || ctx.Err() != nil {
			return
		}
		for _, nr := range order {
			if _, gone := to[nr]; !gone {
				Replace(d.Objects[nr], func(nr int) int {
					if keep, ok := to[nr]; ok {
						return keep
					}
					return nr
				})
			}
		}
		values = slices.DeleteFunc(values, func(nr int) bool { _, gone := to[nr]; return gone })
		order = slices.DeleteFunc(order, func(nr int) bool { _, gone := to[nr]; return gone })
	}
}

// isValue reports whether an object has no identity.
func (d *Document) isValue(o types.Object) bool {
	switch v := o.(type) {
	case *types.StreamDict:
		switch d.Name(v.Dict["Type"]) {
		case "Metadata", "EmbeddedFile":
			return false
		}
		// The structure tree refers to the content of a form by its stream.
		_, tagged := v.Dict["StructParents"]
		_, tagged2 := v.Dict["StructParent"]
		return !tagged && !tagged2
	case types.Dict:
		switch d.Name(v["Type"]) {
		case "Font", "FontDescriptor", "ExtGState", "Encoding":
			return true
		}
	case types.Array:
		// A colour space or glyph widths.
		if len(v) == 0 {
			return false
		}
		if _, ok := v[0].(types.Name); ok {
			switch v[0].(types.Name) {
			case "ICCBased", "Indexed", "Separation", "DeviceN", "CalRGB", "CalGray", "Lab":
				return true
			}
			return false
		}
		for _, e := range v {
			switch e.(type) {
			case types.Integer, types.Float:
			default:
				return false
			}
		}
		return true
	}
	return false
}

// PredictorParms returns the parameters of a filter for rows that start with the
// type of their PNG predictor.
func PredictorParms(columns, colors, bits int) types.Dict {
	return types.Dict{
		"Predictor": types.Integer(15), "Columns": types.Integer(columns),
		"Colors": types.Integer(colors), "BitsPerComponent": types.Integer(bits),
	}
}

// Content joins the streams of /Contents of a page. No token spans two of them
// (ISO 32000-2, 7.8.2). complete is false if one could not be decoded, or if the
// content is too large.
func (d *Document) Content(contents types.Object) (b []byte, complete bool) {
	parts := d.Array(contents)
	if parts == nil {
		parts = types.Array{contents}
	}
	complete = true
	for _, part := range parts {
		s := d.Stream(part)
		if s == nil {
			continue
		}
		decoded, err := Decode(s)
		if err != nil || len(b)+len(decoded) > MaxDecoded {
			complete = false
			continue
		}
		b = append(append(b, decoded...), '\n')
	}
	return b, complete
}
