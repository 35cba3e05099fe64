package model

import "github.com/filewright/filewright/fileops/pdfread/internal/geom"

// Scale makes everything on s larger or smaller by the factor k.
func (s *Sheet) Scale(k float64) {
	z := &scaler{k: k, words: make(map[*Word]bool), pictures: make(map[*Picture]bool), fields: make(map[*Field]bool)}
	s.W, s.H = k*s.W, k*s.H
	for _, w := range s.Words {
		z.word(w)
	}
	for _, p := range s.Pictures {
		z.picture(p)
	}
	for _, p := range s.Backs {
		z.picture(p)
	}
	if s.Scan != nil {
		for _, p := range s.Scan.Under {
			z.picture(p)
		}
	}
	for _, r := range s.Rules {
		r.Pos, r.From, r.To, r.Width = k*r.Pos, k*r.From, k*r.To, k*r.Width
	}
	for i := range s.Fills {
		z.rect(&s.Fills[i].Rect)
	}
	for i := range s.Links {
		z.rect(&s.Links[i].Rect)
	}
	for i := range s.Drawings {
		z.rect(&s.Drawings[i])
	}
	for i := range s.Lost {
		z.rect(&s.Lost[i])
	}
	for _, f := range s.Fields {
		z.field(f)
	}
}

// A scaler scales each part of a page once, even if several others refer to it.
type scaler struct {
	k        float64
	words    map[*Word]bool
	pictures map[*Picture]bool
	fields   map[*Field]bool
}

func (z *scaler) rect(r *geom.Rect) {
	r.L, r.T, r.R, r.B = z.k*r.L, z.k*r.T, z.k*r.R, z.k*r.B
}

func (z *scaler) word(w *Word) {
	if w == nil || z.words[w] {
		return
	}
	z.words[w] = true
	z.rect(&w.Rect)
	w.Base, w.Size = z.k*w.Base, z.k*w.Size
	for i := range w.Spans {
		w.Spans[i].Size *= z.k
	}
	if w.Field != nil {
		z.field(w.Field)
	}
}

func (z *scaler) picture(p *Picture) {
	if z.pictures[p] {
		return
	}
	z.pictures[p] = true
	z.rect(&p.Rect)
	for _, w := range p.Labels {
		z.word(w)
	}
}

func (z *scaler) field(f *Field) {
	if z.fields[f] {
		return
	}
	z.fields[f] = true
	z.rect(&f.Rect)
	z.word(f.Mark)
}
