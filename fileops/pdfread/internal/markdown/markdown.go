// Package markdown writes a flow as GitHub Flavored Markdown (GFM 0.29):
// headings, emphasis, links, lists, tables and code. It leaves pictures out,
// because neither readers of text nor programs can use kilobytes of base64. Only
// if a document has nothing else, its pictures become data URLs.
package markdown

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/flow"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Write writes f. It returns the number of pictures that it left out.
func Write(ctx context.Context, w io.Writer, f *flow.Flow) (left int, err error) {
	x := &writer{w: bufio.NewWriter(w), ctx: ctx}
	x.embed = len(f.Header)+len(f.Footer) == 0 && !slices.ContainsFunc(f.Elements, func(el *flow.Element) bool {
		return el.Kind != flow.PictureElement && (el.Kind != flow.ParagraphElement || len(el.Text) > 0)
	})
	for _, l := range f.Header {
		x.block(escapeStart(inlineText(l, false)))
	}
	for _, el := range f.Elements {
		x.element(f, el)
	}
	for i, n := range f.Notes {
		text := fmt.Sprintf("[^%d]:", i+1)
		for k, p := range n.Paragraphs {
			if k > 0 {
				text += "\n\n   "
			}
			text += " " + inlineText(p, false)
		}
		x.block(text)
	}
	if len(f.Footer) > 0 {
		x.block("---")
		for _, l := range f.Footer {
			x.block(escapeStart(inlineText(l, false)))
		}
	}
	if x.err != nil {
		return x.left, x.err
	}
	return x.left, x.w.Flush()
}

type writer struct {
	w       *bufio.Writer
	ctx     context.Context
	embed   bool // pictures are data URLs
	left    int  // pictures left out
	err     error
	any     bool  // text was written before
	inList  bool  // the last block was a list item
	indents []int // by level: indent of the text of items
}

// block writes a block after an empty line.
func (x *writer) block(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	if x.any {
		x.w.WriteByte('\n')
	}
	x.any, x.inList = true, false
	x.w.WriteString(strings.TrimRight(s, "\n"))
	x.w.WriteByte('\n')
}

func (x *writer) element(f *flow.Flow, el *flow.Element) {
	switch el.Kind {
	case flow.HeadingElement:
		x.block(strings.Repeat("#", el.Level) + " " + escapeEnd(inlineText(el.Text, false)))
	case flow.ItemElement:
		x.item(el)
	case flow.CodeElement:
		code := strings.Join(el.Code, "\n")
		fence := "```"
		for strings.Contains(code, fence) {
			fence += "`"
		}
		x.block(fence + "\n" + code + "\n" + fence)
	case flow.TableElement:
		x.table(el, f.Columns[el])
	case flow.PictureElement:
		for _, p := range el.Pictures {
			switch {
			case x.embed:
				x.picture(p)
			case p.Alt != "": // the text of a chart or diagram
				x.block(escapeStart(inlineText([]flow.Inline{{Text: p.Alt}}, false)))
				x.left++
			default:
				x.left++
			}
		}
	default:
		x.block(escapeStart(inlineText(el.Text, false)))
	}
}

// picture writes a picture as a paragraph with a data URL.
func (x *writer) picture(p *model.Picture) {
	if p.Media == nil || x.err != nil {
		return
	}
	if x.err = context.Cause(x.ctx); x.err != nil {
		return
	}
	content, err := os.ReadFile(p.Media.Path)
	if err != nil {
		x.err = err
		return
	}
	alt := p.Alt
	alt = cmp.Or(alt, "Picture")
	alt = inlineText([]flow.Inline{{Text: alt}}, false)
	x.block(fmt.Sprintf("![%s](data:%s;base64,%s)", alt, format.Format(p.Media.Ext).MIME(), base64.StdEncoding.EncodeToString(content)))
}

