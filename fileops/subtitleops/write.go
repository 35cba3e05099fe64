package subtitleops

import (
	"bufio"
	"fmt"
	"html"
	"strings"
	"time"
)

// stamp returns a time as hours, minutes, seconds and thousandths.
func stamp(t time.Duration, point string) string {
	ms := t.Milliseconds()
	return fmt.Sprintf("%02d:%02d:%02d%s%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, point, ms%1000)
}

// elements writes runs with elements that contain each other. open and close return the
// markup for a style that differs from the usual one.
func elements(w *bufio.Writer, runs []run, escape func(string) string, coloured func(string) (open, close string)) {
	for _, r := range runs {
		var end []string
		tag := func(open, close string) {
			w.WriteString(open)
			end = append(end, close)
		}
		if r.style.colour != "" {
			tag(coloured(r.style.colour))
		}
		for _, t := range []struct {
			on   bool
			name string
		}{{r.style.bold, "b"}, {r.style.italic, "i"}, {r.style.underline, "u"}, {r.style.strike, "s"}} {
			if t.on {
				tag("<"+t.name+">", "</"+t.name+">")
			}
		}
		w.WriteString(escape(r.text))
		for i := len(end) - 1; i >= 0; i-- {
			w.WriteString(end[i])
		}
	}
}

// writeSRT writes SubRip. A code of ass gives the place, as most players know it.
func (d *document) writeSRT(w *bufio.Writer) {
	for i, c := range d.cues {
		fmt.Fprintf(w, "%d\n%s --> %s\n", i+1, stamp(c.start, ","), stamp(c.end, ","))
		if c.place > 0 {
			fmt.Fprintf(w, `{\an%d}`, c.place)
		}
		elements(w, c.runs, func(s string) string { return s }, func(colour string) (string, string) {
			return `<font color="#` + colour + `">`, "</font>"
		})
		w.WriteString("\n\n")
		d.speakers = d.speakers || c.speaker != ""
	}
}

// writeVTT writes WebVTT.
func (d *document) writeVTT(w *bufio.Writer) {
	names := make(map[string]string)
	for name, c := range classes {
		names[c] = name
	}
	w.WriteString("WEBVTT\n\n")
	for _, c := range d.cues {
		fmt.Fprintf(w, "%s --> %s%s\n", stamp(c.start, "."), stamp(c.end, "."), settings(c.place))
		if name := strings.Join(strings.Fields(c.speaker), " "); name != "" {
			fmt.Fprintf(w, "<v %s>", html.EscapeString(name))
		}
		runs := c.runs
		for i := range runs {
			if runs[i].style.strike { // it has no element
				runs[i].style.strike = false
				d.looks = true
			}
		}
		elements(w, runs, escapeVTT.Replace, func(colour string) (string, string) {
			name, ok := names[colour]
			if !ok {
				d.colours = true
				return "", ""
			}
			return "<c." + name + ">", "</c>"
		})
		w.WriteString("\n\n")
	}
}

var escapeVTT = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// settings returns the settings of vtt for a place.
func settings(place int) (s string) {
	if place == 0 {
		return ""
	}
	switch (place - 1) / 3 {
	case 2:
		s = " line:0"
	case 1:
		s = " line:50%"
	}
	switch (place - 1) % 3 {
	case 0:
		s += " position:0% align:left"
	case 2:
		s += " position:100% align:right"
	}
	return s
}

// assHeader starts a file of ass. The size of the text fits a picture of 384 × 288, as
// players assume for subtitles without a style.
const assHeader = `[Script Info]
ScriptType: v4.00+
PlayResX: 384
PlayResY: 288
ScaledBorderAndShadow: yes

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,16,&H00FFFFFF,&H00FFFFFF,&H00000000,&H00000000,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
`

var escapeASS = strings.NewReplacer("\\", "\\\u2060", "{", `\{`, "}", `\}`, "\n", `\N`)

// writeASS writes Advanced SubStation Alpha.
func (d *document) writeASS(w *bufio.Writer) {
	w.WriteString(assHeader)
	for _, c := range d.cues {
		at := func(t time.Duration) string { // hundredths of a second
			cs := (t.Milliseconds() + 5) / 10
			return fmt.Sprintf("%d:%02d:%02d.%02d", cs/360_000, cs/6000%60, cs/100%60, cs%100)
		}
		end := max(c.end, c.start+10*time.Millisecond)
		name := strings.Map(func(r rune) rune {
			if r == ',' || r == '\n' {
				return ' '
			}
			return r
		}, c.speaker)
		fmt.Fprintf(w, "Dialogue: 0,%s,%s,Default,%s,0,0,0,,", at(c.start), at(end), name)
		if c.place > 0 {
			fmt.Fprintf(w, `{\an%d}`, c.place)
		}
		var was style
		for _, r := range c.runs {
			w.WriteString(codes(was, r.style))
			w.WriteString(escapeASS.Replace(r.text))
			was = r.style
		}
		w.WriteByte('\n')
	}
}

// codes returns the codes of ass that change a style to another one.
func codes(was, now style) string {
	var b strings.Builder
	for _, c := range []struct {
		name     string
		was, now bool
	}{{"b", was.bold, now.bold}, {"i", was.italic, now.italic}, {"u", was.underline, now.underline}, {"s", was.strike, now.strike}} {
		if c.was != c.now {
			fmt.Fprintf(&b, `\%s%d`, c.name, map[bool]int{true: 1}[c.now])
		}
	}
	if was.colour != now.colour {
		b.WriteString(`\c`)
		if c := now.colour; c != "" {
			fmt.Fprintf(&b, "&H%s%s%s&", c[4:], c[2:4], c[:2])
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "{" + b.String() + "}"
}

// writeText writes the lines of all subtitles.
func (d *document) writeText(w *bufio.Writer) {
	for _, c := range d.cues {
		w.WriteString(c.plain())
		w.WriteByte('\n')
	}
}
