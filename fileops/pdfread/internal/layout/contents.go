package layout

import (
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// maxLabel is the number of words that an entry of a contents list may have after
// its dots: a page number, perhaps with the chapter.
const maxLabel = 2

// Leader returns the index of the dots in an entry of a contents list, which are
// between a title and a page number; 0 if l is no entry.
func Leader(l *model.Line) int {
	n := len(l.Words)
	for i := n - 2; i > 0 && i >= n-1-maxLabel; i-- {
		if l.Words[i].Leader {
			if isLabel(l.Words[n-1].Text()) && (i == n-2 || !WideGap(l, n-1)) { // two columns of numbers are no label
				return i
			}
			break
		}
	}
	return 0
}

// TabGap reports whether the gap before the i-th word of l becomes a tab: a wide
// one, or that after the number of an entry of a contents list.
func TabGap(l *model.Line, i int) bool {
	return WideGap(l, i) || i == 1 && Leader(l) > 1 && !l.Words[0].RTL && l.Words[1].L-l.Words[0].R > 0.8*l.Size
}

// isLabel reports whether s can be a page number: digits, Roman numerals, or
// digits with the chapter, such as A-3.
func isLabel(s string) bool {
	return len(s) <= 8 && (strings.ContainsAny(s, "0123456789") || model.RomanValue(strings.ToLower(s)) > 0)
}

// linkContents connects the entries of contents lists with the headings that have
// their text. offset is the printed page number minus the page.
func linkContents(d *model.Document, blocks []*model.Block, offset int) {
	byTitle := make(map[string][]*model.Block)
	for _, b := range blocks {
		if t := model.Plain(b.Text()); b.Heading > 0 && t != "" && leaderOf(b) == nil {
			byTitle[t] = append(byTitle[t], b)
		}
	}
	marks := 0
	for _, b := range blocks {
		l := leaderOf(b)
		leaf := d.Leaves[b.Page]
		if l == nil || leaf == nil {
			continue
		}
		b.Heading = 0
		at := Leader(l)
		var title strings.Builder
		for _, line := range b.Lines[:len(b.Lines)-1] {
			title.WriteString(line.Text())
		}
		for _, w := range l.Words[:at] {
			title.WriteString(w.Text())
		}
		page, numbered := model.PageNumber(l.Words[len(l.Words)-1].Text())
		var target *model.Block
		for _, h := range byTitle[model.Plain(title.String())] {
			if h.Page > b.Page && (target == nil || numbered && h.Page == page-offset) {
				target = h
			}
		}
		if target == nil {
			continue
		}
		if target.Mark == 0 {
			marks++
			target.Mark = marks
		}
		d.Targets[target.Page] = true
		leaf.Links = append(leaf.Links, model.Link{Rect: b.Rect, Page: target.Page, Mark: target.Mark})
		for _, line := range b.Lines {
			for _, w := range line.Words {
				for k := range w.Spans {
					if old := w.Spans[k].Link; old == 0 || leaf.Links[old-1].URI == "" {
						w.Spans[k].Link = len(leaf.Links)
					}
				}
			}
		}
	}
}

// leaderOf returns the last line of b if b is an entry of a contents list, or nil.
func leaderOf(b *model.Block) *model.Line {
	if b.Kind != model.ParagraphBlock || len(b.Lines) == 0 {
		return nil
	}
	if l := b.Lines[len(b.Lines)-1]; Leader(l) > 0 {
		return l
	}
	return nil
}
