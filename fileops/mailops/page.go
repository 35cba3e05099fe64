package mailops

import (
	"encoding/base64"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// pageLosses are what a page lacks.
type pageLosses struct {
	remote, scripts int
	used            map[*attachment]bool // pictures of the message in the page
}

func (l pageLosses) warn(job *fileops.Job) {
	if l.scripts > 0 {
		job.Warn(fileops.WarnScriptNotRun, "The scripts of the message were not run.")
	}
	if l.remote == 1 {
		job.Warn(fileops.WarnContentDropped, "1 picture was left out, because it is not in the message.")
	} else if l.remote > 1 {
		job.Warn(fileops.WarnContentDropped, "%d pictures were left out, because they are not in the message.", l.remote)
	}
}

// A row is a field of the header, as a reader sees it.
type row struct{ name, value string }

func (m *message) rows() (out []row) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, row{name, value})
		}
	}
	add("From", m.from)
	add("To", strings.Join(m.to, ", "))
	add("Cc", strings.Join(m.cc, ", "))
	if !m.date.IsZero() {
		add("Date", m.date.Format("2006-01-02 15:04:05 -0700"))
	}
	return out
}

// title returns the subject, or else the name of the file.
func (m *message) title(name string) string { return firstOf(strings.TrimSpace(m.subject), name) }

const pageStyle = `body{font-family:sans-serif}.header{border-bottom:1px solid #999;margin-bottom:1em}.header th{text-align:left;vertical-align:top;padding-right:1em}pre{white-space:pre-wrap;font-family:inherit}img{max-width:100%}`

// page returns the message as a web page that refers to nothing outside.
func (m *message) page(name string) ([]byte, pageLosses) {
	var b strings.Builder
	lost := pageLosses{used: make(map[*attachment]bool)}
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>%s</title><style>%s</style></head><body>\n<h1>%[1]s</h1>\n<table class=\"header\">", html.EscapeString(m.title(name)), pageStyle)
	for _, r := range m.rows() {
		fmt.Fprintf(&b, "<tr><th>%s</th><td>%s</td></tr>\n", r.name, html.EscapeString(r.value))
	}
	b.WriteString("</table>\n<div>")
	if m.html != "" {
		m.clean(&b, &lost)
	} else {
		b.WriteString(asPage(m.text))
	}
	b.WriteString("</div>\n")
	list := ""
	for i := range m.attachments {
		if a := &m.attachments[i]; !lost.used[a] {
			list += fmt.Sprintf("<li>%s (%s)</li>\n", html.EscapeString(a.fileName(i)), size(len(a.data)))
		}
	}
	if list != "" {
		b.WriteString("<hr>\n<p>Attachments:</p>\n<ul>\n" + list + "</ul>\n")
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String()), lost
}

func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// asPage returns a text as HTML.
func asPage(text string) string {
	return "<pre>" + html.EscapeString(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))) + "</pre>"
}

// kept are the elements of a body that remain, with their attributes below.
var kept = strings.Fields("a abbr address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark ol p pre q s samp section small span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr")

var keptAttributes = strings.Fields("align valign alt bgcolor border cellpadding cellspacing class color cols colspan dir face height lang rowspan rows size span start style title type width")

// opaque are elements whose content goes with them.
var opaque = strings.Fields("script style title head template noscript iframe object applet svg math canvas audio video textarea select frameset noframes noembed")

var unsafeStyle = regexp.MustCompile(`(?i)url|expression|import|@|\\|behavio|position|javascript`)

