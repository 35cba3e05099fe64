package fileopstest_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/specimen"
)

// mayBeNamed returns the extensions, besides its own, that a file of a format
// may have. See docs/formats.md.
func mayBeNamed(is format.Format) []format.Format {
	if slices.Contains(freeText, is) {
		return freeText
	}
	switch is {
	case format.SVG, format.FODT, format.FODS, format.FODP, format.FB2, format.EML, format.SRT, format.VTT, format.ASS:
		return freeText
	case format.MP4, format.MOV, format.M4V, format.ThGP, format.M4A:
		return []format.Format{format.MP4, format.MOV, format.M4V, format.ThGP, format.M4A}
	case format.MKV, format.WebM:
		return []format.Format{format.MKV, format.WebM}
	case format.WMV, format.WMA:
		return []format.Format{format.WMV, format.WMA}
	case format.OGG, format.Opus:
		return []format.Format{format.OGG, format.Opus}
	case format.MP3, format.AAC:
		return []format.Format{format.MP3, format.AAC}
	case format.MPEG, format.TS:
		return []format.Format{format.MPEG, format.TS}
	case format.TIFF, format.RAW:
		return []format.Format{format.TIFF, format.RAW}
	case format.MOBI, format.AZW3:
		return []format.Format{format.MOBI, format.AZW3}
	case format.LZ, format.TarLZ: // tlz stands for tar.lzma, too
		return []format.Format{format.LZ, format.TarLZ, format.TarLZMA}
	case format.DEB:
		return []format.Format{format.AR}
	}
	for _, same := range [][]format.Format{
		// Templates and documents with macros have the content of their plain format.
		{format.DOCX, format.DOCM, format.DOTX, format.DOTM, format.ZIP},
		{format.XLSX, format.XLSM, format.XLTX, format.XLTM, format.XLSB, format.ZIP},
		{format.PPTX, format.PPTM, format.PPSX, format.PPSM, format.POTX, format.POTM, format.ZIP},
		{format.ODT, format.OTT, format.ZIP}, {format.ODS, format.OTS, format.ZIP}, {format.ODP, format.OTP, format.ZIP},
		{format.EPUB, format.ZIP}, {format.ODG, format.ZIP}, {format.VSDX, format.ZIP},
		{format.Pages, format.ZIP}, {format.Numbers, format.ZIP}, {format.Key, format.ZIP},
		{format.DOC, format.DOT}, {format.XLS, format.XLT}, {format.PPT, format.PPS, format.POT},
		{format.GZ, format.TarGZ}, {format.BZ2, format.TarBZ2}, {format.XZ, format.TarXZ}, {format.Zst, format.TarZst},
		{format.LZ4, format.TarLZ4}, {format.LZMA, format.TarLZMA},
	} {
		if is != format.ZIP && slices.Contains(same, is) {
			if is == format.XLSB { // of the others only the workbook that programs rename it from
				return []format.Format{format.XLSX, format.ZIP}
			}
			if is != format.XLSX {
				same = slices.DeleteFunc(slices.Clone(same), func(f format.Format) bool { return f == format.XLSB })
			}
			return same
		}
	}
	return nil
}

// freeText are the formats that any text may have.
var freeText = []format.Format{
	format.TXT, format.MD, format.HTML, format.CSV, format.TSV, format.XML, format.JSON, format.JSONL, format.RST, format.Org, format.TeX,
}

// spy returns an action that accepts every name, and a flag that reports whether
// it ran.
func spy() (a fileops.Action, ran *bool) {
	ran = new(bool)
	return fileops.Func(fileops.Spec{
		Name: "spy", Engine: "spy", Family: "spy", Summary: "Looks.", Encrypted: true,
		Accepts: []fileops.Accept{{Formats: slices.Collect(format.Known())}},
	}, func(_ context.Context, job *fileops.Job) error {
		*ran = true
		return job.WriteBytes("seen.txt", []byte("seen"))
	}), ran
}

func none(context.Context, *fileops.File) error { return nil }

