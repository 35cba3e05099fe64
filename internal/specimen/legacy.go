package specimen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
)

// writeLegacy writes a drawing or document in a format that no free program writes.
func writeLegacy(b *bytes.Buffer, f format.Format) error {
	switch f {
	case format.VSD:
		return writeCompound(b, "VisioDocument", visioStream())
	case format.PUB:
		return writeCompound(b, "Contents", publisherStream())
	case format.EMF:
		b.Write(enhancedMetafile())
	case format.WMF:
		b.Write(metafile())
	case format.Pages:
		return writeZIP(b, "index.xml", pagesDocument())
	case format.Numbers:
		return writeZIP(b, "index.xml", numbersDocument())
	case format.Key:
		return writeZIP(b, "index.apxl", keynoteDocument())
	}
	return nil
}

// writeCompound writes a compound file with one stream.
func writeCompound(b *bytes.Buffer, name string, data []byte) error {
	return compound.Write(b, []*compound.Node{{Name: name, Size: int64(len(data)), Content: func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}}})
}

// utf16Text returns s in UTF-16, little-endian.
func utf16Text(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// visioStream returns a drawing of Visio 2003 with a page of text boxes. The stream is a tree:
// pointers refer to streams of pointers, and at last to streams of chunks.
func visioStream() []byte {
	le := binary.LittleEndian
	const pointers, chunks = 0x50, 0xd0 // kinds of streams
	doc := make([]byte, 0x24+18)
	copy(doc, "Visio (TM) Drawing\r\n\x00")
	doc[0x1a] = 11
	pointer := func(b []byte, kind uint32, at, size int, form uint16) []byte {
		b = le.AppendUint32(le.AppendUint32(b, kind), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(at)), uint32(size))
		return le.AppendUint16(b, form)
	}
	add := func(b []byte) (at, size int) {
		at = len(doc)
		doc = append(doc, b...)
		return at, len(b)
	}
	list := func(count int, all []byte) []byte { // the fields up to offset 16 belong to pages
		b := le.AppendUint32(nil, 20)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint32(b, math.MaxUint32) // no background
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(b, uint32(count))
		return append(append(b, 0, 0, 0, 0), all...)
	}
	chunk := func(b []byte, kind, id uint32, level uint16, data []byte) []byte {
		b = le.AppendUint32(le.AppendUint32(b, kind), id)
		b = le.AppendUint32(le.AppendUint32(b, 0), uint32(len(data)))
		return append(append(le.AppendUint16(b, level), 0x50), data...)
	}
	numbers := func(all ...float64) (b []byte) { // each after its unit
		for _, n := range all {
			b = le.AppendUint64(append(b, 0x41), math.Float64bits(n))
		}
		return b
	}
	sheet := append(chunk(nil, 0x92, 0, 1, numbers(8.27, 11.69, 0, 0, 1, 1)), 0, 0, 0, 0)
	at, size := add(sheet)
	page := pointer(nil, 0x46, at, size, chunks)
	lines := drawingLines()
	var order []byte
	for i, line := range lines {
		order = chunk(order, 0x83, uint32(i+1), 1, le.AppendUint32(nil, uint32(i+1)))
		var owner []byte
		owner = append(owner, make([]byte, 10+4)...)
		for range 5 { // master page and shape, styles
			owner = le.AppendUint32(le.AppendUint32(owner, 0), math.MaxUint32)
		}
		shape := chunk(nil, 0x48, uint32(i+1), 1, owner)
		shape = chunk(shape, 0x9b, 0, 2, append(numbers(4, float64(10-i), 7, 0.8, 3.5, 0.4, 0), 0, 0))
		shape = chunk(shape, 0x0e, 0, 2, append(make([]byte, 8), utf16Text(line+"\x00")...))
		at, size := add(shape)
		page = pointer(page, 0x48, at, size, chunks)
	}
	at, size = add(order)
	page = pointer(page, 0x46, at, size, chunks)
	at, size = add(list(len(lines)+2, page))
	at, size = add(list(1, pointer(nil, 0x15, at, size, pointers|1)))
	at, size = add(list(1, pointer(nil, 0x27, at, size, pointers)))
	copy(doc[0x24:], pointer(nil, 0x14, at, size, pointers))
	return doc
}

