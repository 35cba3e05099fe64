package pdfread

import (
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// toDocx makes a Word document. All pages are read before the first is written,
// because what is a heading, a list or a header shows only in the whole.
func (e *Engine) toDocx(ctx context.Context, job *fileops.Job) error {
	r, err := e.read(ctx, job, 0.85)
	if err != nil {
		return err
	}
	d := layOut(ctx, r.sheets, r.marks)
	if err := cancelled(ctx); err != nil {
		return err
	}
	job.Progress(0.92)
	d.info, d.media = r.info, r.media.all
	return job.Write(fileops.ResultName(job.Input(), format.DOCX), func(w io.Writer) error {
		return writeDocx(ctx, w, d)
	})
}

// docInfo is what a file says about itself.
type docInfo struct{ title, author, subject string }

// A doc is a document as it is written.
type doc struct {
	info     docInfo
	body     style
	sections []*section
	media    []*media
	evenOdd  bool            // left pages have other headers than right ones
	targets  map[int]bool    // pages that links lead to
	leaves   map[int]*leaf   // by page number
	scales   map[*font]int   // width of characters in per cent, 100 if absent
	hyphens  map[string]bool // words with a hyphen in them, to know where one belongs
}

// A section is a part of a document with one layout of the page.
type section struct {
	nextPage bool // it starts on a new page
	w, h     float64
	margin   rect     // distances from the edges
	columns  []column // only their rectangles count; one or none is the normal case
	blocks   []*placed
	first    *running // header and footer of the first page, if different
	odd      *running // of right pages, or of all
	even     *running
	start    int // page number of the first page, 0 to go on counting
	offset   int // printed number less number of the page
	numbered bool
	page     int // the page its headers were taken from
}

// A placed block is one with what comes before it.
type placed struct {
	*block
	pageBreak   bool
	columnBreak bool
	bookmark    int // page number of which it is the start, 0 for none
}

// layOut lays out all pages and divides the result into sections.
func layOut(ctx context.Context, sheets []*sheet, marks []bookmark) *doc {
	d := &doc{targets: make(map[int]bool), leaves: make(map[int]*leaf), hyphens: make(map[string]bool)}
	runnings, taken, offset, numbered := findRunning(sheets)
	dropBackgrounds(sheets)
	y := &layouter{tables: true}
	var leaves []*leaf
	var all []*block
	for _, s := range sheets {
		if ctx.Err() != nil {
			return d
		}
		l := y.leaf(s, taken)
		leaves = append(leaves, l)
		d.leaves[l.number] = l
		for _, k := range l.links {
			if k.page > 0 {
				d.targets[k.page] = true
			}
		}
		for _, b := range l.bands {
			for _, c := range b.columns {
				all = append(all, c.blocks...)
			}
		}
	}
	d.body = bodyStyle(all)
	d.scales = fontScales(sheets)
	findHeadings(all, marks, d.body)
	(&lister{}).find(all)
	d.findHyphens(all)
	d.divide(leaves, runnings, offset, numbered)
	return d
}

// dropBackgrounds drops pictures that are at the same place on several pages:
// logos and the like. One of each is kept.
func dropBackgrounds(sheets []*sheet) {
	type key struct {
		m    *media
		l, t int
	}
	at := func(p *picture) key { return key{p.media, int(math.Round(p.l)), int(math.Round(p.t))} }
	count := make(map[key]int)
	for _, s := range sheets {
		for _, p := range s.pictures {
			count[at(p)]++
		}
	}
	seen := make(map[key]bool)
	for _, s := range sheets {
		s.pictures = slices.DeleteFunc(s.pictures, func(p *picture) bool {
			k := at(p)
			again := seen[k] && count[k] >= 3
			seen[k] = true
			return again
		})
	}
}

// findHyphens remembers the words that are written with a hyphen.
func (d *doc) findHyphens(all []*block) {
	for _, b := range all {
		for _, l := range b.lines {
			for _, w := range l.words {
				if t := hyphenKey(w.text()); strings.Contains(t, "-") {
					d.hyphens[t] = true
				}
			}
		}
	}
}

// hyphenKey returns a word without the signs around it, in lower case.
func hyphenKey(s string) string {
	return strings.ToLower(strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }))
}

