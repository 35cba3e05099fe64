package pdfa

import (
	"encoding/binary"
	"math"
)

// sRGB returns an ICC profile of version 2 for sRGB (ICC.1:2001-04): the primaries of IEC 61966-2-1,
// adapted to the white point D50, and its transfer function as a table.
func sRGB() []byte {
	type tag struct {
		name string
		data []byte
	}
	fixed := func(v float64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(math.Round(v*65536)))) }
	xyz := func(x, y, z float64) []byte {
		b := append([]byte("XYZ \x00\x00\x00\x00"), fixed(x)...)
		return append(append(b, fixed(y)...), fixed(z)...)
	}
	const entries = 1024
	curve := binary.BigEndian.AppendUint32([]byte("curv\x00\x00\x00\x00"), entries)
	for i := range entries {
		v := float64(i) / (entries - 1)
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		curve = binary.BigEndian.AppendUint16(curve, uint16(math.Round(v*65535)))
	}
	const name = "sRGB IEC61966-2.1"
	desc := binary.BigEndian.AppendUint32([]byte("desc\x00\x00\x00\x00"), uint32(len(name)+1))
	desc = append(append(desc, name...), 0)
	desc = append(desc, make([]byte, 4+4+2+1+67)...) // no text in Unicode and none for Macintosh
	tags := []tag{
		{"desc", desc},
		{"cprt", []byte("text\x00\x00\x00\x00No copyright, use freely\x00")},
		{"wtpt", xyz(0.9642, 1, 0.8249)},
		{"rXYZ", xyz(0.43607, 0.22249, 0.01392)},
		{"gXYZ", xyz(0.38515, 0.71687, 0.09708)},
		{"bXYZ", xyz(0.14307, 0.06061, 0.71410)},
		{"rTRC", curve}, {"gTRC", curve}, {"bTRC", curve},
	}
	header := make([]byte, 128)
	copy(header[8:], "\x02\x10\x00\x00mntrRGB XYZ ")
	for i, v := range []uint16{2000, 1, 1, 0, 0, 0} { // its date is constant, so that equal documents are equal
		binary.BigEndian.PutUint16(header[24+2*i:], v)
	}
	copy(header[36:], "acsp")
	copy(header[68:], xyz(0.9642, 1, 0.8249)[8:])
	table := binary.BigEndian.AppendUint32(nil, uint32(len(tags)))
	at := len(header) + 4 + 12*len(tags)
	var body []byte
	places := make(map[string]int) // equal data is stored once
	for _, t := range tags {
		place, ok := places[string(t.data)]
		if !ok {
			place = at + len(body)
			places[string(t.data)] = place
			body = append(body, t.data...)
			for len(body)%4 != 0 {
				body = append(body, 0)
			}
		}
		table = append(table, t.name...)
		table = binary.BigEndian.AppendUint32(table, uint32(place))
		table = binary.BigEndian.AppendUint32(table, uint32(len(t.data)))
	}
	out := append(append(header, table...), body...)
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}