// No action gets a file under the extension of another format, except for the
// allowed ones.
func TestRenamed(t *testing.T) {
	t.Parallel()
	for is := range format.Known() {
		t.Run(string(is), func(t *testing.T) {
			t.Parallel()
			sample := specimen.Of(t, is)
			for named := range format.Known() {
				a, ran := spy()
				err := (&fileops.Runner{TempDir: t.TempDir()}).Run(t.Context(), a, nil, fileops.SinkFunc(none), sample.Named("a."+string(named)))
				if named == is || slices.Contains(mayBeNamed(is), named) {
					if err != nil || !*ran {
						t.Errorf("%s named .%s: %v", is, named, err)
					}
					continue
				}
				if *ran || !errors.Is(err, fileops.ErrFormatMismatch) {
					t.Errorf("%s named .%s: %v, want a mismatch; the action was run: %v", is, named, err, *ran)
				}
			}
		})
	}
}

// Files without recognizable content reach only actions on text.
func TestNearlyEmpty(t *testing.T) {
	t.Parallel()
	for content, what := range map[string]string{"": "an empty file", "\x00": "a zero", "\xff": "a byte"} {
		for named := range format.Known() {
			switch named {
			case format.MP3, format.AAC, format.MPEG, format.TS:
				if content != "" {
					continue // headerless: such files may start anywhere in a stream
				}
			}
			if slices.Contains(freeText, named) {
				continue
			}
			a, ran := spy()
			err := (&fileops.Runner{TempDir: t.TempDir()}).Run(t.Context(), a, nil, fileops.SinkFunc(none), fileops.Bytes("a."+string(named), []byte(content)))
			if code := fileops.Code(err); *ran || err == nil || code != "corrupt_input" && code != "format_mismatch" {
				t.Errorf("%s named .%s: %v; the action was run: %v", what, named, err, *ran)
			}
		}
	}
}

// An action fails if it reports success without a result.
func TestLyingActions(t *testing.T) {
	t.Parallel()
	lies := map[string]string{
		"nothing": "", "zeros": string(make([]byte, 4096)), "text": "Error: could not open the display\n", "a page": "<html><body>502</body></html>",
	}
	for claimed := range format.Known() {
		other := format.PNG
		if claimed == format.PNG {
			other = format.GIF
		}
		b, _ := fileopstest.Sample(t, other).Bytes()
		lies["another format"] = string(b)
		for what, content := range lies {
			if slices.Contains(freeText, claimed) && what != "zeros" && what != "another format" {
				continue // it is text, and a page without text is valid
			}
			for how, write := range map[string]func(*fileops.Job, string) error{
				"bytes": func(j *fileops.Job, name string) error { return j.WriteBytes(name, []byte(content)) },
				"file":  func(j *fileops.Job, name string) error { return j.WriteFile(name, writes(content)) },
			} {
				a := fileops.Func(fileops.Spec{
					Name: "lie", Engine: "liar", Family: "liar", Summary: "Lies.",
					Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
				}, func(_ context.Context, job *fileops.Job) error { return write(job, "out."+string(claimed)) })
				put := false
				err := (&fileops.Runner{TempDir: t.TempDir()}).Run(t.Context(), a, nil, fileops.SinkFunc(func(context.Context, *fileops.File) error {
					put = true
					return nil
				}), fileops.Bytes("a.txt", []byte("x")))
				if fileops.Code(err) != "engine_failed" || put {
					t.Errorf("%s as .%s, %s: %v; it was stored: %v", what, claimed, how, err, put)
				}
			}
		}
	}
}

// The sniffer determines the format of polyglots.
func TestPolyglots(t *testing.T) {
	t.Parallel()
	for _, p := range hostile.Polyglots() {
		f := fileops.Bytes(p.Name, p.Content)
		if got := format.Sniff(f.Reader(), f.Size()); got != p.Is {
			t.Errorf("%s is sniffed as %q, want %q", p.Name, got, p.Is)
		}
		for _, also := range p.Also {
			a, ran := spy()
			err := (&fileops.Runner{TempDir: t.TempDir()}).Run(t.Context(), a, nil, fileops.SinkFunc(none), f.Named("a."+string(also)))
			if *ran || err == nil {
				t.Errorf("%s gets to an action as .%s", p.Name, also)
			}
		}
	}
}

func writes(content string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
}