func (x *writer) item(el *flow.Element) {
	it := el.Item
	mark := "- "
	switch it.Kind {
	case model.BulletMarker:
	case model.DecimalMarker:
		mark = fmt.Sprintf("%d. ", it.Value)
	default: // Markdown has only numbers
		mark = "- " + it.Before + markerText(it) + it.After + " "
	}
	level := min(el.Level, len(x.indents))
	if !x.inList {
		level = 0
	}
	indent := 0
	if level > 0 {
		indent = x.indents[level-1]
	}
	wide := len(mark)
	if strings.HasPrefix(mark, "- ") {
		wide = 2
	}
	x.indents = append(x.indents[:level], indent+wide)
	text := escapeStart(inlineText(el.Text, false))
	if !x.inList && x.any {
		x.w.WriteByte('\n')
	}
	x.any, x.inList = true, true
	x.w.WriteString(strings.Repeat(" ", indent) + mark + text + "\n")
}

// markerText returns a letter or Roman numeral.
func markerText(it *model.ListItem) string {
	s := ""
	switch it.Kind {
	case model.LowerLetterMarker, model.UpperLetterMarker:
		s = string(rune('a' + (it.Value-1)%26))
	default:
		s = model.Roman(it.Value)
	}
	if it.Kind == model.UpperLetterMarker || it.Kind == model.UpperRomanMarker {
		s = strings.ToUpper(s)
	}
	return s
}

