package subtitleops

import (
	"context"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// clock matches a time of srt or vtt, as files write it.
	clock  = `(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?\d*`
	timing = regexp.MustCompile(`^\s*` + clock + `\s*-+>\s*` + clock + `(?:[ \t]+(.*))?\s*$`)
	number = regexp.MustCompile(`^\s*\d+\s*$`)
)

// timesOf returns the start, the end and the settings of the line that starts a subtitle.
func timesOf(line string) (start, end time.Duration, settings string, ok bool) {
	if !strings.Contains(line, "->") {
		return 0, 0, "", false
	}
	m := timing.FindStringSubmatch(line)
	if m == nil {
		return 0, 0, "", false
	}
	return duration(m[1:5]), duration(m[5:9]), m[9], true
}

// duration returns the time for hours, minutes, seconds and a fraction of a second.
func duration(parts []string) time.Duration {
	n := func(i int) time.Duration {
		v, _ := strconv.Atoi(parts[i]) // "" is 0
		return time.Duration(v)
	}
	fraction, _ := strconv.Atoi((parts[3] + "000")[:3])
	return n(0)*time.Hour + n(1)*time.Minute + n(2)*time.Second + time.Duration(fraction)*time.Millisecond
}

// readSRT reads SubRip. Everything between two times is the text of the first, apart from
// the number of the second: real files have empty lines in texts, and lack some between
// them.
func (d *document) readSRT(ctx context.Context, text string) error {
	lines := strings.Split(text, "\n")
	var c cue
	var body []string
	open := false
	end := func() error {
		if !open {
			return nil
		}
		c.runs, c.place = d.markup(strings.Join(body, "\n"))
		return d.add(c)
	}
	for i, line := range lines {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		from, to, _, ok := timesOf(line)
		if !ok {
			body = append(body, line)
			continue
		}
		if n := len(body); n > 0 && number.MatchString(body[n-1]) {
			body = body[:n-1]
		}
		if err := end(); err != nil {
			return err
		}
		c, body, open = cue{start: from, end: to}, body[:0], true
	}
	return end()
}

var (
	tagged   = regexp.MustCompile(`(?i)<(/?)(b|i|u|s|font)((?:\s[^<>]*)?)/?>|\{\\an?(\d+)\}|\{\\[^{}]*\}`)
	colourOf = regexp.MustCompile(`(?i)\bcolor\s*=\s*["']?\s*#?([a-z0-9]+)`)
)

// colourNames are the colours that texts name: those of HTML 4.01.
var colourNames = map[string]string{
	"black": "000000", "silver": "c0c0c0", "gray": "808080", "white": "ffffff", "maroon": "800000", "red": "ff0000", "purple": "800080", "fuchsia": "ff00ff",
	"green": "008000", "lime": "00ff00", "olive": "808000", "yellow": "ffff00", "navy": "000080", "blue": "0000ff", "teal": "008080", "aqua": "00ffff",
	"cyan": "00ffff", "magenta": "ff00ff", "orange": "ffa500",
}

