package layout

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// What makes paragraphs at the bottom of a page footnotes.
const (
	noteSize    = 0.95 // largest size of their text, relative to that of the page
	noteZone    = 0.4  // part of the page height above them
	noteLetters = 3    // least letters
	mostBefore  = 4    // space above a footnote, points
	noteRule    = 0.6  // longest rule above them, relative to the width of the page
)

// findNotes makes footnotes of the paragraphs at the bottom of a page that start
// with a raised mark, and are smaller than other text. It does so only if each
// mark occurs exactly once, raised, in the paragraphs above. Their words then
// point to the notes, which leave the flow.
func findNotes(s *model.Sheet, l *model.Leaf) []*model.Note {
	var cols []*model.Column
	for i := range l.Bands {
		if len(l.Bands[i].Columns) != 1 { // programs put notes below the columns of a section
			return nil
		}
		cols = append(cols, &l.Bands[i].Columns[0])
	}
	if len(cols) == 0 {
		return nil
	}
	col := cols[len(cols)-1]
	usual := usualSize(cols)
	start := len(col.Blocks)
	for start > 0 && isSmall(col.Blocks[start-1], noteSize*usual) && col.Blocks[start-1].T > noteZone*s.H {
		start--
	}
	for start < len(col.Blocks) && noteMark(col.Blocks[start]) == "" {
		start++
	}
	var notes []*model.Note
	for _, b := range col.Blocks[start:] {
		if m := noteMark(b); m != "" {
			notes = append(notes, &model.Note{Mark: m, Blocks: []*model.Block{b}})
		} else {
			last := notes[len(notes)-1]
			last.Blocks = append(last.Blocks, b)
		}
	}
	refs := make([]*model.Word, len(notes))
	for i, n := range notes {
		if slices.ContainsFunc(notes[:i], func(o *model.Note) bool { return o.Mark == n.Mark }) || letters(n.Blocks[0].Text()) < noteLetters {
			return nil
		}
		for k, c := range cols {
			bs := c.Blocks
			if k == len(cols)-1 {
				bs = bs[:start]
			}
			for _, b := range bs {
				for _, w := range raisedWords(b, n.Mark) {
					if refs[i] != nil {
						return nil
					}
					refs[i] = w
				}
			}
		}
		if refs[i] == nil {
			return nil
		}
	}
	if len(notes) == 0 {
		return nil
	}
	top := col.Blocks[start].T
	above := top - 3*usual
	if start > 0 {
		above = col.Blocks[start-1].B
	}
	for _, r := range s.Rules {
		if r.Horizontal && r.Pos > above && r.Pos < top+1 && r.To-r.From < noteRule*s.W {
			r.Used = true // programs draw one themselves
		}
	}
	for i, n := range notes {
		n.Blocks[0] = withoutMark(n.Blocks[0])
		refs[i].Note = n
	}
	l.Notes = notes
	col.Blocks = col.Blocks[:start]
	return notes
}

// usualSize returns the size of most characters of paragraphs.
func usualSize(cols []*model.Column) (size float64) {
	count := make(map[float64]int)
	for _, c := range cols {
		for _, b := range c.Blocks {
			for _, l := range b.Lines {
				if count[l.Size] += len(l.Text()); count[l.Size] > count[size] {
					size = l.Size
				}
			}
		}
	}
	return size
}

func isSmall(b *model.Block, most float64) bool {
	return b.Kind == model.ParagraphBlock && len(b.Lines) > 0 && b.Lines[0].Words[0].Turn == 0 && b.Lines[0].Size <= most && b.Align != model.AlignCentre
}

// noteMark returns the raised mark at the start of a paragraph, or "".
func noteMark(b *model.Block) string {
	if len(b.Lines) == 0 {
		return ""
	}
	return lineMark(b.Lines[0])
}

// lineMark returns the raised mark at the start of a line, or "".
func lineMark(l *model.Line) string {
	w := l.Words[0]
	if sp := &w.Spans[0]; sp.Raise == 1 && isMark(sp.Text) && (len(w.Spans) > 1 || len(l.Words) > 1) {
		return sp.Text
	}
	return ""
}

// isMark reports whether s can be the mark of a footnote: a number, or up to three
// signs.
func isMark(s string) bool {
	n := utf8.RuneCountInString(s)
	return n > 0 && n <= 3 && (!strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) || strings.Trim(s, "*†‡§¶") == "")
}

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}

// raisedWords returns the words of a paragraph that a raised mark follows.
func raisedWords(b *model.Block, mark string) (out []*model.Word) {
	for _, l := range b.Lines {
		for i, w := range l.Words {
			for k := range w.Spans {
				// A mark follows a word: a number of a formula precedes its letter.
				if sp := &w.Spans[k]; sp.Raise == 1 && sp.Text == mark && (k > 0 || i > 0) && k == len(w.Spans)-1 || sp.Raise == 1 && sp.Text == mark && k > 0 && !model.HasLetter(w.Spans[k+1].Text) {
					out = append(out, w)
				}
			}
		}
	}
	return out
}

// withoutMark returns a copy of b without the mark of a footnote at its start.
func withoutMark(b *model.Block) *model.Block {
	c := *b
	c.Lines = slices.Clone(b.Lines)
	l := *b.Lines[0]
	l.Words = slices.Clone(l.Words)
	if w := *l.Words[0]; len(w.Spans) > 1 {
		w.Spans = w.Spans[1:]
		l.Words[0] = &w
	} else {
		l.Words = l.Words[1:]
	}
	c.Lines[0] = &l
	c.Heading, c.List, c.Before = 0, nil, min(c.Before, mostBefore)
	return &c
}

// notesHeight returns the height of the notes that a block refers to, in points.
func notesHeight(b *model.Block) (h float64) {
	for _, l := range b.Lines {
		for _, w := range l.Words {
			if w.Note == nil {
				continue
			}
			for _, n := range w.Note.Blocks {
				h += n.Height()
			}
		}
	}
	return h
}

// dropNotes makes the words of a page point to no notes.
func dropNotes(s *model.Sheet) {
	for _, w := range s.Words {
		w.Note = nil
	}
}
