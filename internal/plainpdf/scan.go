package plainpdf

import (
	"bytes"
	"slices"
)

// An Item is an entry of a dictionary: the name without its slash, as written, and the
// text of the value.
type Item struct {
	Key   string
	Value []byte
}

// A Dict is a dictionary, with its entries in their order.
type Dict []Item

// Get returns the text of a value, or nil.
func (d Dict) Get(key string) []byte {
	if i := slices.IndexFunc(d, func(it Item) bool { return it.Key == key }); i >= 0 {
		return d[i].Value
	}
	return nil
}

// Set changes the value of an entry that exists.
func (d Dict) Set(key string, value []byte) {
	for i := range d {
		if d[i].Key == key {
			d[i].Value = value
		}
	}
}

// Text returns the text of the dictionary.
func (d Dict) Text() []byte {
	b := []byte("<<")
	for _, it := range d {
		b = append(append(append(b, '/'), it.Key...), ' ')
		b = append(b, it.Value...)
	}
	return append(b, ">>"...)
}

// A Scanner finds the ends of objects in B (ISO 32000-2, 7.2 and 7.3), from offset At on. It changes
// nothing.
type Scanner struct {
	B  []byte
	At int
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

// Space skips white space and comments.
func (s *Scanner) Space() {
	for s.At < len(s.B) {
		switch c := s.B[s.At]; {
		case c == '%':
			for s.At < len(s.B) && s.B[s.At] != '\n' && s.B[s.At] != '\r' {
				s.At++
			}
		case isSpace(c):
			s.At++
		default:
			return
		}
	}
}

// Regular returns the regular characters from here on.
func (s *Scanner) Regular() []byte {
	from := s.At
	for s.At < len(s.B) && isRegular(s.B[s.At]) {
		s.At++
	}
	return s.B[from:s.At]
}

// Keyword skips white space and returns the regular characters after it.
func (s *Scanner) Keyword() string {
	s.Space()
	return string(s.Regular())
}

// Integer reads an integer that is not negative.
func (s *Scanner) Integer() (n int64, ok bool) {
	s.Space()
	digits := s.Regular()
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

// Next reports whether text follows, and skips it.
func (s *Scanner) Next(text string) bool {
	if !bytes.HasPrefix(s.B[s.At:], []byte(text)) {
		return false
	}
	s.At += len(text)
	return true
}

// Dict reads a dictionary.
func (s *Scanner) Dict() (Dict, bool) {
	s.Space()
	if !s.Next("<<") {
		return nil, false
	}
	var d Dict
	for {
		s.Space()
		if s.Next(">>") {
			return d, true
		}
		if !s.Next("/") {
			return nil, false
		}
		key := string(s.Regular())
		s.Space()
		from := s.At
		if !s.value(1) || d.Get(key) != nil || len(d) == maxItems {
			return nil, false
		}
		d = append(d, Item{key, s.B[from:s.At]})
	}
}

// Value skips a value: an object, or a reference. It reports false if there is none.
func (s *Scanner) Value() bool { return s.value(0) }

func (s *Scanner) value(depth int) bool {
	s.Space()
	switch {
	case s.At == len(s.B) || depth > maxDepth:
		return false
	case s.Next("<<"):
		return s.values(">>", depth)
	case s.Next("["):
		return s.values("]", depth)
	case s.Next("<"):
		i := bytes.IndexByte(s.B[s.At:], '>')
		s.At += i + 1
		return i >= 0
	case s.Next("("):
		return s.text()
	case s.Next("/"):
		s.Regular()
		return true
	}
	if token := s.Regular(); len(token) == 0 {
		return false
	} else if token[0] < '0' || token[0] > '9' {
		return true
	}
	// A reference has two more tokens.
	end := s.At
	if _, ok := s.Integer(); ok && s.Keyword() == "R" {
		return true
	}
	s.At = end
	return true
}

// values skips values up to the end of an array or a dictionary.
func (s *Scanner) values(end string, depth int) bool {
	for {
		s.Space()
		if s.Next(end) {
			return true
		}
		if !s.value(depth + 1) {
			return false
		}
	}
}

// text skips the rest of a literal string.
func (s *Scanner) text() bool {
	for open := 1; s.At < len(s.B); s.At++ {
		switch s.B[s.At] {
		case '\\':
			s.At++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				s.At++
				return true
			}
		}
	}
	s.At = len(s.B) // an escape at the end goes beyond it
	return false
}
