package model

import "github.com/filewright/filewright/fileops/pdfread/internal/geom"

// A Fixed is a page whose text has fixed places, over a picture of all other
// content.
type Fixed struct {
	Number int // from 1
	W, H   float64
	Boxes  []*Box

	Whole    bool       // the picture shows the text too, because reading it failed, it is mirrored, or Chosen is set
	Chosen   bool       // the caller has chosen a picture
	Turn     int        // quarter turns counterclockwise that make the page upright
	Picture  *Media     // of the page without the text; nil if it has only text
	Pictures []*Picture // in place of Picture: they show everything that is not text
	Rules    []*Rule    // over Picture, where thin lines are pale
}

// A Behind is what a page of flowing text shows at fixed places behind the text.
type Behind struct {
	Pictures []*Picture
	Fills    []Fill // over the pictures, in this order
	Rules    []*Rule
}

// A Box is text at a fixed place: a paragraph, or a line in any direction.
type Box struct {
	geom.Rect
	Lines  []*Line
	Align  Alignment
	Pitch  float64 // distance of baselines, 0 for a single line
	Turn   int     // direction, like Word.Turn
	Behind bool    // it is behind the picture, which shows the text
}
