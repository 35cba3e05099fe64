package pdf

import (
	"bytes"
	"strconv"
)

// A Token is a token of a content stream.
type Token struct {
	Kind TokenKind
	Text string  // of a name or an operator
	Raw  []byte  // of a string, with its delimiters
	Num  float64 // of a number
}

// A TokenKind is the kind of a [Token].
type TokenKind int

// The kinds of tokens.
const (
	TokenEnd TokenKind = iota
	TokenNumber
	TokenName
	TokenOperator
	TokenString
	TokenOther // delimiters
)

// A Lexer splits a content stream into tokens (ISO 32000-2, 7.2 and 7.8.2). It
// never fails: any input gives tokens.
type Lexer struct {
	b   []byte
	pos int
}

// NewLexer returns a lexer for a content stream.
func NewLexer(b []byte) *Lexer { return &Lexer{b: b} }

// Pos returns the position after the last token.
func (l *Lexer) Pos() int { return min(l.pos, len(l.b)) }

func isSpace(c byte) bool {
	switch c {
	case 0, '\t', '\n', '\f', '\r', ' ':
		return true
	}
	return false
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

// Next returns the next token. At the end its kind is TokenEnd.
func (l *Lexer) Next() Token {
	l.skipSpace()
	if l.pos >= len(l.b) {
		return Token{}
	}
	start := l.pos
	c := l.b[start]
	switch {
	case c == '(':
		l.skipString()
		return Token{Kind: TokenString, Raw: l.b[start:min(l.pos, len(l.b))]}
	case c == '<' && (start+1 >= len(l.b) || l.b[start+1] != '<'):
		if i := bytes.IndexByte(l.b[start:], '>'); i >= 0 {
			l.pos = start + i + 1
		} else {
			l.pos = len(l.b)
		}
		return Token{Kind: TokenString, Raw: l.b[start:l.pos]}
	case c == '/':
		l.pos++
		return Token{Kind: TokenName, Text: unescapeName(l.word())}
	case isDelimiter(c):
		l.pos++
		return Token{Kind: TokenOther}
	}
	w := l.word()
	if c == '+' || c == '-' || c == '.' || c >= '0' && c <= '9' {
		f, _ := strconv.ParseFloat(string(w), 64) // 0 if it is not a number
		return Token{Kind: TokenNumber, Num: f}
	}
	return Token{Kind: TokenOperator, Text: string(w)}
}

func (l *Lexer) word() []byte {
	start := l.pos
	for l.pos < len(l.b) && !isSpace(l.b[l.pos]) && !isDelimiter(l.b[l.pos]) {
		l.pos++
	}
	return l.b[start:l.pos]
}

func (l *Lexer) skipSpace() {
	for l.pos < len(l.b) {
		switch c := l.b[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.b) && l.b[l.pos] != '\n' && l.b[l.pos] != '\r' {
				l.pos++
			}
		default:
			return
		}
	}
}

func (l *Lexer) skipString() {
	depth := 0
	for l.pos < len(l.b) {
		c := l.b[l.pos]
		l.pos++
		switch c {
		case '\\':
			l.pos++
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// SkipInlineImage skips the data after the operator ID, and EI. The length of
// the data is unknown. EI must be surrounded by white space, and the following
// bytes must look like content.
func (l *Lexer) SkipInlineImage() {
	for from := l.pos; ; {
		i := bytes.Index(l.b[from:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.b)
			return
		}
		at := from + i
		from = at + 2
		before := at > 0 && isSpace(l.b[at-1])
		after := from >= len(l.b) || isSpace(l.b[from])
		if before && after && legible(l.b[from:min(len(l.b), from+16)]) {
			l.pos = from
			return
		}
	}
}

func legible(b []byte) bool {
	for _, c := range b {
		if c >= 0x7f || c < ' ' && !isSpace(c) {
			return false
		}
	}
	return true
}

func unescapeName(b []byte) string {
	if bytes.IndexByte(b, '#') < 0 {
		return string(b)
	}
	var out []byte
	for i := 0; i < len(b); i++ {
		if b[i] == '#' && i+2 < len(b) {
			if n, err := strconv.ParseUint(string(b[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, b[i])
	}
	return string(out)
}

// StringBytes returns the value of a string token (ISO 32000-2, 7.3.4).
func StringBytes(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '<' {
		return unhex(string(bytes.TrimSuffix(raw[1:], []byte(">"))))
	}
	raw = bytes.TrimSuffix(raw[1:], []byte(")"))
	if bytes.IndexByte(raw, '\\') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\r' { // any line ending becomes a line feed
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
			out = append(out, '\n')
			continue
		}
		if c != '\\' || i+1 >= len(raw) {
			out = append(out, c)
			continue
		}
		i++
		switch c = raw[i]; {
		case c == 'n':
			out = append(out, '\n')
		case c == 'r':
			out = append(out, '\r')
		case c == 't':
			out = append(out, '\t')
		case c == 'b':
			out = append(out, '\b')
		case c == 'f':
			out = append(out, '\f')
		case c == '\n':
		case c == '\r':
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
		case c >= '0' && c <= '7':
			v := 0
			for k := 0; k < 3 && i < len(raw) && raw[i] >= '0' && raw[i] <= '7'; k++ {
				v = v*8 + int(raw[i]-'0')
				i++
			}
			i--
			out = append(out, byte(v))
		default:
			out = append(out, c)
		}
	}
	return out
}
