package ocrops

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file parses hOCR 1.2, the output of Tesseract: XHTML whose elements have a class,
// and properties in title.

// Limits for one hOCR file.
const (
	maxWords  = 500_000
	maxAnswer = 100_000 // pages
)

// An hocrPage is a page in Tesseract's output.
type hocrPage struct {
	w, h  float64
	lines []*hocrLine
}

type hocrLine struct {
	box        [4]float64 // left, top, right, bottom
	slope      float64    // slope of the base line: dy/dx
	offset     float64    // of the base line at the left edge, relative to the bottom
	size       float64    // from ascenders to descenders
	angle      int        // text direction in degrees, counterclockwise
	paragraph  int
	words      []Word
	confidence float64 // mean, 0 to 1
}

// parseHOCR parses all pages.
func parseHOCR(r io.Reader) ([]*hocrPage, error) {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	var pages []*hocrPage
	var line *hocrLine
	var text *strings.Builder // of the open word
	var open Word
	paragraph, words := 0, 0
	var stack []string // classes of the open elements
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("hocr: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			class, title := attributes(t)
			stack = append(stack, class)
			if len(stack) > 64 {
				return nil, errors.New("hocr: elements are nested too deeply")
			}
			p := properties(title)
			switch class {
			case "ocr_page":
				if len(pages) >= maxAnswer {
					return nil, errors.New("hocr: too many pages")
				}
				b := p.box()
				pages = append(pages, &hocrPage{w: b[2], h: b[3]})
			case "ocr_par":
				paragraph++
			case "ocr_line", "ocr_header", "ocr_caption", "ocr_textfloat":
				if len(pages) == 0 {
					return nil, errors.New("hocr: a line outside a page")
				}
				line = &hocrLine{box: p.box(), paragraph: paragraph, size: p.number("x_size", 0), angle: int(p.number("textangle", 0))}
				line.slope, line.offset = p.number("baseline", 0), p.number("baseline", 1)
				last := pages[len(pages)-1]
				last.lines = append(last.lines, line)
			case "ocrx_word":
				if words++; words > maxWords {
					return nil, errors.New("hocr: too many words")
				}
				b := p.box()
				open = Word{Left: b[0], Top: b[1], Right: b[2], Bottom: b[3], Confidence: min(max(p.number("x_wconf", 0)/100, 0), 1)}
				text = new(strings.Builder)
			}
		case xml.CharData:
			if text != nil {
				text.Write(t)
			}
		case xml.EndElement:
			if len(stack) == 0 {
				continue
			}
			class := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if class == "ocrx_word" && text != nil {
				open.Text = strings.Join(strings.Fields(text.String()), "")
				text = nil
				if line != nil && open.Text != "" && open.Right > open.Left && open.Bottom > open.Top {
					line.words = append(line.words, open)
				}
			}
		}
	}
	if len(pages) == 0 {
		return nil, errNoPage
	}
	return pages, nil
}

var errNoPage = errors.New("hocr: no page")

func attributes(t xml.StartElement) (class, title string) {
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "class":
			class = a.Value
		case "title":
			title = a.Value
		}
	}
	return class, title
}

// props are the properties of an element: name and values.
type props map[string][]string

// properties parses "bbox 1 2 3 4; x_wconf 95".
func properties(title string) props {
	p := make(props)
	for part := range strings.SplitSeq(title, ";") {
		if f := strings.Fields(part); len(f) > 1 {
			p[f[0]] = f[1:]
		}
	}
	return p
}