// divide makes sections of the pages.
func (d *doc) divide(leaves []*leaf, runnings []running, offset int, numbered bool) {
	for from := 0; from < len(leaves); {
		to := from + 1
		run := pageRun{first: &runnings[from]}
		for to < len(leaves) && sameSize(leaves[from], leaves[to]) && run.takes(&runnings[to], leaves[to].number) {
			to++
		}
		part := leaves[from:to]
		margin, bottom := margins(part)
		base := section{
			w: part[0].w, h: part[0].h, margin: margin, nextPage: true,
			offset: offset, numbered: numbered, page: part[0].number,
		}
		base.odd, base.even = run.odd, run.even
		if base.odd == nil {
			base.odd = run.first
		}
		if base.even == nil {
			base.even = base.odd
		}
		if base.odd.signature == base.even.signature {
			base.even = nil
		} else {
			d.evenOdd = true
		}
		if same := run.at(part[0].number); same != nil && same.signature != run.first.signature {
			base.first = run.first
		}
		if numbered && part[0].number+offset > 0 {
			base.start = part[0].number + offset
		}
		d.fill(base, part, bottom)
		from = to
	}
	if len(d.sections) > 1 { // counting goes on by itself
		for _, s := range d.sections[1:] {
			s.start = 0
		}
	}
}

func sameSize(a, b *leaf) bool { return math.Abs(a.w-b.w) < 2 && math.Abs(a.h-b.h) < 2 }

// A pageRun finds pages whose headers can be those of one section: the first
// may differ, and left ones from right ones.
type pageRun struct {
	first     *running
	odd, even *running
}

func (r *pageRun) takes(p *running, number int) bool {
	if len(p.header)+len(p.footer) == 0 {
		return true
	}
	side := &r.odd
	if number%2 == 0 {
		side = &r.even
	}
	if *side == nil {
		*side = p
	}
	return (*side).signature == p.signature
}

// at returns what a page would have if it were not the first.
func (r *pageRun) at(number int) *running {
	if number%2 == 0 && r.even != nil {
		return r.even
	}
	if r.odd != nil {
		return r.odd
	}
	return r.even
}

// margins returns the margins of pages of one size, and where their text ends.
// Single pages that go further out do not count.
func margins(part []*leaf) (m rect, bottom float64) {
	var ls, ts, rs, bs []float64
	for _, l := range part {
		if l.content.r < l.content.l {
			continue
		}
		ls, ts = append(ls, l.content.l), append(ts, l.content.t)
		rs, bs = append(rs, l.content.r), append(bs, l.content.b)
	}
	w, h := part[0].w, part[0].h
	if len(ls) == 0 {
		return rect{0.1 * w, 0.08 * h, 0.1 * w, 0.08 * h}, 0.92 * h
	}
	at := func(v []float64, q float64) float64 {
		slices.Sort(v)
		return v[int(q*float64(len(v)-1)+0.5)]
	}
	m = rect{at(ls, 0.05), at(ts, 0.05), w - at(rs, 0.95), 0}
	bottom = at(bs, 0.95)
	clamp := func(v, least, most float64) float64 { return min(max(v, least), most) }
	m.l, m.r = clamp(m.l, 14, 0.45*w), clamp(m.r, 14, 0.45*w)
	m.t = clamp(m.t, 14, 0.45*h)
	// Other programs need a bit more room for the same text; it is taken
	// from the lower margin, so that a page stays a page.
	m.b = clamp(h-bottom-0.025*h, 14, 0.3*h)
	// Their fonts may be a bit wider too, and the longest line must not wrap.
	m.r = clamp(m.r-0.007*w, 14, 0.45*w)
	sparse := 0
	for _, l := range part {
		if !dense(l) {
			sparse++
		}
	}
	if len(part) == 1 { // nothing comes after it that could move up
		m.b = 14
	}
	if 2*sparse > len(part) { // slides and the like end anywhere
		m.b, m.r = 14, min(m.r, 0.04*w)
	}
	return m, bottom
}