// table writes a table with pipes. A table with a single column is a frame and
// becomes paragraphs.
func (x *writer) table(el *flow.Element, columns int) {
	if columns < 2 {
		for _, row := range el.Rows {
			for _, c := range row {
				for _, p := range c.Paragraphs {
					x.block(escapeStart(inlineText(p, false)))
				}
			}
		}
		return
	}
	var b strings.Builder
	line := func(cells []string) {
		b.WriteByte('|')
		for _, c := range cells {
			b.WriteString(" " + c + " |")
		}
		b.WriteByte('\n')
	}
	right := make([]int, columns)
	texts := make([][]string, len(el.Rows))
	for i, row := range el.Rows {
		texts[i] = make([]string, columns)
		for _, c := range row {
			var ps []string
			for _, p := range c.Paragraphs {
				ps = append(ps, inlineText(p, true))
			}
			if c.Col < columns {
				texts[i][c.Col] = strings.Join(ps, "<br>")
				if c.Right {
					right[c.Col]++
				}
			}
		}
	}
	rows := texts
	if el.Header <= 1 {
		line(rows[0])
		rows = rows[1:]
	} else { // only one row can be the header
		head := make([]string, columns)
		for _, r := range rows[:el.Header] {
			for i, t := range r {
				if t != "" && head[i] != "" {
					t = "<br>" + t
				}
				head[i] += t
			}
		}
		line(head)
		rows = rows[el.Header:]
	}
	rule := make([]string, columns)
	for i := range rule {
		rule[i] = "---"
		if 2*right[i] > len(el.Rows) {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	x.block(b.String())
}

// inlineText returns text with its emphasis and links.
func inlineText(text []flow.Inline, inTable bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		// All text of one link goes into one pair of brackets.
		j := i + 1
		for text[i].Href != "" && j < len(text) && text[j].Href == text[i].Href {
			j++
		}
		href := text[i].Href
		if strings.HasPrefix(href, "#") {
			href = "" // a link without text
		}
		if href == "" {
			j = i + 1
			writeEmphasis(&b, text, i, inTable)
			i = j
			continue
		}
		var inner strings.Builder
		for k := i; k < j; k++ {
			writeEmphasis(&inner, text[i:j], k-i, inTable)
		}
		label := strings.TrimSpace(inner.String())
		switch {
		case label == "":
		case flow.PlainText(text[i:j]) == href:
			b.WriteString("<" + linkTarget(href, inTable) + ">")
		default:
			b.WriteString("[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(label) + "](" + linkTarget(href, inTable) + ")")
		}
		i = j
	}
	return strings.TrimSpace(b.String())
}

// linkTarget escapes a URL for Markdown.
func linkTarget(uri string, inTable bool) string {
	var b strings.Builder
	for _, r := range uri {
		if r <= ' ' || strings.ContainsRune("()<>\\|", r) && (r != '|' || inTable) {
			fmt.Fprintf(&b, "%%%02X", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// writeEmphasis writes text[i] with its emphasis marks. It omits marks that
// would not be recognized as such (GFM 6.4).
func writeEmphasis(b *strings.Builder, text []flow.Inline, i int, inTable bool) {
	in := text[i]
	if in.Note > 0 {
		fmt.Fprintf(b, "[^%d]", in.Note)
		return
	}
	core := strings.TrimSpace(in.Text)
	if core == "" {
		b.WriteString(in.Text)
		return
	}
	at := strings.Index(in.Text, core)
	before, after := in.Text[:at], in.Text[at+len(core):]
	left, right := ' ', ' '
	if before == "" && i > 0 {
		left = model.LastRune(text[i-1].Text)
	}
	if after == "" && i+1 < len(text) {
		right, _ = utf8.DecodeRuneInString(text[i+1].Text)
	}
	first, _ := utf8.DecodeRuneInString(core)
	tight := func(outside, inside rune) bool {
		return !unicode.IsSpace(outside) && !unicode.IsPunct(outside) && !isText(inside)
	}
	mark := ""
	if !tight(left, first) && !tight(right, model.LastRune(core)) {
		if in.Strike {
			mark += "~~"
		}
		if in.Bold {
			mark += "**"
		}
		if in.Italic {
			mark += "*"
		}
	}
	tag := ""
	switch in.Raise {
	case 1:
		tag = "sup"
	case -1:
		tag = "sub"
	}
	b.WriteString(before + mark)
	if tag != "" {
		b.WriteString("<" + tag + ">")
	}
	b.WriteString(escapeText(core, inTable))
	if tag != "" {
		b.WriteString("</" + tag + ">")
	}
	b.WriteString(reverseMark(mark) + after)
}

func isText(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// reverseMark returns the closing mark for an opening mark: "~~***" for "***~~".
func reverseMark(mark string) string {
	if rest, ok := strings.CutPrefix(mark, "~~"); ok {
		return rest + "~~"
	}
	return mark
}

// escapeText puts a backslash before characters that Markdown would interpret.
// It escapes no others, so that the text stays readable.
func escapeText(s string, inTable bool) string {
	var b strings.Builder
	rs := []rune(s)
	at := func(i int) rune {
		if i < 0 || i >= len(rs) {
			return ' '
		}
		return rs[i]
	}
	for i, r := range rs {
		escape := false
		switch r {
		case '\\':
			escape = at(i+1) < 0x80 && unicode.IsPunct(at(i+1)) || unicode.IsSymbol(at(i+1)) || i == len(rs)-1
		case '`', '*':
			escape = true
		case '_':
			escape = !isText(at(i-1)) || !isText(at(i+1))
		case '~':
			escape = at(i-1) == '~' || at(i+1) == '~'
		case '<':
			n := at(i + 1)
			escape = unicode.IsLetter(n) || n == '/' || n == '!' || n == '?'
		case '&':
			escape = at(i+1) == '#' || unicode.IsLetter(at(i+1))
		case ']':
			escape = at(i+1) == '(' || at(i+1) == '['
		case '|':
			escape = inTable
		}
		if escape {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// blockStart matches line starts that make a heading, a list, a quotation, a
// rule or a link definition.
var blockStart = regexp.MustCompile(`^(#{1,6}(\s|$)|[-+](\s|$|-)|=+\s*$|>|\d{1,9}[.)](\s|$)|\[[^\]]*\]:|:?-{2,}|~~~)`)

// escapeStart escapes a start that would turn a paragraph into another block.
func escapeStart(s string) string {
	if !blockStart.MatchString(s) {
		return s
	}
	i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) })
	return s[:i] + `\` + s[i:]
}

// escapeEnd escapes a trailing # of a heading, which would be removed.
func escapeEnd(s string) string {
	if strings.HasSuffix(s, "#") {
		return s[:len(s)-1] + `\#`
	}
	return s
}