// publisherStream returns a publication of Publisher 97, which has its text in the main
// stream: a page with one text box. The text has one byte for each character.
func publisherStream() []byte {
	le := binary.LittleEndian
	const inch, origin = 914400, 25 // EMU; the middle of the page in inches
	doc := make([]byte, 0x200)
	copy(doc, "\xe8\xac\x22\x00")
	text := Heading + "\r\n" + Text + "\r\n\xc4pfel\r\nFruit Count\r\nApple 3\r\nPear 4\r\n\x0c"
	at := uint32(len(doc))
	doc = append(doc, text...)
	head := uint32(len(doc))
	le.PutUint32(doc[0x12:], head)
	doc = append(doc, make([]byte, 14)...)
	doc = le.AppendUint32(le.AppendUint32(doc, at), at+uint32(len(text)))
	doc = append(doc, make([]byte, 8)...) // no formats
	add := func(b []byte) (at uint32) {
		at = uint32(len(doc))
		doc = append(doc, b...)
		return at
	}
	paper := le.AppendUint32(le.AppendUint32(append([]byte{0x15, 0}, make([]byte, 0x12)...), 8.27*inch), 11.69*inch)
	box := make([]byte, 0x80) // marker 0: a box of text
	for i, edge := range []int{-3, -5, 3, 0} {
		le.PutUint32(box[6+4*i:], uint32((origin+edge)*inch))
	}
	const page = 0x200
	blocks := []struct {
		id, parent uint16
		at         uint32
	}{
		{1, 0, add(paper)},
		{page, 1, add(append([]byte{0x14, 0}, make([]byte, 30)...))},
		{page + 1, page, add(box)},
	}
	le.PutUint32(doc[0x16:], uint32(len(doc)))
	doc = le.AppendUint16(doc, uint16(len(blocks)))
	for _, c := range blocks {
		doc = le.AppendUint16(append(doc, 0, 0), c.id)
		doc = le.AppendUint32(le.AppendUint16(doc, c.parent), c.at)
	}
	return append(doc, make([]byte, 64)...)
}

// enhancedMetafile returns a picture with lines of text and [PatchColors] ([MS-EMF] 2.3).
// A unit is a hundredth of a millimetre.
func enhancedMetafile() []byte {
	le := binary.LittleEndian
	const width, height = 18000, 14000
	var records []byte
	count := uint32(1)
	add := func(kind uint32, data ...any) {
		var b []byte
		for _, d := range data {
			switch d := d.(type) {
			case int:
				b = le.AppendUint32(b, uint32(int32(d)))
			case []byte:
				b = append(b, d...)
			}
		}
		for len(b)%4 > 0 {
			b = append(b, 0)
		}
		records = append(le.AppendUint32(le.AppendUint32(records, kind), uint32(8+len(b))), b...)
		count++
	}
	add(17, 8)            // EMR_SETMAPMODE: anisotropic
	add(9, width, height) // EMR_SETWINDOWEXTEX
	add(11, width/10, height/10)
	face := make([]byte, 64)
	copy(face, utf16Text("Liberation Sans"))
	font := append(append(le.AppendUint32(nil, 0xfffffd00), make([]byte, 24)...), face...) // height -768
	add(82, 1, font, make([]byte, 320-len(font)))                                          // EMR_EXTCREATEFONTINDIRECTW
	add(37, 1)                                                                             // EMR_SELECTOBJECT
	add(18, 1)                                                                             // EMR_SETBKMODE: transparent
	for i, line := range drawingLines() {
		text := utf16Text(line)
		n := len(text) / 2
		for len(text)%4 > 0 {
			text = append(text, 0)
		}
		const at = 76
		add(84, 0, 0, width, height, 1, 0, 0, // EMR_EXTTEXTOUTW: bounds, mode, scales
			500, 400+1000*i, n, at, 0, 0, 0, -1, -1, 0, text)
	}
	for i, c := range PatchColors() {
		colour := int(c.R) | int(c.G)<<8 | int(c.B)<<16
		add(39, 2, 0, colour, 0) // EMR_CREATEBRUSHINDIRECT
		add(37, 2)
		x, y := 500+i%2*4000, 7000+i/2*3000
		add(43, x, y, x+4000, y+3000) // EMR_RECTANGLE
		add(37, 0x80000000)           // EMR_SELECTOBJECT: the white brush
		add(40, 2)                    // EMR_DELETEOBJECT
	}
	add(14, 0, 0, 20) // EMR_EOF
	var b []byte
	for _, n := range []int{1, 88, 0, 0, width, height, 0, 0, width, height} {
		b = le.AppendUint32(b, uint32(n))
	}
	b = append(b, " EMF"...)
	b = le.AppendUint32(b, 0x10000)
	b = le.AppendUint32(le.AppendUint32(b, uint32(88+len(records))), count)
	b = le.AppendUint16(le.AppendUint16(b, 3), 0)
	for _, n := range []int{0, 0, 0, 1800, 1400, 180, 140} { // description, palette, device
		b = le.AppendUint32(b, uint32(n))
	}
	return append(b, records...)
}

