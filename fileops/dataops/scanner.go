package dataops

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
)

// Kinds of tokens other than single characters.
const (
	tokenEnd    byte = 0
	tokenString byte = '"'
	tokenNumber byte = '0'
	tokenTrue   byte = 't'
	tokenFalse  byte = 'f'
	tokenNull   byte = 'n'
)

// A syntaxError reports a violation of the JSON syntax (RFC 8259).
type syntaxError struct {
	offset int64 // in the text, in bytes
	what   string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("offset %d: %s", e.offset, e.what) }

// A scanner reads JSON from a stream of valid UTF-8. Unlike a json.Decoder it
// returns the original text of a token, and limits its length.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0] in the text
	depth    int

	raw     []byte // last string, number or literal; valid until the next token
	escaped bool   // raw is a string with escapes
	tok     []byte // buffer of raw if raw does not fit into buf
	keys    []byte // names of the open objects' members
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, chunk)} }

func (s *scanner) syntax(what string, args ...any) error {
	return &syntaxError{s.base + int64(s.pos), fmt.Sprintf(what, args...)}
}

// fill reads more data when all of buf has been consumed. It returns io.EOF at the end
// of the text.
func (s *scanner) fill() error {
	for s.pos == s.end {
		s.base += int64(s.end)
		s.pos, s.end = 0, 0
		n, err := s.r.Read(s.buf)
		s.end = n
		if n == 0 && err != nil {
			return err
		}
	}
	return nil
}

// byte returns the next byte inside a token.
func (s *scanner) byte() (byte, error) {
	if s.pos == s.end {
		if err := s.fill(); errors.Is(err, io.EOF) {
			return 0, s.syntax("unexpected end of the file")
		} else if err != nil {
			return 0, err
		}
	}
	s.pos++
	return s.buf[s.pos-1], nil
}

// next reads a token and returns its kind: one of the characters {}[]:, or a
// token constant.
func (s *scanner) next() (byte, error) {
	for {
		for ; s.pos < s.end; s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\n', '\r':
			case '{', '}', '[', ']', ':', ',':
				s.pos++
				return c, nil
			case '"':
				return tokenString, s.string()
			case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
				return tokenNumber, s.number()
			case 't':
				return c, s.word("true")
			case 'f':
				return c, s.word("false")
			case 'n':
				return c, s.word("null")
			default:
				r, _ := utf8.DecodeRune(s.buf[s.pos:s.end])
				return 0, s.syntax("unexpected %q", r)
			}
		}
		if err := s.fill(); errors.Is(err, io.EOF) {
			return tokenEnd, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// value reads the first token of a value.
func (s *scanner) value() (byte, error) {
	k, err := s.next()
	if err == nil {
		switch k {
		case '}', ']', ':', ',', tokenEnd:
			err = s.unexpected(k, "a value")
		}
	}
	return k, err
}

func (s *scanner) unexpected(k byte, want string) error {
	switch k {
	case tokenEnd:
		return s.syntax("unexpected end of the file")
	case tokenString, tokenNumber, tokenTrue, tokenFalse, tokenNull:
		return s.syntax("%.20s instead of %s", s.raw, want)
	}
	return s.syntax("%q instead of %s", k, want)
}

func (s *scanner) string() error {
	s.escaped = false
	start := s.pos
	i := start + 1
	for i < s.end && s.buf[i] != '"' && s.buf[i] != '\\' && s.buf[i] >= ' ' {
		i++
	}
	if i < s.end && s.buf[i] == '"' {
		s.raw, s.pos = s.buf[start:i+1], i+1
		return nil
	}
	s.tok = append(s.tok[:0], s.buf[start:i]...)
	s.pos = i
	for {
		c, err := s.byte()
		if err != nil {
			return err
		}
		s.tok = append(s.tok, c)
		switch {
		case c == '"':
			s.raw = s.tok
			return nil
		case c == '\\':
			s.escaped = true
			if err := s.escape(); err != nil {
				return err
			}
		case c < ' ':
			s.pos--
			return s.syntax("control character in a string")
		}
		i := s.pos
		for i < s.end && s.buf[i] != '"' && s.buf[i] != '\\' && s.buf[i] >= ' ' {
			i++
		}
		s.tok = append(s.tok, s.buf[s.pos:i]...)
		s.pos = i
		if len(s.tok) > maxCell {
			return tooLong("a text")
		}
	}
}

func (s *scanner) escape() error {
	c, err := s.byte()
	if err != nil {
		return err
	}
	s.tok = append(s.tok, c)
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			c, err := s.byte()
			if err != nil {
				return err
			}
			if _, ok := hex(c); !ok {
				s.pos--
				return s.syntax("invalid escape in a string")
			}
			s.tok = append(s.tok, c)
		}
		return nil
	}
	s.pos--
	return s.syntax("invalid escape in a string")
}

