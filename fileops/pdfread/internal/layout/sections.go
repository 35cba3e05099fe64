package layout

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Document lays out all pages and divides the result into sections. If fixed is
// set, pages that flowing text cannot show become [model.Fixed]; their pictures
// are still missing. Otherwise, the document lists pages that lose graphics.
func Document(ctx context.Context, sheets []*model.Sheet, marks []model.Bookmark, fixed bool) *model.Document {
	d := &model.Document{Targets: make(map[int]bool), Leaves: make(map[int]*model.Leaf), Hyphens: make(map[string]bool)}
	runnings, taken, offset, numbered := findRunning(sheets)
	dropBackgrounds(sheets)
	y := &layouter{tables: true}
	var leaves []*model.Leaf
	pages := make(map[*model.Leaf]*model.Fixed)
	var all []*model.Block
	for _, s := range sheets {
		if ctx.Err() != nil {
			return d
		}
		l := y.leaf(s, taken)
		leaves = append(leaves, l)
		findNotes(s, l)
		switch left := leftover(s, l); {
		case !fixed:
			if left.matter(s) {
				d.Bare = append(d.Bare, s.Number)
			}
			if inPictures(s) {
				d.Labelled = append(d.Labelled, s.Number)
			}
		case s.Form == model.FormAny && flows(s, l, left):
			l.Behind = left.behind(s)
		default:
			dropNotes(s)
			l.Notes = nil
			pages[l] = fix(s)
		}
		for _, n := range l.Notes {
			d.Notes = append(d.Notes, n)
			n.ID = len(d.Notes)
		}
		d.Leaves[l.Number] = l
		for _, k := range l.Links {
			if k.Page > 0 {
				d.Targets[k.Page] = true
			}
		}
		for _, b := range l.Bands {
			for _, c := range b.Columns {
				all = append(all, c.Blocks...)
			}
		}
	}
	d.Body = bodyStyle(all)
	d.Scales = model.FontScales(sheets)
	findHeadings(all, marks, d.Body)
	linkContents(d, all, offset)
	(&lister{}).find(all)
	findHyphens(d, all)
	makeSections(d, leaves, pages, runnings, offset, numbered)
	return d
}

// dropBackgrounds drops pictures that repeat at the same position on several
// pages, such as logos. It keeps one copy of each.
func dropBackgrounds(sheets []*model.Sheet) {
	type key struct {
		m    *model.Media
		l, t int
	}
	at := func(p *model.Picture) key { return key{p.Media, int(math.Round(p.L)), int(math.Round(p.T))} }
	count := make(map[key]int)
	for _, s := range sheets {
		for _, p := range s.Pictures {
			count[at(p)]++
		}
	}
	seen := make(map[key]bool)
	for _, s := range sheets {
		if len(s.Words) == 0 {
			continue // nothing else is on the page
		}
		s.Pictures = slices.DeleteFunc(s.Pictures, func(p *model.Picture) bool {
			k := at(p)
			again := seen[k] && count[k] >= 3
			seen[k] = true
			return again
		})
	}
}

// findHyphens records the words that are written with a hyphen.
func findHyphens(d *model.Document, all []*model.Block) {
	for _, b := range all {
		for _, l := range b.Lines {
			for _, w := range l.Words {
				if t := model.HyphenKey(w.Text()); strings.Contains(t, "-") {
					d.Hyphens[t] = true
				}
			}
		}
	}
}

// makeSections groups the pages into sections.
func makeSections(d *model.Document, leaves []*model.Leaf, pages map[*model.Leaf]*model.Fixed, runnings []model.Running, offset int, numbered bool) {
	for from := 0; from < len(leaves); {
		to := from + 1
		if f := pages[leaves[from]]; f != nil {
			d.Sections = append(d.Sections, &model.Section{NextPage: true, W: f.W, H: f.H, Odd: new(model.Running), Page: f.Number, Fixed: f})
			from = to
			continue
		}
		run := pageRun{first: &runnings[from]}
		for to < len(leaves) && pages[leaves[to]] == nil && sameSize(leaves[from], leaves[to]) && run.takes(&runnings[to], leaves[to].Number) {
			to++
		}
		part := leaves[from:to]
		margin, bottom := margins(part)
		base := model.Section{
			W: part[0].W, H: part[0].H, Margin: margin, NextPage: true,
			Offset: offset, Numbered: numbered, Page: part[0].Number,
		}
		base.Odd, base.Even = run.odd, run.even
		if base.Odd == nil {
			base.Odd = run.first
		}
		if base.Even == nil {
			base.Even = base.Odd
		}
		if base.Odd.Signature == base.Even.Signature {
			base.Even = nil
		} else {
			d.EvenOdd = true
		}
		if same := run.at(part[0].Number); same != nil && same.Signature != run.first.Signature {
			base.First = run.first
		}
		if numbered && part[0].Number+offset > 0 {
			base.Start = part[0].Number + offset
		}
		fillSection(d, base, part, bottom)
		from = to
	}
	if len(d.Sections) > 1 { // numbering continues automatically
		for _, s := range d.Sections[1:] {
			s.Start = 0
		}
	}
}

