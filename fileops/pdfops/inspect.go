package pdfops

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/report"
	"github.com/filewright/filewright/internal/xmp"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Inspect returns the action "inspect" for PDF files. A file that needs a password is
// reported as encrypted, without content, unless the parameter password opens it.
func (t Tools) Inspect() fileops.Action {
	spec := report.Spec("pdfcpu", "pdf", "Describes a PDF file as JSON.", []format.Format{format.PDF}, fileops.Param{
		Name: "password", Doc: "Password that opens an encrypted file.", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
	})
	spec.MaxBytes = pdf.MaxMapped
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		r := report.New(job)
		d, err := t.load(ctx, job, job.Input(), "the file")
		if errors.Is(err, fileops.ErrPasswordRequired) {
			r.Encrypted = true
			return r.Write(job)
		}
		if err != nil {
			return err
		}
		defer d.Close()
		pages, err := d.Pages(t.Limits.pages())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
		}
		r.Encrypted = d.Encrypted
		if !d.Encrypted {
			job.WarnPasswordUnused()
		}
		if d.Incomplete() {
			job.Warn(fileops.WarnContentDropped, "The file is damaged; parts of it could not be read.")
		}
		describe(r, d, pages)
		return r.Write(job)
	})
}

// describe adds the content of a document to a report.
func describe(r *report.Report, d *pdf.Document, pages []pdf.Page) {
	text := func(o types.Object) string { return pdf.Unicode(d.Text(o)) }
	info := d.Dict(pdf.Ref(d.Info))
	for key, name := range map[string]string{"Title": "title", "Author": "author", "Subject": "subject", "Keywords": "keywords", "Creator": "program", "Producer": "producer"} {
		r.Set(name, text(info[key]))
	}
	r.SetTime("created", text(info["CreationDate"]))
	r.SetTime("modified", text(info["ModDate"]))
	catalog := d.Catalog()
	r.Set("trapped", d.Name(info["Trapped"]))
	if s := d.Stream(catalog["Metadata"]); s != nil {
		packet, _ := pdf.Decode(s) // without it, the report lacks only these
		r.Set("copyright", xmp.Value(packet, xmp.DublinCore, "rights"))
		r.Set("marked", xmp.Value(packet, xmp.Rights, "Marked"))
	}
	out := &report.PDF{
		Version: d.Version, Pages: len(pages), Signed: d.Signed(), Language: text(catalog["Lang"]), Fonts: fontsOf(d),
		Tagged: d.Boolean(d.Dict(catalog["MarkInfo"])["Marked"]),
	}
	if v := d.Name(catalog["Version"]); len(v) == 3 && v > out.Version {
		out.Version = v
	}
	if len(pages) > 0 {
		box := pageBox(d, pages[0])
		unit := 1.0
		if u, ok := d.Number(pages[0].Dict["UserUnit"]); ok && u > 0 {
			unit = u
		}
		w, h := (box[2]-box[0])*unit, (box[3]-box[1])*unit
		if d.Integer(pages[0].Attr("Rotate"))%180 != 0 {
			w, h = h, w
		}
		out.PageWidth, out.PageHeight = math.Round(w*100)/100, math.Round(h*100)/100
	}
	names := d.Dict(catalog["Names"])
	d.TreeLeaves(names["EmbeddedFiles"], "Names", func(_, _ types.Object) { out.Attachments++ })
	out.Scripts = names["JavaScript"] != nil
	d.Each(func(v types.Dict) {
		switch {
		case d.Name(v["S"]) == "JavaScript" && v["JS"] != nil:
			out.Scripts = true
		case v["FT"] != nil && v["T"] != nil:
			out.FormFields++
		}
	})
	out.Bookmarks = bookmarksOf(d, pages)
	r.PDF = out
}

// fontsOf returns the fonts of a document, each once.
func fontsOf(d *pdf.Document) []report.Font {
	fonts := []report.Font{}
	seen := make(map[report.Font]bool)
	d.Each(func(v types.Dict) {
		kind := d.Name(v["Subtype"])
		if d.Name(v["Type"]) != "Font" || kind == "" || strings.HasPrefix(kind, "CIDFont") {
			return
		}
		f := report.Font{Name: d.Name(v["BaseFont"]), Type: kind, Embedded: kind == "Type3"}
		holder := v
		if below := d.Array(v["DescendantFonts"]); len(below) > 0 {
			holder = d.Dict(below[0])
		}
		descriptor := d.Dict(holder["FontDescriptor"])
		for _, key := range []string{"FontFile", "FontFile2", "FontFile3"} {
			f.Embedded = f.Embedded || descriptor[key] != nil
		}
		if !seen[f] && len(fonts) < 1000 {
			seen[f] = true
			fonts = append(fonts, f)
		}
	})
	slices.SortFunc(fonts, func(a, b report.Font) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Type, b.Type)
	})
	return fonts
}
