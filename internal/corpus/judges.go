package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/fidelity"
	"github.com/filewright/filewright/internal/likeness"
)

// A Verdict is the opinion of programs that did not make the results.
type Verdict struct {
	Pages   [2]int   `json:"pages,omitzero"`    // of the input and of the results, where both have pages
	Score   *float64 `json:"score,omitempty"`   // similarity to the input, 0 to 10, if it can be measured
	Letters *float64 `json:"letters,omitempty"` // part of the input's letters and digits that the results have, 0 to 1
	Wrong   string   `json:"wrong,omitempty"`   // why a result is not valid
}

// An objection is a judge's reason to reject a result.
type objection string

func (o objection) Error() string { return string(o) }

func object(format string, args ...any) error { return objection(fmt.Sprintf(format, args...)) }

// judges judge results one by one. They run outside of any sandbox.
type judges struct {
	profile string // directory for LibreOffice
	printed struct{ source, pdf string }
}

// judge judges the results of t. dir is a directory for its files, which does not exist yet. An error
// means that a judge is missing or that ctx is done.
func (j *judges) judge(ctx context.Context, t task, results []string, dir string) (v Verdict, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return v, err
	}
	if len(results) == 0 {
		return Verdict{Wrong: "there is no result"}, nil
	}
	for _, p := range results {
		if t.cell.Action == "extract" {
			break // they are as good as what somebody put into the archive
		}
		if err = j.valid(ctx, t, p, dir); err != nil {
			break
		}
	}
	done := false
	if err == nil {
		done, err = ofAction(ctx, t, results, dir, &v)
	}
	if err == nil && !done {
		err = j.similar(ctx, t, results, dir, &v)
	}
	if o := objection(""); errors.As(err, &o) {
		v.Wrong, err = string(o), nil
	}
	return v, err
}

// pages are formats that LibreOffice prints, in which a document keeps its pages.
var pages = map[format.Format]bool{
	format.DOC: true, format.DOCX: true, format.ODT: true, format.RTF: true, format.FODT: true,
	format.XLS: true, format.XLSX: true, format.ODS: true, format.FODS: true, format.PPT: true, format.PPTX: true, format.ODP: true, format.FODP: true,
	format.XLSB: true, format.ODG: true,
}

// valid objects to a file that its format's judge cannot read.
func (j *judges) valid(ctx context.Context, t task, path, dir string) error {
	secret := t.cell.Action == "lock" || t.cell.Action == "reset_password"
	if t.cell.Action == "compress" {
		if same, err := identical(t.path, path); same || err != nil {
			return err // nothing is lost; the input may be damaged, or locked with an unknown password
		}
	}
	switch f := format.Parse(path); {
	case f == format.PDF:
		return validPDF(ctx, t, path, secret)
	case f == format.SVG || f == format.XML:
		return validXML(path)
	case f.Family() == format.Image:
		_, err := picture(ctx, path, 64, 64)
		return err
	case f.Family() == format.Audio || f.Family() == format.Video:
		return validMedia(ctx, t, path)
	case f == format.ZIP || f == format.EPUB:
		return validZIP(ctx, path)
	case secret && f.Family() != format.Archive: // LibreOffice takes no password on its command line
		return nil
	case f == format.HTML:
		_, err := j.printHTML(ctx, path, dir)
		return err
	case pages[f.Plain()]:
		_, err := j.print(ctx, path, dir)
		return err
	case f == format.SevenZip:
		return check(ctx, "7z", "t", "-p"+password, path)
	case f.Family() == format.Archive:
		return check(ctx, "tar", "-tf", path)
	default:
		return validText(f, path)
	}
}

// validPDF objects to a result that qpdf rejects. Warnings count only if the input has none.
func validPDF(ctx context.Context, t task, path string, secret bool) error {
	args := []string{"--check", path}
	if secret {
		args = append([]string{"--password=" + password}, args...)
	}
	_, err := tool(ctx, "qpdf", args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 && t.cell.From == format.PDF {
		if _, before := tool(ctx, "qpdf", "--check", t.path); before != nil {
			err = nil
		}
	}
	if err != nil {
		return rejected("qpdf", err)
	}
	if n, err := fidelity.Count(ctx, path); err != nil || n == 0 && !secret {
		return errors.Join(err, object("pdfinfo finds no page"))
	}
	return nil
}

// validZIP objects to an archive that unzip rejects. unzip does not know AES and some methods of
// compression; then 7z decides.
func validZIP(ctx context.Context, path string) error {
	const unsupported = 81 // exit status of unzip; see unzip(1)
	_, err := tool(ctx, "unzip", "-tq", "-P", password, path)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == unsupported {
		return check(ctx, "7z", "t", "-p"+password, path)
	}
	return rejected("unzip", err)
}

// identical reports whether two files have the same content.
func identical(a, b string) (bool, error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	return bytes.Equal(x, y), err
}

func validXML(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	for {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return object("no valid XML: %v", err)
		}
	}
}