// colour returns the colour that a text names as rrggbb, or "".
func colour(s string) string {
	s = strings.ToLower(s)
	if c, ok := colourNames[s]; ok {
		return c
	}
	if len(s) != 6 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

// A stack has the styles of open tags.
type stack []struct {
	tag string
	was style
}

const maxTags = 100 // inside each other

func (s *stack) open(tag string, now style) {
	if len(*s) < maxTags {
		*s = append(*s, struct {
			tag string
			was style
		}{tag, now})
	}
}

// close returns the style after the end of a tag. An end without a start changes nothing.
func (s *stack) close(tag string, now style) style {
	for i := len(*s) - 1; i >= 0; i-- {
		if (*s)[i].tag == tag {
			now, *s = (*s)[i].was, (*s)[:i]
			return now
		}
	}
	return now
}

// apply returns the style inside of a tag.
func (t style) apply(tag string) style {
	switch tag {
	case "b":
		t.bold = true
	case "i":
		t.italic = true
	case "u":
		t.underline = true
	case "s":
		t.strike = true
	}
	return t
}

// markup returns the runs of a text of srt, and its place.
func (d *document) markup(text string) (runs []run, place int) {
	var open stack
	var now style
	at := 0
	for _, m := range tagged.FindAllStringSubmatchIndex(text, -1) {
		runs = append(runs, run{text[at:m[0]], now})
		at = m[1]
		if m[8] >= 0 {
			n, _ := strconv.Atoi(text[m[8]:m[9]])
			if strings.Contains(text[m[0]:m[8]], "an") {
				place = keypad(n)
			} else {
				place = legacy(n)
			}
			continue
		}
		if m[4] < 0 { // another code of ass
			d.looks = true
			continue
		}
		tag := strings.ToLower(text[m[4]:m[5]])
		if m[2] < m[3] {
			now = open.close(tag, now)
			continue
		}
		open.open(tag, now)
		now = now.apply(tag)
		if tag == "font" {
			attributes := text[m[6]:m[7]]
			if c := colourOf.FindStringSubmatch(attributes); c != nil {
				if now.colour = colour(c[1]); now.colour == "" {
					d.looks = true
				}
			}
			if low := strings.ToLower(attributes); strings.Contains(low, "face") || strings.Contains(low, "size") {
				d.looks = true
			}
		}
	}
	return append(runs, run{text[at:], now}), place
}

// keypad returns a place of ass, and 0 for the usual one.
func keypad(n int) int {
	if n < 1 || n > 9 || n == 2 {
		return 0
	}
	return n
}

// legacy returns the place for a number of SubStation Alpha 4: 1 to 3 are at the bottom, 4
// more are at the top, 8 more in the middle.
func legacy(n int) int {
	switch {
	case n >= 5 && n <= 7:
		return n + 2
	case n >= 9 && n <= 11:
		return n - 5
	case n >= 1 && n <= 3:
		return keypad(n)
	}
	return 0
}

// readVTT reads WebVTT: blocks with empty lines between them (WebVTT, section 6.1).
func (d *document) readVTT(ctx context.Context, text string) error {
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ { // the first line is the signature
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		start, end, settings, ok := timesOf(lines[i])
		if !ok {
			if line := strings.TrimSpace(lines[i]); i > 0 && lines[i-1] == "" && (line == "STYLE" || line == "REGION") {
				d.looks = true
			}
			continue
		}
		c := cue{start: start, end: end}
		c.place = d.place(settings)
		first := i + 1
		for i+1 < len(lines) && lines[i+1] != "" {
			if _, _, _, next := timesOf(lines[i+1]); next {
				break
			}
			i++
		}
		c.runs, c.speaker = d.spans(strings.Join(lines[first:i+1], "\n"))
		if err := d.add(c); err != nil {
			return err
		}
	}
	return nil
}

// place returns the place for the settings of a subtitle of vtt.
func (d *document) place(settings string) int {
	column, row := 2, 0 // columns from 1, rows from the bottom
	for s := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(s, ":")
		value, anchor, exact := strings.Cut(value, ",")
		switch {
		case name == "line" && strings.HasSuffix(value, "%"):
			n, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
			switch {
			case err != nil:
			case n < 34:
				row = 2
			case n < 67:
				row = 1
			}
			exact = exact && anchor != "" || n != 0 && n != 50 && n != 100
		case name == "line":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 8 {
				row = 2
				exact = exact || n > 0
			} else {
				exact = exact || value != "-1" && value != "auto"
			}
		case name == "align":
			switch value {
			case "start", "left":
				column = 1
			case "end", "right":
				column = 3
			}
		case name == "position":
			exact = exact || value != "0%" && value != "50%" && value != "100%"
		default:
			exact = true
		}
		d.looks = d.looks || exact
	}
	return keypad(3*row + column)
}

var vttTag = regexp.MustCompile(`<(/?)([a-zA-Z]*)([^<>]*)>`)