// number returns the i-th value of a property, or 0.
func (p props) number(name string, i int) float64 {
	if i >= len(p[name]) {
		return 0
	}
	v, err := strconv.ParseFloat(p[name][i], 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > 1e6 {
		return 0
	}
	return v
}

func (p props) box() (b [4]float64) {
	for i := range b {
		b[i] = p.number("bbox", i)
	}
	return b
}

// turn returns the number of counterclockwise quarter turns that make most of the text
// upright.
func (p *hocrPage) turn() int {
	var votes [4]int
	for _, l := range p.lines {
		// Text at 90 degrees runs upwards: three more turns make it level.
		votes[(4-(l.angle/90)%4)%4] += len(l.words)
	}
	best := 0
	for i, n := range votes {
		if n > votes[best] {
			best = i
		}
	}
	return best
}

// Thresholds below which text is probably dirt and is dropped. They apply to Tesseract's
// confidence, which is nearly always above 0.7 for real text.
const (
	leastLine   = 0.35 // mean confidence of a line
	leastWord   = 0.10
	leastSign   = 0.50 // of a word without letters and digits
	fontPerSize = 1.1  // 1 em, relative to the distance from ascenders to descenders of usual fonts
)

// page returns the text without dirt, straightened, and with equal sizes for similar
// lines.
func (p *hocrPage) page() *Page {
	out := &Page{Width: int(p.w), Height: int(p.h)}
	for _, l := range p.lines {
		l.words = slices.DeleteFunc(l.words, func(w Word) bool {
			return w.Confidence < leastWord || w.Confidence < leastSign && !strings.ContainsFunc(w.Text, isText)
		})
		sum := 0.0
		for _, w := range l.words {
			sum += w.Confidence
		}
		l.confidence = sum / float64(max(1, len(l.words)))
	}
	p.lines = slices.DeleteFunc(p.lines, func(l *hocrLine) bool {
		return len(l.words) == 0 || l.confidence < leastLine || l.angle%360 != 0
	})
	slope := p.slope()
	out.Slope = slope
	sin, cos := math.Sincos(math.Atan(slope))
	at := func(x, y float64) (float64, float64) {
		x, y = x-p.w/2, y-p.h/2
		return p.w/2 + x*cos + y*sin, p.h/2 - x*sin + y*cos
	}
	for _, l := range p.lines {
		line := Line{Size: max(l.size, 4) * fontPerSize, Paragraph: l.paragraph}
		middle := (l.box[0] + l.box[2]) / 2
		base := func(x float64) float64 { return l.box[3] + l.offset + l.slope*(x-l.box[0]) }
		_, line.Base = at(middle, base(middle))
		for _, w := range l.words {
			x, b := (w.Left+w.Right)/2, base((w.Left+w.Right)/2)
			moved, _ := at(x, b)
			half := (w.Right - w.Left) / 2
			lean := min(math.Abs(slope)*half, (w.Bottom-w.Top)/4) // the extra height of the box because of the slope
			w.Left, w.Right = moved-half, moved+half
			w.Top, w.Bottom = w.Top+line.Base-b+lean, w.Bottom+line.Base-b-lean
			if n := len(line.Words); n > 0 && joined(line.Words[n-1], w, l.size) {
				last := &line.Words[n-1]
				last.Text += w.Text
				last.Right, last.Top, last.Bottom = w.Right, min(last.Top, w.Top), max(last.Bottom, w.Bottom)
				last.Confidence = min(last.Confidence, w.Confidence)
				continue
			}
			line.Words = append(line.Words, w)
		}
		if em := pitch(l.words); em > 0 {
			line.Size = min(line.Size, em)
		}
		out.Lines = append(out.Lines, line)
	}
	evenSizes(out.Lines)
	borrowSizes(out.Lines)
	return out
}

// pitch returns the distance of characters that are 1 em wide (Chinese, Japanese and
// Korean) in the words of Tesseract, or 0 if there are few. Tesseract overestimates the
// size of such lines.
func pitch(words []Word) float64 {
	const least, bearing = 4, 0.1 // a box lacks the space beside its first and last character, em
	runes := func(w Word) int {
		if strings.ContainsFunc(w.Text, func(r rune) bool {
			return !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
		}) {
			return 0
		}
		return utf8.RuneCountInString(w.Text)
	}
	var found []float64
	for i, w := range words {
		n, width := runes(w), w.Right-w.Left
		each := width / (float64(n) - bearing)
		switch {
		case n == 0:
			continue
		case i+1 < len(words) && runes(words[i+1]) > 0:
			each = (words[i+1].Left - w.Left) / float64(n)
		case n == 1:
			continue
		}
		for range n {
			found = append(found, each)
		}
	}
	if len(found) < least {
		return 0
	}
	slices.Sort(found)
	return found[len(found)/2]
}

// joined reports whether two words that follow each other are one: Tesseract separates
// most characters of scripts whose words have no spaces between them, and the syllables
// of Korean. size is that of the line in pixels.
func joined(a, b Word, size float64) bool {
	last, _ := utf8.DecodeLastRuneInString(a.Text)
	first, _ := utf8.DecodeRuneInString(b.Text)
	gap := b.Left - a.Right
	switch {
	case unicode.In(last, unspaced...) && unicode.In(first, unspaced...):
		return gap < 0.8*size
	case unicode.Is(unicode.Hangul, last) && unicode.In(first, unicode.Hangul, unicode.Po):
		return gap < 0.18*size
	case unicode.In(last, thai...) && unicode.In(first, thai...):
		return unicode.IsMark(first) || gap < 0.2*size
	}
	return false
}

var (
	unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, cjkSigns}
	thai     = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

	// cjkSigns are the punctuation of East Asian scripts, and full-width forms.
	cjkSigns = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x3001, Hi: 0x3020, Stride: 1}, {Lo: 0x30fb, Hi: 0x30fc, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}}}
)