// validText objects to a text that is not UTF-8, or to invalid JSON.
func validText(f format.Format, path string) error {
	b, err := os.ReadFile(path)
	switch {
	case err != nil:
		return err
	case !utf8.Valid(b):
		return object("the text is not UTF-8")
	case f == format.JSON && !json.Valid(b):
		return object("no valid JSON")
	case f == format.JSONL:
		for line := range bytes.Lines(b) {
			if !json.Valid(line) {
				return object("a line is no valid JSON")
			}
		}
	}
	return nil
}

// validMedia objects to a recording that ffmpeg cannot decode, or that has another duration than
// the input.
func validMedia(ctx context.Context, t task, path string) error {
	decodes := func(path string) error {
		return reading(path, func(in ...string) error {
			args := append([]string{"-nostdin", "-v", "error", "-xerror"}, in...)
			return check(ctx, "ffmpeg", append(args, "-f", "null", "-")...)
		})
	}
	if err := decodes(path); err != nil {
		if t.cell.Action != "metadata" || fatal(err) != nil || decodes(t.path) == nil {
			return err
		} // else its streams are copied, and the input has the same defect
	}
	if fam := t.cell.From.Family(); fam != format.Audio && fam != format.Video || t.cell.Spec.Joint {
		return nil
	}
	before, err := duration(ctx, t.path)
	if err != nil {
		return err
	}
	after, err := duration(ctx, path)
	if err != nil {
		return err
	}
	if before > 0 && math.Abs(after-before) > 0.5+before/20 {
		return object("it lasts %.1f s, the input %.1f s", after, before)
	}
	return nil
}

// reading has a judge read a recording. Its arguments name the demuxer if the judge objects
// otherwise: two frames of AAC are too few for ffmpeg to recognise them.
func reading(path string, judge func(in ...string) error) error {
	err := judge("-i", path)
	if err != nil && fatal(err) == nil && format.Parse(path) == format.AAC {
		err = judge("-f", "aac", "-i", path)
	}
	return err
}

// duration returns seconds, or 0 if ffprobe does not know.
func duration(ctx context.Context, path string) (float64, error) {
	var out []byte
	err := reading(path, func(in ...string) (err error) {
		out, err = tool(ctx, "ffprobe", append([]string{"-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"}, in...)...)
		return err
	})
	if err := fatal(err); err != nil {
		return 0, err
	}
	d, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return 0, nil //nolint:nilerr // "N/A", or nothing
	}
	return d, nil
}

// similar measures how similar the results are to the input.
func (j *judges) similar(ctx context.Context, t task, results []string, dir string, v *Verdict) error {
	from, to := t.cell.From, format.Parse(results[0])
	if t.cell.Spec.Joint || t.cell.Action == "lock" || t.cell.Action == "reset_password" || t.cell.Action == "unlock" {
		return nil
	}
	switch {
	case from.Family() == format.Image && to.Family() == format.Image && from != format.SVG && to != format.SVG:
		return similarPicture(ctx, t.path, results[0], v)
	case from.Family() == format.Sheet && to.Family() != format.Sheet: // a page of LibreOffice is as good as another
		return nil
	case from != format.PDF && !pages[from.Plain()]:
		return nil
	}
	original, err := j.original(ctx, t.path)
	if err != nil || original == "" {
		return err
	}
	switch {
	case to == format.PDF && (t.cell.Action == "watermark" || t.cell.Action == "page_numbers"):
		return remains(ctx, original, results[0], v)
	case to == format.PDF:
		return compared(v)(fidelity.Compare(ctx, original, results[0]))
	case to == format.HTML:
		printed, err := j.printHTML(ctx, results[0], dir)
		if err != nil {
			return err
		}
		return similarFlow(ctx, original, printed, v)
	case to.Family() == format.Sheet && from == format.PDF:
		return j.similarTables(ctx, original, results, dir, v)
	case pages[to]:
		printed, err := j.print(ctx, results[0], dir)
		if err != nil {
			return err
		}
		return compared(v)(fidelity.Compare(ctx, original, printed))
	case to == format.TXT || to == format.MD:
		return similarText(ctx, original, results, v)
	case to.Family() == format.Image && to != format.SVG && from == format.PDF:
		return similarPages(ctx, original, results, v)
	}
	return nil
}