// classes are the colours that every player of WebVTT knows (WebVTT, section 5.1).
var classes = map[string]string{
	"white": "ffffff", "lime": "00ff00", "cyan": "00ffff", "red": "ff0000", "yellow": "ffff00", "magenta": "ff00ff", "blue": "0000ff", "black": "000000",
}

// spans returns the runs of a text of vtt, and its first speaker.
func (d *document) spans(text string) (runs []run, speaker string) {
	var open stack
	var now style
	at := 0
	for _, m := range vttTag.FindAllStringSubmatchIndex(text, -1) {
		runs = append(runs, run{html.UnescapeString(text[at:m[0]]), now})
		at = m[1]
		tag, rest := strings.ToLower(text[m[4]:m[5]]), text[m[6]:m[7]]
		if m[2] < m[3] {
			now = open.close(tag, now)
			continue
		}
		open.open(tag, now)
		now = now.apply(tag)
		names, annotation, _ := strings.Cut(rest, " ")
		switch tag {
		case "c":
			for class := range strings.SplitSeq(names, ".") {
				if c, ok := classes[class]; ok {
					now.colour = c
				} else if class != "" {
					d.looks = true
				}
			}
		case "v":
			if annotation = html.UnescapeString(strings.TrimSpace(annotation)); speaker == "" {
				speaker = annotation
			} else if annotation != speaker {
				d.speakers = true
			}
		case "", "ruby", "rt": // the time of a word; text above words
			d.looks = true
		}
	}
	return append(runs, run{html.UnescapeString(text[at:]), now}), speaker
}

// A look is a style of ass.
type look struct {
	style
	place int
}

// readASS reads Advanced SubStation Alpha, and SubStation Alpha 4.
func (d *document) readASS(ctx context.Context, text string) error {
	looks := make(map[string]look)
	section, fields := "", []string(nil)
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = strings.TrimLeft(line, " \t")
		if strings.HasPrefix(line, "[") {
			section, fields = strings.ToLower(strings.TrimSpace(line)), nil
			continue
		}
		key, rest, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		rest = strings.TrimLeft(rest, " \t")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case key == "format":
			fields = nil
			for f := range strings.SplitSeq(rest, ",") {
				fields = append(fields, strings.ToLower(strings.TrimSpace(f)))
			}
		case key == "style" && len(looks) < 10_000:
			l := make(map[string]string)
			for i, v := range strings.SplitN(rest, ",", max(len(fields), 1)) {
				if i < len(fields) {
					l[fields[i]] = strings.TrimSpace(v)
				}
			}
			looks[strings.TrimPrefix(l["name"], "*")] = lookOf(l, section == "[v4 styles]")
		case key == "dialogue" && section == "[events]":
			if fields == nil {
				fields = strings.Split("layer,start,end,style,name,marginl,marginr,marginv,effect,text", ",")
			}
			if err := d.dialogue(fields, rest, looks); err != nil {
				return err
			}
		}
	}
	return nil
}

// usualStyles are names that programs give the only style of a file.
var usualStyles = map[string]bool{"default": true, "*default": true, "main": true}

// lookOf returns the look for the fields of a style.
func lookOf(f map[string]string, old bool) look {
	on := func(name string) bool { return f[name] != "" && f[name] != "0" }
	l := look{style: style{bold: on("bold"), italic: on("italic"), underline: on("underline"), strike: on("strikeout")}}
	n, _ := strconv.Atoi(f["alignment"])
	if l.place = keypad(n); old {
		l.place = legacy(n)
	}
	if l.colour = assColour(f["primarycolour"]); l.colour == "ffffff" {
		l.colour = ""
	}
	return l
}

// assColour returns the colour for &HAABBGGRR or a decimal number as rrggbb, or "".
func assColour(s string) string {
	s = strings.ToLower(strings.Trim(s, "& "))
	base := 10
	if hex, ok := strings.CutPrefix(s, "h"); ok {
		s, base = hex, 16
	}
	n, err := strconv.ParseUint(s, base, 32)
	if err != nil {
		return ""
	}
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 6)
	for _, b := range []byte{byte(n), byte(n >> 8), byte(n >> 16)} {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return string(out)
}

