package pdfread

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// toMarkdown makes Markdown as GitHub has it (GFM 0.29): headings, emphasis,
// links, lists, tables and code. It has no pictures: those who want text to read,
// or to feed to a program, have no use for kilobytes of base64.
func (e *Engine) toMarkdown(ctx context.Context, job *fileops.Job) error {
	f, err := e.flow(ctx, job)
	if err != nil {
		return err
	}
	return job.Write(fileops.ResultName(job.Input(), format.MD), func(w io.Writer) error {
		b := bufio.NewWriter(w)
		writeMarkdown(b, f)
		return b.Flush()
	})
}

func writeMarkdown(w *bufio.Writer, f *flow) {
	x := &markdownWriter{w: w}
	for _, l := range f.header {
		x.block(escapeStart(markdownText(l, false)))
	}
	for _, el := range f.elements {
		x.element(f, el)
	}
	if len(f.footer) > 0 {
		x.block("---")
		for _, l := range f.footer {
			x.block(escapeStart(markdownText(l, false)))
		}
	}
}

type markdownWriter struct {
	w       *bufio.Writer
	any     bool  // something was written
	inList  bool  // the last thing was an item
	indents []int // of the text of items, by level
}

// block writes a block, with an empty line before it.
func (x *markdownWriter) block(s string) {
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

func (x *markdownWriter) element(f *flow, el *element) {
	switch el.kind {
	case headingElement:
		x.block(strings.Repeat("#", el.level) + " " + escapeEnd(markdownText(el.text, false)))
	case itemElement:
		x.item(el)
	case codeElement:
		code := strings.Join(el.code, "\n")
		fence := "```"
		for strings.Contains(code, fence) {
			fence += "`"
		}
		x.block(fence + "\n" + code + "\n" + fence)
	case tableElement:
		x.table(el, f.columns[el])
	case pictureElement:
		// What is written in a chart or a diagram is all that is left of it.
		for _, p := range el.pictures {
			if p.alt != "" {
				x.block(escapeStart(markdownText([]inline{{text: p.alt}}, false)))
			}
		}
	default:
		x.block(escapeStart(markdownText(el.text, false)))
	}
}

func (x *markdownWriter) item(el *element) {
	it := el.item
	mark := "- "
	switch it.kind {
	case bulletMarker:
	case decimalMarker:
		mark = fmt.Sprintf("%d. ", it.value)
	default: // there are only numbers
		mark = "- " + it.before + markerText(it) + it.after + " "
	}
	level := min(el.level, len(x.indents))
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
	text := escapeStart(markdownText(el.text, false))
	if !x.inList && x.any {
		x.w.WriteByte('\n')
	}
	x.any, x.inList = true, true
	x.w.WriteString(strings.Repeat(" ", indent) + mark + text + "\n")
}

// markerText returns a letter or Roman number.
func markerText(it *listItem) string {
	s := ""
	switch it.kind {
	case lowerLetterMarker, upperLetterMarker:
		s = string(rune('a' + (it.value-1)%26))
	default:
		s = roman(it.value)
	}
	if it.kind == upperLetterMarker || it.kind == upperRomanMarker {
		s = strings.ToUpper(s)
	}
	return s
}

// table writes a table with pipes. One of a single column is a frame, and
// becomes paragraphs.
func (x *markdownWriter) table(el *element, columns int) {
	if columns < 2 {
		for _, row := range el.rows {
			for _, c := range row {
				for _, p := range c.paragraphs {
					x.block(escapeStart(markdownText(p, false)))
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
	texts := make([][]string, len(el.rows))
	for i, row := range el.rows {
		texts[i] = make([]string, columns)
		for _, c := range row {
			var ps []string
			for _, p := range c.paragraphs {
				ps = append(ps, markdownText(p, true))
			}
			if c.col < columns {
				texts[i][c.col] = strings.Join(ps, "<br>")
				if c.right {
					right[c.col]++
				}
			}
		}
	}
	rows := texts
	if el.header <= 1 {
		line(rows[0])
		rows = rows[1:]
	} else { // only one row can be the header
		head := make([]string, columns)
		for _, r := range rows[:el.header] {
			for i, t := range r {
				if t != "" && head[i] != "" {
					t = "<br>" + t
				}
				head[i] += t
			}
		}
		line(head)
		rows = rows[el.header:]
	}
	rule := make([]string, columns)
	for i := range rule {
		rule[i] = "---"
		if 2*right[i] > len(el.rows) {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	x.block(b.String())
}

// markdownText returns text with its emphasis and links.
func markdownText(text []inline, inTable bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		// Everything of one link goes into one pair of brackets.
		j := i + 1
		for text[i].href != "" && j < len(text) && text[j].href == text[i].href {
			j++
		}
		href := text[i].href
		if strings.HasPrefix(href, "#") {
			href = "" // there is nothing to lead to
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
		case plainText(text[i:j]) == href:
			b.WriteString("<" + linkTarget(href, inTable) + ">")
		default:
			b.WriteString("[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(label) + "](" + linkTarget(href, inTable) + ")")
		}
		i = j
	}
	return strings.TrimSpace(b.String())
}

// linkTarget returns a URL that stays one in Markdown.
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

// writeEmphasis writes text[i] with the signs around it that it needs. Signs that
// would not be read as such (GFM 6.4) are left out.
func writeEmphasis(b *strings.Builder, text []inline, i int, inTable bool) {
	in := text[i]
	core := strings.TrimSpace(in.text)
	if core == "" {
		b.WriteString(in.text)
		return
	}
	at := strings.Index(in.text, core)
	before, after := in.text[:at], in.text[at+len(core):]
	var left, right rune = ' ', ' '
	if before == "" && i > 0 {
		left = lastRune(text[i-1].text)
	}
	if after == "" && i+1 < len(text) {
		right, _ = utf8.DecodeRuneInString(text[i+1].text)
	}
	first, _ := utf8.DecodeRuneInString(core)
	tight := func(outside, inside rune) bool {
		return !unicode.IsSpace(outside) && !unicode.IsPunct(outside) && !isText(inside)
	}
	mark := ""
	if !tight(left, first) && !tight(right, lastRune(core)) {
		if in.strike {
			mark += "~~"
		}
		if in.bold {
			mark += "**"
		}
		if in.italic {
			mark += "*"
		}
	}
	tag := ""
	switch in.raise {
	case 1:
		tag = "sup"
	case -1:
		tag = "sub"
	}
	b.WriteString(before + mark)
	if tag != "" {
		b.WriteString("<" + tag + ">")
	}
	b.WriteString(escapeMarkdown(core, inTable))
	if tag != "" {
		b.WriteString("</" + tag + ">")
	}
	b.WriteString(reverseMark(mark) + after)
}

func isText(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// reverseMark returns the end for a start: "~~***" for "***~~".
func reverseMark(mark string) string {
	if rest, ok := strings.CutPrefix(mark, "~~"); ok {
		return rest + "~~"
	}
	return mark
}

// escapeMarkdown puts a backslash before signs that would mean something, and
// before no others, so that the text stays readable.
func escapeMarkdown(s string, inTable bool) string {
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

// blockStart matches what at the start of a line makes it a heading, a list, a
// quotation, a rule or the definition of a link.
var blockStart = regexp.MustCompile(`^(#{1,6}(\s|$)|[-+](\s|$|-)|=+\s*$|>|\d{1,9}[.)](\s|$)|\[[^\]]*\]:|:?-{2,}|~~~)`)

// escapeStart makes a paragraph of what could be something else.
func escapeStart(s string) string {
	if !blockStart.MatchString(s) {
		return s
	}
	i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) })
	return s[:i] + `\` + s[i:]
}

// escapeEnd keeps the last sign of a heading.
func escapeEnd(s string) string {
	if strings.HasSuffix(s, "#") {
		return s[:len(s)-1] + `\#`
	}
	return s
}
