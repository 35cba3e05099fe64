package layout

import (
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Running headers and footers are lines at the top and bottom of pages that
// repeat, except for numbers.

const (
	runningZone  = 0.13 // fraction of the page height that they occupy
	runningLines = 3    // most lines of a header
	runningPages = 3    // pages on which a line must repeat
)

// findRunning finds headers and footers. taken is the set of their words. offset
// is the difference between a printed page number and the page; numbered reports
// whether page numbers are printed.
func findRunning(sheets []*model.Sheet) (out []model.Running, taken map[*model.Word]bool, offset int, numbered bool) {
	out, taken = make([]model.Running, len(sheets)), make(map[*model.Word]bool)
	if len(sheets) < runningPages {
		return out, taken, 0, false
	}
	type zones struct{ top, bottom []*model.Line }
	all := make([]zones, len(sheets))
	count := make(map[string]int)
	for i, s := range sheets {
		z := &all[i]
		var level []*model.Word
		for _, w := range s.Words {
			if w.Turn == 0 && (w.CY() < 2*runningZone*s.H || w.CY() > (1-2*runningZone)*s.H) {
				level = append(level, w)
			}
		}
		rs := Rows(level)
		for _, r := range rs[:min(len(rs), runningLines)] {
			if l := model.NewLine(r); l.B < runningZone*s.H {
				z.top = append(z.top, l)
			}
		}
		for k := len(rs) - 1; k >= 0 && k >= len(rs)-runningLines; k-- {
			if l := model.NewLine(rs[k]); l.T > (1-runningZone)*s.H {
				z.bottom = append(z.bottom, l) // from the bottom up
			}
		}
		for _, l := range z.top {
			count["t"+model.LineKey(l)]++
		}
		for _, l := range z.bottom {
			count["b"+model.LineKey(l)]++
		}
	}
	votes := make(map[int]int)
	for i := range sheets {
		take := func(zone string, ls []*model.Line) []*model.Line {
			for k, l := range ls {
				if count[zone+model.LineKey(l)] < runningPages {
					return ls[:k]
				}
			}
			return ls
		}
		z := &all[i]
		z.top, z.bottom = take("t", z.top), take("b", z.bottom)
		slices.Reverse(z.bottom)
		out[i].Page, out[i].Header, out[i].Footer = sheets[i].Number, z.top, z.bottom
		for _, l := range append(z.top[:len(z.top):len(z.top)], z.bottom...) {
			for _, w := range l.Words {
				taken[w] = true
				if n, ok := model.PageNumber(w.Text()); ok {
					votes[n-sheets[i].Number]++
				}
			}
		}
	}
	best := 0
	for o, n := range votes {
		if n > best || n == best && o < offset {
			best, offset = n, o
		}
	}
	numbered = best >= runningPages
	exact := make(map[string]int)
	texts := make([]string, len(sheets))
	for i := range out {
		texts[i] = exactText(&out[i], sheets[i].Number+offset, numbered)
		exact[texts[i]]++
	}
	for i := range out {
		out[i].Signature = texts[i]
		if exact[texts[i]] < runningPages && texts[i] != "|" {
			var b strings.Builder
			for _, l := range out[i].Header {
				b.WriteString(model.LineKey(l))
			}
			b.WriteByte('|')
			for _, l := range out[i].Footer {
				b.WriteString(model.LineKey(l))
			}
			out[i].Signature = b.String()
		}
	}
	return out, taken, offset, numbered
}

// exactText returns the text of r with a placeholder for the page number.
func exactText(r *model.Running, number int, numbered bool) string {
	var b strings.Builder
	write := func(ls []*model.Line) {
		for _, l := range ls {
			for _, w := range l.Words {
				if n, ok := model.PageNumber(w.Text()); ok && numbered && n == number {
					b.WriteString("\x00 ")
					continue
				}
				b.WriteString(w.Text() + " ")
			}
			b.WriteByte('\n')
		}
	}
	write(r.Header)
	b.WriteByte('|')
	write(r.Footer)
	return b.String()
}