// fill puts the blocks of pages into sections that look like base.
func (d *doc) fill(base section, part []*leaf, bottom float64) {
	height := bottom - base.margin.t
	var cur *section
	first := true
	start := func(columns []column, nextPage bool) {
		s := base
		s.columns, s.nextPage = columns, nextPage
		if !first {
			s.start, s.first = 0, nil
		}
		first = false
		cur = &s
		d.sections = append(d.sections, cur)
	}
	flows := false // the page before was full, so that text goes on without a break
	for i, l := range part {
		newPage := i > 0 && !flows
		anchor := l.number
		add := func(b *block, columnBreak bool) {
			p := &placed{block: b, pageBreak: newPage, columnBreak: columnBreak && !newPage}
			newPage = false
			if anchor > 0 && d.targets[anchor] {
				p.bookmark = anchor
			}
			anchor = 0
			cur.blocks = append(cur.blocks, p)
		}
		if len(l.bands) == 0 || !slices.ContainsFunc(l.bands, func(b band) bool { return len(b.columns) > 0 }) {
			if cur == nil {
				start(nil, true)
			}
			newPage = i > 0
			add(&block{kind: paragraphBlock, page: l.number}, false)
			flows = false
			continue
		}
		for k, b := range l.bands {
			columns := b.columns
			if len(columns) == 1 {
				columns = nil
			}
			switch {
			case cur == nil:
				start(columns, true)
			case !sameColumns(cur.columns, columns):
				start(columns, newPage)
				newPage = false
			}
			if len(columns) == 0 {
				for _, c := range b.columns {
					for _, bl := range c.blocks {
						d.replace(bl, base)
						add(bl, false)
					}
				}
				continue
			}
			lastBand := k == len(l.bands)-1
			for j, c := range columns {
				for n, bl := range c.blocks {
					full := j > 0 && columns[j-1].b > bottom-0.12*height
					add(bl, n == 0 && j > 0 && !(full && lastBand))
				}
			}
		}
		if !flowsOn(l, bottom, height) {
			flows = false
		} else {
			flows = i+1 < len(part) && dense(part[i+1])
		}
	}
	for _, s := range d.sections {
		s.join()
	}
	d.fit(base)
}

// replace sets the indents of a block against the margins of the page, instead
// of the column that was found, which may be narrower.
func (d *doc) replace(b *block, base section) {
	left, right := base.margin.l, base.w-base.margin.r
	if b.kind != paragraphBlock || b.align == alignCentre && math.Abs(b.region.cx()-(left+right)/2) < 8 {
		b.region = rect{left, b.region.t, right, b.region.b}
		return
	}
	if shift := b.region.l - left; shift > 2 {
		b.left += shift
		if b.list != nil {
			b.list.indent += shift
			b.list.text += shift
		}
	}
	switch free := right - b.region.r; {
	case b.align == alignRight && free > 2, b.align == alignCentre && free > 2, b.align == alignJustify && free > 6, len(b.lines) > 2 && free > 12:
		b.right += free
	}
	b.region = rect{left, b.region.t, right, b.region.b}
}

// flowsOn tells whether a page is full of text, so that it ends where it does
// only because the paper does.
func flowsOn(l *leaf, bottom, height float64) bool {
	last := l.bands[len(l.bands)-1]
	c := last.columns[len(last.columns)-1]
	return dense(l) && c.b > bottom-0.12*height
}

// dense tells whether a page is one of running text, unlike a slide or a title.
func dense(l *leaf) bool {
	lines := 0
	for _, b := range l.bands {
		for _, c := range b.columns {
			for _, bl := range c.blocks {
				lines += len(bl.lines)
				if bl.table != nil {
					lines += len(bl.table.ys) - 1
				}
			}
		}
	}
	return lines >= 18
}

