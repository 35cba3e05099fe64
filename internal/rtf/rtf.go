// Package rtf splits Rich Text Format (specification 1.9.1) into tokens. Readers give them a meaning:
// which groups are text, and which characters are in which encoding.
//
//	for t := range rtf.Tokens(b) {
//		switch t.Kind {
//		case rtf.Open, rtf.Close: // a group starts, ends
//		case rtf.Word:            // a control word, such as \par or \u8364
//		case rtf.Symbol:          // a control symbol, such as \~
//		case rtf.Byte:            // a byte of text
//		}
//	}
//
// Every input is valid: what is damaged yields fewer tokens.
package rtf

import (
	"iter"
	"strconv"
)

// A Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Byte   Kind = iota // Char is a byte of text, literal or as \'xx; line breaks are not text
	Open               // {
	Close              // }
	Word               // Name, and N if Given
	Symbol             // Char is the character after a backslash that is no letter, other than \'
)

// A Token is a piece of RTF.
type Token struct {
	Kind  Kind
	Char  byte
	Name  string
	N     int  // parameter of a Word
	Given bool // the Word has a parameter
}

// maxWord and maxNumber are the longest control word and parameter, in bytes.
const (
	maxWord   = 32
	maxNumber = 12
)

// Tokens returns the tokens of b. The data of \bin is skipped.
func Tokens(b []byte) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for i := 0; i < len(b); {
			c := b[i]
			i++
			t := Token{Char: c}
			switch c {
			case '\r', '\n':
				continue
			case '{':
				t.Kind = Open
			case '}':
				t.Kind = Close
			case '\\':
				var ok bool
				if t, i, ok = control(b, i); !ok {
					continue
				}
			}
			if !yield(t) {
				return
			}
		}
	}
}

// control reads what follows a backslash, and returns the index after it. It reports whether that is
// a token.
func control(b []byte, i int) (t Token, next int, ok bool) {
	switch {
	case i >= len(b):
		return t, i, false
	case b[i] == '\'':
		next = min(i+3, len(b))
		c, err := strconv.ParseUint(string(b[i+1:next]), 16, 8)
		return Token{Char: byte(c)}, next, err == nil
	case !isLetter(b[i]):
		return Token{Kind: Symbol, Char: b[i]}, i + 1, true
	}
	start := i
	for i < len(b) && isLetter(b[i]) && i-start < maxWord {
		i++
	}
	t = Token{Kind: Word, Name: string(b[start:i])}
	start = i
	if i < len(b) && b[i] == '-' {
		i++
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' && i-start < maxNumber {
		i++
	}
	n, err := strconv.Atoi(string(b[start:i]))
	t.N, t.Given = n, err == nil
	if i < len(b) && b[i] == ' ' {
		i++
	}
	if t.Name == "bin" {
		i += min(max(n, 0), len(b)-i)
	}
	return t, i, true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
