package model

// A Note is a footnote. The word that refers to it points to it.
type Note struct {
	ID     int    // from 1, in the order of the document
	Mark   string // such as "1" or "*"
	Blocks []*Block
}

// A NoteNumbering is how programs can number all notes of a document.
type NoteNumbering struct {
	Own      bool // they cannot: each note has its own mark
	Signs    bool // *, †, ‡, §
	Start    int  // first number
	EachPage bool // each page starts again
}

// signs are the marks of the footnotes of a page without numbers.
var signs = []string{"*", "†", "‡", "§"}

// Numbering returns the numbering that yields the marks of all notes.
func (d *Document) Numbering() NoteNumbering {
	through, each, sign := true, true, true
	start, page, onPage := 0, 0, 0
	for i, n := range d.Notes {
		if p := n.Blocks[0].Page; p != page {
			page, onPage = p, 0
		}
		v, ok := PageNumber(n.Mark)
		if i == 0 {
			start = v
		}
		through = through && ok && v == start+i
		each = each && ok && v == onPage+1
		sign = sign && onPage < len(signs) && n.Mark == signs[onPage]
		onPage++
	}
	switch {
	case through:
		return NoteNumbering{Start: max(start, 1)}
	case each:
		return NoteNumbering{Start: 1, EachPage: true}
	case sign:
		return NoteNumbering{Start: 1, EachPage: true, Signs: true}
	}
	return NoteNumbering{Own: true}
}

// IsReference reports whether the span sp of w is the reference to its note.
func (w *Word) IsReference(sp *Span) bool {
	return w.Note != nil && sp.Raise == 1 && sp.Text == w.Note.Mark
}
