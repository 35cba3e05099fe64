package pdfpack

import (
	"bytes"
	"slices"
)

// An item is an entry of a dictionary: the name without its slash, as written, and the
// text of the value.
type item struct {
	key   string
	value []byte
}

type dict []item

func (d dict) get(key string) []byte {
	if i := slices.IndexFunc(d, func(it item) bool { return it.key == key }); i >= 0 {
		return d[i].value
	}
	return nil
}

func (d dict) set(key string, value []byte) {
	for i := range d {
		if d[i].key == key {
			d[i].value = value
		}
	}
}

func (d dict) text() []byte {
	b := []byte("<<")
	for _, it := range d {
		b = append(append(append(b, '/'), it.key...), ' ')
		b = append(b, it.value...)
	}
	return append(b, ">>"...)
}

// A scanner finds the ends of objects (ISO 32000-2, 7.2 and 7.3). It changes nothing.
type scanner struct {
	b  []byte
	at int
}

const (
	maxDepth = 100  // of nested arrays and dictionaries
	maxItems = 1000 // of the dictionary of a stream
)

// isSpace and isRegular are for the classes of characters of ISO 32000-2, 7.2.3.
func isSpace(c byte) bool {
	switch c {
	case 0, '\t', '\n', '\f', '\r', ' ':
		return true
	}
	return false
}

func isRegular(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return false
	}
	return !isSpace(c)
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at < len(s.b) {
		switch c := s.b[s.at]; {
		case c == '%':
			for s.at < len(s.b) && s.b[s.at] != '\n' && s.b[s.at] != '\r' {
				s.at++
			}
		case isSpace(c):
			s.at++
		default:
			return
		}
	}
}

// regular returns the regular characters from here on.
func (s *scanner) regular() []byte {
	from := s.at
	for s.at < len(s.b) && isRegular(s.b[s.at]) {
		s.at++
	}
	return s.b[from:s.at]
}

func (s *scanner) keyword() string {
	s.space()
	return string(s.regular())
}

func (s *scanner) integer() (n int64, ok bool) {
	s.space()
	digits := s.regular()
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// next reports whether text follows, and skips it.
func (s *scanner) next(text string) bool {
	if !bytes.HasPrefix(s.b[s.at:], []byte(text)) {
		return false
	}
	s.at += len(text)
	return true
}

// dict reads a dictionary.
func (s *scanner) dict() (dict, bool) {
	s.space()
	if !s.next("<<") {
		return nil, false
	}
	var d dict
	for {
		s.space()
		if s.next(">>") {
			return d, true
		}
		if !s.next("/") {
			return nil, false
		}
		key := string(s.regular())
		s.space()
		from := s.at
		if !s.value(1) || d.get(key) != nil || len(d) == maxItems {
			return nil, false
		}
		d = append(d, item{key, s.b[from:s.at]})
	}
}

// value skips a value: an object, or a reference.
func (s *scanner) value(depth int) bool {
	s.space()
	switch {
	case s.at == len(s.b) || depth > maxDepth:
		return false
	case s.next("<<"):
		return s.values(">>", depth)
	case s.next("["):
		return s.values("]", depth)
	case s.next("<"):
		i := bytes.IndexByte(s.b[s.at:], '>')
		s.at += i + 1
		return i >= 0
	case s.next("("):
		return s.text()
	case s.next("/"):
		s.regular()
		return true
	}
	if token := s.regular(); len(token) == 0 {
		return false
	} else if token[0] < '0' || token[0] > '9' {
		return true
	}
	// A reference has two more tokens.
	end := s.at
	if _, ok := s.integer(); ok && s.keyword() == "R" {
		return true
	}
	s.at = end
	return true
}

// values skips values up to the end of an array or a dictionary.
func (s *scanner) values(end string, depth int) bool {
	for {
		s.space()
		if s.next(end) {
			return true
		}
		if !s.value(depth + 1) {
			return false
		}
	}
}

// text skips the rest of a literal string.
func (s *scanner) text() bool {
	for open := 1; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '\\':
			s.at++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				s.at++
				return true
			}
		}
	}
	return false
}
