package imagefile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/filewright/filewright/internal/xmp"
)

// An Edit is a change of the metadata of a picture. It never touches the pixels.
type Edit struct {
	// Set maps fields to their values: title, description, author, copyright, software
	// and keywords. A field without values is removed. Fields are written as XMP, and as
	// EXIF or as text of PNG where these have the field.
	Set map[string][]string

	EXIF, XMP, IPTC, Comments bool // remove all metadata of a kind
}

// A field is where a field of [Edit] is stored.
type field struct {
	space, local string // XMP property
	list         string // rdf:Alt, rdf:Seq, rdf:Bag, or "" for plain text
	tag          uint16 // EXIF, 0 for none
	keyword      string // PNG (PNG, third edition, 11.3.3.1), "" for none
}

// fields follow the XMP specification, part 1, 8.3 and 8.4, and Exif 2.32, 4.6.4.
var fields = map[string]field{
	"title":       {xmp.DublinCore, "title", "Alt", 0, "Title"},
	"description": {xmp.DublinCore, "description", "Alt", 0x10e, "Description"},
	"author":      {xmp.DublinCore, "creator", "Seq", 0x13b, "Author"},
	"copyright":   {xmp.DublinCore, "rights", "Alt", 0x8298, "Copyright"},
	"keywords":    {xmp.DublinCore, "subject", "Bag", 0, ""},
	"software":    {xmp.Basic, "CreatorTool", "", 0x131, "Software"},
}

