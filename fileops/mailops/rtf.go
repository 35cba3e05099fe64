package mailops

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

var errRTF = errors.New("mailops: the compressed RTF is damaged")

// dictionary fills the window before the first byte ([MS-OXRTFCP] 2.1.2.1).
const dictionary = "{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"

// unpackRTF decompresses the RTF of a message ([MS-OXRTFCP]).
func unpackRTF(b []byte) ([]byte, error) {
	if len(b) < 16 {
		return nil, errRTF
	}
	le := binary.LittleEndian
	size := int64(le.Uint32(b[4:]))
	kind := string(b[8:12])
	data := b[16:]
	switch kind {
	case "MELA": // stored
		return data[:min(size, int64(len(data)))], nil
	case "LZFu":
	default:
		return nil, errRTF
	}
	if size > 9*int64(len(data))+64 { // a reference of two bytes has at most 17
		return nil, errRTF
	}
	var window [4096]byte
	at := copy(window[:], dictionary)
	out := make([]byte, 0, size)
	put := func(c byte) {
		out = append(out, c)
		window[at] = c
		at = (at + 1) % len(window)
	}
	for i := 0; i < len(data); {
		flags := data[i]
		i++
		for bit := 0; bit < 8 && i < len(data); bit++ {
			if flags>>bit&1 == 0 {
				put(data[i])
				i++
				continue
			}
			if i+1 >= len(data) {
				return out, nil
			}
			ref := int(data[i])<<8 | int(data[i+1])
			i += 2
			offset, length := ref>>4, ref&15+2
			if offset == at { // the end
				return out, nil
			}
			for k := range length {
				put(window[(offset+k)%len(window)])
			}
		}
	}
	return out, nil
}

// skipped are groups of RTF without text.
var skipped = []string{"fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "listtable", "listoverridetable", "generator", "themedata", "header", "footer", "rsidtbl", "xmlnstbl"}

// A group is the state of a group of RTF.
type group struct {
	skip bool // its text does not show
	tag  bool // it is HTML
	dual bool // its text is only for readers of RTF
	uc   int  // characters after \u that stand for it
}

// maxGroups is the number of groups of RTF inside each other.
const maxGroups = 1000

// readRTF returns the page that RTF encapsulates ([MS-OXRTFEX]), or else its text.
func readRTF(b []byte) (text string, isPage bool) {
	isPage = strings.Contains(string(b[:min(len(b), 1000)]), `\fromhtml1`)
	var out strings.Builder
	g := group{uc: 1}
	var stack []group
	var page encoding.Encoding = charmap.Windows1252
	var raw []byte // 8-bit characters that are not decoded yet
	flush := func() {
		if len(raw) == 0 {
			return
		}
		if s, err := page.NewDecoder().Bytes(raw); err == nil {
			out.WriteString(strings.ToValidUTF8(string(s), "\ufffd"))
		}
		raw = raw[:0]
	}
	visible := func() bool { return !g.skip && (!isPage || g.tag || !g.dual) }
	write := func(s string) {
		if visible() {
			flush()
			out.WriteString(s)
		}
	}
	left := 0 // characters to skip after \u
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case '{':
			i++
			if len(stack) < maxGroups {
				stack = append(stack, g)
			}
		case '}':
			i++
			flush()
			if n := len(stack); n > 0 {
				g, stack = stack[n-1], stack[:n-1]
			}
		case '\r', '\n':
			i++
		case '\\':
			i++
			if i >= len(b) {
				break
			}
			c := b[i]
			if c == '\'' && i+2 < len(b) {
				n, err := strconv.ParseUint(string(b[i+1:i+3]), 16, 8)
				if i += 3; err != nil {
					continue
				}
				if left > 0 {
					left--
				} else if visible() {
					raw = append(raw, byte(n))
				}
				continue
			}
			if c < 'a' || c > 'z' {
				i++
				switch c {
				case '*':
					g.skip = true // unless the next word is known
				case '~':
					write("\u00a0")
				case '_':
					write("-")
				case '\\', '{', '}':
					write(string(c))
				case '\r', '\n':
					write("\n")
				}
				continue
			}
			start := i
			for i < len(b) && (b[i] >= 'a' && b[i] <= 'z' || b[i] >= 'A' && b[i] <= 'Z') {
				i++
			}
			word := string(b[start:i])
			number := i
			for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] == '-' && i == number) {
				i++
			}
			n, err := strconv.Atoi(string(b[number:i]))
			has := err == nil
			if i < len(b) && b[i] == ' ' {
				i++
			}
			switch {
			case word == "htmltag":
				g.skip, g.tag = false, true
			case word == "mhtmltag":
				g.skip = true
			case word == "htmlrtf":
				flush()
				g.dual = !has || n != 0
			case word == "ansicpg":
				if enc := codePage(n); enc != nil {
					page = enc
				}
			case word == "uc" && has:
				g.uc = min(max(n, 0), 8)
			case word == "u" && has:
				write(string(rune(uint16(n))))
				left = g.uc
				continue
			case word == "bin" && has:
				i += min(max(n, 0), len(b)-i)
			case word == "par", word == "line":
				write("\n")
			case word == "tab":
				write("\t")
			case word == "lquote":
				write("‘")
			case word == "rquote":
				write("’")
			case word == "ldblquote":
				write("“")
			case word == "rdblquote":
				write("”")
			case word == "bullet":
				write("•")
			case word == "endash":
				write("–")
			case word == "emdash":
				write("—")
			case slices.Contains(skipped, word):
				g.skip = true
			}
			left = 0
		default:
			i++
			if left > 0 {
				left--
			} else if visible() {
				raw = append(raw, c)
			}
		}
	}
	flush()
	return out.String(), isPage
}
