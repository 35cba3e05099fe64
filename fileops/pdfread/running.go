package pdfread

import (
	"strconv"
	"strings"
	"unicode"
)

// Running headers and footers are the lines at the top and at the bottom of
// pages that come again and again, apart from numbers.

const (
	runningZone  = 0.13 // part of the height of a page in which they are
	runningLines = 3    // how many there are at most
	runningPages = 3    // on how many pages a line must be
)

// A running is the header and footer of one page.
type running struct {
	page           int // it was taken from, from 1
	header, footer []*line
	signature      string // equal for pages with the same text, but for page numbers
}

// findRunning finds headers and footers. taken gets the words of them. offset
// is what must be added to the number of a page for the number printed on it;
// numbered tells that there is one.
func findRunning(sheets []*sheet) (out []running, taken map[*word]bool, offset int, numbered bool) {
	out, taken = make([]running, len(sheets)), make(map[*word]bool)
	if len(sheets) < runningPages {
		return out, taken, 0, false
	}
	type zones struct{ top, bottom []*line }
	all := make([]zones, len(sheets))
	count := make(map[string]int)
	for i, s := range sheets {
		z := &all[i]
		var level []*word
		for _, w := range s.words {
			if w.turn == 0 && (w.cy() < 2*runningZone*s.h || w.cy() > (1-2*runningZone)*s.h) {
				level = append(level, w)
			}
		}
		rs := rows(level)
		for _, r := range rs[:min(len(rs), runningLines)] {
			if l := newLine(r); l.b < runningZone*s.h {
				z.top = append(z.top, l)
			}
		}
		for k := len(rs) - 1; k >= 0 && k >= len(rs)-runningLines; k-- {
			if l := newLine(rs[k]); l.t > (1-runningZone)*s.h {
				z.bottom = append(z.bottom, l) // from the bottom up
			}
		}
		for _, l := range z.top {
			count["t"+lineKey(l)]++
		}
		for _, l := range z.bottom {
			count["b"+lineKey(l)]++
		}
	}
	votes := make(map[int]int)
	for i := range sheets {
		take := func(zone string, ls []*line) []*line {
			for k, l := range ls {
				if count[zone+lineKey(l)] < runningPages {
					return ls[:k]
				}
			}
			return ls
		}
		z := &all[i]
		z.top, z.bottom = take("t", z.top), take("b", z.bottom)
		reverse(z.bottom)
		out[i].page, out[i].header, out[i].footer = sheets[i].number, z.top, z.bottom
		for _, l := range append(z.top[:len(z.top):len(z.top)], z.bottom...) {
			for _, w := range l.words {
				taken[w] = true
				if n, ok := pageNumber(w.text()); ok {
					votes[n-sheets[i].number]++
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
		texts[i] = out[i].exact(sheets[i].number+offset, numbered)
		exact[texts[i]]++
	}
	for i := range out {
		out[i].signature = texts[i]
		if exact[texts[i]] < runningPages && texts[i] != "|" {
			var b strings.Builder
			for _, l := range out[i].header {
				b.WriteString(lineKey(l))
			}
			b.WriteByte('|')
			for _, l := range out[i].footer {
				b.WriteString(lineKey(l))
			}
			out[i].signature = b.String()
		}
	}
	return out, taken, offset, numbered
}

// exact returns the text of r with a placeholder for the page number.
func (r *running) exact(number int, numbered bool) string {
	var b strings.Builder
	write := func(ls []*line) {
		for _, l := range ls {
			for _, w := range l.words {
				if n, ok := pageNumber(w.text()); ok && numbered && n == number {
					b.WriteString("\x00 ")
					continue
				}
				b.WriteString(w.text() + " ")
			}
			b.WriteByte('\n')
		}
	}
	write(r.header)
	b.WriteByte('|')
	write(r.footer)
	return b.String()
}

// lineKey returns what is the same in the header of each page: the text with
// one sign for each number, also Roman ones.
func lineKey(l *line) string {
	var b strings.Builder
	for _, w := range l.words {
		t := w.text()
		if romanValue(strings.ToLower(t)) > 0 && len(t) < 6 {
			b.WriteString("# ")
			continue
		}
		digits := false
		for _, r := range t {
			if unicode.IsDigit(r) {
				if !digits {
					b.WriteByte('#')
				}
				digits = true
				continue
			}
			digits = false
			b.WriteRune(r)
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func pageNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && len(s) <= 5
}
