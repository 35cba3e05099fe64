package mailops

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/filewright/filewright/internal/rtf"
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
var skipped = []string{"fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "listtable", "listoverridetable", "generator", "themedata", "header", "footer", "rsidtbl", "xmlnstbl", "mhtmltag"}

// characters are the words that stand for text.
var characters = map[string]string{
	"par": "\n", "line": "\n", "tab": "\t", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"bullet": "•", "endash": "–", "emdash": "—",
}

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
	var wide rtf.Unicode
	left := 0 // characters to skip after \u
	for t := range rtf.Tokens(b) {
		switch t.Kind {
		case rtf.Open:
			if len(stack) < maxGroups {
				stack = append(stack, g)
			}
		case rtf.Close:
			flush()
			if n := len(stack); n > 0 {
				g, stack = stack[n-1], stack[:n-1]
			}
		case rtf.Byte:
			if left > 0 {
				left--
			} else if visible() {
				raw = append(raw, t.Char)
			}
		case rtf.Symbol:
			switch t.Char {
			case '*':
				g.skip = true // unless the next word is known
			case '~':
				write("\u00a0")
			case '_':
				write("-")
			case '\\', '{', '}':
				write(string(t.Char))
			case '\r', '\n':
				write("\n")
			}
		case rtf.Word:
			left = 0
			switch {
			case t.Name == "htmltag":
				g.skip, g.tag = false, true
			case t.Name == "htmlrtf":
				flush()
				g.dual = !t.Given || t.N != 0
			case t.Name == "ansicpg":
				if enc := codePage(t.N); enc != nil {
					page = enc
				}
			case t.Name == "uc" && t.Given:
				g.uc = min(max(t.N, 0), 8)
			case t.Name == "u" && t.Given:
				write(wide.Add(t.N))
				left = g.uc
			case slices.Contains(skipped, t.Name):
				g.skip = true
			case characters[t.Name] != "":
				write(characters[t.Name])
			}
		}
	}
	flush()
	return out.String(), isPage
}
