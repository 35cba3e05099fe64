package layout

import (
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// bodyStyle returns the font and size of most of the text.
func bodyStyle(blocks []*model.Block) model.Style {
	type key struct {
		font *model.Font
		size float64
	}
	count := make(map[key]int)
	var best model.Style
	most := 0
	for _, b := range blocks {
		for _, l := range b.Lines {
			for _, w := range l.Words {
				if w.Field != nil && w.Spans[0].Font == nil { // a blank or a box
					continue
				}
				for _, s := range w.Spans {
					if s.Raise != 0 {
						continue
					}
					k := key{s.Font, s.Size}
					count[k] += len(s.Text)
					if count[k] > most {
						most, best = count[k], model.Style{Font: s.Font, Size: s.Size}
					}
				}
			}
		}
	}
	return best
}

// findHeadings marks the paragraphs that are headings: those in the outline of
// the file, those in larger type, and standalone bold paragraphs.
func findHeadings(blocks []*model.Block, marks []model.Bookmark, body model.Style) {
	byTitle := make(map[string][]model.Bookmark)
	for _, m := range marks {
		if m.Title != "" {
			byTitle[m.Title] = append(byTitle[m.Title], m)
		}
	}
	levels := make(map[float64]int) // by size: heading levels in the outline
	var open []*model.Block
	var sizes []float64
	paragraphs := 0
	for i, b := range blocks {
		if b.Kind != model.ParagraphBlock || len(b.Lines) == 0 {
			continue
		}
		paragraphs++
		t := model.Plain(b.Text())
		if t == "" || len(b.Lines) > 4 || len(t) > 300 {
			continue
		}
		if level := inOutline(byTitle, t, b.Page); level > 0 && b.Lines[0].Size >= 0.85*body.Size {
			b.Heading = min(level, model.MaxHeadingLevel)
			if l, ok := levels[b.Lines[0].Size]; !ok || b.Heading < l {
				levels[b.Lines[0].Size] = b.Heading
			}
			continue
		}
		if looksLikeHeading(blocks, i, body) {
			open = append(open, b)
			sizes = append(sizes, headingSize(b, body))
		}
	}
	// If nearly every paragraph looks like a heading, there are no headings:
	// slides, forms.
	if len(open)*2 > paragraphs && paragraphs > 6 {
		return
	}
	distinct := geom.Cluster(slices.Clone(sizes), 0.6)
	slices.Reverse(distinct)
	for _, b := range open {
		if level, ok := levels[b.Lines[0].Size]; ok {
			b.Heading = level
			continue
		}
		if len(marks) > 0 && len(levels) > 0 && headingSize(b, body) <= body.Size*1.15 {
			continue // the outline decides
		}
		size := headingSize(b, body)
		rank := 0
		for rank < len(distinct)-1 && math.Abs(distinct[rank]-size) > 0.7 {
			rank++
		}
		b.Heading = min(rank+1, model.MaxHeadingLevel)
	}
}

// headingSize returns the size that decides the level of a heading. A heading
// that is only bold ranks below all larger headings.
func headingSize(b *model.Block, body model.Style) float64 {
	return max(b.Lines[0].Size, body.Size)
}

func inOutline(byTitle map[string][]model.Bookmark, text string, page int) int {
	near := func(ms []model.Bookmark) int {
		for _, m := range ms {
			if m.Page == 0 || m.Page >= page-1 && m.Page <= page+1 {
				return m.Level
			}
		}
		return 0
	}
	if l := near(byTitle[text]); l > 0 {
		return l
	}
	// The chapter number may be missing in the outline.
	rest := strings.TrimLeft(text, "0123456789")
	if rest != text && len(rest) > 3 {
		return near(byTitle[rest])
	}
	return 0
}

func looksLikeHeading(blocks []*model.Block, i int, body model.Style) bool {
	b := blocks[i]
	text := strings.TrimSpace(b.Text())
	if len(text) > 200 || len(b.Lines) > 3 || !model.HasLetter(text) || strings.HasSuffix(text, ",") || strings.HasSuffix(text, ";") {
		return false
	}
	size := b.Lines[0].Size
	if size >= body.Size*1.14 && size >= body.Size+1 {
		return true
	}
	if len(b.Lines) > 1 || len(text) > 90 || size < 0.95*body.Size || body.Font == nil || body.Font.Bold {
		return false
	}
	if weight(b.Lines[0]) != 1 || strings.HasSuffix(text, ".") || strings.HasSuffix(text, ":") {
		return false
	}
	// Standalone bold text may also be a label. A heading has space above it and a
	// paragraph below it.
	if i > 0 && blocks[i-1].Page == b.Page && b.Before < 0.25*size {
		return false
	}
	if i+1 >= len(blocks) {
		return false
	}
	next := blocks[i+1]
	return next.Kind != model.ParagraphBlock || len(next.Lines) > 0 && weight(next.Lines[0]) != 1
}