func (v *Verdict) score(s float64) {
	s = math.Round(10*s) / 10
	v.Score = &s
}

// similarText looks for the letters of the original in text files.
func similarText(ctx context.Context, original string, results []string, v *Verdict) error {
	var text strings.Builder
	for _, p := range results {
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		text.Write(b)
	}
	return letters(ctx, original, text.String(), v)
}

// similarTables looks for the letters of a PDF in its tables. How a workbook looks in print does not
// count: a table has neither the place nor the size of the page.
func (j *judges) similarTables(ctx context.Context, original string, results []string, dir string, v *Verdict) error {
	if !pages[format.Parse(results[0])] {
		return similarText(ctx, original, results, v)
	}
	// In print, cells hide text that is longer than they are wide.
	sheets, err := j.office(ctx, results[0], dir, "html")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(sheets)
	if err != nil {
		return err
	}
	return letters(ctx, original, html.UnescapeString(tag.ReplaceAllString(string(b), " ")), v)
}

var tag = regexp.MustCompile(`<[^>]*>`)

// letters scores a text by the part of the original's letters that it has.
func letters(ctx context.Context, original, text string, v *Verdict) error {
	part, err := fidelity.Text(ctx, original, text)
	if v.Letters = part; part != nil {
		v.score(10 * *part)
	}
	return err
}

// similarFlow compares the print of a web page with the original. A web page has no pages: the score
// is the part of the letters, or without any letters 0 if the print is blank and the original is not.
func similarFlow(ctx context.Context, original, printed string, v *Verdict) error {
	text, err := tool(ctx, "pdftotext", printed, "-")
	if err != nil {
		return rejected("pdftotext", err)
	}
	if err := letters(ctx, original, string(text), v); err != nil || v.Score != nil {
		return err
	}
	var blank [2]bool
	for i, pdf := range []string{original, printed} {
		drawn, err := fidelity.Draw(ctx, pdf, fidelity.MaxPages)
		if err != nil {
			return err
		}
		blank[i] = !slices.ContainsFunc(drawn, func(p *likeness.Page) bool { return !p.Blank() })
	}
	if blank[1] && !blank[0] {
		v.score(0)
	}
	return nil
}

// compared returns a function that stores a score in v.
func compared(v *Verdict) func(fidelity.Score, error) error {
	return func(s fidelity.Score, err error) error {
		if err == nil && s.Pages[0] > 0 {
			v.Pages, v.Letters = s.Pages, s.Text
			v.score(s.Total)
		}
		return err
	}
}

// remains scores the part of a PDF's ink and letters that a result still has. What the result has
// besides does not count: the action has added it.
func remains(ctx context.Context, original, result string, v *Verdict) error {
	s, err := fidelity.Compare(ctx, original, result)
	if err != nil || s.Pages[0] == 0 {
		return err
	}
	v.Pages, v.Letters = s.Pages, s.Text
	sum, parts := 0.0, 0.0
	for _, part := range []*float64{s.Ink, s.Text} {
		if part != nil {
			sum += *part
			parts++
		}
	}
	if parts > 0 {
		v.score(10 * sum / parts * float64(min(s.Pages[0], s.Pages[1])) / float64(max(s.Pages[0], s.Pages[1])))
	}
	return nil
}

// similarPages compares pictures with the pages that they show.
func similarPages(ctx context.Context, original string, results []string, v *Verdict) error {
	drawn, err := fidelity.Draw(ctx, original, min(len(results), 5))
	if err != nil || len(drawn) == 0 {
		return err
	}
	var pictures []*likeness.Page
	for i, p := range drawn {
		got, err := picture(ctx, results[i], p.W, p.H)
		if err != nil {
			return err
		}
		pictures = append(pictures, got)
	}
	s, err := fidelity.Pictures(ctx, original, pictures)
	if err != nil {
		return err
	}
	v.score(s.Total)
	if v.Pages[0], err = fidelity.Count(ctx, original); err != nil {
		return err
	}
	v.Pages[1] = len(results)
	return nil
}

// similarPicture compares two pictures, in the orientation in which they are most similar: decoders
// do not agree about the orientation in Exif.
func similarPicture(ctx context.Context, original, result string, v *Verdict) error {
	const side = 200
	a, err := picture(ctx, original, side, side)
	if err != nil {
		return fatal(err) // nothing to compare with
	}
	b, err := picture(ctx, result, side, side)
	if err != nil {
		return err
	}
	best := 0.0
	for range 4 {
		best = max(best, a.Match(b).Look)
		b = b.Turned()
	}
	v.score(10 * best)
	return nil
}

