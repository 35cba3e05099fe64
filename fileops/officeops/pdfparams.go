package officeops

import (
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/pagelist"
)

// Values of parameters of conversions to PDF.
const (
	none  = "none"
	after = "after"
	only  = "only"
)

// Optional parameters of conversions to PDF.
var (
	paramPDFA = fileops.Param{
		Name: "pdfa", Doc: "Creates a PDF/A file for archiving: part 1, 2 or 3, at least conformance level B.",
		Enum: []string{"1b", "2b", "3b"},
	}
	paramPages = fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
		Doc: "Pages to convert, such as 1-3,5,-1 (negative: from the end), in the order of the document; all by default.",
	}
	paramBookmarks = fileops.Param{
		Name: "bookmarks", Type: fileops.Boolean, Default: true,
		Doc: "Whether the PDF has bookmarks: the headings of a document, the slides or the sheets.",
	}
	paramTagged = fileops.Param{
		Name: "tagged", Type: fileops.Boolean, Default: true,
		Doc: "Whether the PDF has tags, which describe its structure to screen readers. PDF/A keeps them if its part requires them.",
	}
	paramFormFields = fileops.Param{
		Name: "form_fields", Type: fileops.Boolean, Default: true,
		Doc: "Whether the form fields of the document can be filled in in the PDF; otherwise they are drawn.",
	}
	paramImageQuality = fileops.Param{
		Name: "image_quality", Type: fileops.Integer, Min: 1, Max: 100,
		Doc: "JPEG quality of the pictures; if absent, 90.", OneOf: "image_compression",
	}
	paramImageLossless = fileops.Param{
		Name: "image_lossless", Type: fileops.Boolean,
		Doc: "Whether pictures are compressed without loss.", OneOf: "image_compression",
	}
	paramImageResolution = fileops.Param{
		Name: "image_resolution", Type: fileops.Integer, Min: 50, Max: 1200,
		Doc: "Highest resolution of the pictures in pixels per inch; larger pictures are reduced. By default they keep their pixels.",
	}
	paramTrackedChanges = fileops.Param{
		Name: "tracked_changes", Scope: fileops.ScopeContent, Enum: []string{"shown", "accepted", "rejected"},
		Doc: "How tracked changes appear: shown with marks, or the text as if all were accepted or rejected. By default, as in the document.",
	}
	paramComments = fileops.Param{
		Name: "comments", Enum: []string{none, "annotations"}, Default: none,
		Doc:     "Whether the PDF has the comments: none, or as annotations.",
		Aliases: map[string]string{"false": none, "true": "annotations"},
	}
	paramUpdateIndexes = fileops.Param{
		Name: "update_indexes", Type: fileops.Boolean, Default: false,
		Doc: "Whether tables of contents and other indexes are updated first.",
	}
	paramNotes = fileops.Param{
		Name: "notes", Scope: fileops.ScopeContent, Enum: []string{none, after, only}, Default: none,
		Doc:     "Which pages with the speaker's notes are converted: none, after for those after the slides, or only for these alone.",
		Aliases: map[string]string{"false": none, "true": after},
	}
	paramHiddenSlides = fileops.Param{
		Name: "hidden_slides", Scope: fileops.ScopeContent, Type: fileops.Boolean, Default: false,
		Doc: "Whether hidden slides are converted too.",
	}
	paramSheets = fileops.Param{
		Name: "sheet", Min: 1, Max: 256, Scope: fileops.ScopeContent,
		Doc: "Name or number of the sheet to convert, or numbers such as 1-3,5,-1; all by default.",
	}
	paramFitTo = fileops.Param{
		Name: "fit_to", Enum: []string{"width", "page", none}, Default: "width",
		Doc: "How sheets fit on pages: width puts all columns on a page unless the sheet has its own scale, page puts a whole sheet on a page, none keeps the scale of the document.",
	}
	paramOrientation = fileops.Param{
		Name: "orientation", Enum: []string{"auto", "portrait", "landscape"}, Default: "auto",
		Doc: "Orientation of all pages; auto keeps that of the document, and turns sheets that are too wide.",
	}
)

