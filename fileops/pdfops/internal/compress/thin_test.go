package compress

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// profile returns an ICC profile with a table in each direction, of 33 points.
func profile() []byte {
	lut := func(in, out, grid int) []byte {
		b := make([]byte, 48)
		copy(b, "mft1")
		b[8], b[9], b[10] = byte(in), byte(out), byte(grid)
		for range in {
			for i := range 256 {
				b = append(b, byte(i))
			}
		}
		n := out
		for range in {
			n *= grid
		}
		for i := range n {
			b = append(b, byte(i*7))
		}
		return append(b, make([]byte, 256*out)...)
	}
	tables := map[string][]byte{"A2B0": lut(4, 3, 9), "B2A0": lut(3, 4, 33), "B2A1": lut(3, 4, 33)}
	head := make([]byte, 132)
	copy(head[36:], "acsp")
	binary.BigEndian.PutUint32(head[128:], 3)
	var body []byte
	for _, name := range []string{"A2B0", "B2A0", "B2A1"} {
		head = append(head, name...)
		head = binary.BigEndian.AppendUint32(head, uint32(132+36+len(body)))
		head = binary.BigEndian.AppendUint32(head, uint32(len(tables[name])))
		body = append(body, tables[name]...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
	}
	return append(head, body...)
}

func tagOf(b []byte, name string) []byte {
	for i := range int(binary.BigEndian.Uint32(b[128:])) {
		e := b[132+12*i:]
		if string(e[:4]) == name {
			off, n := binary.BigEndian.Uint32(e[4:]), binary.BigEndian.Uint32(e[8:])
			return b[off : off+n]
		}
	}
	return nil
}

func TestThinProfile(t *testing.T) {
	t.Parallel()
	b := profile()
	small := thinProfile(b)
	if len(small) == 0 || len(small) > len(b)/5 {
		t.Fatalf("%d bytes of %d", len(small), len(b))
	}
	if !bytes.Equal(tagOf(small, "A2B0"), tagOf(b, "A2B0")) {
		t.Error("what colours mean has changed")
	}
	table := tagOf(small, "B2A0")
	if table[10] != iccGrid || len(table) != 48+3*256+iccGrid*iccGrid*iccGrid*4+4*256 {
		t.Errorf("%d points, %d bytes", table[10], len(table))
	}
	// The corners of the grid are the same.
	first, last := 48+3*256, len(table)-4*256-4
	whole := tagOf(b, "B2A0")
	if !bytes.Equal(table[first:first+4], whole[first:first+4]) || !bytes.Equal(table[last:last+4], whole[len(whole)-4*256-4:len(whole)-4*256]) {
		t.Error("the corners of the table have moved")
	}
	if thinProfile(small) != nil {
		t.Error("there is something to gain again")
	}
}

func FuzzThinProfile(f *testing.F) {
	f.Add(profile())
	f.Fuzz(func(_ *testing.T, b []byte) { thinProfile(b) })
}

const packet = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Title &amp; more</rdf:li></rdf:Alt></dc:title>
<xmpMM:History><rdf:Seq><rdf:li>saved</rdf:li></rdf:Seq></xmpMM:History>
<pdfaid:part>2</pdfaid:part></rdf:Description></rdf:RDF></x:xmpmeta>` + "                                        " + `<?xpacket end="w"?>`

func TestThinXMP(t *testing.T) {
	t.Parallel()
	got := string(thinXMP([]byte(packet), true))
	for _, s := range []string{"Title &amp; more", "<pdfaid:part>2</pdfaid:part>", "<?xpacket end"} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is gone: %s", s, got)
		}
	}
	if strings.Contains(got, "History") || strings.Contains(got, "   ") {
		t.Errorf("it is still there: %s", got)
	}
	if got := string(thinXMP([]byte(packet), false)); !strings.Contains(got, "History") || strings.Contains(got, "   ") {
		t.Errorf("at the first level: %s", got)
	}
	if got := thinXMP([]byte("<a><b></a>"), true); string(got) != "<a><b></a>" {
		t.Errorf("what is no XMP becomes %s", got)
	}
}

func FuzzThinXMP(f *testing.F) {
	f.Add([]byte(packet))
	f.Fuzz(func(_ *testing.T, b []byte) { thinXMP(b, true) })
}
