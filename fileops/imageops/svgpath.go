package imageops

import (
	"bytes"
	"encoding/xml"
	"math"
	"strconv"
	"strings"
)

// svgDecimals returns the number of decimals that coordinates need. part is the
// precision as a fraction of the view box or, without a view box, of the width.
func svgDecimals(data []byte, part float64) int {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.Strict = false
	side := 0.0
	for side == 0 {
		t, err := dec.RawToken()
		if err != nil {
			break
		}
		root, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range root.Attr {
			switch a.Name.Local {
			case "viewBox":
				if box := strings.FieldsFunc(a.Value, func(r rune) bool { return strings.ContainsRune(" ,\t\r\n", r) }); len(box) == 4 {
					w, err1 := strconv.ParseFloat(box[2], 64)
					h, err2 := strconv.ParseFloat(box[3], 64)
					if err1 == nil && err2 == nil && w > 0 && h > 0 {
						side = max(w, h)
					}
				}
			case "width":
				if w, err := strconv.ParseFloat(strings.TrimRight(a.Value, "pxtmcin% "), 64); err == nil && w > 0 && side == 0 {
					side = w
				}
			}
		}
		break
	}
	if side == 0 || math.IsInf(side, 0) || math.IsNaN(side) {
		side = 100
	}
	return min(8, max(0, int(math.Ceil(math.Log10(part/side)))))
}

// svgUnits returns the number of CSS pixels in a libvips pixel. For a drawing with a
// size in inches or similar units, libvips uses 72 pixels per inch, but CSS defines
// 96 (CSS Values 3, 5.2).
func svgUnits(data []byte) float64 {
	dec := xml.NewDecoder(bytes.NewReader(data))
	dec.Strict = false
	for {
		t, err := dec.RawToken()
		if err != nil {
			return 1
		}
		root, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range root.Attr {
			if a.Name.Local != "width" {
				continue
			}
			for _, unit := range []string{"in", "mm", "cm", "pt", "pc"} {
				if strings.HasSuffix(strings.TrimSpace(a.Value), unit) {
					return 96. / 72
				}
			}
		}
		return 1
	}
}

// A numberReader reads the numbers of paths and lists of points (SVG 2, 9.3.9).
type numberReader struct {
	b  []byte
	at int
}

func (r *numberReader) space() {
	for r.at < len(r.b) && strings.IndexByte(" ,\t\r\n", r.b[r.at]) >= 0 {
		r.at++
	}
}

// next reads a number.
func (r *numberReader) next() (float64, bool) {
	r.space()
	i := r.at
	if i < len(r.b) && (r.b[i] == '+' || r.b[i] == '-') {
		i++
	}
	digits, dot := 0, false
	for ; i < len(r.b); i++ {
		if c := r.b[i]; c >= '0' && c <= '9' {
			digits++
		} else if c == '.' && !dot {
			dot = true
		} else {
			break
		}
	}
	if digits == 0 {
		return 0, false
	}
	if i < len(r.b) && (r.b[i] == 'e' || r.b[i] == 'E') {
		j := i + 1
		if j < len(r.b) && (r.b[j] == '+' || r.b[j] == '-') {
			j++
		}
		k := j
		for k < len(r.b) && r.b[k] >= '0' && r.b[k] <= '9' {
			k++
		}
		if k > j {
			i = k
		}
	}
	v, err := strconv.ParseFloat(string(r.b[r.at:i]), 64)
	r.at = i
	return v, err == nil && !math.IsInf(v, 0) && math.Abs(v) < 1e12
}

// flag reads one of the two flags of an arc, which need no separator.
func (r *numberReader) flag() (float64, bool) {
	r.space()
	if r.at < len(r.b) && (r.b[r.at] == '0' || r.b[r.at] == '1') {
		r.at++
		return float64(r.b[r.at-1] - '0'), true
	}
	return 0, false
}

// A numberWriter writes numbers with minimal separators.
type numberWriter struct {
	b        []byte
	decimals int
	number   bool // the last output is a number
	dotted   bool // it has a dot or an exponent
}

func (w *numberWriter) command(c byte) {
	w.b, w.number = append(w.b, c), false
}

