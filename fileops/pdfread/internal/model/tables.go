package model

import (
	"math"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

// A Table is a grid with text in its cells.
type Table struct {
	geom.Rect
	Xs, Ys []float64 // borders of columns and rows
	Cells  []*Cell   // from left to right, from top to bottom
	Ruled  bool      // has visible borders
	Colour uint32    // of the borders
	Width  float64   // of the borders, points
}

// A Cell is a cell of a table. It covers one or more fields of the grid.
type Cell struct {
	geom.Rect
	Row, Col   int
	Rows, Cols int
	Blocks     []*Block
	Turn       int // direction of all its text, like Word.Turn
	Shaded     bool
	Shade      uint32
	Edges      *[4]Edge // top, left, bottom, right; nil: those of the table
}

// An Edge is a border of a cell. Its width is 0 if there is none.
type Edge struct {
	Width  float64 // points
	Colour uint32
}

// A VerticalAlignment is the place of text in a cell.
type VerticalAlignment int

// Vertical alignments.
const (
	AlignTop VerticalAlignment = iota
	AlignMiddle
	AlignBottom
)

// Vertical returns the place of the cell's text.
func (c *Cell) Vertical() VerticalAlignment {
	if len(c.Blocks) == 0 {
		return AlignTop
	}
	top, bottom := c.Blocks[0].T-c.T, c.B-c.Blocks[len(c.Blocks)-1].B
	switch {
	case top > bottom+6 && top > 2*bottom:
		return AlignBottom
	case top > 6 && math.Abs(top-bottom) < 5:
		return AlignMiddle
	}
	return AlignTop
}

// Follow appends the rows of u, the continuation of t on the next page.
func (t *Table) Follow(u *Table) {
	ny, end := len(t.Ys)-1, t.Ys[len(t.Ys)-1]
	for _, y := range u.Ys[1:] {
		t.Ys = append(t.Ys, end+y-u.Ys[0])
	}
	for _, c := range u.Cells {
		c.Row += ny
		t.Cells = append(t.Cells, c)
	}
}

// Continues reports whether u has the same columns as t.
func (t *Table) Continues(u *Table) bool {
	if len(t.Xs) != len(u.Xs) || t.Ruled != u.Ruled || t.Colour != u.Colour {
		return false
	}
	for i := range t.Xs {
		if math.Abs(t.Xs[i]-u.Xs[i]) > 3 {
			return false
		}
	}
	return true
}