// pdfParams returns the parameters of the conversion of a format to PDF. Formats that
// have no pages of their own (text, web pages and books) have fewer.
func (e *Engine) pdfParams(from format.Format) fileops.Schema {
	out := fileops.Schema{paramPDFA}
	steps := e.router.Steps(from, format.PDF)
	kind := appFor(steps[len(steps)-1]).kind
	if e.python != nil {
		out = append(out, paramPages)
	}
	out = append(out, paramBookmarks, paramTagged)
	switch from {
	case format.TXT, format.CSV, format.TSV:
	default:
		out = append(out, paramImageQuality, paramImageLossless, paramImageResolution)
	}
	switch from {
	case format.TXT, format.CSV, format.TSV, format.HTML, format.MD, format.EPUB, format.RST, format.Org, format.TeX, format.FB2:
	default:
		out = append(out, paramComments)
	}
	switch from {
	case format.DOCX, format.DOC, format.ODT, format.FODT, format.RTF:
		out = append(out, paramFormFields)
		if e.python != nil {
			out = append(out, paramTrackedChanges, paramUpdateIndexes)
		}
	case format.PPTX, format.PPT, format.ODP, format.FODP:
		out = append(out, paramNotes, paramHiddenSlides)
	case format.XLSX, format.XLS, format.XLSB, format.ODS, format.FODS:
		if e.python != nil {
			out = append(out, paramSheets)
		}
	}
	if e.python != nil && kind == kindSheet {
		out = append(out, paramFitTo)
	}
	if e.python != nil && kind != kindSlides && kind != kindDrawing {
		out = append(out, paramOrientation)
	}
	return out
}

// partial reports whether the PDF shows only a part of the text of the document.
func (x extras) partial() bool {
	p := x.pdf
	return x.sheet != "" && !x.allSheets() || p.Has("pages") || p.Get("notes") == only || p.Get("tracked_changes") == "rejected"
}

// applyPDF adds the parameters to a request for a PDF.
func (x extras) applyPDF(r *request) {
	p := x.pdf
	on := func(name string) bool { return !p.Has(name) || p.Bool(name) }
	notes := p.Get("notes")
	r.Data = map[string]any{
		"EmbedStandardFonts": true,
		"UseTaggedPDF":       on("tagged"),
		"ExportBookmarks":    on("bookmarks"),
		"ExportFormFields":   on("form_fields"),
		// By default omit reviewers' comments, which are not for the readers of the PDF.
		"ExportNotes":        p.Get("comments") == "annotations",
		"ExportHiddenSlides": p.Bool("hidden_slides"),
	}
	if notes == after || notes == only {
		r.Data["ExportNotesPages"], r.Data["ExportOnlyNotesPages"] = true, notes == only
	}
	if v := p.Get("pdfa"); v != "" {
		r.Data["SelectPdfVersion"] = int(v[0] - '0')
	}
	if p.Has("image_quality") || p.Has("image_lossless") {
		r.Data["UseLosslessCompression"] = p.Bool("image_lossless")
	}
	if p.Has("image_quality") {
		r.Data["Quality"] = p.Int("image_quality")
	}
	if p.Has("image_resolution") {
		r.Data["ReduceImageResolution"], r.Data["MaxImageResolution"] = true, p.Int("image_resolution")
	}
	if r.Kind == kindSheet {
		r.FitTo = "width"
		if p.Has("fit_to") {
			r.FitTo = p.Get("fit_to")
		}
		if !x.allSheets() {
			r.Sheets = x.sheet
		}
	}
	if o := p.Get("orientation"); o != "auto" {
		r.Orientation = o
	}
	r.Changes, r.Indexes, r.HiddenToo = p.Get("tracked_changes"), p.Bool("update_indexes"), p.Bool("hidden_slides")
	if list := p.Get("pages"); list != "" {
		r.choose = func(total int) ([]int, error) {
			pages, err := pagelist.Parse(list, total)
			slices.Sort(pages)
			return pages, err
		}
	}
}
