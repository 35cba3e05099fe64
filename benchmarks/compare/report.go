//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// median returns the median of f over the runs. lower and upper are the quartiles.
func (s *score) median(f func(sample) float64) (lower, middle, upper float64) {
	if len(s.runs) == 0 {
		return 0, 0, 0
	}
	var v []float64
	for _, r := range s.runs {
		v = append(v, f(r))
	}
	slices.Sort(v)
	at := func(q float64) float64 {
		x := q * float64(len(v)-1)
		i := int(x)
		if i+1 == len(v) {
			return v[i]
		}
		return v[i] + (x-float64(i))*(v[i+1]-v[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

func wall(s sample) float64 { return s.wall.Seconds() }
func cpu(s sample) float64  { return s.cpu.Seconds() }
func size(s sample) float64 { return float64(s.size) }

// of returns the median of a metric over the runs. Of the memory it returns the highest value:
// samples may miss the peak of a short run, and never exceed it.
func (s *score) of(m metric) float64 {
	if m == byMemory {
		high := int64(0)
		for _, r := range s.runs {
			high = max(high, r.memory)
		}
		return float64(high)
	}
	_, v, _ := s.median(map[metric]func(sample) float64{byTime: wall, byCPU: cpu, bySize: size}[m])
	return v
}

// measured returns the measurement of a rival, or 0.
func (r *result) measured(rival string, m metric) float64 {
	i := slices.IndexFunc(r.scores, func(s score) bool { return s.name == rival })
	if i < 1 {
		return 0
	}
	return r.scores[i].of(m)
}

// check returns the target of a goal, the measured value, and whether it is met. known is false if
// the rival is missing.
func (g goal) check(r *result) (want, got string, met, known bool) {
	ours := r.scores[0].of(g.metric)
	if g.rival == "" {
		return fmt.Sprintf("%s ≤ %s", g.metric, g.metric.format(g.max)), g.metric.format(ours), ours > 0 && ours <= g.max, ours > 0
	}
	theirs, rival := r.measured(g.rival, g.metric), g.rival
	if g.other != "" {
		rival = fmt.Sprintf("the slower of “%s” and “%s”", g.rival, g.other)
		other := r.measured(g.other, g.metric)
		if theirs > 0 && other > 0 {
			theirs = max(theirs, other)
		} else {
			theirs = 0 // the missing rival could be the slower one
		}
	}
	want = fmt.Sprintf("%s ≤ %.3g × %s", g.metric, g.max, rival)
	if g.within > 0 {
		want = fmt.Sprintf("%s = %s ± %.3g %%", g.metric, g.rival, 100*g.within)
	}
	if theirs == 0 || ours == 0 {
		return want, "not measured", false, false
	}
	ratio := ours / theirs
	if g.within > 0 {
		return want, fmt.Sprintf("%+.2f %%", 100*(ratio-1)), math.Abs(ratio-1) <= g.within, true
	}
	return want, fmt.Sprintf("%.3g ×", ratio), ratio <= g.max, true
}

// amount formats a number of bytes with three digits.
func amount(n int64) string {
	switch v := float64(n); {
	case n >= 1<<30:
		return fmt.Sprintf("%.3g GiB", v/(1<<30))
	case n >= 1000<<10:
		return fmt.Sprintf("%.3g MiB", v/(1<<20))
	case n >= 1000:
		return fmt.Sprintf("%.3g KiB", v/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// format returns a measurement with its unit.
func (m metric) format(v float64) string {
	if m == byTime || m == byCPU {
		return seconds(v)
	}
	return amount(int64(v))
}

func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return fmt.Sprintf("%.3g s", s)
}

func ratio(ours, theirs float64) string {
	if theirs == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ours/theirs)
}

// print writes a result as progress output.
func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%s (%s)\n", r.task.name, r.task.about)
	for i := range r.scores {
		s := &r.scores[i]
		if s.missing != nil {
			fmt.Fprintf(w, "  %-30s missing: %v\n", s.name, s.missing)
			continue
		}
		lower, middle, upper := s.median(wall)
		_, c, _ := s.median(cpu)
		fmt.Fprintf(w, "  %-30s %9s (%s to %s)  cpu %9s  memory %9s  size %9s", s.name, seconds(middle), seconds(lower), seconds(upper),
			seconds(c), amount(int64(s.of(byMemory))), amount(int64(s.of(bySize))))
		if s.quality > 0 {
			fmt.Fprintf(w, "  ssim %.4f", s.quality)
		}
		fmt.Fprintf(w, "  %d runs\n", len(s.runs))
	}
	if r.failed != nil {
		fmt.Fprintf(w, "  FAILED: %v\n", r.failed)
		return
	}
	for _, g := range r.task.goals {
		want, got, met, known := g.check(r)
		fmt.Fprintf(w, "  %s: %s: %s\n", verdict(met, known), want, got)
	}
}

func verdict(met, known bool) string {
	switch {
	case !known:
		return "unknown"
	case met:
		return "met"
	}
	return "missed"
}

// document returns the report as Markdown.
func document(results []result, full bool, tools string) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Performance")
	p("")
	p("Written by `make bench`, which runs Filewright and the tools that people use for the same in turn on one machine, and each once before it counts, except where one run takes many seconds.")
	p("Figures are medians. Time is that of the clock, with the two middle quarters of the runs in brackets; CPU is user and system time of all processes that took part;")
	p("memory is the peak of the resident memory of these in all runs; ratios are ours to theirs, so that less is better for us. Tools that are kept warm run in a process that is started before.")
	p("Quality is the structural similarity (SSIM) to the input. The sources are in [benchmarks](../benchmarks/README.md). [How cost grows](growth.md) has time and memory over the size of the work.")
	if !full {
		p("")
		p("This is the short run, with small inputs for zip and upload: `make bench` makes the full one.")
	}
	p("")
	p("Measured on %s.", machine(tools))
	p("")
	p("## Goals")
	p("")
	p("| What | Goal | Measured | |")
	p("|---|---|---|---|")
	for _, r := range results {
		for _, g := range r.task.goals {
			if r.failed != nil {
				p("| %s | | failed: %s | |", r.task.name, cell(r.failed))
				break
			}
			want, got, met, known := g.check(&r)
			p("| %s | %s | %s | %s |", r.task.name, want, got, map[string]string{"met": "met", "missed": "**missed**", "unknown": "tool missing"}[verdict(met, known)])
		}
	}
	p("")
	p("## Measurements")
	p("")
	p("| What | Tool | Time | CPU | Memory | Size | Quality | Time ratio | CPU ratio | Memory ratio | Size ratio |")
	p("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range results {
		for i := range r.scores {
			s := &r.scores[i]
			what := ""
			if i == 0 {
				what = fmt.Sprintf("%s (%s)", r.task.name, r.task.about)
			}
			if s.missing != nil {
				p("| %s | %s | not installed | | | | | | | | |", what, s.name)
				continue
			}
			if len(s.runs) == 0 {
				p("| %s | %s | not measured | | | | | | | | |", what, s.name)
				continue
			}
			lower, t, upper := s.median(wall)
			_, c, _ := s.median(cpu)
			quality := ""
			if s.quality > 0 {
				quality = fmt.Sprintf("%.4f", s.quality)
			}
			name, ratios := s.name, "| | |"
			if i == 0 {
				name = "**" + name + "**"
			} else {
				_, ourCPU, _ := r.scores[0].median(cpu)
				ratios = fmt.Sprintf("%s | %s | %s | %s", ratio(r.scores[0].of(byTime), t), ratio(ourCPU, c),
					ratio(r.scores[0].of(byMemory), s.of(byMemory)), ratio(r.scores[0].of(bySize), s.of(bySize)))
			}
			p("| %s | %s | %s (%s–%s) | %s | %s | %s | %s | %s |", what, name, seconds(t), seconds(lower), seconds(upper),
				seconds(c), amount(int64(s.of(byMemory))), amount(int64(s.of(bySize))), quality, ratios)
		}
	}
	return b.Bytes()
}

// cell formats an error for a table.
func cell(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ReplaceAll(s[:min(len(s), 120)], "|", "/")
}

// machine describes the machine of the measurement.
func machine(tools string) string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(b); m != nil {
			model = string(m[1])
		}
	}
	system := runtime.GOOS
	if b, err := os.ReadFile("/etc/os-release"); err == nil {
		if m := regexp.MustCompile(`PRETTY_NAME="(.*)"`).FindSubmatch(b); m != nil {
			system = string(m[1])
		}
	}
	cores := fmt.Sprintf("%d cores", runtime.NumCPU())
	if runtime.NumCPU() == 1 {
		cores = "one core"
	}
	out := fmt.Sprintf("%s of %s, %s, %s, on %s", cores, model, system, runtime.Version(), time.Now().UTC().Format("2 January 2006"))
	var versions []string
	for _, v := range [][]string{
		{"LibreOffice", "soffice", "--version"}, {"libvips", "vips", "--version"}, {"ffmpeg", "ffmpeg", "-version"}, {"qpdf", "qpdf", "--version"},
		{"pandoc", "pandoc", "--version"}, {"Ghostscript", "gs", "--version"}, {"poppler", "pdftoppm", "-v"}, {"node", "node", "--version"}, {"7-Zip", "7z", "i"}, {"Info-ZIP", "zip", "-v"},
	} {
		b, err := exec.Command(v[1], v[2:]...).CombinedOutput()
		if err != nil && len(b) == 0 {
			continue
		}
		if n := regexp.MustCompile(`\d+(\.\d+)+`).Find(b); n != nil {
			versions = append(versions, v[0]+" "+string(n))
		}
	}
	if b, err := os.ReadFile(filepath.Join(tools, "node_modules", "sharp", "package.json")); err == nil {
		if m := regexp.MustCompile(`"version":\s*"([^"]+)"`).FindSubmatch(b); m != nil {
			versions = append(versions, "sharp "+string(m[1]))
		}
	}
	return out + "; " + strings.Join(versions, ", ")
}
