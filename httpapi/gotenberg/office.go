package gotenberg

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// officeExtensions are the extensions of the files that POST /forms/libreoffice/convert takes. The
// service may lack some of the formats.
var officeExtensions = strings.Fields(`.123 .602 .abw .bib .bmp .cdr .cgm .cmx .csv .cwk .dbf .dif .doc .docm .docx
	.dot .dotm .dotx .dxf .emf .eps .epub .fodg .fodp .fods .fodt .fopd .gif .htm .html .hwp .jpeg .jpg .key .ltx .lwp
	.mcw .met .mml .mw .numbers .odd .odg .odm .odp .ods .odt .otg .oth .otp .ots .ott .pages .pbm .pcd .pct .pcx .pdb
	.pdf .pgm .png .pot .potm .potx .ppm .pps .ppsm .ppsx .ppt .pptm .pptx .psd .psw .pub .pwp .pxl .ras .rtf .sda .sdc
	.sdd .sdp .sdw .sgl .slk .smf .stc .std .sti .stw .svg .svm .swf .sxc .sxd .sxg .sxi .sxm .sxw .tga .tif .tiff .txt
	.uof .uop .uos .uot .vdx .vor .vsd .vsdm .vsdx .wb2 .wk1 .wks .wmf .wpd .wpg .wps .xbm .xhtml .xls .xlsb .xlsm .xlsx
	.xlt .xltm .xltx .xlw .xml .xpm .zabw`)

// pageRanges matches page ranges such as 1-4 or 1,3,5-7.
var pageRanges = regexp.MustCompile(`^[1-9][0-9]{0,4}(-([1-9][0-9]{0,4})?)?(,[1-9][0-9]{0,4}(-([1-9][0-9]{0,4})?)?)*$`)

// An office holds the fields of a conversion of documents.
type office struct {
	params     map[string]any // of the action convert
	ranges     string
	merge      bool
	watermarks []mark // that LibreOffice would draw
}

// office reads the fields of a conversion of documents, in the order of Gotenberg.
func (r *reader) office() (o office) {
	params := map[string]any{"fit_to": "none", "password": r.text("password")}
	o.params = params
	if r.flag("landscape", false) {
		params["orientation"] = "landscape"
	}
	o.ranges = strings.Join(strings.Fields(r.text("nativePageRanges")), "")
	params["pages"] = o.ranges
	params["update_indexes"] = r.flag("updateIndexes", true)
	params["form_fields"] = r.flag("exportFormFields", true)
	r.flag("allowDuplicateFieldNames", false)
	params["bookmarks"] = r.flag("exportBookmarks", true)
	r.flag("exportBookmarksToPdfDestination", false)
	r.flag("exportPlaceholders", false)
	if r.flag("exportNotes", false) {
		params["comments"] = "annotations"
	}
	if r.flag("exportNotesPages", false) {
		params["notes"] = "after"
	}
	if r.flag("exportOnlyNotesPages", false) {
		params["notes"] = "only"
	}
	r.flag("exportNotesInMargin", false)
	r.flag("convertOooTargetToPdfTarget", false)
	r.flag("exportLinksRelativeFsys", false)
	params["hidden_slides"] = r.flag("exportHiddenSlides", false)
	r.flag("skipEmptyPages", false)
	r.flag("addOriginalDocumentAsStream", false)
	if r.flag("singlePageSheets", false) {
		params["fit_to"] = "page"
	}
	r.choice("initialView", "0, 1 or 2", 0, 1, 2)
	r.least("initialPage", 1)
	r.choice("magnification", "0, 1, 2, 3 or 4", 0, 1, 2, 3, 4)
	r.least("zoom", 1)
	r.choice("pageLayout", "0, 1, 2 or 3", 0, 1, 2, 3)
	for _, name := range []string{
		"firstPageOnLeft", "resizeWindowToInitialPage", "centerWindow", "openInFullScreenMode", "displayPDFDocumentTitle",
		"hideViewerMenubar", "hideViewerToolbar", "hideViewerWindowControls", "useTransitionEffects",
	} {
		r.flag(name, false)
	}
	r.custom("openBookmarkLevels", func(v string) error {
		n, err := strconv.Atoi(v)
		if err == nil && n != -1 && (n < 1 || n > 10) {
			err = errors.New("value is not -1 or between 1 and 10")
		}
		return err
	})
	lossless := r.flag("losslessImageCompression", false)
	if quality := r.integer("quality", 90, 1, 100); lossless {
		params["image_lossless"] = true
	} else {
		params["image_quality"] = quality
	}
	reduce := r.flag("reduceImageResolution", false)
	resolution := r.choice("maxImageResolution", "75, 150, 300, 600 or 1200", 300, 75, 150, 300, 600, 1200)
	if reduce {
		params["image_resolution"] = resolution
	}
	o.nativeMarks(r)
	r.flag("nativePdfFormats", true)
	o.merge = r.flag("merge", false)
	return o
}

