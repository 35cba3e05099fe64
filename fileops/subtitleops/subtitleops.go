// Package subtitleops converts subtitles: SubRip (srt), WebVTT (vtt) and Advanced
// SubStation Alpha (ass), and makes a plain text of them.
//
// The times, the text and its line breaks, bold, italic, underlined and struck out text,
// colours, and the corner or edge of the picture at which a subtitle stands are kept where
// the target has them. Warnings say what is left out: fonts, sizes, effects and free
// positions of ass, and regions, style sheets, names of speakers and times of words of vtt.
//
// The formats are those of libass, of the W3C Recommendation WebVTT, and, for srt, which no
// standard describes, what its files have in common.
package subtitleops

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
)

// Options configure [New]. The zero value is usable.
type Options struct{ Limits Limits }

// Limits restrict files. Zero fields mean the defaults.
type Limits struct {
	Size int64 // bytes of a file, which is read into memory; 0 means 16 MiB
	Cues int   // subtitles of a file; 0 means 200 000
}

// An Engine converts subtitles. It is safe for concurrent use.
type Engine struct{ limits Limits }

// New returns an engine. It never fails.
func New(_ context.Context, o Options) (*Engine, error) {
	return &Engine{Limits{Size: cmp.Or(max(o.Limits.Size, 0), 16<<20), Cues: cmp.Or(max(o.Limits.Cues, 0), 200_000)}}, nil
}

// Dependencies implements [fileops.Engine]. This engine has no dependencies.
func (*Engine) Dependencies() []fileops.Dependency { return nil }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert()} }

// Convert returns the action "convert" for subtitles. A file without subtitles fails with
// [fileops.ErrCorruptInput].
func (e *Engine) Convert() fileops.Action {
	all := []format.Format{format.ASS, format.SRT, format.VTT}
	spec := fileops.Spec{Name: "convert", Engine: "subtitleops", Family: "data", MaxBytes: e.limits.Size, Summary: "Converts subtitles to other formats."}
	for _, from := range all {
		p := fileops.Enum("convert_to", "Format of the result.")
		p.Aliases = make(map[string]string)
		for _, to := range append(slices.Clone(all), format.TXT) {
			if to == from {
				continue
			}
			p.Enum = append(p.Enum, string(to))
			for _, a := range to.Aliases() {
				p.Aliases[string(a)] = string(to)
			}
		}
		spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: []format.Format{from}, Params: fileops.Schema{p, charset.EncodingParam()}})
	}
	return fileops.Func(spec, e.convert)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	text, err := e.read(ctx, job)
	if err != nil {
		return err
	}
	d := &document{most: e.limits.Cues}
	switch job.Input().Format() {
	case format.SRT:
		err = d.readSRT(ctx, text)
	case format.VTT:
		err = d.readVTT(ctx, text)
	default:
		err = d.readASS(ctx, text)
	}
	if err != nil {
		return err
	}
	if len(d.cues) == 0 {
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the file has no subtitles")
	}
	slices.SortStableFunc(d.cues, func(a, b cue) int { return cmp.Compare(a.start, b.start) })
	to := format.Format(job.Params.Get("convert_to"))
	write := map[format.Format]func(*bufio.Writer){format.SRT: d.writeSRT, format.VTT: d.writeVTT, format.ASS: d.writeASS, format.TXT: d.writeText}[to]
	err = job.Write(fileops.ResultName(job.Input(), to), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		write(b)
		return b.Flush()
	})
	if err != nil {
		return err
	}
	d.warn(job)
	return nil
}