// metafile returns a placeable metafile of Windows with the content of [enhancedMetafile],
// but only the text that one byte for each character can hold ([MS-WMF] 2.3).
func metafile() []byte {
	le := binary.LittleEndian
	const width, height, perInch = 1800, 1400, 254
	var records []byte
	longest := 0
	add := func(kind uint16, words ...int) {
		longest = max(longest, 3+len(words))
		records = le.AppendUint16(le.AppendUint32(records, uint32(3+len(words))), kind)
		for _, w := range words {
			records = le.AppendUint16(records, uint16(w))
		}
	}
	packed := func(s string) (words []int) {
		for len(s)%2 > 0 {
			s += "\x00"
		}
		for i := 0; i < len(s); i += 2 {
			words = append(words, int(s[i])|int(s[i+1])<<8)
		}
		return words
	}
	add(0x0103, 8)             // META_SETMAPMODE: anisotropic
	add(0x020b, 0, 0)          // META_SETWINDOWORG
	add(0x020c, height, width) // META_SETWINDOWEXT
	add(0x0102, 1)             // META_SETBKMODE: transparent
	add(0x02fb, append([]int{-77, 0, 0, 0, 400, 0, 0, 0, 0}, packed("Liberation Sans\x00")...)...)
	add(0x012d, 0) // META_SELECTOBJECT
	for i, line := range []string{Heading, Text, "\xc4pfel", "Fruit Count", "Apple 3", "Pear 4"} {
		add(0x0521, append(append([]int{len(line)}, packed(line)...), 40+100*i, 50)...) // META_TEXTOUT
	}
	for i, c := range PatchColors() {
		add(0x02fc, 0, int(c.R)|int(c.G)<<8, int(c.B), 0) // META_CREATEBRUSHINDIRECT
		add(0x012d, 1)
		x, y := 50+i%2*400, 700+i/2*300
		add(0x041b, y+300, x+400, y, x) // META_RECTANGLE
		add(0x02fc, 1, 0, 0, 0)         // an empty brush, in the next free place
		add(0x012d, 2)
		add(0x01f0, 1) // META_DELETEOBJECT
		add(0x01f0, 2)
	}
	add(0)
	b := le.AppendUint32(nil, 0x9ac6cdd7)
	for _, w := range []int{0, 0, 0, width, height, perInch, 0, 0} {
		b = le.AppendUint16(b, uint16(w))
	}
	sum := uint16(0)
	for i := 0; i < len(b); i += 2 {
		sum ^= le.Uint16(b[i:])
	}
	b = le.AppendUint16(b, sum)
	for _, w := range []int{1, 9, 0x300} {
		b = le.AppendUint16(b, uint16(w))
	}
	b = le.AppendUint32(b, uint32(9+len(records)/2))
	b = le.AppendUint16(b, 3)
	b = le.AppendUint16(le.AppendUint32(b, uint32(longest)), 0)
	return append(b, records...)
}