// clean writes the body without anything that runs or loads.
func (m *message) clean(b *strings.Builder, lost *pageLosses) {
	z := html.NewTokenizer(strings.NewReader(m.html))
	z.SetMaxBuf(32 << 20)
	skip, depth := "", 0
	var open []string
	for {
		switch z.Next() {
		case html.ErrorToken:
			for _, name := range slices.Backward(open) {
				b.WriteString("</" + name + ">")
			}
			return
		case html.TextToken:
			if depth == 0 {
				b.WriteString(html.EscapeString(string(z.Text())))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			switch {
			case depth > 0:
				if t.Data == skip && t.Type == html.StartTagToken {
					depth++
				}
			case slices.Contains(opaque, t.Data):
				if t.Data == "script" {
					lost.scripts++
				}
				if t.Type == html.StartTagToken && t.Data != "head" {
					skip, depth = t.Data, 1
				}
			case t.Data == "img":
				m.picture(b, t, lost)
			case slices.Contains(kept, t.Data):
				writeTag(b, t, "")
				switch t.Data {
				case "br", "hr", "col", "wbr":
				default:
					if len(open) < 512 {
						open = append(open, t.Data)
					}
				}
			}
		case html.EndTagToken:
			t := z.Token()
			if depth > 0 {
				if t.Data == skip {
					depth--
				}
				continue
			}
			if i := slices.Index(open, t.Data); i >= 0 {
				for k := len(open) - 1; k >= 0; k-- {
					if open[k] == t.Data {
						i = k
						break
					}
				}
				for _, name := range slices.Backward(open[i:]) {
					b.WriteString("</" + name + ">")
				}
				open = open[:i]
			}
		}
	}
}

// writeTag writes a start tag with its harmless attributes. source is the address of a
// picture.
func writeTag(b *strings.Builder, t html.Token, source string) {
	b.WriteString("<" + t.Data)
	if source != "" {
		b.WriteString(` src="` + html.EscapeString(source) + `"`)
	}
	for _, a := range t.Attr {
		switch {
		case a.Key == "href" && t.Data == "a":
			low := strings.ToLower(strings.TrimSpace(a.Val))
			if !strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "https://") && !strings.HasPrefix(low, "mailto:") && !strings.HasPrefix(low, "tel:") {
				continue
			}
		case !slices.Contains(keptAttributes, a.Key), a.Key == "style" && unsafeStyle.MatchString(a.Val):
			continue
		}
		b.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
	}
	b.WriteString(">")
}

// shown are the kinds of pictures that browsers and office programs show.
var shown = []format.Format{format.PNG, format.JPG, format.GIF, format.BMP, format.WebP}

// picture writes a picture that is in the message.
func (m *message) picture(b *strings.Builder, t html.Token, lost *pageLosses) {
	source, alt, one := "", "", false
	for _, a := range t.Attr {
		switch a.Key {
		case "src":
			source = strings.TrimSpace(a.Val)
		case "alt":
			alt = a.Val
		case "width", "height":
			one = one || a.Val == "0" || a.Val == "1" // it only counts readers
		}
	}
	low := strings.ToLower(source)
	for _, f := range shown {
		if strings.HasPrefix(low, "data:"+f.MIME()+";base64,") {
			writeTag(b, t, strings.Join(strings.Fields(source), ""))
			return
		}
	}
	if a := m.find(source); a != nil {
		data := strings.NewReader(string(a.data))
		if f := format.Sniff(data, data.Size()); slices.Contains(shown, f) {
			lost.used[a] = true
			writeTag(b, t, "data:"+f.MIME()+";base64,"+base64.StdEncoding.EncodeToString(a.data))
			return
		}
	}
	if source != "" && !one {
		lost.remote++
	}
	b.WriteString(html.EscapeString(alt))
}

// find returns the attachment that a body refers to, by its identifier (RFC 2392) or its
// name, or nil.
func (m *message) find(source string) *attachment {
	id := source
	if len(id) > 4 && strings.EqualFold(id[:4], "cid:") {
		id = id[4:]
	}
	for i := range m.attachments {
		if a := &m.attachments[i]; id != "" && (a.id == id || a.name == id) {
			return a
		}
	}
	return nil
}

// plain returns the message as text.
func (m *message) plain() string {
	var b strings.Builder
	if m.subject != "" {
		b.WriteString("Subject: " + oneLine(m.subject) + "\n")
	}
	for _, r := range m.rows() {
		b.WriteString(r.name + ": " + oneLine(r.value) + "\n")
	}
	text := m.text
	if strings.TrimSpace(text) == "" {
		text = textOf(m.html)
	}
	b.WriteString("\n" + strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) + "\n")
	if len(m.attachments) > 0 {
		b.WriteString("\nAttachments:\n")
		for i, a := range m.attachments {
			fmt.Fprintf(&b, "- %s (%s)\n", a.fileName(i), size(len(a.data)))
		}
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var blocks = strings.Fields("p div br tr li h1 h2 h3 h4 h5 h6 table ul ol blockquote pre hr dd dt")

// textOf returns the text of a page.
func textOf(page string) string {
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(32 << 20)
	var b strings.Builder
	skip, depth := "", 0
	pre := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return regexp.MustCompile(`\n{3,}`).ReplaceAllString(strings.ReplaceAll(b.String(), " \n", "\n"), "\n\n")
		case html.TextToken:
			if depth > 0 {
				continue
			}
			text := string(z.Text())
			if pre == 0 {
				trimmed := strings.Join(strings.Fields(text), " ")
				if trimmed != "" && text[0] <= ' ' && !strings.HasSuffix(b.String(), "\n") {
					trimmed = " " + trimmed
				}
				if trimmed != "" && text[len(text)-1] <= ' ' {
					trimmed += " "
				}
				text = trimmed
			}
			b.WriteString(text)
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			switch {
			case depth > 0:
				if t.Data == skip {
					depth++
				}
			case slices.Contains(opaque, t.Data) && t.Data != "head" && t.Type == html.StartTagToken:
				skip, depth = t.Data, 1
			case t.Data == "pre":
				pre++
				b.WriteString("\n")
			case t.Data == "li":
				b.WriteString("\n- ")
			case t.Data == "td", t.Data == "th":
				b.WriteString("\t")
			case slices.Contains(blocks, t.Data):
				b.WriteString("\n")
			}
		case html.EndTagToken:
			t := z.Token()
			switch {
			case depth > 0:
				if t.Data == skip {
					depth--
				}
			case t.Data == "pre":
				pre = max(pre-1, 0)
				b.WriteString("\n")
			case slices.Contains(blocks, t.Data) && t.Data != "li" && t.Data != "tr":
				b.WriteString("\n")
			}
		}
	}
}