// picture decodes the first frame of a picture on white and scales it. Formats that ffmpeg does not
// read are decoded by vips first.
func picture(ctx context.Context, path string, w, h int) (*likeness.Page, error) {
	switch format.Parse(path) {
	case format.AVIF, format.HEIC, format.JXL, format.JP2, format.WebP: // ffmpeg 5 reads no animated WebP
		dir, err := os.MkdirTemp("", "corpus-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		decoded := filepath.Join(dir, "x.png")
		if err := check(ctx, "vips", "copy", path, decoded+"[compression=0]"); err != nil {
			return nil, err
		}
		path = decoded
	}
	raw, err := tool(ctx, "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-frames:v", "1",
		"-vf", fmt.Sprintf("scale=%d:%d:flags=area", w, h), "-pix_fmt", "rgba", "-f", "rawvideo", "-")
	if err != nil {
		return nil, rejected("ffmpeg", err)
	}
	if len(raw) != 4*w*h {
		return nil, object("ffmpeg finds no picture")
	}
	p := &likeness.Page{W: w, H: h, RGB: make([]byte, 3*w*h)}
	visible := false // a channel without any visible pixel is not meant as alpha
	for i := range w * h {
		visible = visible || raw[4*i+3] > 0
	}
	for i := range w * h {
		alpha := int(raw[4*i+3])
		if !visible {
			alpha = 255
		}
		for c := range 3 {
			p.RGB[3*i+c] = byte((int(raw[4*i+c])*alpha + 255*(255-alpha)) / 255)
		}
	}
	return p, nil
}

// original returns the input as a PDF, or "" if LibreOffice cannot print it.
func (j *judges) original(ctx context.Context, path string) (string, error) {
	if format.Parse(path) == format.PDF {
		return path, nil
	}
	if j.printed.source != path {
		pdf, err := j.print(ctx, path, j.profile+"-original")
		if err := fatal(err); err != nil {
			return "", err
		}
		j.printed.source, j.printed.pdf = path, pdf
	}
	return j.printed.pdf, nil
}

// print has LibreOffice print a document to PDF.
func (j *judges) print(ctx context.Context, path, dir string) (string, error) {
	return j.office(ctx, path, dir, "pdf")
}

// office has LibreOffice convert a document to a format, given by its extension.
func (j *judges) office(ctx context.Context, path, dir, to string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	_, err := tool(ctx, "soffice", "-env:UserInstallation=file://"+j.profile, "--headless", "--norestore", "--convert-to", to, "--outdir", dir, path)
	if err != nil && ctx.Err() == nil {
		return "", rejected("soffice", err)
	}
	out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+"."+to)
	if _, err := os.Stat(out); err != nil {
		return "", object("LibreOffice does not read it")
	}
	return out, nil
}

// printHTML has Chromium or Chrome print a web page to PDF.
func (j *judges) printHTML(ctx context.Context, path, dir string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	pdf := filepath.Join(dir, "page.pdf")
	args := []string{"--headless", "--disable-gpu", "--no-pdf-header-footer", "--user-data-dir=" + j.profile + "-browser", "--print-to-pdf=" + pdf, "file://" + path}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // Chromium refuses root otherwise
	}
	browser := "chromium"
	for _, name := range []string{"google-chrome-stable", "google-chrome"} {
		if _, err := exec.LookPath(browser); err != nil {
			browser = name
		}
	}
	if _, err := tool(ctx, browser, args...); err != nil && ctx.Err() == nil {
		return "", rejected(browser, err)
	}
	if _, err := os.Stat(pdf); err != nil {
		return "", object("%s does not print it", browser)
	}
	return pdf, nil
}

// check runs a judge that rejects a file by its exit status.
func check(ctx context.Context, name string, args ...string) error {
	_, err := tool(ctx, name, args...)
	return rejected(name, err)
}

// rejected turns the exit status of a judge into its objection.
func rejected(name string, err error) error {
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "")
	}
	return object("%s: %v: %s", name, err, line)
}

// fatal returns err unless a judge objects to a file.
func fatal(err error) error {
	var exit *exec.ExitError
	if o := objection(""); errors.As(err, &o) || errors.As(err, &exit) {
		return nil
	}
	return err
}

// tool runs a judge and returns its output.
func tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	var out, trouble bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &trouble
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = trouble.Bytes()
		if trouble.Len() == 0 {
			exit.Stderr = out.Bytes()
		}
	}
	return out.Bytes(), err
}