// The XML of Apple's programs of 2009.
const appleNames = ` xmlns:sfa="http://developer.apple.com/namespaces/sfa" xmlns:sf="http://developer.apple.com/namespaces/sf" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

func pagesDocument() string {
	var body strings.Builder
	for _, line := range drawingLines() {
		fmt.Fprintf(&body, `<sf:p>%s</sf:p>`, line)
	}
	return `<?xml version="1.0"?>` + "\n" + `<sl:document` + appleNames + ` xmlns:sl="http://developer.apple.com/namespaces/sl" sl:version="92008102400" sl:generator="slingshot">` +
		`<sf:text-storage sf:kind="body"><sf:text-body><sf:section sf:name="Chapter 1"><sf:layout>` + body.String() + `</sf:layout></sf:section></sf:text-body></sf:text-storage></sl:document>`
}

func numbersDocument() string {
	rows := tableRows()
	var columns, lines, cells strings.Builder
	for range rows[0] {
		columns.WriteString(`<sf:grid-column sf:width="120"/>`)
	}
	for y, row := range rows {
		lines.WriteString(`<sf:grid-row sf:height="20"/>`)
		for x, c := range row {
			var n float64
			if _, err := fmt.Sscanf(c, "%g", &n); err == nil && y > 0 {
				fmt.Fprintf(&cells, `<sf:n sf:v="%s"/>`, c)
			} else {
				first := ""
				if y == 0 && x == 0 {
					first = ` sf:ct="0" sf:s="large"` // without ct the cell follows another one
				}
				fmt.Fprintf(&cells, `<sf:t%s><sf:ct sfa:s="%s"/></sf:t>`, first, c)
			}
		}
	}
	return fmt.Sprintf(`<?xml version="1.0"?>`+"\n"+`<ls:document`+appleNames+` xmlns:ls="http://developer.apple.com/namespaces/ls" ls:version="92008102400"><ls:stylesheet><sf:styles><sf:cell-style sfa:ID="large" sf:ident="large"><sf:property-map><sf:SFTCellStylePropertyParagraphStyle><sf:paragraphstyle sfa:ID="p" sf:ident="p"><sf:property-map><sf:fontSize><sf:number sfa:number="30" sfa:type="f"/></sf:fontSize><sf:bold><sf:number sfa:number="1" sfa:type="i"/></sf:bold></sf:property-map></sf:paragraphstyle></sf:SFTCellStylePropertyParagraphStyle></sf:property-map></sf:cell-style></sf:styles></ls:stylesheet><ls:workspace-array><ls:workspace ls:workspace-name="Fruit"><ls:page-info><sf:layers><sf:layer><sf:type><sf:string sfa:string="LSWorkspaceForegroundLayer"/></sf:type><sf:drawables>`+
		`<sf:tabular-info><sf:geometry><sf:naturalSize sfa:w="480" sfa:h="60"/><sf:size sfa:w="480" sfa:h="60"/><sf:position sfa:x="0" sfa:y="0"/></sf:geometry>`+
		`<sf:tabular-model sfa:ID="SFTTableModel-0" sf:name="Table" sf:id="1" sf:num-header-rows="0" sf:num-footer-rows="0" sf:num-header-columns="0"><sf:grid sf:numcols="%d" sf:numrows="%d" sf:hiddennumcols="0" sf:hiddennumrows="0"><sf:columns sf:count="%[1]d">%[3]s</sf:columns><sf:rows sf:count="%[2]d">%[4]s</sf:rows><sf:datasource>%[5]s</sf:datasource></sf:grid></sf:tabular-model></sf:tabular-info>`+
		`</sf:drawables></sf:layer></sf:layers></ls:page-info></ls:workspace></ls:workspace-array></ls:document>`,
		len(rows[0]), len(rows), columns.String(), lines.String(), cells.String())
}

func keynoteDocument() string {
	lines := drawingLines()
	slides := ""
	for page, some := range [][]string{lines[:3], lines[3:]} {
		shapes := ""
		for i, line := range some {
			shapes += fmt.Sprintf(`<sf:shape sfa:ID="s%d-%d"><sf:geometry sfa:ID="g%[1]d-%d"><sf:naturalSize sfa:w="700" sfa:h="80"/><sf:size sfa:w="700" sfa:h="80"/><sf:position sfa:x="40" sfa:y="%[3]d"/></sf:geometry>`+
				`<sf:style/><sf:path xsi:type="bezier-path-type"><sf:bezier-path><sf:bezier sfa:ID="b%[1]d-%[2]d" sfa:path="M 0 0 L 700 0 L 700 80 L 0 80 Z"/></sf:bezier-path></sf:path>`+
				`<sf:text><sf:text-storage sfa:ID="t%[1]d-%[2]d" sf:kind="textbox"><sf:text-body><sf:layout><sf:p>%[4]s</sf:p></sf:layout></sf:text-body></sf:text-storage></sf:text></sf:shape>`, page, i, 60+100*i, line)
		}
		slides += fmt.Sprintf(`<key:slide sfa:ID="slide%d" key:depth="0"><key:page sfa:ID="page%[1]d"><sf:layers><sf:layer sfa:ID="layer%[1]d"><sf:type><sf:string sfa:string="BGSlideForegroundLayer"/></sf:type><sf:drawables>%s</sf:drawables></sf:layer></sf:layers></key:page></key:slide>`, page, shapes)
	}
	return `<?xml version="1.0"?>` + "\n" + `<key:presentation` + appleNames + ` xmlns:key="http://developer.apple.com/namespaces/keynote2" key:version="92008102400"><key:size sfa:w="800" sfa:h="600"/><key:slide-list>` + slides + `</key:slide-list></key:presentation>`
}