// eml returns the message as an EML file.
func (m *message) eml() []byte {
	var b strings.Builder
	field := func(name, value string) {
		if value = oneLine(value); value != "" {
			b.WriteString(name + ": " + value + "\r\n")
		}
	}
	list := func(all []string) string {
		out := make([]string, len(all))
		for i, s := range all {
			name, address, ok := strings.Cut(s, " <")
			if out[i] = mime.QEncoding.Encode("utf-8", s); ok {
				if quoted := mime.QEncoding.Encode("utf-8", name); quoted == name {
					name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
				} else {
					name = quoted
				}
				out[i] = name + " <" + address
			}
		}
		return strings.Join(out, ", ")
	}
	field("From", list([]string{m.from}))
	field("To", list(m.to))
	field("Cc", list(m.cc))
	field("Subject", mime.QEncoding.Encode("utf-8", m.subject))
	if !m.date.IsZero() {
		field("Date", m.date.Format(time.RFC1123Z))
	}
	field("Message-ID", m.id)
	b.WriteString("MIME-Version: 1.0\r\n")
	mixed, related, either := boundaries(m)
	b.WriteString("Content-Type: multipart/mixed; boundary=\"" + mixed + "\"\r\n\r\n")
	inline := func(a attachment) bool { return a.id != "" && strings.Contains(m.html, "cid:"+a.id) }
	b.WriteString("--" + mixed + "\r\nContent-Type: multipart/related; boundary=\"" + related + "\"\r\n\r\n")
	b.WriteString("--" + related + "\r\nContent-Type: multipart/alternative; boundary=\"" + either + "\"\r\n\r\n")
	body := func(kind, text string) {
		b.WriteString("--" + either + "\r\nContent-Type: " + kind + "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
		w := quotedprintable.NewWriter(&b)
		_, _ = w.Write([]byte(text)) // a builder accepts all writes
		_ = w.Close()
		b.WriteString("\r\n")
	}
	text := m.text
	if text == "" {
		text = textOf(m.html)
	}
	body("text/plain", text)
	if m.html != "" {
		body("text/html", m.html)
	}
	b.WriteString("--" + either + "--\r\n")
	part := func(boundary string, i int, a attachment) {
		kind := a.mediaType
		if _, _, err := mime.ParseMediaType(kind); err != nil || strings.HasPrefix(kind, "multipart/") || kind == "message/rfc822" {
			kind = "application/octet-stream"
		}
		disposition := "attachment"
		if inline(a) {
			disposition = "inline"
		}
		b.WriteString("--" + boundary + "\r\n")
		field("Content-Type", kind)
		field("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": a.fileName(i)}))
		if a.id != "" {
			field("Content-ID", "<"+a.id+">")
		}
		b.WriteString("Content-Transfer-Encoding: base64\r\n\r\n")
		for s := base64.StdEncoding.EncodeToString(a.data); len(s) > 0; {
			n := min(76, len(s))
			b.WriteString(s[:n] + "\r\n")
			s = s[n:]
		}
	}
	for i, a := range m.attachments {
		if inline(a) {
			part(related, i, a)
		}
	}
	b.WriteString("--" + related + "--\r\n")
	for i, a := range m.attachments {
		if !inline(a) {
			part(mixed, i, a)
		}
	}
	b.WriteString("--" + mixed + "--\r\n")
	return []byte(b.String())
}

// boundaries returns boundaries that no line of the message has: quoted-printable and
// base64 have no "=_".
func boundaries(m *message) (mixed, related, either string) {
	return "=_mixed", "=_related", "=_either"
}
