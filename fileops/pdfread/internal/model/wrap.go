package model

import "strings"

// leastWrap is the smallest character width, in per cent, that keeps the lines of a
// paragraph. Below it the text would look squeezed.
const leastWrap = 90

// wrapSlack is the part of a line that other programs may need more.
const wrapSlack = 0.003

// A chunk is text without a place to break a line.
type chunk struct {
	width, space float64 // space precedes it, unless it starts a line
}

// Wrap returns the largest character width in per cent at which a paragraph takes no
// more lines than in the PDF file, or 100 if there is none or the widths of its font are
// unknown. room is the width of its lines in the document. The first line is narrower by
// indent, or wider if that is negative.
func (d *Document) Wrap(lines []*Line, room, indent float64) int {
	if len(lines) < 2 || room <= 0 || room <= indent {
		return 100
	}
	chunks := d.chunks(lines)
	if chunks == nil {
		return 100
	}
	room, indent = room*(1-wrapSlack), indent*(1-wrapSlack)
	for k := 100; k >= leastWrap; k-- {
		if wrapped(chunks, float64(k)/100, room, indent) <= len(lines) {
			return k
		}
	}
	return 100
}

// wrapped returns how many lines the chunks take at a scale.
func wrapped(chunks []chunk, scale, room, indent float64) int {
	n, at := 1, indent
	for i, c := range chunks {
		w, s := c.width*scale, c.space*scale
		if i == 0 || at == 0 {
			s = 0
		}
		if i > 0 && at > 0 && at+s+w > room {
			n, at, s = n+1, 0, 0
		}
		at += s + w
	}
	return n
}

// chunks divides a paragraph where a line may end: at spaces and after hyphens. It
// returns nil if the width of the text is unknown.
func (d *Document) chunks(lines []*Line) []chunk {
	var out []chunk
	open := false // the last chunk continues without a place to break
	for li, l := range lines {
		for i, w := range l.Words {
			if w.RTL || WithoutSpaces(LastRune(w.Text())) {
				return nil
			}
			space := ""
			switch {
			case i == 0 && li > 0:
				space = LineJoint(lines[li-1], l)
			case i > 0 && !w.Glued:
				space = " "
			}
			open = open && space == ""
			for k := range w.Spans {
				sp := &w.Spans[k]
				text := sp.Text
				if i == len(l.Words)-1 && k == len(w.Spans)-1 && li+1 < len(lines) {
					text = d.Unhyphen(w, text, lines[li+1])
				}
				for part := range strings.SplitAfterSeq(text, "-") {
					width, ok := d.spanWidth(w, sp, part)
					gap, _ := d.spanWidth(w, sp, space)
					if !ok {
						return nil
					}
					if open {
						out[len(out)-1].width += width
					} else {
						out = append(out, chunk{width, gap})
					}
					open, space = !Hyphenated(part) || part == "-", ""
				}
			}
		}
	}
	return out
}
