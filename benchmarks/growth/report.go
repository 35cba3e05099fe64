//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// superlinear is the exponent above which growth is named. A sort, whose cost is n log n, has an
// exponent of 1.1 in these sizes.
const superlinear = 1.2

// significant is the processor time below which an exponent says nothing.
const significant = 300 * time.Millisecond

// exponent returns k if the cost grows as size to the power of k to the last point. It is compared with
// the last but two, so that the noise of one measurement counts less. Cost and size are less those of the
// first point, most of whose cost is the start. The result is 0 if the costs say nothing.
func (s *series) exponent() float64 {
	n := len(s.points)
	if n < 3 {
		return 0
	}
	first, before, last := s.points[0], s.points[max(1, n-3)], s.points[n-1]
	a, b := before.cpu-first.cpu, last.cpu-first.cpu
	if a <= 0 || b <= 0 || last.cpu < significant {
		return 0
	}
	return math.Log(float64(b)/float64(a)) / math.Log(float64(last.size-first.size)/float64(before.size-first.size))
}

// page returns the page with all groups. missing names series that were not measured.
func page(groups []group, missing []string) []byte {
	var b bytes.Buffer
	b.WriteString(`# How cost grows

Processor time and peak memory over the size of the work, measured by ` + "`make growth`" + ` ([benchmarks/growth](../benchmarks/README.md)). Processor time is user and system time of all processes
of one run, the least of several; the first run, which starts the engines, does not count. Memory is the peak of the resident memory of all processes together, including idle engines.
Actions run without a process of their own for each file. Both axes of the plots are logarithmic, so a straight line at 45° is linear growth.

The exponent is k where cost grows as size to the power of k, between the largest size and the last but two; cost and size are less those of the smallest. A dash means that the largest size takes less than ` + fmt.Sprint(significant) + `.

`)
	var steep []string
	for _, g := range groups {
		for _, s := range g.series {
			if k := s.exponent(); k > superlinear && s.clients == nil {
				steep = append(steep, fmt.Sprintf("- %s: exponent %.2f at %s %s", s.name, k, number(s.points[len(s.points)-1].size), g.unit))
			}
		}
	}
	if len(steep) == 0 {
		fmt.Fprintf(&b, "No series grows faster than size to the power of %.1f.\n", superlinear)
	} else {
		fmt.Fprintf(&b, "These grow faster than size to the power of %.1f:\n\n%s\n", superlinear, strings.Join(steep, "\n"))
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nThis run did not measure: %s.\n", strings.Join(missing, "; "))
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.title)
		if g.text != "" {
			fmt.Fprintf(&b, "%s\n\n", g.text)
		}
		fmt.Fprintf(&b, "![Processor time and memory by %s](images/%s)\n\n", g.unit, g.image())
		g.table(&b)
		for _, s := range g.series {
			if s.ended != "" {
				fmt.Fprintf(&b, "\n%s: %s.\n", s.name, s.ended)
			}
		}
	}
	return b.Bytes()
}

// sizes returns all sizes of the points.
func (g *group) sizes() (all []int) {
	for _, s := range g.series {
		for _, p := range s.points {
			all = append(all, p.size)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (g *group) table(b *bytes.Buffer) {
	sizes := g.sizes()
	clients := g.series[0].clients != nil
	fmt.Fprintf(b, "| %s |", strings.ToUpper(g.unit[:1])+g.unit[1:])
	for _, n := range sizes {
		fmt.Fprintf(b, " %s |", number(n))
	}
	if !clients {
		b.WriteString(" Exponent |")
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(sizes)))
	if !clients {
		b.WriteString("--:|")
	}
	b.WriteByte('\n')
	for _, s := range g.series {
		row := func(name string, cell func(p point) string) {
			fmt.Fprintf(b, "| %s |", name)
			for _, n := range sizes {
				i := slices.IndexFunc(s.points, func(p point) bool { return p.size == n })
				if i < 0 {
					b.WriteString(" |")
				} else {
					fmt.Fprintf(b, " %s |", cell(s.points[i]))
				}
			}
		}
		row(s.name, func(p point) string { return duration(p.cpu) + ", " + fmt.Sprint(p.memory>>20) + " MiB" })
		if !clients {
			if k := s.exponent(); k == 0 {
				b.WriteString(" – |")
			} else {
				fmt.Fprintf(b, " %.2f |", k)
			}
		}
		b.WriteByte('\n')
		if clients {
			row("– p50, p99", func(p point) string { return duration(p.p50) + ", " + duration(p.p99) })
			b.WriteByte('\n')
		}
	}
}

func number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// duration returns d with two or three digits.
func duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 9.95:
		return fmt.Sprintf("%.0f s", s)
	case s >= 0.995:
		return fmt.Sprintf("%.1f s", s)
	case s >= 0.00995:
		return fmt.Sprintf("%.0f ms", 1e3*s)
	case s >= 0.000995:
		return fmt.Sprintf("%.1f ms", 1e3*s)
	default:
		return fmt.Sprintf("%.0f µs", 1e6*s)
	}
}