// put writes v, which is already rounded.
func (w *numberWriter) put(v float64) {
	s := strconv.FormatFloat(v, 'f', w.decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	switch {
	case strings.HasPrefix(s, "0."):
		s = s[1:]
	case strings.HasPrefix(s, "-0."):
		s = "-" + s[2:]
	case s == "-0":
		s = "0"
	}
	if w.number && s[0] != '-' && (s[0] != '.' || !w.dotted) {
		w.b = append(w.b, ' ')
	}
	w.b = append(w.b, s...)
	w.number, w.dotted = true, strings.Contains(s, ".")
}

func (w *numberWriter) round(v float64) float64 {
	p := math.Pow10(w.decimals)
	return math.Round(v*p) / p
}

// shortNumbers rounds a list of numbers. It reports false for any other content,
// such as units.
func shortNumbers(value []byte, decimals int) ([]byte, bool) {
	r, w := &numberReader{b: value}, &numberWriter{decimals: decimals}
	for {
		r.space()
		if r.at == len(r.b) {
			return w.b, w.number
		}
		v, ok := r.next()
		if !ok {
			return nil, false
		}
		w.put(w.round(v))
	}
}

// arguments is the number of arguments of each path command.
var arguments = map[byte]int{'m': 2, 'l': 2, 'h': 1, 'v': 1, 'c': 6, 's': 4, 'q': 4, 't': 2, 'a': 7, 'z': 0}

// shortPath rounds path data (SVG 2, 9.3). It rounds relative coordinates
// against the rounded position, so that errors do not accumulate.
func shortPath(value []byte, decimals int) ([]byte, bool) {
	r, w := &numberReader{b: value}, &numberWriter{decimals: decimals}
	var x, y, startX, startY float64     // exact position
	var ox, oy, oStartX, oStartY float64 // rounded position
	var last byte
	for {
		r.space()
		if r.at == len(r.b) {
			return w.b, len(w.b) > 0
		}
		command, repeated := r.b[r.at], false
		if c := command | 0x20; c >= 'a' && c <= 'z' && c != 'e' {
			r.at++
		} else {
			repeated = true
			switch command = last; last {
			case 0, 'z', 'Z':
				return nil, false
			case 'm':
				command = 'l'
			case 'M':
				command = 'L'
			}
		}
		lower := command | 0x20
		n, known := arguments[lower]
		if !known || len(w.b) == 0 && lower != 'm' {
			return nil, false
		}
		if !repeated {
			w.command(command)
		}
		last = command
		if lower == 'z' {
			x, y, ox, oy = startX, startY, oStartX, oStartY
			continue
		}
		var v [7]float64
		for i := range n {
			var ok bool
			if lower == 'a' && (i == 3 || i == 4) {
				v[i], ok = r.flag()
			} else {
				v[i], ok = r.next()
			}
			if !ok {
				return nil, false
			}
		}
		relative := command == lower
		// The exact argument at i and its rounded value.
		point := func(i int, horizontal bool) (exact, rounded float64) {
			at, from := y, oy
			if horizontal {
				at, from = x, ox
			}
			if !relative {
				rounded = w.round(v[i])
				w.put(rounded)
				return v[i], rounded
			}
			exact = at + v[i]
			step := w.round(exact - from)
			w.put(step)
			return exact, w.round(from + step)
		}
		switch lower {
		case 'h':
			x, ox = point(0, true)
		case 'v':
			y, oy = point(0, false)
		case 'a':
			w.put(w.round(v[0]))
			w.put(w.round(v[1]))
			w.put(w.round(v[2]))
			w.put(v[3])
			w.put(v[4])
			nx, nox := point(5, true)
			y, oy = point(6, false)
			x, ox = nx, nox
		default:
			var nx, ny, nox, noy float64
			for i := 0; i < n; i += 2 {
				nx, nox = point(i, true)
				ny, noy = point(i+1, false)
			}
			x, y, ox, oy = nx, ny, nox, noy
			if lower == 'm' {
				startX, startY, oStartX, oStartY = x, y, ox, oy
			}
		}
	}
}
