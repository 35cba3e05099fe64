package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/fidelity"
	"github.com/filewright/filewright/internal/report"
)

// ofAction judges what is special about the results of an action. It reports whether they need no
// further judge of similarity.
func ofAction(ctx context.Context, t task, results []string, dir string, v *Verdict) (done bool, err error) {
	switch action := t.cell.Action; {
	case action == "watermark" && t.cell.From.Family() == format.Image:
		return true, nil // it covers much of a small picture, on purpose
	case action == "split":
		return true, splitPages(ctx, t.path, results, v)
	case t.cell.From == format.PDF && format.Parse(results[0]) == format.PDF && (action == "extract_pages" || action == "convert" || action == "rotate"):
		return true, firstPages(ctx, t, results[0], v)
	case action == "fill_form":
		return false, filled(ctx, results[0])
	case action == "metadata":
		return false, titled(ctx, results[0])
	case action == "inspect":
		return true, described(ctx, t, results[0])
	case action == "extract" && t.cell.From.Family() != format.Archive: // of a message
		return true, nil
	case action == "extract":
		return true, sameMembers(ctx, t.path, results, filepath.Join(dir, "members"))
	}
	return false, nil
}

// splitPages objects to parts that have more or fewer pages than the input together.
func splitPages(ctx context.Context, original string, parts []string, v *Verdict) (err error) {
	if v.Pages[0], err = fidelity.Count(ctx, original); err != nil {
		return err
	}
	for _, p := range parts {
		n, err := fidelity.Count(ctx, p)
		if err != nil {
			return err
		}
		v.Pages[1] += n
	}
	if v.Pages[0] != v.Pages[1] {
		return object("the parts have %d pages, the input %d", v.Pages[1], v.Pages[0])
	}
	return nil
}

// firstPages compares the pages of a result with the first ones of a PDF, which rotate has turned.
func firstPages(ctx context.Context, t task, result string, v *Verdict) error {
	pages, err := fidelity.Draw(ctx, result, 5)
	if err != nil {
		return rejected("pdftoppm", err)
	}
	if t.cell.Action == "rotate" {
		for i, p := range pages {
			pages[i] = p.Turned().Turned().Turned() // arguments turn by 90 degrees
		}
	}
	s, err := fidelity.Pictures(ctx, t.path, pages)
	if err != nil {
		return fatal(err)
	}
	v.score(s.Total)
	return nil
}

// Values of arguments.
const (
	title = "A title"
	draft = "Draft"
)

// titled objects to a file in which exiftool, or ffprobe for formats that it does not read, does not
// find the title.
func titled(ctx context.Context, path string) error {
	out, err := tool(ctx, "exiftool", "-s3", "-Title", "-XPTitle", "-ObjectName", path)
	if err := fatal(err); err != nil {
		return err
	}
	if bytes.Contains(out, []byte(title)) {
		return nil
	}
	out, err = tool(ctx, "ffprobe", "-v", "error", "-show_entries", "format_tags:stream_tags", path)
	if err := fatal(err); err != nil {
		return err
	}
	if !bytes.Contains(out, []byte(title)) {
		return object("neither exiftool nor ffprobe finds the title")
	}
	return nil
}

// described objects to a report that contradicts pdfinfo or ffprobe.
func described(ctx context.Context, t task, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return object("no report: %v", err)
	}
	switch {
	case r.PDF != nil:
		n, err := fidelity.Count(ctx, t.path)
		if err == nil && n != r.PDF.Pages {
			return object("it reports %d pages, pdfinfo %d", r.PDF.Pages, n)
		}
		return fatal(err)
	case r.Picture != nil && t.cell.From != format.SVG && t.cell.From != format.RAW:
		out, err := tool(ctx, "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height", "-of", "csv=p=0", t.path)
		w, rest, _ := strings.Cut(strings.TrimSpace(string(out)), ",")
		h, _, _ := strings.Cut(rest, ",")
		width, _ := strconv.Atoi(w)
		height, _ := strconv.Atoi(strings.TrimSpace(h))
		if err == nil && width > 0 && height > 0 && width*height != r.Picture.Width*r.Picture.Height {
			return object("it reports %d × %d pixels, ffprobe %d × %d", r.Picture.Width, r.Picture.Height, width, height)
		}
		return fatal(err)
	case r.Media != nil:
		d, err := duration(ctx, t.path)
		if err == nil && d > 0 && math.Abs(d-r.Media.Duration) > 0.5+d/20 {
			return object("it reports %.1f s, ffprobe %.1f s", r.Media.Duration, d)
		}
		return err
	}
	return nil
}

// sameMembers objects to extracted files if one of them is not among those that bsdtar or 7-Zip
// extracts, or if some of those are missing.
func sameMembers(ctx context.Context, archive string, results []string, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var err error
	switch format.Parse(archive) {
	case format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ: // one file, even if it is an archive again
		var content []byte
		if content, err = tool(ctx, "bsdcat", archive); err == nil {
			err = os.WriteFile(filepath.Join(dir, "file"), content, 0o600)
		}
	default:
		_, err = tool(ctx, "bsdtar", "-xf", archive, "-C", dir)
	}
	if err != nil {
		if err := fatal(err); err != nil {
			return err
		}
		dir += "-7z"
		if _, err = tool(ctx, "7z", "x", "-y", "-p"+password, "-o"+dir, archive); err != nil {
			return fatal(err) // no judge reads it
		}
	}
	want := make(map[[sha256.Size]byte]int)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		want[sha256.Sum256(b)]++
		return err
	})
	if err != nil {
		return err
	}
	got := make(map[[sha256.Size]byte]bool)
	for _, p := range results {
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if want[sum] == 0 {
			return object("%s is not what bsdtar or 7-Zip extracts", filepath.Base(p))
		}
		got[sum] = true
	}
	if len(got) < len(want) {
		return object("%d different files were extracted, by bsdtar or 7-Zip %d", len(got), len(want))
	}
	return nil
}

// textField returns the full name of a text field of a PDF, or "" if qpdf finds none.
func textField(ctx context.Context, path string) string {
	out, err := tool(ctx, "qpdf", "--json", "--json-key=acroform", path)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ""
	}
	var d struct {
		AcroForm struct {
			Fields []field `json:"fields"`
		} `json:"acroform"`
	}
	if json.Unmarshal(out, &d) != nil {
		return ""
	}
	for _, f := range d.AcroForm.Fields {
		if f.Type == "/Tx" && f.Name != "" {
			return f.Name
		}
	}
	return ""
}

// A field is a form field as qpdf describes it.
type field struct {
	Name string `json:"fullname"`
	Type string `json:"fieldtype"`
}

// filled objects to a form in which qpdf does not find the value.
func filled(ctx context.Context, path string) error {
	out, err := tool(ctx, "qpdf", "--json", "--json-key=acroform", path)
	if fatal(err) == nil && !bytes.Contains(out, []byte(draft)) {
		return object("qpdf does not find the value in the form")
	}
	return fatal(err)
}