// dialogue adds the subtitle of one line of ass.
func (d *document) dialogue(fields []string, rest string, looks map[string]look) error {
	values := strings.SplitN(rest, ",", len(fields))
	if len(values) < len(fields) {
		return nil
	}
	f := make(map[string]string, len(fields))
	for i, v := range values {
		f[fields[i]] = strings.TrimSpace(v)
	}
	start, ok1 := assTime(f["start"])
	end, ok2 := assTime(f["end"])
	if !ok1 || !ok2 {
		d.badTimes++
		return nil
	}
	l := looks[strings.TrimPrefix(f["style"], "*")]
	if !usualStyles[strings.ToLower(f["style"])] || f["effect"] != "" {
		d.looks = true
	}
	c := cue{start: start, end: end, place: l.place, speaker: f["name"]}
	if name, ok := f["actor"]; ok {
		c.speaker = name
	}
	d.overrides(&c, f["text"], l.style, looks)
	return d.add(c)
}

var assClock = regexp.MustCompile(`^(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.:,](\d{1,3}))?$`)

func assTime(s string) (time.Duration, bool) {
	m := assClock.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	return duration(m[1:]), true
}

var (
	assText = strings.NewReplacer("\\\u2060", "\\", `\N`, "\n", `\n`, "\n", `\h`, "\u00a0", `\{`, "{", `\}`, "}")
)

// overrides adds the runs of a text of ass to c. Codes in braces change the style.
func (d *document) overrides(c *cue, text string, base style, looks map[string]look) {
	now, drawing := base, false
	emit := func(s string) {
		if s == "" {
			return
		}
		if drawing {
			d.drawings++
			return
		}
		c.runs = append(c.runs, run{assText.Replace(s), now})
	}
	for text != "" {
		i := brace(text)
		if i < 0 {
			break
		}
		j := strings.IndexByte(text[i:], '}')
		if j < 0 {
			break
		}
		emit(text[:i])
		codes := text[i+1 : i+j]
		text = text[i+j+1:]
		for code := range strings.SplitSeq(codes, `\`) {
			if code = strings.TrimSpace(code); code != "" && strings.Contains(codes, `\`) {
				now, drawing = d.override(c, code, now, base, drawing, looks)
			}
		}
	}
	emit(text)
}

// brace returns the index of the first brace that starts codes, or -1.
func brace(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '{' && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// override applies one code of ass.
func (d *document) override(c *cue, code string, now, base style, drawing bool, looks map[string]look) (style, bool) {
	on := func(arg string, was bool) bool {
		if arg == "" {
			return was
		}
		n, err := strconv.Atoi(arg)
		return err == nil && n != 0
	}
	name := strings.TrimRight(code, "-0123456789.")
	arg := code[len(name):]
	switch {
	case strings.HasPrefix(code, "1c&"), strings.HasPrefix(code, "c&"):
		now.colour = assColour(code[strings.IndexByte(code, '&'):])
	case code == "c", code == "1c":
		now.colour = base.colour
	case name == "b":
		now.bold = on(arg, base.bold)
	case name == "i":
		now.italic = on(arg, base.italic)
	case name == "u":
		now.underline = on(arg, base.underline)
	case name == "s":
		now.strike = on(arg, base.strike)
	case name == "an":
		n, _ := strconv.Atoi(arg)
		c.place = keypad(n)
	case name == "a":
		n, _ := strconv.Atoi(arg)
		c.place = legacy(n)
	case name == "p":
		drawing = on(arg, false)
	case strings.HasPrefix(code, "r"):
		if now = base; code != "r" {
			now = looks[code[1:]].style
			d.looks = true
		}
	default:
		d.looks = true
	}
	return now, drawing
}