// read returns the text of the input without control characters, with lines that end
// with LF.
func (e *Engine) read(ctx context.Context, job *fileops.Job) (string, error) {
	in := job.Input()
	if in.Size() > e.limits.Size {
		return "", fileops.Fail(fileops.ErrLimit, nil, "the file has %d bytes, more than the limit of %d bytes for subtitles", in.Size(), e.limits.Size)
	}
	chosen, err := charset.Encoding(job.Params)
	if err != nil {
		return "", err
	}
	t, err := charset.NewText(in.Reader(), in.Size())
	if err != nil {
		return "", err
	}
	if chosen != nil {
		t = charset.NewTextIn(in.Reader(), in.Size(), chosen)
	} else if name := t.Guess(); name != "" {
		job.Warn(fileops.WarnEncodingGuessed, "The text is not UTF-8; it was read as %s.", name)
	}
	b, err := io.ReadAll(fileops.ContextReader(ctx, t.Reader()))
	if err != nil {
		return "", err
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(b), "\ufeff"))
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return -1
		}
		return c
	}, text), nil
}

// A document is the subtitles of a file.
type document struct {
	cues []cue
	most int // subtitles that it may have

	// What the result lacks.
	badTimes int  // subtitles whose time is invalid
	looks    bool // fonts, sizes, effects, free positions
	speakers bool // names of speakers
	colours  bool // colours that the target has no name for
	drawings int  // pictures that are drawn with text
}

// A cue is one subtitle.
type cue struct {
	start, end time.Duration
	place      int // as on the keys of a numeric keypad, 1 to 9; 0 is the usual place, 2
	speaker    string
	runs       []run
}

// A run is a text with one style. Lines end with LF.
type run struct {
	text  string
	style style
}

// A style is the look of a text.
type style struct {
	bold, italic, underline, strike bool
	colour                          string // rrggbb; "" is the usual colour
}

// add adds a cue unless it is empty or its time is invalid.
func (d *document) add(c cue) error {
	c.tidy()
	if len(c.runs) == 0 {
		return nil
	}
	if c.end <= c.start {
		d.badTimes++
		return nil
	}
	if len(d.cues) == d.most {
		return fileops.Fail(fileops.ErrLimit, nil, "the file has more than %d subtitles", d.most)
	}
	d.cues = append(d.cues, c)
	return nil
}

// tidy removes empty lines, which end a subtitle in srt and vtt, and joins equal runs.
func (c *cue) tidy() {
	var out []run
	fresh := true // at the start of a line
	for _, r := range c.runs {
		var b strings.Builder
		for line := range strings.SplitAfterSeq(r.text, "\n") {
			body, ends := strings.CutSuffix(line, "\n")
			if fresh && strings.TrimSpace(body) == "" {
				continue
			}
			if b.WriteString(body); ends {
				b.WriteByte('\n')
			}
			fresh = ends
		}
		if b.Len() == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].style == r.style {
			out[n-1].text += b.String()
		} else {
			out = append(out, run{b.String(), r.style})
		}
	}
	for n := len(out); n > 0; n = len(out) {
		if out[n-1].text = strings.TrimRight(out[n-1].text, " \t\n"); out[n-1].text != "" {
			break
		}
		out = out[:n-1]
	}
	c.runs = out
}

// plain returns the text without styles.
func (c cue) plain() string {
	var b strings.Builder
	for _, r := range c.runs {
		b.WriteString(r.text)
	}
	return b.String()
}

// warn warns about what the result lacks.
func (d *document) warn(job *fileops.Job) {
	switch {
	case d.badTimes == 1:
		job.Warn(fileops.WarnContentDropped, "1 subtitle was left out, because it ends before it starts.")
	case d.badTimes > 1:
		job.Warn(fileops.WarnContentDropped, "%d subtitles were left out, because they end before they start.", d.badTimes)
	}
	if d.drawings > 0 {
		job.Warn(fileops.WarnContentDropped, "Drawings were left out: %d.", d.drawings)
	}
	if job.Params.Get("convert_to") == string(format.TXT) {
		return // a text has no looks
	}
	if d.looks {
		job.Warn(fileops.WarnLayoutSimplified, "Fonts, sizes, effects or exact positions of subtitles were left out.")
	}
	if d.speakers {
		job.Warn(fileops.WarnContentDropped, "Names of speakers were left out.")
	}
	if d.colours {
		job.Warn(fileops.WarnLayoutSimplified, "Colours that WebVTT has no name for were left out.")
	}
}
