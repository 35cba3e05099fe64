package rtf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/rtf"
)

func TestTokens(t *testing.T) {
	char := func(s string) (all []rtf.Token) {
		for _, c := range []byte(s) {
			all = append(all, rtf.Token{Char: c})
		}
		return all
	}
	word := func(name string) rtf.Token { return rtf.Token{Kind: rtf.Word, Name: name} }
	number := func(name string, n int) rtf.Token { return rtf.Token{Kind: rtf.Word, Name: name, N: n, Given: true} }
	open, end := rtf.Token{Kind: rtf.Open, Char: '{'}, rtf.Token{Kind: rtf.Close, Char: '}'}
	for in, want := range map[string][]rtf.Token{
		"":                             nil,
		"{\\rtf1 a\r\nb}":              {open, number("rtf", 1), char("a")[0], char("b")[0], end},
		`\u-10179?`:                    {number("u", -10179), char("?")[0]},
		`\par\b0  x`:                   {word("par"), number("b", 0), char(" ")[0], char("x")[0]},
		`\clFitText-`:                  {word("clFitText")},
		`\'e4\'0a`:                     char("\xe4\n"),
		`\'zz\'`:                       nil,
		`\{\\\~\*`:                     {{Kind: rtf.Symbol, Char: '{'}, {Kind: rtf.Symbol, Char: '\\'}, {Kind: rtf.Symbol, Char: '~'}, {Kind: rtf.Symbol, Char: '*'}},
		`\bin3 {}{x`:                   {number("bin", 3), char("x")[0]},
		`\bin99999999999 {}{x`:         {number("bin", 99999999999)},
		`\bin-3 x`:                     {number("bin", -3), char("x")[0]},
		`a\`:                           char("a"),
		"\\" + strings.Repeat("a", 40): slices.Concat([]rtf.Token{word(strings.Repeat("a", 32))}, char("aaaaaaaa")),
	} {
		if got := slices.Collect(rtf.Tokens([]byte(in))); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{\rtf1\ansi{\*\x}\u8364?\'e4\bin3 abc}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for range rtf.Tokens(b) {
			n++
		}
		if n > len(b) {
			t.Errorf("%d tokens in %d bytes", n, len(b))
		}
	})
}

func TestUnicode(t *testing.T) {
	t.Parallel()
	for want, in := range map[string][]int{
		"\u20ac":  {8364},
		"😀":       {-10179, -8704},
		"a😀b":     {'a', 0xd83d, 0xde00, 'b'},
		"\ufffda": {-10179, 'a'},
		"\ufffd":  {-8704},
		"\ufffd😀": {-10179, -10179, -8704},
	} {
		var u rtf.Unicode
		got := ""
		for _, n := range in {
			got += u.Add(n)
		}
		if got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}
