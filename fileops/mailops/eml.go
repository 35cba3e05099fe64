package mailops

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"strings"

	whatwg "golang.org/x/net/html/charset"

	"github.com/filewright/filewright/internal/charset"
)

// A header has the fields of a message or part, by name in lower case.
type header map[string][]string

func (h header) get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// splitHeader separates the header from the body. Lines that are no field are skipped,
// because real messages have some.
func splitHeader(b []byte) (h header, body []byte) {
	h = make(header)
	last := ""
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if v := h[last]; len(v) > 0 && len(v[len(v)-1]) < 64<<10 {
				v[len(v)-1] += " " + string(bytes.TrimSpace(line))
			}
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		last = strings.ToLower(string(bytes.TrimSpace(name)))
		if !ok || strings.ContainsAny(last, " \t") || len(h[last]) >= 100 {
			last = ""
			continue
		}
		h[last] = append(h[last], string(bytes.TrimSpace(value)))
	}
	return h, b
}

// words decodes encoded words (RFC 2047) and text in an undeclared encoding.
func (p *parser) words(s string) string {
	d := mime.WordDecoder{CharsetReader: whatwg.NewReaderLabel}
	if out, err := d.DecodeHeader(s); err == nil {
		s = out
	}
	return string(charset.Decode([]byte(s)))
}

// addresses returns the addresses of a field as a reader sees them.
func (p *parser) addresses(fields []string) (out []string) {
	d := mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: whatwg.NewReaderLabel}}
	for _, f := range fields {
		if list, err := d.ParseList(f); err == nil {
			for _, a := range list {
				out = append(out, person(a.Name, a.Address))
			}
		} else if f = strings.TrimSpace(p.words(f)); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// person returns a name with an address.
func person(name, address string) string {
	switch name, address = strings.TrimSpace(name), strings.TrimSpace(address); {
	case name == "" || name == address:
		return address
	case address == "":
		return name
	}
	return name + " <" + address + ">"
}

var boundaryParam = regexp.MustCompile(`(?i)boundary\s*=\s*"?([^";]+)"?`)

// contentType returns the media type of a part and its parameters. Parameters with
// errors are ignored, except for the boundary.
func contentType(value, fallback string) (string, map[string]string) {
	if value == "" {
		return fallback, nil
	}
	kind, params, err := mime.ParseMediaType(value)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(value), ";")
		params = make(map[string]string)
		if m := boundaryParam.FindStringSubmatch(value); m != nil {
			params["boundary"] = strings.TrimSpace(m[1])
		}
	}
	if kind = strings.TrimSpace(kind); !strings.Contains(kind, "/") {
		kind = fallback
	}
	return kind, params
}

// mime reads a message (RFC 5322).
func (p *parser) mime(b []byte, depth int) (*message, error) {
	if bytes.HasPrefix(b, []byte("From ")) { // the line of a mailbox
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	h, body := splitHeader(b)
	if h.get("from") == "" && h.get("to") == "" && h.get("subject") == "" && h.get("date") == "" && h.get("received") == "" && h.get("mime-version") == "" {
		return nil, damaged(nil)
	}
	m := &message{
		subject: p.words(h.get("subject")), to: p.addresses(h["to"]), cc: p.addresses(h["cc"]), id: h.get("message-id"),
		from: strings.Join(p.addresses(h["from"]), ", "),
	}
	if t, err := mail.ParseDate(h.get("date")); err == nil {
		m.date = t
	}
	return m, p.walk(m, h, body, "text/plain", false, depth)
}

// walk adds a part to a message. fallback is its media type if it declares none, and
// either means that the part is one of several with the same content.
func (p *parser) walk(m *message, h header, body []byte, fallback string, either bool, depth int) error {
	if err := p.part(depth); err != nil {
		return err
	}
	kind, params := contentType(h.get("content-type"), fallback)
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		fallback = "text/plain"
		if kind == "multipart/digest" {
			fallback = "message/rfc822"
		}
		for _, part := range p.split(body, params["boundary"]) {
			h, body := splitHeader(part)
			if err := p.walk(m, h, body, fallback, either || kind == "multipart/alternative", depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	data := transferDecoded(body, h.get("content-transfer-encoding"))
	disposition, more, _ := mime.ParseMediaType(h.get("content-disposition"))
	name := p.words(firstOf(more["filename"], params["name"]))
	if err := p.keep(len(data)); err != nil {
		return err
	}
	if disposition != "attachment" && name == "" || disposition == "inline" && m.html == "" && kind == "text/html" {
		switch {
		case kind == "text/html" && m.html == "":
			m.html = string(p.decoded(data, params["charset"], true))
			if m.text != "" && !either { // before the page
				m.html = asPage(m.text) + m.html
			}
			if m.text == "" || !either {
				m.text = joined(m.text, textOf(m.html))
			}
			return nil
		case kind == "text/plain":
			text := string(p.decoded(data, params["charset"], false))
			m.text = joined(m.text, text)
			if m.html != "" && !either { // after the page, such as the footer of a list
				m.html += asPage(text)
			}
			return nil
		}
	}
	if kind == "message/rfc822" && name == "" {
		if h, _ := splitHeader(data); h.get("subject") != "" {
			name = p.words(h.get("subject")) + ".eml"
		} else {
			name = "message.eml"
		}
	}
	m.attachments = append(m.attachments, attachment{name: name, mediaType: kind, id: strings.Trim(h.get("content-id"), "<> "), data: data})
	return nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return strings.TrimRight(a, "\r\n") + "\n\n" + b
}

// split returns the parts between the lines of a boundary (RFC 2046, 5.1.1). The last
// part may be cut off.
func (p *parser) split(body []byte, boundary string) (parts [][]byte) {
	mark := []byte("--" + boundary)
	start := -1 // of the current part
	for at := 0; at < len(body); {
		end := bytes.IndexByte(body[at:], '\n')
		next := len(body)
		if end >= 0 {
			next = at + end + 1
		}
		line := bytes.TrimRight(body[at:next], " \t\r\n")
		if rest, ok := bytes.CutPrefix(line, mark); ok && (len(rest) == 0 || string(rest) == "--") {
			if start >= 0 {
				part := bytes.TrimSuffix(body[start:at], []byte("\n"))
				parts = append(parts, bytes.TrimSuffix(part, []byte("\r")))
			}
			if start = next; len(rest) > 0 {
				return parts
			}
			if len(parts) > p.parts { // more than will be read
				return parts
			}
		}
		at = next
	}
	if start >= 0 {
		p.cutOff = true
		parts = append(parts, body[start:])
	}
	return parts
}

// transferDecoded decodes the content of a part (RFC 2045, 6). What is damaged is left
// out.
func transferDecoded(b []byte, encoding string) []byte {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		clean := bytes.Map(func(c rune) rune {
			if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
				return c
			}
			return -1
		}, b)
		out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
		n, _ := base64.RawStdEncoding.Decode(out, clean)
		return out[:n]
	case "quoted-printable":
		out, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(b)))
		return out
	}
	return b
}

// decoded returns a text in UTF-8.
func (p *parser) decoded(b []byte, label string, page bool) []byte {
	if enc, _ := whatwg.Lookup(label); enc != nil && label != "" {
		if out, err := enc.NewDecoder().Bytes(b); err == nil {
			return bytes.ToValidUTF8(out, []byte("\ufffd"))
		}
	}
	if page {
		return charset.DecodeHTML(b)
	}
	if charset.Detect(b) != nil {
		p.guessed = true
	}
	return charset.Decode(b)
}
