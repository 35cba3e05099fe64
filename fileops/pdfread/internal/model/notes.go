package model

// A Note is a footnote. The word that refers to it points to it.
type Note struct {
	ID     int    // from 1, in the order of the document
	Mark   string // such as "1" or "*"
	Blocks []*Block
}

// NumberedNotes reports whether the marks of all notes are their numbers, so that
// programs can number them.
func (d *Document) NumberedNotes() bool {
	for i, n := range d.Notes {
		if v, ok := PageNumber(n.Mark); !ok || v != i+1 {
			return false
		}
	}
	return true
}

// IsReference reports whether the span sp of w is the reference to its note.
func (w *Word) IsReference(sp *Span) bool {
	return w.Note != nil && sp.Raise == 1 && sp.Text == w.Note.Mark
}
