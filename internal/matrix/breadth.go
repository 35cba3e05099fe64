package matrix

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// A field is a kind of files with the formats that people convert: the 60 most common ones
// among those that CloudConvert lists (cloudconvert.com/formats, November 2026), chosen by
// hand. Its converters offer nearly all pairs of from and to.
type field struct {
	title    string
	from, to []format.Format
}

func fields() []field {
	f := func(names string) (out []format.Format) {
		for name := range strings.FieldsSeq(names) {
			out = append(out, format.Format(name))
		}
		return out
	}
	return []field{
		{"Documents", f("pdf docx doc odt rtf txt html md epub mobi azw3 pages"), f("pdf docx doc odt rtf txt html epub mobi azw3 jpg png")},
		{"PDF to slides, sheets and drawings", f("pdf"), f("pptx xlsx csv tiff webp bmp gif svg ps psd")},
		{"Slides", f("pptx ppt odp key"), f("pdf pptx ppt odp jpg png txt html")},
		{"Sheets", f("xlsx xls ods csv numbers"), f("pdf xlsx xls ods csv html jpg png txt")},
		{"Pictures", f("jpg png webp gif tiff bmp heic avif ico psd svg ps raw ppm"), f("jpg png webp gif tiff bmp avif ico pdf ps psd")},
		{"Audio", f("mp3 wav m4a flac ogg aac wma opus aiff"), f("mp3 wav m4a flac ogg aac wma opus aiff")},
		{"Video", f("mp4 mov mkv webm avi wmv flv mpeg m4v 3gp"), f("mp4 mov mkv webm avi wmv flv mpeg gif mp3 wav m4a flac ogg aac")},
		{"Archives", f("zip rar 7z tar tar.gz tar.bz2"), f("zip 7z tar tar.gz tar.bz2 rar")},
	}
}

// A gap is the reason why pairs are missing. An empty list means every format.
type gap struct {
	from, to string
	reason   string
}

// gaps lists the reasons in order of precedence.
func gaps() []gap {
	return []gap{
		{"", "rar", "No free program writes RAR."},
		{"", "pages key numbers", "No free program writes the formats of Apple's programs."},
		{"", "mobi azw3", "Only Calibre writes them, which is not used here."},
		{"", "ps", "No engine in use writes PostScript: not done yet."},
		{"", "psd", "No engine in use writes Photoshop files."},
		{"pdf ps", "bmp gif ico", "Pages become avif, jpg, png, tiff or webp; these become the others."},
		{"pptx ppt odp key", "html", "LibreOffice makes several files for a presentation; convert to PDF, and that to HTML."},
		{"xlsx xls ods csv numbers", "txt", "The text of a sheet is csv or tsv."},
	}
}

func (g gap) covers(from, to format.Format) bool {
	in := func(list string, f format.Format) bool {
		return list == "" || slices.Contains(strings.Fields(list), string(f))
	}
	return in(g.from, from) && in(g.to, to)
}

// why returns the reason why a pair is missing, or "".
func why(from, to format.Format) string {
	for _, g := range gaps() {
		if g.covers(from, to) {
			return g.reason
		}
	}
	return ""
}

// noReason stands for the reason of a missing pair that gaps does not cover.
const noReason = "no reason is known"

// breadth compares the conversions with those between the most common formats.
func breadth(b *bytes.Buffer, cells []Cell) {
	offered := make(map[[2]format.Format]bool)
	for _, c := range cells {
		if c.Action == "convert" {
			offered[[2]format.Format{c.From, c.Target()}] = true
		}
	}
	b.WriteString("## Breadth\n\nThe conversions between the 60 most common of the formats that CloudConvert lists, chosen by hand: how many of them exist here, and why the others do not. " +
		"raw stands for the raw photos of all cameras, ppm for all formats of Netpbm.\n\n")
	rows := [][]string{{"Kind", "From", "To", "Pairs", "Missing"}}
	have, total := 0, 0
	for _, f := range fields() {
		missing := make(map[string][]string)
		var reasons []string
		n, all := 0, 0
		for _, from := range f.from {
			for _, to := range f.to {
				if from == to {
					continue
				}
				if all++; offered[[2]format.Format{from, to}] {
					n++
					continue
				}
				r := cmp.Or(why(from, to), noReason)
				if missing[r] == nil {
					reasons = append(reasons, r)
				}
				missing[r] = append(missing[r], fmt.Sprintf("%s → %s", from, to))
			}
		}
		have, total = have+n, total+all
		var texts []string
		for _, r := range reasons {
			texts = append(texts, strings.Join(grouped(missing[r]), ", ")+": "+r)
		}
		rows = append(rows, []string{f.title, join(f.from), join(f.to), fmt.Sprintf("%d of %d", n, all), strings.Join(texts, "<br>")})
	}
	rows = append(rows, []string{"All", "", "", fmt.Sprintf("%d of %d", have, total), ""})
	table(b, rows)
}

// grouped joins pairs with the same source, and sources with the same targets: "a b → c d".
func grouped(pairs []string) (out []string) {
	targets := make(map[string]string) // of a source
	var sources []string
	for _, p := range pairs {
		from, to, _ := strings.Cut(p, " → ")
		if targets[from] == "" {
			sources = append(sources, from)
		}
		targets[from] += " " + to
	}
	with := make(map[string][]string) // sources with the same targets
	for _, from := range sources {
		with[targets[from]] = append(with[targets[from]], from)
	}
	for _, from := range sources {
		to := targets[from]
		if with[to][0] == from {
			out = append(out, strings.Join(with[to], " ")+" →"+to)
		}
	}
	return out
}

func join(formats []format.Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return strings.Join(names, " ")
}