func hex(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

func (s *scanner) number() error {
	s.tok = s.tok[:0]
	for {
		i := s.pos
		for i < s.end && (s.buf[i] >= '0' && s.buf[i] <= '9' || s.buf[i] == '.' || s.buf[i] == '-' || s.buf[i] == '+' || s.buf[i] == 'e' || s.buf[i] == 'E') {
			i++
		}
		s.tok = append(s.tok, s.buf[s.pos:i]...)
		s.pos = i
		if len(s.tok) > maxCell {
			return tooLong("a number")
		}
		if i < s.end {
			break
		}
		if err := s.fill(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	if s.raw = s.tok; !isNumber(s.raw) {
		return s.syntax("%.20s is not a number", s.raw)
	}
	return nil
}

// isNumber reports whether b is a number according to RFC 8259, section 6.
func isNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '0' {
		b = b[1:]
	} else if !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}

func (s *scanner) word(w string) error {
	s.tok = append(s.tok[:0], w...)
	s.raw = s.tok
	for i := range len(w) {
		c, err := s.byte()
		if err != nil {
			return err
		}
		if c != w[i] {
			s.pos--
			return s.syntax("unknown word")
		}
	}
	return nil
}

// text appends the value of the last token. null has no text.
func (s *scanner) text(dst []byte, kind byte) []byte {
	switch {
	case kind == tokenNull:
		return dst
	case kind != tokenString:
		return append(dst, s.raw...)
	case !s.escaped:
		return append(dst, s.raw[1:len(s.raw)-1]...)
	}
	for b := s.raw[1 : len(s.raw)-1]; len(b) > 0; {
		if b[0] != '\\' {
			dst, b = append(dst, b[0]), b[1:]
			continue
		}
		c := b[1]
		b = b[2:]
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := unit(b)
			b = b[4:]
			if utf16.IsSurrogate(r) {
				second := rune(-1)
				if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
					second = unit(b[2:])
				}
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					b = b[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// unit returns the value of four hexadecimal digits.
func unit(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		d, _ := hex(c)
		r = r<<4 | d
	}
	return r
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > maxDepth {
		return fileops.Fail(fileops.ErrLimit, nil, "objects and arrays in the file are nested more than %d levels deep", maxDepth)
	}
	return nil
}

// members reads the rest of an object after its first token. It calls each for
// every member. each must read the value whose first token is kind. key is valid
// until each returns.
func (s *scanner) members(each func(key []byte, kind byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	k, err := s.next()
	for first := true; ; first = false {
		switch {
		case err != nil:
			return err
		case k == '}' && first:
			s.depth--
			return nil
		case k != tokenString:
			return s.unexpected(k, "a name")
		}
		mark := len(s.keys)
		s.keys = s.text(s.keys, tokenString)
		key := s.keys[mark:len(s.keys):len(s.keys)]
		if len(key) > maxNames {
			return tooManyNames()
		}
		if k, err = s.next(); err == nil && k != ':' {
			err = s.unexpected(k, "a colon")
		}
		if err != nil {
			return err
		}
		if k, err = s.value(); err != nil {
			return err
		}
		if err := each(key, k); err != nil {
			return err
		}
		s.keys = s.keys[:mark]
		var more bool
		if k, more, err = s.separator('}'); err == nil && !more {
			return nil
		}
	}
}

// elements reads the rest of an array after its first token. It calls each once for each
// element; the function must read the value whose first token is kind.
func (s *scanner) elements(each func(kind byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	k, err := s.next()
	if err == nil && k == ']' {
		s.depth--
		return nil
	}
	for {
		switch {
		case err != nil:
			return err
		case k == '}', k == ']', k == ':', k == ',', k == tokenEnd:
			return s.unexpected(k, "a value")
		}
		if err := each(k); err != nil {
			return err
		}
		var more bool
		if k, more, err = s.separator(']'); err == nil && !more {
			return nil
		}
	}
}

// separator reads a comma and returns the token after it, or leaves the value if end is there.
func (s *scanner) separator(end byte) (k byte, more bool, err error) {
	switch k, err := s.next(); {
	case err != nil:
		return 0, false, err
	case k == end:
		s.depth--
		return k, false, nil
	case k != ',':
		return 0, false, s.unexpected(k, "a comma")
	}
	k, err = s.next()
	return k, true, err
}

// skip skips the rest of a value whose first token is kind.
func (s *scanner) skip(kind byte) error {
	switch kind {
	case '{':
		return s.members(func(_ []byte, k byte) error { return s.skip(k) })
	case '[':
		return s.elements(s.skip)
	}
	return nil
}

// compact appends a value whose first token is kind as JSON without spaces.
func (s *scanner) compact(dst []byte, kind byte) ([]byte, error) {
	var err error
	switch kind {
	case '{':
		dst = append(dst, '{')
		n := 0
		err = s.members(func(key []byte, k byte) error {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = append(appendJSON(dst, key), ':')
			var err error
			dst, err = s.compact(dst, k)
			return err
		})
		dst = append(dst, '}')
	case '[':
		dst = append(dst, '[')
		n := 0
		err = s.elements(func(k byte) error {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			var err error
			dst, err = s.compact(dst, k)
			return err
		})
		dst = append(dst, ']')
	default:
		dst = append(dst, s.raw...)
	}
	if err == nil && len(dst) > maxRow {
		err = tooLong("a row")
	}
	return dst, err
}

// appendJSON appends a text as a JSON string.
func appendJSON(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		dst = append(dst, text[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15]) // DEL too, which is legal but not text
		}
	}
	return append(append(dst, text[done:]...), '"')
}

func tooLong(what string) error {
	limit := maxCell
	if what == "a row" {
		limit = maxRow
	}
	return fileops.Fail(fileops.ErrLimit, nil, "%s in the file has more than the limit of %d MiB", what, limit>>20)
}

func tooManyNames() error {
	return fileops.Fail(fileops.ErrLimit, nil, "the file has more than %d columns, or more than %d MiB of column names", maxColumns, maxNames>>20)
}
