package layout

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

const bullets = "•◦▪▫■□●○◆◇►▸▶➢➤➔✓✔❑❖‣∙·–—*-→※"

// marker returns the list marker at the start of a line. It must be a separate
// word with text after it.
func marker(l *model.Line) (model.Mark, bool) {
	if len(l.Words) < 2 || l.Words[0].RTL || l.Words[1].Glued {
		return model.Mark{}, false
	}
	w := l.Words[0]
	for _, s := range w.Spans {
		if s.Raise != 0 {
			return model.Mark{}, false
		}
	}
	t := w.Text()
	if r, n := utf8.DecodeRuneInString(t); n == len(t) && r >= 0xe000 && r <= 0xf8ff {
		return model.Mark{Kind: model.BulletMarker, Bullet: "•"}, true // in a symbol font
	}
	if utf8.RuneCountInString(t) == 1 && strings.Contains(bullets, t) {
		// A dash may belong to a dialogue or a calculation; in a list it has more
		// space after it.
		if strings.Contains("–—*-·→", t) && l.Words[1].L-w.R < 0.3*l.Size {
			return model.Mark{}, false
		}
		return model.Mark{Kind: model.BulletMarker, Bullet: t}, true
	}
	m := model.Mark{}
	if strings.HasPrefix(t, "(") {
		m.Before, t = "(", t[1:]
	}
	switch {
	case strings.HasSuffix(t, ")"):
		m.After = ")"
	case strings.HasSuffix(t, ".") && m.Before == "":
		m.After = "."
	default:
		return model.Mark{}, false
	}
	t = t[:len(t)-1]
	if t == "" || len(t) > 5 {
		return model.Mark{}, false
	}
	if n, err := strconv.Atoi(t); err == nil && len(t) <= 3 && n > 0 && t[0] != '0' && t[0] != '+' {
		m.Kind, m.Value = model.DecimalMarker, n
		return m, true
	}
	r := rune(t[0])
	upper := unicode.IsUpper(r)
	m.Roman = model.RomanValue(strings.ToLower(t))
	if len(t) == 1 && r < unicode.MaxASCII && unicode.IsLetter(r) {
		m.Kind, m.Value = model.LowerLetterMarker, int(unicode.ToLower(r)-'a')+1
		if upper {
			m.Kind = model.UpperLetterMarker
		}
		return m, true
	}
	if m.Roman > 0 && (t == strings.ToLower(t) || t == strings.ToUpper(t)) {
		m.Kind, m.Value = model.LowerRomanMarker, m.Roman
		if upper {
			m.Kind = model.UpperRomanMarker
		}
		return m, true
	}
	return model.Mark{}, false
}

// A lister finds lists in the blocks of a document.
type lister struct {
	lists int
	open  []*model.ListItem // the last item of each level
	since int               // number of blocks since the last item
}

// find marks the list items in a sequence of blocks. Numbers are list markers
// only if they count up; a single number could start a sentence.
func (x *lister) find(bs []*model.Block) {
	for i, b := range bs {
		if b.Kind != model.ParagraphBlock || len(b.Lines) == 0 {
			x.pause(3)
			continue
		}
		m, ok := marker(b.Lines[0])
		if !ok || b.Align == model.AlignCentre || b.Align == model.AlignRight {
			x.pause(1)
			continue
		}
		l := b.Lines[0]
		it := &model.ListItem{Mark: m, Indent: max(0, l.L-b.Region.L), Text: max(0, l.Words[1].L-b.Region.L)}
		if k := x.follow(it); k >= 0 {
			it.List, it.Level = x.open[k].List, x.open[k].Level
			x.open = append(x.open[:k], it)
			b.List = it
			x.since = 0
			continue
		}
		if m.Kind == model.BulletMarker || x.counts(it, bs[i+1:]) {
			level := 0
			for level < len(x.open) && x.open[level].Indent < it.Indent-3 {
				level++
			}
			x.lists++
			it.List = x.lists
			it.Level = min(level, 8)
			x.open = append(x.open[:min(level, len(x.open))], it)
			b.List = it
			x.since = 0
			continue
		}
		x.pause(1)
	}
}

// pause records n blocks that are not items. A list may have a few paragraphs
// between its items.
func (x *lister) pause(n int) {
	if x.since += n; x.since > 4 {
		x.open = nil
	}
}

// follow returns the level whose next item is it, or -1.
func (x *lister) follow(it *model.ListItem) int {
	for k := len(x.open) - 1; k >= 0; k-- {
		if o := x.open[k]; comesAfter(it, o) && geom.Abs(o.Indent-it.Indent) < 9 {
			return k
		}
	}
	return -1
}

// comesAfter reports whether it directly follows o. After "h.", "i." is a
// letter; after nothing it is a number.
func comesAfter(it *model.ListItem, o *model.ListItem) bool {
	if it.Before != o.Before || it.After != o.After {
		return false
	}
	switch {
	case it.Kind == model.BulletMarker:
		return o.Kind == model.BulletMarker && it.Bullet == o.Bullet
	case it.Kind == o.Kind && it.Value == o.Value+1:
		return true
	case it.Roman > 0 && (o.Kind == model.LowerRomanMarker || o.Kind == model.UpperRomanMarker) && it.Roman == o.Value+1:
		it.Kind, it.Value = o.Kind, it.Roman
		return true
	}
	return false
}

// counts reports whether the successor of it's number follows soon.
func (x *lister) counts(it *model.ListItem, rest []*model.Block) bool {
	readings := []model.ListItem{*it}
	if it.Roman > 0 && it.Kind != model.LowerRomanMarker && it.Kind != model.UpperRomanMarker {
		r := *it
		r.Value = r.Roman
		r.Kind = model.LowerRomanMarker
		if it.Kind == model.UpperLetterMarker {
			r.Kind = model.UpperRomanMarker
		}
		readings = append(readings, r)
	}
	for i, b := range rest {
		if i > 12 {
			break
		}
		if b.Kind != model.ParagraphBlock || len(b.Lines) == 0 || b.Align == model.AlignCentre {
			continue
		}
		m, ok := marker(b.Lines[0])
		if !ok {
			continue
		}
		n := &model.ListItem{Mark: m}
		for _, r := range readings {
			if geom.Abs(b.Lines[0].L-b.Region.L-it.Indent) < 9 && comesAfter(n, &r) {
				it.Kind, it.Value = r.Kind, r.Value
				return true
			}
		}
	}
	return false
}
