package textlayer

import (
	"bytes"

	"github.com/filewright/filewright/internal/plainpdf"
)

// maxStack limits saved states and nested marked content.
const maxStack = 1000

// A drawing is the state while the content of a page, or of a form in it, is read.
type drawing struct {
	*reader
	fonts    plainpdf.Dict // of the resources, by name
	drawings plainpdf.Dict // XObjects of the resources, by name
	depth    int

	operands [][]byte // text of those before the operator
	font     *font
	saved    []*font

	marked   int // depth of marked content
	replaced int // depth from which ActualText replaces the text; 0 if it does not
}

// content reads the text of a content stream (ISO 32000-2, 9.4).
func (r *reader) content(b []byte, resources plainpdf.Dict, depth int) bool {
	if depth > maxDepth {
		return false
	}
	d := &drawing{reader: r, fonts: r.dict(resources.Get("Font")), drawings: r.dict(resources.Get("XObject")), depth: depth}
	s := plainpdf.Scanner{B: b}
	for {
		s.Space()
		if s.At == len(s.B) {
			return true
		}
		if c := s.B[s.At]; 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '\'' || c == '"' {
			if !d.do(string(s.Regular())) {
				return false
			}
			d.operands = d.operands[:0]
			continue
		}
		from := s.At
		if !value(&s) {
			return false
		}
		d.operands = append(d.operands, s.B[from:s.At])
	}
}

// value skips an operand. There are no references in content, so that a number is one token.
func value(s *plainpdf.Scanner) bool {
	if c := s.B[s.At]; '0' <= c && c <= '9' || c == '-' || c == '.' || c == '+' {
		s.Regular()
		return true
	}
	return s.Value()
}

// operand returns an operand, counted from the last one: 1 is the last.
func (d *drawing) operand(n int) []byte {
	if n > len(d.operands) {
		return nil
	}
	return d.operands[len(d.operands)-n]
}

// do executes an operator.
func (d *drawing) do(operator string) bool {
	switch operator {
	case "q":
		d.saved = append(d.saved, d.font)
		return len(d.saved) <= maxStack
	case "Q":
		if n := len(d.saved) - 1; n >= 0 {
			d.font, d.saved = d.saved[n], d.saved[:n]
		}
	case "Tf":
		if name := d.operand(2); len(name) > 1 && name[0] == '/' {
			d.font = d.reader.font(d.fonts, string(name[1:]))
		}
	case "Tj", "'", `"`:
		d.show(d.operand(1))
		d.pause()
	case "TJ":
		d.showAll(d.operand(1))
		d.pause()
	case "BMC":
		d.marked++
		return d.marked <= maxStack
	case "BDC":
		d.marked++
		d.replace(d.operand(1))
		return d.marked <= maxStack
	case "EMC":
		if d.replaced == d.marked {
			d.replaced = 0
		}
		d.marked = max(0, d.marked-1)
	case "Do":
		return d.form(d.operand(1))
	case "BI": // a picture whose bytes are in the content
		return false
	}
	return true
}

// pause ends a piece of text.
func (d *drawing) pause() {
	if d.replaced == 0 {
		d.text.WriteByte('\n')
	}
}

// show appends the text of a string object.
func (d *drawing) show(object []byte) {
	if d.font == nil || d.replaced > 0 {
		return
	}
	d.font.appendText(&d.text, decode(object))
}

// showAll appends the text of the strings of an array.
func (d *drawing) showAll(array []byte) {
	s := plainpdf.Scanner{B: array}
	s.Next("[")
	for {
		s.Space()
		from := s.At
		if s.At == len(s.B) || s.B[s.At] == ']' || !value(&s) {
			return
		}
		if c := s.B[from]; c == '<' || c == '(' {
			d.show(s.B[from:s.At])
		}
	}
}

// replace begins ActualText, if the properties of marked content have it.
func (d *drawing) replace(properties []byte) {
	s := plainpdf.Scanner{B: properties}
	p, ok := s.Dict()
	text := p.Get("ActualText")
	if !ok || text == nil || d.replaced > 0 {
		return
	}
	if b := decode(text); bytes.HasPrefix(b, []byte("\xfe\xff")) {
		d.text.WriteString(utf16Text(b[2:]))
		d.replaced = d.marked
	}
}

// form reads the text of an XObject, if it is a drawing with content of its own.
func (d *drawing) form(name []byte) bool {
	if len(name) < 2 || name[0] != '/' {
		return true
	}
	ref := d.drawings.Get(string(name[1:]))
	if string(d.dict(ref).Get("Subtype")) != "/Form" {
		return true // a picture
	}
	form, content, ok := d.stream(ref)
	return ok && d.content(content, d.dict(form.Get("Resources")), d.depth+1)
}

// decode returns the bytes of a string object (ISO 32000-2, 7.3.4).
func decode(object []byte) []byte {
	if len(object) < 2 {
		return nil
	}
	inner := object[1 : len(object)-1]
	if object[0] == '<' {
		return unhex(inner)
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	b := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c != '\\' || i+1 == len(inner) {
			b = append(b, c)
			continue
		}
		i++
		switch c = inner[i]; c {
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case '\n': // a continued line
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := byte(0)
			for k := 0; k < 3 && i < len(inner) && '0' <= inner[i] && inner[i] <= '7'; k++ {
				n = n<<3 | (inner[i] - '0')
				i++
			}
			i--
			b = append(b, n)
		default:
			b = append(b, c)
		}
	}
	return b
}
