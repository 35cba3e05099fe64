package pdfops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/excerpt"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdfa"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/pagelist"
)

// ConvertArchival returns the action "convert" from PDF to PDF/A or PDF/UA.
//
//   - pdfa: 1b, 2b or 3b. A file that lacks nothing but metadata and an output intent keeps its pages
//     and tags as they are. Otherwise Ghostscript writes the pages again: it embeds fonts, converts
//     colours to RGB and, for 1b, makes transparent parts opaque. Without Ghostscript such files fail.
//   - pdfua: the file claims to conform to PDF/UA-1. It fails if the tags of the file have a defect that
//     a program can find. A file without a title gets its name as title.
//   - pages: the pages of the result, taken as [Tools.ExtractPages] takes them.
//
// Every result is checked, and pages are compared with those before. Scripts, forbidden actions and
// hidden annotations are left out, as are attachments, except with 3b.
func (t Tools) ConvertArchival() fileops.Action {
	spec := t.pageSpec("convert", "Makes a PDF file for archiving (PDF/A), or one that claims to be accessible (PDF/UA).",
		fileops.Enum("convert_to", "Extension of the result.", "pdf"),
		fileops.Param{Name: "pdfa", Enum: []string{"1b", "2b", "3b"}, Doc: "Creates a PDF/A file for archiving: part 1, 2 or 3, conformance level B."},
		fileops.Param{Name: "pdfua", Type: fileops.Boolean, Default: false, Doc: "Claims to conform to PDF/UA-1. Fails if the file is not tagged or a check finds a defect."},
		chosenPages(),
	)
	spec.Accepts[0].Changes = []string{"pdfa", "pdfua"}
	spec.MaxBytes = pdf.MaxFile
	return fileops.Func(spec, t.archive)
}

func (t Tools) archive(ctx context.Context, job *fileops.Job) error {
	d, pages, err := t.loadPages(ctx, job)
	if err != nil {
		return err
	}
	defer func() { d.Close() }()
	if job.Params.Has("pages") {
		part, err := t.excerpt(ctx, job, d, pages)
		if err != nil {
			return err
		}
		d.Close()
		d = part
		if pages, err = d.Pages(t.Limits.pages()); err != nil {
			return err
		}
	}
	before, err := plainCopy(d)
	if err != nil {
		return err
	}
	want := pdfa.Standard{UA: job.Params.Bool("pdfua")}
	if v := job.Params.Get("pdfa"); v != "" {
		want.Part = int(v[0] - '0')
	}
	if want.Part == 0 {
		want.Part = claimedPart(d)
	}
	if want.Part > 0 {
		if d, pages, err = t.archivable(ctx, job, d, pages, want.Part); err != nil {
			return err
		}
		defer d.Close()
	}
	if want.UA {
		nameDocument(job, d)
		pdfa.PrepareUA(d, pages)
		if reasons := pdfa.CheckUA(d, pages); len(reasons) > 0 {
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file cannot claim to conform to PDF/UA-1: %s", joined(reasons))
		}
	}
	pdfa.Claim(d, want)
	d.Version = map[int]string{1: "1.4"}[want.Part]
	d.Version = cmp.Or(d.Version, "1.7")
	return t.writeCompared(ctx, job, d, want.Part == 1, before, len(pages))
}

// writeCompared writes the result d, whose pages must look like those of the file before. For classic, see
// [pdf.Document.Write].
func (t Tools) writeCompared(ctx context.Context, job *fileops.Job, d *pdf.Document, classic bool, before []byte, pages int) error {
	var after bytes.Buffer
	if err := d.Write(&after, classic, nil); err != nil {
		return err
	}
	job.Progress(0.8)
	if err := t.comparePages(ctx, job, before, after.Bytes(), pages); err != nil {
		return err
	}
	if err := warnSigned(job); err != nil {
		return err
	}
	return job.Write(job.Input().Name(), func(w io.Writer) error { _, err := w.Write(after.Bytes()); return err })
}