func sameSize(a, b *model.Leaf) bool { return math.Abs(a.W-b.W) < 2 && math.Abs(a.H-b.H) < 2 }

// A pageRun finds pages whose headers fit into one section. The first page may
// differ, and left pages from right pages.
type pageRun struct {
	first     *model.Running
	odd, even *model.Running
}

func (r *pageRun) takes(p *model.Running, number int) bool {
	if len(p.Header)+len(p.Footer) == 0 {
		return true
	}
	side := &r.odd
	if number%2 == 0 {
		side = &r.even
	}
	if *side == nil {
		*side = p
	}
	return (*side).Signature == p.Signature
}

// at returns the header of a page as if it were not the first.
func (r *pageRun) at(number int) *model.Running {
	if number%2 == 0 && r.even != nil {
		return r.even
	}
	if r.odd != nil {
		return r.odd
	}
	return r.even
}

// noteSlack is the room that other programs get on pages with footnotes, as a part
// of the page height.
const noteSlack = 0.015

// margins returns the margins of pages of one size, and the bottom of their
// text. It ignores single pages with larger text areas.
func margins(part []*model.Leaf) (m geom.Rect, bottom float64) {
	var ls, ts, rs, bs []float64
	for _, l := range part {
		if l.Content.R < l.Content.L {
			continue
		}
		ls, ts = append(ls, l.Content.L), append(ts, l.Content.T)
		rs, bs = append(rs, l.Content.R), append(bs, l.Content.B)
	}
	w, h := part[0].W, part[0].H
	if len(ls) == 0 {
		return geom.Rect{L: 0.1 * w, T: 0.08 * h, R: 0.1 * w, B: 0.08 * h}, 0.92 * h
	}
	at := func(v []float64, q float64) float64 {
		slices.Sort(v)
		return v[int(q*float64(len(v)-1)+0.5)]
	}
	m = geom.Rect{L: at(ls, 0.05), T: at(ts, 0.05), R: w - at(rs, 0.95), B: 0}
	bottom = at(bs, 0.95)
	const least = 14
	clamp := func(v, most float64) float64 { return min(max(v, least), most) }
	m.L, m.R = clamp(m.L, 0.45*w), clamp(m.R, 0.45*w)
	// Other programs may need more room for the same text. It comes from the lower
	// margin, so that no page becomes two.
	m.B = clamp(h-bottom-0.05*h, 0.3*h)
	noted := slices.ContainsFunc(part, func(l *model.Leaf) bool { return len(l.Notes) > 0 })
	if noted { // footnotes are at the bottom of the text
		m.B = clamp(h-bottom-noteSlack*h, 0.3*h)
	}
	m.T = clamp(m.T, 0.95*h-m.B)
	// Their fonts may be slightly wider too, and the longest line must not wrap.
	m.R = clamp(m.R-0.007*w, 0.45*w)
	sparse := 0
	for _, l := range part {
		if !dense(l) {
			sparse++
		}
	}
	if len(part) == 1 && !noted { // no later text could move up
		m.B = 14
	}
	if 2*sparse > len(part) && !noted { // slides and similar pages end anywhere
		m.B, m.R = 14, min(m.R, 0.04*w)
	}
	return m, bottom
}

// maxGap limits the space above a block, points.
const maxGap = 300