// nativeMarks reads the fields of the watermarks that LibreOffice draws.
func (o *office) nativeMarks(r *reader) {
	number := func(v string) error { _, err := strconv.Atoi(v); return err }
	text := r.text("nativeWatermarkText")
	r.custom("nativeWatermarkColor", number)
	r.custom("nativeWatermarkFontHeight", func(v string) error {
		n, err := strconv.Atoi(v)
		if err == nil && n < 0 {
			err = errors.New("value is inferior to 0")
		}
		return err
	})
	r.custom("nativeWatermarkRotateAngle", number)
	if text != "" {
		o.watermarks = append(o.watermarks, mark{source: "text", expression: text, options: map[string]string{"opacity": "0.5"}})
	}
	if text := r.text("nativeTiledWatermarkText"); text != "" {
		o.watermarks = append(o.watermarks, mark{source: "text", expression: text, options: map[string]string{"opacity": "0.5"}, tile: true})
	}
}

// choice returns the value of a field that must be one of some numbers.
func (r *reader) choice(name, list string, usual int, values ...int) int {
	r.custom(name, func(v string) error {
		n, err := strconv.Atoi(v)
		switch {
		case err != nil:
			return err
		case !slices.Contains(values, n):
			return fmt.Errorf("value is not %s", list)
		}
		usual = n
		return nil
	})
	return usual
}

// least checks a field with a number of at least n.
func (r *reader) least(name string, n int) { r.integer(name, n, n, 1<<31-1) }

// convertOffice answers POST /forms/libreoffice/convert.
func convertOffice(c *call) ([]doc, error) {
	r := &reader{form: &c.form}
	p, later := c.post(r, true)
	docs := r.inputs(officeExtensions...)
	o := r.office()
	p.flatten = r.flag("flatten", false)
	switch err := r.err(); {
	case err != nil:
		return nil, err
	case later != nil:
		return nil, later
	case p.pdfa != "" && level(p.pdfa) == "" && !p.changes():
		return nil, refuse(http.StatusBadRequest, "The PDF format '%s' is not supported. Valid formats include PDF/A-1b, PDF/A-2b, PDF/A-3b, and PDF/UA.", p.pdfa)
	case o.ranges != "" && !pageRanges.MatchString(o.ranges):
		return nil, o.badRanges(docs[0].name)
	}
	p.watermarks = append(o.watermarks, p.watermarks...)
	pdfs, err := c.officePDFs(docs, o, &p)
	if err != nil {
		return nil, err
	}
	if o.merge {
		if pdfs, err = c.merged(pdfs); err != nil {
			return nil, err
		}
	}
	return p.apply(c, pdfs)
}

func (o *office) badRanges(name string) error {
	return refuse(http.StatusBadRequest, "LibreOffice could not apply the page ranges '%s' to the document '%s'. Check the 'nativePageRanges' form field; valid values look like '1-4', '2' or '1,3,5-7'.", o.ranges, name)
}

// officePDFs converts documents. It makes PDF/A files at once if that is possible, and then clears
// p.pdfa.
func (c *call) officePDFs(docs []doc, o office, p *post) ([]doc, error) {
	for name, v := range o.params {
		if v == "" {
			delete(o.params, name)
		}
	}
	native := level(p.pdfa) != "" && !p.changes() && !(o.merge && len(docs) > 1)
	if native {
		o.params["pdfa"] = level(p.pdfa)
	}
	pdfs := make([]doc, len(docs))
	var steps []step
	var at []int
	for i, d := range docs {
		pdfs[i] = doc{d.key, d.name + ".pdf"}
		ext := strings.ToLower(path.Ext(d.name))
		params := c.known("convert", ext, "pdf", o.params)
		native = native && params["pdfa"] != nil
		if ext == ".pdf" && o.ranges == "" {
			pdfs[i].name = d.name
			continue
		}
		steps, at = append(steps, step{"convert", params, []doc{d}}), append(at, i)
	}
	products, err := c.run(steps...)
	if err != nil {
		return nil, o.explain(err)
	}
	for i, product := range products {
		if len(product.docs) == 1 {
			pdfs[at[i]].key = product.docs[0].key
			continue
		}
		all, err := c.merged(product.docs) // one for each sheet or page
		if err != nil {
			return nil, err
		}
		pdfs[at[i]].key = all[0].key
	}
	if native {
		p.pdfa = ""
	}
	return pdfs, nil
}

// explain returns the response for the failure of a conversion.
func (o *office) explain(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	bad := func(format string) error { return refuse(http.StatusBadRequest, format, f.input) }
	switch f.Code {
	case "password_required":
		return bad("The document '%s' is password-protected. Provide its password in the 'password' form field.")
	case "wrong_password":
		return bad("The password for the document '%s' is incorrect. Check the 'password' form field.")
	case "not_encrypted":
		return bad("The document '%s' is not password-protected. Remove the 'password' form field.")
	case "invalid_parameter":
		if o.ranges != "" && strings.Contains(f.Message, "pages") {
			return o.badRanges(f.input)
		}
		return refuse(http.StatusBadRequest, "%s", f.Message)
	case "corrupt_input", "format_mismatch":
		return bad("LibreOffice could not read the document '%s'. Ensure the file is not corrupted and that its extension matches its actual format.")
	case "unsupported_input", "limit_exceeded":
		return refuse(http.StatusBadRequest, "The document '%s' could not be converted to PDF: %s", f.input, f.Message)
	case "engine_failed":
		return refuse(http.StatusInternalServerError, "LibreOffice failed to convert the document '%s'. The request is valid and may be retried.", f.input)
	}
	return err
}