// excerpt returns a document of the pages that the parameter pages names. The caller must close it.
func (t Tools) excerpt(ctx context.Context, job *fileops.Job, d *pdf.Document, pages []pdf.Page) (*pdf.Document, error) {
	chosen, err := pagelist.Parse(job.Params.Get("pages"), len(pages))
	if err != nil {
		return nil, err
	}
	part, lost := excerpt.New(d, pages).Take(chosen)
	warnExcerpt(job, lost, false) // the caller warns about signatures
	var b bytes.Buffer
	if err := part.Write(&b, part.IsPDFA1(), nil); err != nil {
		return nil, err
	}
	return pdf.ParseComplete(ctx, b.Bytes(), t.Limits.pages())
}

// nameDocument gives a document without a title that of its file, because PDF/UA requires one.
func nameDocument(job *fileops.Job, d *pdf.Document) {
	info := d.Dict(pdf.Ref(d.Info))
	if strings.TrimSpace(pdf.Unicode(d.Text(info["Title"]))) != "" {
		return
	}
	if info == nil {
		info = types.Dict{}
		d.Info = d.Add(info).ObjectNumber.Value()
	}
	info["Title"] = pdf.TextString(format.Base(job.Input().Name()))
}

// claimedPart returns the part of PDF/A that a document claims to conform to, or 0.
func claimedPart(d *pdf.Document) int {
	for part := 1; part <= 3; part++ {
		if d.Claims(fmt.Sprintf(`pdfaid:part="%d"`, part), fmt.Sprintf("pdfaid:part>%d<", part), fmt.Sprintf("pdfaid:part='%d'", part)) {
			return part
		}
	}
	return 0
}

