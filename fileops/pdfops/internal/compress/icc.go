package compress

import (
	"encoding/binary"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// iccGrid is how many points of a table that turns connection colours into those
// of a device are left in each direction.
const iccGrid = 9

// thinProfile makes an ICC profile smaller (ICC.1:2010). What it says of the
// colours of its device stays bit by bit: PDF uses nothing else (ISO 32000-2,
// 8.6.5.5). The tables for the other direction (B2A and gamut, two thirds or
// more of the profile of a press) get coarser, and remain for programs that want
// a profile to be complete. It returns nil if there is nothing to gain.
func thinProfile(b []byte) []byte {
	if len(b) < 132 || string(b[36:40]) != "acsp" {
		return nil
	}
	n := int(binary.BigEndian.Uint32(b[128:]))
	if n < 1 || n > 100 || 132+12*n > len(b) {
		return nil
	}
	head := slices.Clone(b[:132+12*n])
	var body []byte
	placed := make(map[string]int) // equal data are stored once
	gained := false
	for i := range n {
		e := head[132+12*i:][:12]
		off, size := int(binary.BigEndian.Uint32(e[4:])), int(binary.BigEndian.Uint32(e[8:]))
		if off > len(b) || size > len(b)-off {
			return nil
		}
		data := b[off : off+size]
		switch string(e[:4]) {
		case "B2A0", "B2A1", "B2A2", "gamt":
			if small := thinTable(data); small != nil {
				data, gained = small, true
			}
		}
		at, ok := placed[string(data)]
		if !ok {
			at = len(head) + len(body)
			placed[string(data)] = at
			body = append(body, data...)
			for len(body)%4 != 0 {
				body = append(body, 0)
			}
		}
		binary.BigEndian.PutUint32(e[4:], uint32(at))
		binary.BigEndian.PutUint32(e[8:], uint32(len(data)))
	}
	if !gained {
		return nil
	}
	out := append(head, body...)
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	clear(out[84:100]) // the profile ID is a checksum; zero means none
	return out
}

// thinTable returns a lut8Type or lut16Type (ICC.1:2010, 10.8 and 10.9) with
// every k-th point of its grid, or nil.
func thinTable(b []byte) []byte {
	if len(b) < 48 {
		return nil
	}
	in, out, grid := int(b[8]), int(b[9]), int(b[10])
	start, width, tail := 48+256*in, 1, 256*out
	switch string(b[:4]) {
	case "mft1":
	case "mft2":
		if len(b) < 52 {
			return nil
		}
		width = 2
		start = 52 + 2*in*int(binary.BigEndian.Uint16(b[48:]))
		tail = 2 * out * int(binary.BigEndian.Uint16(b[50:]))
	default:
		return nil
	}
	if in != 3 || out < 1 || out > 4 || grid <= iccGrid || (grid-1)%(iccGrid-1) != 0 {
		return nil
	}
	step := (grid - 1) / (iccGrid - 1)
	cell := out * width
	if len(b) < start+grid*grid*grid*cell+tail {
		return nil
	}
	small := slices.Clone(b[:start])
	small[10] = iccGrid
	for x := 0; x < grid; x += step {
		for y := 0; y < grid; y += step {
			for z := 0; z < grid; z += step {
				at := start + ((x*grid+y)*grid+z)*cell
				small = append(small, b[at:at+cell]...)
			}
		}
	}
	at := start + grid*grid*grid*cell
	return append(small, b[at:at+tail]...)
}

// thinProfiles makes the profiles of colour spaces and output intents smaller.
func thinProfiles(d *pdf.Document) {
	done := make(map[int]bool)
	thin := func(o types.Object) {
		ref, ok := o.(types.IndirectRef)
		s := d.Stream(o)
		if !ok || s == nil || done[ref.ObjectNumber.Value()] {
			return
		}
		done[ref.ObjectNumber.Value()] = true
		b, err := pdf.Decode(s)
		if err != nil {
			return
		}
		if small := thinProfile(b); small != nil {
			pdf.SetContent(s, pdf.Deflate(small), types.PDFFilter{Name: "FlateDecode"})
		}
	}
	var walk func(o types.Object)
	walk = func(o types.Object) {
		switch v := o.(type) {
		case types.Dict:
			if p, ok := v["DestOutputProfile"]; ok {
				thin(p)
			}
			for _, e := range v {
				walk(e)
			}
		case types.Array:
			if len(v) == 2 && d.Name(v[0]) == "ICCBased" {
				thin(v[1])
			}
			for _, e := range v {
				walk(e)
			}
		case *types.StreamDict:
			walk(v.Dict)
		}
	}
	for _, nr := range d.Reachable() {
		walk(d.Objects[nr])
	}
}
