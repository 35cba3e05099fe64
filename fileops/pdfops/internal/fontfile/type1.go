package fontfile

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// A Type1 is a font program in the Type 1 format (Adobe Type 1 Font Format,
// version 1.1).
type Type1 struct {
	name     string
	matrix   []float64
	encoding map[byte]string
	subrs    map[int][]byte
	glyphs   map[string][]byte
	order    []string
	private  string // its text, without charstrings
}

// ParseType1 parses a font as embedded in a PDF file. It rejects multiple master
// fonts, and fonts with two sets of charstrings.
func ParseType1(b []byte) (*Type1, error) {
	b = withoutSegments(b)
	i := bytes.Index(b, []byte("eexec"))
	if i < 0 {
		return nil, ErrFormat
	}
	clear, sealed := string(b[:i]), b[i+5:]
	for len(sealed) > 0 && strings.IndexByte(" \t\r\n", sealed[0]) >= 0 {
		sealed = sealed[1:]
	}
	if isHex(sealed) {
		text := bytes.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}
			return r
		}, sealed)
		sealed = make([]byte, len(text)/2)
		n, _ := hex.Decode(sealed, text[:len(text)&^1]) // up to the first character that is not hexadecimal
		sealed = sealed[:n]
	}
	if len(sealed) < 8 {
		return nil, ErrFormat
	}
	open := decrypt(sealed, 55665)[4:]
	for _, bad := range []string{"/WeightVector", "/BlendDesign", "/PaintType 2"} {
		if strings.Contains(clear, bad) {
			return nil, ErrFormat
		}
	}
	t := &Type1{subrs: make(map[int][]byte), glyphs: make(map[string][]byte)}
	if m := numbersAfter(clear, "/FontMatrix"); len(m) == 6 {
		t.matrix = m
	} else {
		return nil, ErrFormat
	}
	t.name = wordAfter(clear, "/FontName")
	if err := t.readEncoding(clear); err != nil {
		return nil, err
	}
	err := t.readPrivate(open)
	return t, err
}

// withoutSegments removes the headers of a PFB file.
func withoutSegments(b []byte) []byte {
	if len(b) < 6 || b[0] != 0x80 {
		return b
	}
	var out []byte
	for len(b) >= 6 && b[0] == 0x80 && b[1] <= 2 {
		n := int(b[2]) | int(b[3])<<8 | int(b[4])<<16 | int(b[5])<<24
		n = min(max(0, n), len(b)-6)
		out = append(out, b[6:6+n]...)
		b = b[6+n:]
	}
	return out
}

func isHex(b []byte) bool {
	for _, c := range b[:min(4, len(b))] {
		if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
			return false
		}
	}
	return true
}

// decrypt reverses the encryption of Type 1 fonts (chapter 7).
func decrypt(b []byte, r uint16) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = c ^ byte(r>>8)
		r = (uint16(c)+r)*52845 + 22719
	}
	return out
}

func wordAfter(s, key string) string {
	_, rest, ok := strings.Cut(s, key)
	if !ok {
		return ""
	}
	f := strings.Fields(rest[:min(len(rest), 200)])
	if len(f) == 0 {
		return ""
	}
	return strings.TrimPrefix(f[0], "/")
}

// numbersAfter returns the number after a key, or the numbers in brackets.
func numbersAfter(s, key string) []float64 {
	for {
		i := strings.Index(s, key)
		if i < 0 {
			return nil
		}
		s = s[i+len(key):]
		if s != "" && strings.IndexByte(" \t\r\n[{", s[0]) >= 0 {
			break
		}
	}
	s = strings.TrimLeft(s[:min(len(s), 2000)], " \t\r\n")
	if s == "" {
		return nil
	}
	if s[0] == '[' || s[0] == '{' {
		end := strings.IndexAny(s, "]}")
		if end < 0 {
			return nil
		}
		s = s[1:end]
	} else if f := strings.Fields(s); len(f) > 0 {
		s = f[0]
	}
	var out []float64
	for _, f := range strings.Fields(s) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil
		}
		out = append(out, v)
	}
	return out
}

var encodingEntry = regexp.MustCompile(`dup\s+(\d+)\s*/(\S+)\s+put`)

