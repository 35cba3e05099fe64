package rtf

import "unicode/utf16"

// A Unicode joins the numbers of \u words to text. A character above U+FFFF has two of them, its
// surrogates in UTF-16, as negative numbers: \u-10179?\u-8704? is U+1F600.
type Unicode struct {
	high rune // a high surrogate that waits for the low one, or 0
}

// Add returns the text that is complete with the next number: nothing after a high surrogate.
// A surrogate without its counterpart becomes U+FFFD.
func (u *Unicode) Add(n int) string {
	r := rune(uint16(n))
	high := u.high
	u.high = 0
	text := ""
	if high != 0 {
		if pair := utf16.DecodeRune(high, r); pair != '\ufffd' {
			return string(pair)
		}
		text = "\ufffd"
	}
	if r >= 0xd800 && r < 0xdc00 {
		u.high = r
		return text
	}
	return text + string(r) // a low surrogate becomes U+FFFD
}
