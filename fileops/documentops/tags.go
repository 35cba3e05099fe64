package documentops

import (
	"bytes"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// A tag is a start, end or empty-element tag in an XML text. It records only its
// position. A change of one attribute keeps all other bytes of the part.
type tag struct {
	text       []byte // of the whole part
	start, end int    // from "<" to the byte after ">"
	closing    bool   // </a>
	empty      bool   // <a/>
}

var errXML = errors.New("documentops: an XML part is not well-formed")

// tags yields the tags of an XML text. It ignores namespaces and does not check
// that tags match. A document type declaration is an error: its entities can expand to
// any size, and the packaging formats forbid it.
func tags(text []byte) iter.Seq2[tag, error] {
	return func(yield func(tag, error) bool) {
		for i := 0; ; {
			k := bytes.IndexByte(text[i:], '<')
			if k < 0 {
				return
			}
			i += k
			skip := func(open, end string) bool {
				if !bytes.HasPrefix(text[i:], []byte(open)) {
					return false
				}
				if k := bytes.Index(text[i+len(open):], []byte(end)); k >= 0 {
					i += len(open) + k + len(end)
				} else {
					i = -1
				}
				return true
			}
			if skip("<!--", "-->") || skip("<![CDATA[", "]]>") || skip("<?", "?>") {
				if i < 0 {
					yield(tag{}, damaged(errXML))
					return
				}
				continue
			}
			if i+1 < len(text) && text[i+1] == '!' {
				yield(tag{}, fileops.Fail(fileops.ErrUnsupportedInput, errXML, "the document has a document type declaration, which is not allowed"))
				return
			}
			end := tagEnd(text, i)
			if end < 0 {
				yield(tag{}, damaged(errXML))
				return
			}
			t := tag{text: text, start: i, end: end, closing: text[i+1] == '/', empty: text[end-2] == '/'}
			if !yield(t, nil) {
				return
			}
			i = end
		}
	}
}

// tagEnd returns the end of the tag that starts at i, or -1 if the tag has no
// end. An attribute value may contain ">".
func tagEnd(text []byte, i int) int {
	var quote byte
	for k := i + 1; k < len(text); k++ {
		switch c := text[k]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			if k < i+2 {
				return -1
			}
			return k + 1
		case c == '<':
			return -1
		}
	}
	return -1
}

// name returns the name of the element without its prefix.
func (t tag) name() string {
	b := t.text[t.start+1 : t.end-1]
	if t.closing {
		b = b[1:]
	}
	if i := bytes.IndexAny(b, " \t\r\n/"); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, ':'); i >= 0 {
		b = b[i+1:]
	}
	return string(b)
}

// An attr is an attribute of a tag.
type attr struct {
	prefix, name string
	value        string
	start, end   int // in the text of the part: from the name to the byte after the closing quote
}

// attrs yields the attributes of a tag.
func (t tag) attrs() iter.Seq[attr] {
	return func(yield func(attr) bool) {
		b := t.text[:t.end-1]
		i := t.start + 1
		for i < len(b) && !space(b[i]) { // element name
			i++
		}
		for {
			for i < len(b) && (space(b[i]) || b[i] == '/') {
				i++
			}
			from := i
			for i < len(b) && b[i] != '=' && !space(b[i]) {
				i++
			}
			name := string(b[from:i])
			for i < len(b) && (space(b[i]) || b[i] == '=') {
				i++
			}
			if i >= len(b) || b[i] != '"' && b[i] != '\'' {
				return
			}
			k := bytes.IndexByte(b[i+1:], b[i])
			if k < 0 {
				return
			}
			a := attr{name: name, value: unescape(string(b[i+1 : i+1+k])), start: from, end: i + k + 2}
			if p, n, ok := strings.Cut(name, ":"); ok {
				a.prefix, a.name = p, n
			}
			if !yield(a) {
				return
			}
			i += k + 2
		}
	}
}

// attr returns the value of the first attribute with a name. It ignores
// prefixes.
func (t tag) attr(name string) (string, bool) {
	for a := range t.attrs() {
		if a.name == name {
			return a.value, true
		}
	}
	return "", false
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// unescape replaces the references that are predefined in XML (XML 1.0, 4.6).
func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "&")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		ref, rest, ok := strings.Cut(after, ";")
		var r rune
		switch {
		case !ok:
		case ref == "amp":
			r = '&'
		case ref == "lt":
			r = '<'
		case ref == "gt":
			r = '>'
		case ref == "quot":
			r = '"'
		case ref == "apos":
			r = '\''
		case strings.HasPrefix(ref, "#x"):
			n, _ := strconv.ParseUint(ref[2:], 16, 21)
			r = rune(n)
		case strings.HasPrefix(ref, "#"):
			n, _ := strconv.ParseUint(ref[1:], 10, 21)
			r = rune(n)
		}
		if r == 0 {
			b.WriteByte('&')
			s = after
			continue
		}
		b.WriteRune(r)
		s = rest
	}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")

// An edit replaces a part of a text.
type edit struct {
	start, end int
	with       string
}

// setAttr returns the edit that sets an attribute to a value.
func setAttr(a attr, value string) edit {
	name := a.name
	if a.prefix != "" {
		name = a.prefix + ":" + name
	}
	return edit{a.start, a.end, name + `="` + escaper.Replace(value) + `"`}
}

// apply applies edits, which must be in order and must not overlap.
func apply(text []byte, edits []edit) []byte {
	var b bytes.Buffer
	at := 0
	for _, e := range edits {
		b.Write(text[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.Write(text[at:])
	return b.Bytes()
}