func sameColumns(a, b []column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Abs(a[i].l-b[i].l) > 8 || math.Abs(a[i].w()-b[i].w()) > 24 {
			return false
		}
	}
	return true
}

// join marks paragraphs that go on in the next column or on the next page, and
// joins tables that do.
func (s *section) join() {
	for i := 1; i < len(s.blocks); i++ {
		a, b := s.blocks[i-1], s.blocks[i]
		if a.kind == tableBlock && b.kind == tableBlock && a.page != b.page && !b.pageBreak && b.bookmark == 0 && a.table.continues(b.table) {
			a.table.follow(b.table)
			a.page = b.page
			s.blocks = slices.Delete(s.blocks, i, i+1)
			i--
			continue
		}
		if b.pageBreak || b.columnBreak || a.kind != paragraphBlock || b.kind != paragraphBlock || a.joined {
			continue
		}
		if a.page == b.page && a.b < b.t { // one below the other: they were divided for a reason
			continue
		}
		if len(a.lines) == 0 || len(b.lines) == 0 || a.heading != b.heading || a.heading != 0 || b.list != nil {
			continue
		}
		x, y := a.lines[len(a.lines)-1], b.lines[0]
		if x.size != y.size || a.align == alignCentre || b.align == alignCentre || b.first > 3 || len(y.words) == 0 {
			continue
		}
		wide := x.r > a.region.r-0.12*a.region.w() || hyphenated(x.text())
		if wide && (!endsSentence(x.text()) || startsLower(y.text())) {
			a.joined = true
		}
	}
}

func hyphenated(s string) bool {
	r := lastRune(s)
	return r == '-' || r == '\u00ad' || r == '\u2010'
}

// fit makes room on pages that must not get longer than they are: space
// between blocks goes first, then the size of pictures.
func (d *doc) fit(base section) {
	room := base.h - base.margin.t - base.margin.b
	for _, s := range d.sections {
		if len(s.columns) > 1 || s.page != base.page {
			continue
		}
		for i := 0; i < len(s.blocks); {
			j := i + 1
			for j < len(s.blocks) && !s.blocks[j].pageBreak {
				j++
			}
			if s.blocks[i].page == s.blocks[j-1].page { // one page by itself
				fitPage(s.blocks[i:j], room)
			}
			i = j
		}
	}
}

func fitPage(bs []*placed, room float64) {
	var text, space, pics float64
	for _, b := range bs {
		space += b.before
		switch b.kind {
		case pictureBlock:
			pics += b.h()
		default:
			text += b.height()
		}
	}
	// Text may need more lines in another font, so space is given up before
	// the page is full.
	if over := text + space + pics - 0.8*room; over > 0 && space > 0 {
		k := max(0.25, 1-over/space)
		for _, b := range bs {
			b.before *= k
		}
		space *= k
	}
	if over := text + space + pics - 0.9*room; over > 0 && pics > 0 {
		k := max(0.35, 1-over/pics)
		for _, b := range bs {
			for _, p := range b.pictures {
				p.r, p.b = p.l+p.w()*k, p.t+p.h()*k
			}
		}
		pics *= k
	}
	// The rest, if it is not much, is taken from between the lines.
	if over := text + space + pics - 0.97*room; over > 0 && over < 0.12*text {
		k := 1 - over/text
		for _, b := range bs {
			if b.kind == paragraphBlock && len(b.lines) > 0 {
				b.pitch = k * b.linePitch()
			}
		}
	}
}

// height estimates how high a block will be.
func (b *block) height() float64 {
	if b.kind != paragraphBlock || len(b.lines) == 0 {
		return b.h()
	}
	return float64(len(b.lines)) * b.linePitch()
}

// linePitch is the distance of base lines, also for a single line.
func (b *block) linePitch() float64 {
	size := b.lines[0].size
	if b.pitch > 0.8*size {
		return b.pitch
	}
	if r, _ := utf8.DecodeRuneInString(b.lines[0].text()); withoutSpaces(r) {
		return 1.4 * size // fonts for these scripts are higher
	}
	return 1.2 * size
}