// joined joins reasons for a message.
func joined(reasons []string) string {
	const most = 5
	if n := len(reasons) - most; n > 0 {
		return strings.Join(reasons[:most], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(reasons, "; ")
}

// archivable changes a document until it passes the checks of a part of PDF/A. It returns d, or the
// document that Ghostscript made of it.
func (t Tools) archivable(ctx context.Context, job *fileops.Job, d *pdf.Document, pages []pdf.Page, part int) (*pdf.Document, []pdf.Page, error) {
	if d.Catalog()["AcroForm"] != nil {
		if err := t.drawFields(ctx, job, d); err != nil {
			return nil, nil, err
		}
	}
	losses := pdfa.Prepare(d, pages, part)
	reasons := pdfa.Check(d, pages, part)
	if len(reasons) > 0 {
		if t.Ghostscript == nil {
			return nil, nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file cannot become PDF/A-%db without Ghostscript, which this server does not have: %s", part, joined(reasons))
		}
		job.Log.Debug("Ghostscript writes the pages again", "reasons", reasons)
		job.Progress(0.1)
		made, err := t.redrawn(ctx, job, d, part)
		if err != nil {
			return nil, nil, err
		}
		if pages, err = made.Pages(t.Limits.pages()); err != nil {
			return nil, nil, fileops.Fail(fileops.ErrEngine, err, "the file could not be made into PDF/A")
		}
		warnRedrawn(job, d, made)
		keepDescription(d, made)
		d = made
		again := pdfa.Prepare(d, pages, part)
		losses.Scripts += again.Scripts
		if reasons := pdfa.Check(d, pages, part); len(reasons) > 0 {
			return nil, nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file cannot become PDF/A-%db: %s", part, joined(reasons))
		}
	}
	if losses.Scripts > 0 {
		job.Warn(fileops.WarnScriptNotRun, "Scripts and other actions that PDF/A forbids were left out.")
	}
	if losses.Attachments > 0 {
		job.Warn(fileops.WarnContentDropped, "Left out %s of the file; PDF/A-3 allows them.", plural(losses.Attachments, "attachment"))
	}
	if losses.Hidden > 0 {
		job.Warn(fileops.WarnContentDropped, "Left out %s that no page shows.", plural(losses.Hidden, "hidden annotation"))
	}
	if losses.XFA {
		warnXFA(job, "the file")
	}
	if losses.Packets > 0 {
		job.Warn(fileops.WarnMetadataDropped, "The metadata of pictures and other parts of the file was left out.")
	}
	return d, pages, nil
}

// keepDescription copies the information dictionary and the language of a document.
func keepDescription(from, to *pdf.Document) {
	to.Info = 0
	to.ID = from.ID
	info := types.Dict{}
	for k, v := range from.Dict(pdf.Ref(from.Info)) {
		if b := from.Text(v); b != nil {
			info[k] = pdf.TextString(pdf.Unicode(b))
		}
	}
	if len(info) > 0 {
		to.Info = to.Add(info).ObjectNumber.Value()
	}
	if lang := from.Text(from.Catalog()["Lang"]); lang != nil {
		to.Catalog()["Lang"] = pdf.TextString(pdf.Unicode(lang))
	}
}

// warnRedrawn warns about what Ghostscript leaves out.
func warnRedrawn(job *fileops.Job, from, to *pdf.Document) {
	if from.Catalog()["StructTreeRoot"] != nil {
		job.Warn(fileops.WarnContentDropped, "The tags of the file, which screen readers use, were left out, because its pages had to be written again.")
	}
	if from.Catalog()["AcroForm"] != nil {
		job.Warn(fileops.WarnLayoutSimplified, "The form fields became part of the pages, because they had to be written again.")
	}
	attachments := func(d *pdf.Document) (n int) {
		d.TreeLeaves(d.Dict(d.Catalog()["Names"])["EmbeddedFiles"], "Names", func(types.Object, types.Object) { n++ })
		return n
	}
	if lost := attachments(from) - attachments(to); lost > 0 {
		job.Warn(fileops.WarnContentDropped, "Left out %s of the file.", plural(lost, "attachment"))
	}
}

// comparePages compares pages of the result with those of the original, as pdfium draws and reads them.
func (t Tools) comparePages(ctx context.Context, job *fileops.Job, before, after []byte, total int) error {
	if t.Renderer == nil {
		return nil
	}
	const dpi, most = 50, 10 // pages, because each is drawn twice
	var chosen []int
	for i := range min(total, most) {
		chosen = append(chosen, i*total/min(total, most))
	}
	old, err := t.Renderer.Views(ctx, before, chosen, dpi)
	if err != nil {
		return err
	}
	now, err := t.Renderer.Views(ctx, after, chosen, dpi)
	if err != nil {
		return err
	}
	if len(now) != len(old) {
		return fileops.Fail(fileops.ErrEngine, errors.New("pages are missing"), "the file could not be made into PDF/A without changing it")
	}
	var unlike, unread []int
	for i := range old {
		if old[i].Width == 0 {
			continue
		}
		if !alike(old[i].Samples, now[i].Samples) {
			unlike = append(unlike, chosen[i]+1)
		}
		if !sameLetters(old[i].Text, now[i].Text) {
			unread = append(unread, chosen[i]+1)
		}
	}
	if len(unlike) > 0 {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("pages %v look different", unlike), "page %d would look different in the PDF/A file", unlike[0])
	}
	if len(unread) > 0 {
		job.Warn(fileops.WarnTextUnreliable, "The text of page %d can no longer be searched or copied as before.", unread[0])
	}
	return nil
}

// alike reports whether two pictures of a page look the same: no block of them differs by more than
// converted colours and the edges of glyphs do.
func alike(a, b raster.Samples) bool {
	if a.Width != b.Width || a.Height != b.Height || len(a.Pix) != len(b.Pix) || a.Width == 0 {
		return false
	}
	const block, most = 16, 40 // pixels, and difference of the means from 0 to 255
	n := len(a.Pix) / (a.Width * a.Height)
	for y := 0; y < a.Height; y += block {
		for x := 0; x < a.Width; x += block {
			for k := range n {
				sum, count := 0, 0
				for dy := 0; dy < block && y+dy < a.Height; dy++ {
					for dx := 0; dx < block && x+dx < a.Width; dx++ {
						i := ((y+dy)*a.Width+x+dx)*n + k
						sum += int(a.Pix[i]) - int(b.Pix[i])
						count++
					}
				}
				if sum/count > most || sum/count < -most {
					return false
				}
			}
		}
	}
	return true
}

// sameLetters reports whether two texts have the same letters and digits, in any order, up to a
// hundredth of them.
func sameLetters(a, b string) bool {
	counts := make(map[rune]int)
	total := 0
	for _, r := range a {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			counts[r]++
			total++
		}
	}
	for _, r := range b {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			counts[r]--
		}
	}
	wrong := 0
	for _, n := range slices.Collect(maps.Values(counts)) {
		wrong += max(n, -n)
	}
	return wrong <= total/100
}