// The colours of series differ in hue and are legible on white and on black. Axes and text are grey
// for the same reason: a picture in a page does not know its theme.
var colours = [...]string{"#2f81f7", "#d9730d", "#2da44e", "#e5534b", "#9a6dd7", "#0fa3a3", "#c9518f", "#8c8c1e", "#6e7fa8", "#a0714f"}

const grey = "#808a94"

// Measures of a plot in pixels.
const (
	chartWidth, chartHeight = 330, 240
	left, top, between      = 62, 30, 82
	lineHeight              = 18
)

// An axis maps values to pixels, logarithmically.
type axis struct {
	low, high float64 // powers of ten, or 2 for memory
	from, to  float64 // pixels
}

func (a axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*(math.Log(v)-math.Log(a.low))/(math.Log(a.high)-math.Log(a.low))
}

// newAxis returns an axis from the power of base below the least to the one above the greatest value.
func newAxis(base, least, greatest, from, to float64) axis {
	low := math.Pow(base, math.Floor(math.Log(least)/math.Log(base)+1e-9))
	high := math.Pow(base, math.Ceil(math.Log(greatest)/math.Log(base)-1e-9))
	return axis{low, max(high, low*base), from, to}
}

// plot returns an SVG with processor time on the left and memory on the right.
func plot(g group) []byte {
	columns := 2
	lines := (len(g.series) + columns - 1) / columns
	width, height := left+2*chartWidth+between+20, top+chartHeight+52+lineHeight*lines
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" fill="%s">`+"\n", width, height, width, height, grey)
	fmt.Fprintf(&b, "<title>%s</title>\n", template.HTMLEscapeString(g.title))
	chart(&b, g, left, "processor time", 10, func(p point) float64 { return p.cpu.Seconds() }, func(v float64) string { return duration(time.Duration(math.Round(v * 1e9))) })
	chart(&b, g, left+chartWidth+between, "memory", 2, func(p point) float64 { return float64(p.memory) / (1 << 20) }, func(v float64) string { return fmt.Sprintf("%.0f MiB", v) })
	for i, s := range g.series {
		x, y := left+(i%columns)*(chartWidth+between), top+chartHeight+52+lineHeight*(i/columns)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="14" height="4" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-6, colours[i%len(colours)], x+20, y, template.HTMLEscapeString(s.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func chart(b *bytes.Buffer, g group, x0 float64, title string, base float64, value func(point) float64, label func(float64) string) {
	var all []float64
	for _, s := range g.series {
		for _, p := range s.points {
			all = append(all, cmp.Or(value(p), 1e-6))
		}
	}
	sizes := g.sizes()
	x := newAxis(10, float64(sizes[0]), float64(sizes[len(sizes)-1]), x0, x0+chartWidth)
	if g.unit == "clients" {
		x = newAxis(2, float64(sizes[0]), float64(sizes[len(sizes)-1]), x0, x0+chartWidth)
	}
	y := newAxis(base, slices.Min(all), slices.Max(all), top+chartHeight, top)
	fmt.Fprintf(b, `<text x="%.0f" y="%d" font-weight="600">%s</text>`+"\n", x0, top-12, title)
	ticks := func(a axis, base float64, draw func(v float64)) {
		for v := a.low; v <= a.high*1.001; v *= base {
			draw(v)
		}
	}
	step := 10.0
	if g.unit == "clients" {
		step = 2
	}
	ticks(x, step, func(v float64) {
		fmt.Fprintf(b, `<path d="M%.1f %dv%d" stroke="%s" stroke-opacity=".25"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x.at(v), top, chartHeight, grey, x.at(v), top+chartHeight+17, number(int(math.Round(v))))
	})
	ticks(y, base, func(v float64) {
		fmt.Fprintf(b, `<path d="M%.1f %.1fh%d" stroke="%s" stroke-opacity=".25"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", x0, y.at(v), chartWidth, grey, x0-6, y.at(v)+4, label(v))
	})
	fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x0+chartWidth/2, top+chartHeight+33, g.unit)
	for i, s := range g.series {
		var points []string
		for _, p := range s.points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(float64(p.size)), y.at(cmp.Or(value(p), 1e-6))))
		}
		colour := colours[i%len(colours)]
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"/>`+"\n", strings.Join(points, " "), colour)
	}
}