// fillSection adds the blocks of pages to sections with the layout of base.
func fillSection(d *model.Document, base model.Section, part []*model.Leaf, bottom float64) {
	height := bottom - base.Margin.T
	var cur *model.Section
	first := true
	start := func(columns []model.Column, nextPage bool) {
		s := base
		s.Columns, s.NextPage = columns, nextPage
		if !first {
			s.Start, s.First = 0, nil
		}
		first = false
		cur = &s
		d.Sections = append(d.Sections, cur)
	}
	flows := false // the previous page was full, so paragraphs and tables may continue
	for i, l := range part {
		newPage, goesOn := i > 0, flows
		anchor := l.Number
		above := 0.0 // space above the next block
		if newPage {
			above = l.Content.T - base.Margin.T
		}
		add := func(b *model.Block, columnBreak bool) {
			p := &model.Placed{Block: b, PageBreak: newPage && !goesOn, Continues: newPage && goesOn, ColumnBreak: columnBreak && !newPage}
			newPage = false
			if anchor > 0 {
				p.Behind = l.Behind
				if d.Targets[anchor] {
					p.Bookmark = anchor
				}
			}
			anchor = 0
			if above > 0 {
				b.Before, above = max(b.Before, min(above, maxGap)), 0
			}
			cur.Blocks = append(cur.Blocks, p)
		}
		if len(l.Bands) == 0 || !slices.ContainsFunc(l.Bands, func(b model.Band) bool { return len(b.Columns) > 0 }) {
			if cur == nil {
				start(nil, true)
			}
			goesOn = false
			add(&model.Block{Kind: model.ParagraphBlock, Page: l.Number}, false)
			flows = false
			continue
		}
		for k, b := range l.Bands {
			if k > 0 {
				above = b.T - l.Bands[k-1].B
			}
			columns := b.Columns
			if len(columns) == 1 {
				columns = nil
			}
			switch {
			case cur == nil:
				start(columns, true)
			case !sameColumns(cur.Columns, columns):
				start(columns, newPage)
				newPage = false
			}
			if len(columns) == 0 {
				for _, c := range b.Columns {
					for _, bl := range c.Blocks {
						replaceBlock(bl, base)
						add(bl, false)
					}
				}
				continue
			}
			lastBand := k == len(l.Bands)-1
			for j, c := range columns {
				for n, bl := range c.Blocks {
					full := j > 0 && columns[j-1].B > bottom-0.12*height
					add(bl, n == 0 && j > 0 && (!full || !lastBand))
				}
			}
		}
		if !flowsOn(l, bottom, height) {
			flows = false
		} else {
			flows = i+1 < len(part) && dense(part[i+1])
		}
	}
	for _, s := range d.Sections {
		joinBlocks(s)
	}
	fitSections(d, base)
}

// replaceBlock sets the indents of a block relative to the page margins. The
// column that was found may be narrower.
func replaceBlock(b *model.Block, base model.Section) {
	left, right := base.Margin.L, base.W-base.Margin.R
	if b.Kind != model.ParagraphBlock || b.Align == model.AlignCentre && math.Abs(b.Region.CX()-(left+right)/2) < 8 {
		b.Region = geom.Rect{L: left, T: b.Region.T, R: right, B: b.Region.B}
		return
	}
	if shift := b.Region.L - left; shift > 2 {
		b.Left += shift
		if b.List != nil {
			b.List.Indent += shift
			b.List.Text += shift
		}
	}
	switch free := right - b.Region.R; {
	case b.Align == model.AlignRight && free > 2, b.Align == model.AlignCentre && free > 2, b.Align == model.AlignJustify && free > 6, len(b.Lines) > 2 && free > 12 && b.W() > 12*b.Lines[0].Size:
		b.Right += free
	}
	b.Region = geom.Rect{L: left, T: b.Region.T, R: right, B: b.Region.B}
}

// flowsOn reports whether a page is full of text, so that only the paper size
// ends it.
func flowsOn(l *model.Leaf, bottom, height float64) bool {
	last := l.Bands[len(l.Bands)-1]
	c := last.Columns[len(last.Columns)-1]
	return dense(l) && c.B > bottom-0.12*height
}

// dense reports whether a page is running text, unlike a slide or a title page.
func dense(l *model.Leaf) bool {
	lines := 0
	for _, b := range l.Bands {
		for _, c := range b.Columns {
			for _, bl := range c.Blocks {
				lines += len(bl.Lines)
				if bl.Table != nil {
					lines += len(bl.Table.Ys) - 1
				}
			}
		}
	}
	return lines >= 18
}