func (t *Type1) readEncoding(s string) error {
	i := strings.Index(s, "/Encoding")
	if i < 0 {
		return ErrFormat
	}
	s = s[i:]
	t.encoding = make(map[byte]string)
	if wordAfter(s, "/Encoding") == "StandardEncoding" {
		for c := range 256 {
			if n := StandardName(byte(c)); n != "" {
				t.encoding[byte(c)] = n
			}
		}
		return nil
	}
	if f := strings.Fields(s[:min(len(s), 100)]); len(f) < 3 || f[2] != "array" {
		return ErrFormat
	}
	if end := strings.Index(s, "readonly def"); end > 0 {
		s = s[:end]
	} else if end := regexp.MustCompile(`\sput\s+def\s|\]\s*def`).FindStringIndex(s); end != nil {
		s = s[:end[1]]
	}
	for _, m := range encodingEntry.FindAllStringSubmatch(s, 256) {
		if c, err := strconv.Atoi(m[1]); err == nil && c < 256 && m[2] != ".notdef" {
			t.encoding[byte(c)] = m[2]
		}
	}
	return nil
}

// readPrivate reads subroutines and charstrings, and keeps the text between
// them.
func (t *Type1) readPrivate(b []byte) error {
	if bytes.Count(b, []byte("/CharStrings")) != 1 || bytes.Count(b, []byte("/Subrs")) > 1 {
		return ErrFormat
	}
	skip := 4
	if v := numbersAfter(string(b[:min(len(b), 8000)]), "/lenIV"); len(v) == 1 {
		skip = int(v[0])
	}
	seal := func(c []byte) ([]byte, bool) {
		if skip < 0 {
			return c, true
		}
		if len(c) < skip {
			return nil, false
		}
		return decrypt(c, 4330)[skip:], true
	}
	p := &t1Scanner{b: b}
	var text strings.Builder
	inGlyphs := false
	var last [3]string // the preceding words
	for {
		w, ok := p.word()
		if !ok {
			break
		}
		if w == "/CharStrings" {
			inGlyphs = true
		}
		if w == "end" && inGlyphs && len(t.glyphs) > 0 {
			break
		}
		// "dup 5 23 RD " or "/A 23 RD ", followed by that many bytes.
		n, err := strconv.Atoi(last[2])
		isData := err == nil && (w == "RD" || w == "-|") && last[1] != ""
		if !isData {
			text.WriteString(w)
			text.WriteByte(' ')
			last = [3]string{last[1], last[2], w}
			continue
		}
		data, ok := p.data(n)
		if !ok {
			return ErrFormat
		}
		code, ok := seal(data)
		if !ok {
			return ErrFormat
		}
		switch {
		case inGlyphs && strings.HasPrefix(last[1], "/"):
			name := last[1][1:]
			if _, twice := t.glyphs[name]; !twice {
				t.order = append(t.order, name)
			}
			t.glyphs[name] = code
		case !inGlyphs && last[0] == "dup":
			i, err := strconv.Atoi(last[1])
			if err != nil || i < 0 || i > maxGlyphs {
				return ErrFormat
			}
			t.subrs[i] = code
		default:
			return ErrFormat
		}
		if len(t.glyphs) > maxGlyphs {
			return ErrFormat
		}
		last = [3]string{}
	}
	t.private = text.String()
	if t.glyphs[".notdef"] == nil || len(t.glyphs) < 2 {
		return ErrFormat
	}
	return nil
}

// Has reports whether the font has a glyph.
func (t *Type1) Has(name string) bool { return t.glyphs[name] != nil }

// Names returns the names of all glyphs, in the order of the font.
func (t *Type1) Names() []string { return t.order }

// Encoded returns the glyph name of a code in the font's encoding, or "".
func (t *Type1) Encoded(code byte) string { return t.encoding[code] }

// A t1Scanner splits the private part of a font into words.
type t1Scanner struct {
	b   []byte
	pos int
}

func (p *t1Scanner) word() (string, bool) {
	const space, self = " \t\r\n\x00", "[]{}/"
	for p.pos < len(p.b) && strings.IndexByte(space, p.b[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos >= len(p.b) {
		return "", false
	}
	start := p.pos
	p.pos++
	if c := p.b[start]; c != '/' && strings.IndexByte(self, c) >= 0 {
		return string(c), true
	}
	for p.pos < len(p.b) && strings.IndexByte(space, p.b[p.pos]) < 0 && strings.IndexByte(self, p.b[p.pos]) < 0 {
		p.pos++
	}
	return string(p.b[start:p.pos]), true
}

// data returns the n bytes after one space.
func (p *t1Scanner) data(n int) ([]byte, bool) {
	p.pos++
	if n < 0 || n > len(p.b)-p.pos {
		return nil, false
	}
	b := p.b[p.pos : p.pos+n]
	p.pos += n
	return b, true
}