// MetadataFields returns the fields that [Edit] can set, sorted.
func MetadataFields() []string {
	var names []string
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// ErrMetadata reports metadata that the format cannot hold, or that is damaged.
var ErrMetadata = errors.New("imagefile: metadata cannot be changed")

const (
	exifMark     = "Exif\x00\x00"
	xmpMark      = "http://ns.adobe.com/xap/1.0/\x00"
	extendedMark = "http://ns.adobe.com/xmp/extension/\x00"
	iptcMark     = "Photoshop 3.0\x00"
	xmpKeyword   = "XML:com.adobe.xmp"
	markerAPP13  = 0xed
	markerCOM    = 0xfe
)

// JPEG returns a JPEG file with changed metadata. If EXIF data with an orientation is
// removed, the orientation stays.
func (e Edit) JPEG(b []byte) ([]byte, error) {
	var exif, xmp []byte
	head, kept := slices.Clone(b[:min(2, len(b))]), []byte(nil)
	at, orientation, whole := 2, 0, false
	for s := range jpegSegments(b) {
		raw := b[at:s.end]
		at = s.end
		switch {
		case s.marker == markerSOS:
			at -= len(raw)
		case s.marker == markerAPP1 && bytes.HasPrefix(s.data, []byte(exifMark)):
			if exif == nil {
				exif = s.data[len(exifMark):]
				orientation, _ = readEXIF(exif)
			}
		case s.marker == markerAPP1 && bytes.HasPrefix(s.data, []byte(xmpMark)):
			if xmp == nil {
				xmp = s.data[len(xmpMark):]
			}
		case e.XMP && s.marker == markerAPP1 && bytes.HasPrefix(s.data, []byte(extendedMark)):
		case (e.IPTC || len(e.Set) > 0) && s.marker == markerAPP13 && bytes.HasPrefix(s.data, []byte(iptcMark)):
		case e.Comments && s.marker == markerCOM:
		case s.marker == markerAPP0 && len(kept) == 0:
			head = append(head, raw...)
		default:
			kept = append(kept, raw...)
		}
		if whole = s.marker == markerSOS; whole {
			break
		}
	}
	if !whole { // there may be more metadata behind the damage
		return nil, fmt.Errorf("%w: damaged segments", ErrMetadata)
	}
	exif, xmp, err := e.blocks(exif, xmp, orientation)
	if err != nil {
		return nil, err
	}
	for _, seg := range []struct {
		mark string
		data []byte
	}{{exifMark, exif}, {xmpMark, xmp}} {
		if seg.data == nil {
			continue
		}
		n := 2 + len(seg.mark) + len(seg.data)
		if n > 0xffff {
			return nil, fmt.Errorf("%w: more than 64 KiB", ErrMetadata)
		}
		head = append(head, 0xff, markerAPP1, byte(n>>8), byte(n))
		head = append(append(head, seg.mark...), seg.data...)
	}
	return slices.Concat(head, kept, b[min(at, len(b)):]), nil
}

// PNG returns a PNG file with changed metadata.
func (e Edit) PNG(b []byte) ([]byte, error) {
	var exif, xmp, kept, first []byte
	orientation := 0
	drop := make(map[string]bool)
	for name := range e.Set {
		if k := fields[name].keyword; k != "" {
			drop[k] = true
		}
	}
	for kind, chunk := range PNGChunks(b) {
		data := chunk[8 : len(chunk)-4]
		keyword, _, _ := bytes.Cut(data, []byte{0})
		switch {
		case kind == "IHDR":
			first = chunk
			continue
		case kind == "eXIf":
			exif = data
			orientation, _ = readEXIF(exif)
			continue
		case kind == "iTXt" && string(keyword) == xmpKeyword:
			// keyword, NUL, compressed, method, language, NUL, translated keyword, NUL
			if rest := data[len(keyword)+1:]; len(rest) >= 4 && rest[0] == 0 {
				if _, after, ok := bytes.Cut(rest[2:], []byte{0}); ok {
					if _, text, ok := bytes.Cut(after, []byte{0}); ok {
						xmp = text
					}
				}
			}
			continue
		case kind == "tEXt" || kind == "zTXt" || kind == "iTXt":
			if e.Comments || drop[string(keyword)] || e.EXIF && bytes.HasPrefix(keyword, []byte("Raw profile type")) {
				continue
			}
		case kind == "tIME" && e.Comments:
			continue
		}
		kept = append(kept, chunk...)
	}
	if first == nil {
		return nil, ErrMetadata
	}
	exif, xmp, err := e.blocks(exif, xmp, orientation)
	if err != nil {
		return nil, err
	}
	out := append([]byte(pngSignature), first...)
	if exif != nil {
		out = appendChunk(out, "eXIf", exif)
	}
	if xmp != nil {
		out = appendChunk(out, "iTXt", append([]byte(xmpKeyword+"\x00\x00\x00\x00\x00"), xmp...))
	}
	for _, name := range MetadataFields() {
		if k := fields[name].keyword; k != "" && len(e.Set[name]) > 0 {
			out = appendChunk(out, "iTXt", []byte(k+"\x00\x00\x00\x00\x00"+strings.Join(e.Set[name], ", ")))
		}
	}
	return append(out, kept...), nil
}

// WebP returns a WebP file of width × height pixels with changed metadata (WebP Container
// Specification).
func (e Edit) WebP(b []byte, width, height int) ([]byte, error) {
	le := binary.LittleEndian
	var exif, xmp, kept, header []byte
	orientation, alpha := 0, false
	for at := 12; at+8 <= len(b); {
		n := int64(le.Uint32(b[at+4:]))
		end := int64(at) + 8 + n
		if end > int64(len(b)) {
			return nil, ErrMetadata
		}
		data, next := b[at+8:end], min(int64(len(b)), end+n%2)
		switch kind := string(b[at : at+4]); {
		case kind == "VP8X" && len(data) >= 10:
			header = slices.Clone(data)
		case kind == "EXIF":
			exif = bytes.TrimPrefix(data, []byte(exifMark))
			orientation, _ = readEXIF(exif)
		case kind == "XMP ":
			xmp = data
		default:
			alpha = alpha || kind == "VP8L" && len(data) >= 5 && data[4]&0x10 != 0 || kind == "ALPH"
			kept = append(kept, b[at:next]...)
			if next-int64(at) == 8+n && n%2 == 1 {
				kept = append(kept, 0)
			}
		}
		at = int(next)
	}
	exif, xmp, err := e.blocks(exif, xmp, orientation)
	if err != nil {
		return nil, err
	}
	const flagEXIF, flagXMP, flagAlpha = 0x08, 0x04, 0x10
	if header == nil && (exif != nil || xmp != nil) {
		header = make([]byte, 10)
		if alpha {
			header[0] |= flagAlpha
		}
		put := func(at, v int) { header[at], header[at+1], header[at+2] = byte(v), byte(v>>8), byte(v>>16) }
		put(4, width-1)
		put(7, height-1)
	}
	out := []byte("RIFF\x00\x00\x00\x00WEBP")
	add := func(kind string, data []byte) {
		out = le.AppendUint32(append(out, kind...), uint32(len(data)))
		if out = append(out, data...); len(data)%2 == 1 {
			out = append(out, 0)
		}
	}
	if header != nil {
		if header[0] &^= flagEXIF | flagXMP; exif != nil {
			header[0] |= flagEXIF
		}
		if xmp != nil {
			header[0] |= flagXMP
		}
		add("VP8X", header)
	}
	out = append(out, kept...)
	if exif != nil {
		add("EXIF", exif)
	}
	if xmp != nil {
		add("XMP ", xmp)
	}
	le.PutUint32(out[4:], uint32(len(out)-8))
	return out, nil
}

// blocks returns the changed EXIF and XMP data, nil for none.
func (e Edit) blocks(exif, packet []byte, orientation int) (newEXIF, newXMP []byte, err error) {
	if e.EXIF {
		if exif = nil; orientation > 1 {
			exif = []byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
			exif[19] = byte(orientation)
		}
	}
	if e.XMP {
		packet = nil
	}
	if len(e.Set) == 0 {
		return exif, packet, nil
	}
	tags, some := make(map[uint16]string), false
	for name, values := range e.Set {
		if len(values) > 0 {
			some = true
		}
		if tag := fields[name].tag; tag != 0 {
			tags[tag] = strings.Join(values, "; ")
		}
	}
	if exif != nil || some {
		if exif, err = editEXIF(exif, tags); err != nil {
			return nil, nil, err
		}
	}
	if packet != nil || some {
		packet = xmp.Edit(packet, properties(e.Set))
	}
	return exif, packet, nil
}

// properties returns the XMP properties of fields.
func properties(set map[string][]string) (out []xmp.Property) {
	for _, name := range MetadataFields() {
		if values, ok := set[name]; ok {
			f := fields[name]
			out = append(out, xmp.Property{Space: f.space, Name: f.local, List: f.list, Values: values})
		}
	}
	return out
}

// editEXIF sets text tags of the first directory; "" removes a tag. The changed directory
// is appended, so that all other offsets stay valid. Replaced text is overwritten. nil
// stands for no EXIF data, and is returned if there is no tag.
func editEXIF(b []byte, tags map[uint16]string) ([]byte, error) {
	if len(b) == 0 {
		b = []byte("II*\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	}
	b = slices.Clone(b)
	var order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	} = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	if len(b) < 14 || string(b[:4]) != "II*\x00" && string(b[:4]) != "MM\x00*" {
		return nil, fmt.Errorf("%w: the EXIF data is damaged", ErrMetadata)
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return nil, fmt.Errorf("%w: the EXIF data is damaged", ErrMetadata)
	}
	n := int64(order.Uint16(b[at:]))
	end := at + 2 + 12*n
	if end+4 > int64(len(b)) {
		return nil, fmt.Errorf("%w: the EXIF data is damaged", ErrMetadata)
	}
	type entry struct {
		tag uint16
		raw []byte
	}
	var entries []entry
	for i := at + 2; i < end; i += 12 {
		tag := order.Uint16(b[i:])
		if _, replaced := tags[tag]; !replaced {
			entries = append(entries, entry{tag, slices.Clone(b[i : i+12])})
			continue
		}
		size, value := int64(order.Uint32(b[i+4:])), int64(order.Uint32(b[i+8:]))
		if order.Uint16(b[i+2:]) == 2 && size > 4 && value >= 8 && value+size <= int64(len(b)) && (value+size <= at || value >= end) {
			clear(b[value : value+size])
		}
	}
	next := slices.Clone(b[end : end+4])
	clear(b[at:end])
	const ascii = 2
	for tag, text := range tags {
		if text == "" {
			continue
		}
		value := append([]byte(text), 0)
		raw := order.AppendUint16(nil, tag)
		raw = order.AppendUint16(raw, ascii)
		raw = order.AppendUint32(raw, uint32(len(value)))
		if len(value) <= 4 {
			raw = append(raw, append(value, 0, 0, 0)[:4]...)
		} else {
			if len(b)%2 == 1 {
				b = append(b, 0)
			}
			raw = order.AppendUint32(raw, uint32(len(b)))
			b = append(b, value...)
		}
		entries = append(entries, entry{tag, raw})
	}
	if len(entries) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(entries, func(x, y entry) int { return cmp.Compare(x.tag, y.tag) })
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	order.PutUint32(b[4:], uint32(len(b)))
	b = order.AppendUint16(b, uint16(len(entries)))
	for _, en := range entries {
		b = append(b, en.raw...)
	}
	return append(b, next...), nil
}