// borrowSizes corrects pieces of a line without ascenders and descenders ("on our own"),
// whose size is a guess. They get the size of the piece beside them.
func borrowSizes(lines []Line) {
	guess := func(l Line) bool {
		for _, w := range l.Words {
			if strings.Trim(w.Text, "acemnorsuvwxz.,-–:;") != "" {
				return false
			}
		}
		return true
	}
	byBase := make([]int, len(lines)) // indexes of lines with a reliable size, by base line
	for i := range byBase {
		byBase[i] = i
	}
	byBase = slices.DeleteFunc(byBase, func(i int) bool { return guess(lines[i]) })
	slices.SortStableFunc(byBase, func(a, b int) int { return cmp.Compare(lines[a].Base, lines[b].Base) })
	for i, l := range lines {
		if len(byBase) == 0 || !guess(l) {
			continue
		}
		k, _ := slices.BinarySearchFunc(byBase, l.Base, func(j int, base float64) int { return cmp.Compare(lines[j].Base, base) })
		for _, n := range []int{k - 1, k} {
			if n >= 0 && n < len(byBase) && math.Abs(lines[byBase[n]].Base-l.Base) < 0.3*l.Size {
				lines[i].Size = lines[byBase[n]].Size
			}
		}
	}
}

func isText(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// slope returns the slope of the page: the median of its lines, weighted by length.
func (p *hocrPage) slope() float64 {
	type weighted struct{ slope, width float64 }
	var all []weighted
	total := 0.0
	for _, l := range p.lines {
		if w := l.box[2] - l.box[0]; w > 5*l.size && math.Abs(l.slope) < 0.3 {
			all = append(all, weighted{l.slope, w})
			total += w
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.slope, b.slope) })
	sum := 0.0
	for _, v := range all {
		if sum += v.width; 2*sum >= total {
			return v.slope
		}
	}
	return 0
}

// evenSizes makes similar sizes of lines equal: Tesseract's measurements depend on the
// letters of a line.
func evenSizes(lines []Line) {
	const alike = 0.13
	weight := make([]float64, len(lines))
	rest := make(map[int]bool)
	for i, l := range lines {
		for _, w := range l.Words {
			weight[i] += float64(len(w.Text))
		}
		rest[i] = true
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= alike*max(a, b) }
	for rounds := 0; len(rest) > 0 && rounds < 12; rounds++ {
		// The size with the most text around it.
		steps := make(map[int]float64) // in hundredths of a factor of e
		for i := range rest {
			steps[int(math.Round(100*math.Log(lines[i].Size)))] += weight[i]
		}
		best, most := 0, 0.0
		for s := range steps {
			sum := 0.0
			for d := -6; d <= 6; d++ {
				sum += steps[s+d]
			}
			if sum > most || sum == most && s < best {
				best, most = s, sum
			}
		}
		centre := math.Exp(float64(best) / 100)
		sum, total := 0.0, 0.0
		var group []int
		for i := range rest {
			if near(lines[i].Size, centre) {
				group = append(group, i)
			}
		}
		slices.Sort(group) // so that the sums are deterministic
		for _, i := range group {
			sum, total = sum+weight[i]*lines[i].Size, total+weight[i]
		}
		if total == 0 {
			return
		}
		for _, i := range group {
			lines[i].Size = sum / total
			delete(rest, i)
		}
	}
}