func sameColumns(a, b []model.Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Abs(a[i].L-b[i].L) > 8 || math.Abs(a[i].W()-b[i].W()) > 24 {
			return false
		}
	}
	return true
}

// joinBlocks marks paragraphs that continue in the next column or on the next
// page, and joins tables that continue.
func joinBlocks(s *model.Section) {
	for i := 1; i < len(s.Blocks); i++ {
		a, b := s.Blocks[i-1], s.Blocks[i]
		if a.Kind == model.TableBlock && b.Kind == model.TableBlock && a.Page != b.Page && !b.PageBreak && b.Bookmark == 0 && a.Table.Continues(b.Table) {
			a.Table.Follow(b.Table)
			a.Page = b.Page
			s.Blocks = slices.Delete(s.Blocks, i, i+1)
			i--
			continue
		}
		if b.PageBreak || b.ColumnBreak || a.Kind != model.ParagraphBlock || b.Kind != model.ParagraphBlock || a.Joined {
			continue
		}
		if a.Page == b.Page && a.B < b.T { // vertical neighbours were split for a reason
			continue
		}
		if len(a.Lines) == 0 || len(b.Lines) == 0 || a.Heading != b.Heading || a.Heading != 0 || b.List != nil {
			continue
		}
		x, y := a.Lines[len(a.Lines)-1], b.Lines[0]
		if x.Size != y.Size || a.Align == model.AlignCentre || b.Align == model.AlignCentre || b.First > 3 || len(y.Words) == 0 {
			continue
		}
		wide := x.R > a.Region.R-0.12*a.Region.W() || model.Hyphenated(x.Text())
		if wide && (!endsSentence(x.Text()) || model.StartsLower(y.Text())) {
			a.Joined = true
		}
	}
}

// fitSections makes room on pages that must not grow: first from the space
// between blocks, then from the size of pictures.
func fitSections(d *model.Document, base model.Section) {
	bottom := base.H - base.Margin.B
	for _, r := range []*model.Running{base.Odd, base.Even, base.First} {
		if r != nil && len(r.Footer) > 0 {
			bottom = min(bottom, r.Footer[0].T)
		}
	}
	room := bottom - base.Margin.T
	for _, s := range d.Sections {
		if len(s.Columns) > 1 || s.Page != base.Page {
			continue
		}
		for i := 0; i < len(s.Blocks); {
			j := i + 1
			for j < len(s.Blocks) && !s.Blocks[j].PageBreak && !s.Blocks[j].Continues {
				j++
			}
			if s.Blocks[i].Page == s.Blocks[j-1].Page { // no table continues on the next page
				fitPage(s.Blocks[i:j], room)
			}
			i = j
		}
	}
}

// tableSlack is how much higher than the text and its margins a row of a table may
// become, points: programs add the borders.
const tableSlack = 0.5

func fitPage(bs []*model.Placed, room float64) {
	var text, space, pics float64
	for _, b := range bs {
		space += b.Before
		switch b.Kind {
		case model.PictureBlock:
			pics += b.H()
		case model.TableBlock:
			text += flowHeight(b.Block) + tableSlack*float64(len(b.Table.Ys))
		default:
			text += b.Height()
		}
		if n := notesHeight(b.Block); n > 0 {
			text += n
		}
	}
	// Spaces shrink first. They stay if everything fits, so that text keeps its place.
	if over := text + space + pics - 0.985*room; over > 0 && space > 0 {
		k := max(0.25, 1-over/space)
		for _, b := range bs {
			b.Before *= k
		}
		space *= k
	}
	if over := text + space + pics - 0.95*room; over > 0 && pics > 0 {
		k := max(0.35, 1-over/pics)
		for _, b := range bs {
			for _, p := range b.Pictures {
				p.R, p.B = p.L+p.W()*k, p.T+p.H()*k
			}
		}
		pics *= k
	}
	// A small remainder comes from the line spacing.
	if over := text + space + pics - 0.985*room; over > 0 && over < 0.12*text {
		k := 1 - over/text
		for _, b := range bs {
			if b.Kind == model.ParagraphBlock && len(b.Lines) > 0 {
				b.Pitch = k * b.LinePitch()
			}
		}
	}
}
