package gotenberg

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Texts of responses that several routes have.
const (
	textSplit    = "The requested split mode is not supported, or no PDF engine could process it. Valid modes: 'intervals', 'pages'."
	textFormat   = "The requested PDF format is not supported, or no PDF engine could apply it. Valid formats include PDF/A-1b, PDF/A-2b, PDF/A-3b, and PDF/UA."
	textMetadata = "The requested metadata could not be written; ensure values are valid and free of control characters."
)

// A post holds the steps that follow after the PDF files exist.
type post struct {
	split      split
	pdfa       string // "PDF/A-2b"; "" for none
	pdfua      bool
	metadata   map[string]any
	lock       lock
	watermarks []mark
	stamps     []mark
	angle      int
	turn       string // pages to turn; "" for all
	flatten    bool
	optimize   bool
	quality    int
	bookmarks  bookmarks // of a merged file
	embeds     []attachment
	invoice    invoice
}

// A split says how each PDF file is split.
type split struct {
	mode, span string
	unify      bool
}

// A lock says how each PDF file is encrypted.
type lock struct {
	user, owner string
	denied      []string // fields of permissions that are false
}

// A mark is a watermark or a stamp.
type mark struct {
	source, expression, pages string
	options                   map[string]string
	file                      file // of an image or a PDF
	tile                      bool // repeated
}

// split reads the fields of a split.
func (r *reader) split(required bool) (s split) {
	read := (*reader).custom
	if required {
		read = (*reader).require
	}
	read(r, "splitMode", func(v string) error {
		if v != "intervals" && v != "pages" {
			return errors.New("wrong value, expected either 'intervals' or 'pages'")
		}
		s.mode = v
		return nil
	})
	read(r, "splitSpan", func(v string) error {
		s.span = strings.Join(strings.Fields(v), "")
		if s.mode != "intervals" {
			return nil
		}
		n, err := strconv.Atoi(s.span)
		if err == nil && n < 1 {
			err = errors.New("value is inferior to 1")
		}
		return err
	})
	s.unify = r.flag("splitUnify", false)
	if s.unify && s.mode == "intervals" {
		r.fail("form field 'splitUnify' is invalid (got '%s', resulting to unify is not available for split mode '%s')", r.text("splitUnify"), s.mode)
	}
	return s
}

// formats reads the fields of PDF/A and PDF/UA.
func (r *reader) formats(p *post) {
	p.pdfa = r.text("pdfa")
	p.pdfua = r.flag("pdfua", false)
}

// metadata reads the field of metadata.
func (r *reader) metadata(required bool) (m map[string]any) {
	read := (*reader).custom
	if required {
		read = (*reader).require
	}
	read(r, "metadata", func(v string) error {
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			return fmt.Errorf("unmarshal metadata: %w", err)
		}
		return nil
	})
	return m
}

// lock reads the fields of encryption.
func (r *reader) lock() lock {
	l := lock{user: r.text("userPassword"), owner: r.text("ownerPassword")}
	for _, name := range []string{"allowPrinting", "allowCopying", "allowModifying", "allowAnnotating", "allowFillingForms", "allowAssembling"} {
		if !r.flag(name, true) {
			l.denied = append(l.denied, name)
		}
	}
	return l
}

// marks reads the fields of watermarks or stamps. Each kind may occur more than once.
func (c *call) marks(kind string) ([]mark, error) {
	values := c.form.values
	at := func(field string, i int) string {
		if v := values[kind+field]; i < len(v) {
			return v[i]
		}
		return ""
	}
	var out []mark
	files := c.form.of(kind)
	for i, source := range values[kind+"Source"] {
		switch source {
		case "":
			continue
		case "text", "image", "pdf":
		default:
			return nil, refuse(http.StatusBadRequest, "Invalid form data: form field '%sSource' is invalid (got '%s', resulting to wrong value, expected either 'text', 'image' or 'pdf')", kind, source)
		}
		m := mark{source: source, expression: at("Expression", i), pages: at("Pages", i)}
		if v := at("Options", i); v != "" {
			if err := json.Unmarshal([]byte(v), &m.options); err != nil {
				return nil, refuse(http.StatusBadRequest, "Invalid form data: form field '%sOptions' is invalid", kind)
			}
		}
		out = append(out, m)
	}
	for i := range out {
		if out[i].source == "text" {
			continue
		}
		if len(files) == 0 {
			return out, refuse(http.StatusBadRequest, "Invalid form data: a %s file is required for image or pdf source", kind)
		}
		out[i].file, files = files[0], files[1:]
	}
	return out, nil
}

// rotation reads the fields of a rotation.
func (r *reader) rotation(p *post, required bool) {
	read := (*reader).custom
	if required {
		read = (*reader).require
	}
	read(r, "rotateAngle", func(v string) error {
		n, err := strconv.Atoi(v)
		if err == nil && n != 90 && n != 180 && n != 270 {
			err = errors.New("wrong value, expected 90, 180, or 270")
		}
		p.angle = n
		return err
	})
	p.turn = r.text("rotatePages")
}

// optimize reads the fields of optimization.
func (r *reader) optimize(p *post) {
	p.optimize = r.flag("optimizeImages", false)
	p.quality = r.integer("imageQuality", 80, 1, 100)
}

// post reads the fields of all steps that follow a conversion. The caller must check r.err before the
// second error: it is about fields that Gotenberg checks later.
func (c *call) post(r *reader, split bool) (p post, later error) {
	if split {
		p.split = r.split(false)
	}
	r.formats(&p)
	p.metadata = r.metadata(false)
	p.lock = r.lock()
	var err error
	p.watermarks, later = c.marks("watermark")
	if p.stamps, err = c.marks("stamp"); later == nil {
		later = err
	}
	if p.embeds, err = c.attachments(); later == nil {
		later = err
	}
	r.rotation(&p, false)
	r.optimize(&p)
	if p.invoice, err = c.invoice(r, p.pdfa); later == nil {
		later = err
	}
	switch {
	case later != nil:
	case p.pdfa != "" && len(p.embeds) > 0 && !strings.HasPrefix(p.pdfa, "PDF/A-3"):
		later = refuse(http.StatusBadRequest, "Invalid form data: PDF format '%s' does not support embedded files; only PDF/A-3 variants allow attachments", p.pdfa)
	case (p.pdfa != "" || p.invoice.level != "") && p.lock.user != "":
		later = refuse(http.StatusBadRequest, "Invalid form data: PDF/A format is incompatible with encryption")
	case len(p.lock.denied) > 0 && p.lock.user == "" && p.lock.owner == "":
		later = refuse(http.StatusBadRequest, "Invalid form data: permission restrictions require a 'userPassword' or 'ownerPassword'")
	}
	return p, later
}

// changes reports whether steps follow that would break PDF/A.
func (p *post) changes() bool {
	return p.split.mode != "" || len(p.watermarks)+len(p.stamps) > 0 || p.angle != 0 || p.flatten || p.optimize || len(p.metadata) > 0
}

// apply runs the steps.
func (p *post) apply(c *call, docs []doc) (_ []doc, err error) {
	if p.split.mode != "" {
		if docs, err = p.split.apply(c, docs); err != nil {
			return nil, err
		}
	}
	for _, m := range p.watermarks {
		if docs, err = m.apply(c, docs, "watermark"); err != nil {
			return nil, err
		}
	}
	for _, m := range p.stamps {
		if docs, err = m.apply(c, docs, "stamp"); err != nil {
			return nil, err
		}
	}
	if p.angle != 0 {
		params := map[string]any{"angle": p.angle}
		if p.turn != "" {
			params["pages"] = pageList(p.turn)
		}
		if docs, err = c.each(docs, "rotate", params); err != nil {
			return nil, err
		}
	}
	if p.flatten {
		if docs, err = c.each(docs, "flatten", nil); err != nil {
			return nil, err
		}
	}
	if p.optimize {
		if docs, err = c.optimized(docs, p.quality); err != nil {
			return nil, err
		}
	}
	if docs, err = c.archival(docs, p.pdfa, p.pdfua); err != nil {
		return nil, err
	}
	if len(p.metadata) > 0 {
		if docs, err = c.described(docs, p.metadata); err != nil {
			return nil, err
		}
	}
	if docs, err = c.marked(docs, p.bookmarks); err != nil {
		return nil, err
	}
	if docs, err = c.attached(docs, p.embeds); err != nil {
		return nil, err
	}
	if docs, err = p.invoice.apply(c, docs); err != nil {
		return nil, err
	}
	return p.lock.apply(c, docs)
}

// pageList returns a list of pages in our form: spaces are not significant, and z or end is the last
// page.
func pageList(list string) string {
	list = strings.Join(strings.Fields(list), "")
	var out []string
	for part := range strings.SplitSeq(list, ",") {
		first, last, ok := strings.Cut(part, "-")
		switch {
		case !ok && (first == "z" || first == "end" || first == "l"):
			part = "-1"
		case ok && (last == "z" || last == "end" || last == "l"):
			part = first + "-"
		case ok && first == "" && last != "": // pdfcpu: up to a page
			part = "1-" + last
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}

// apply splits documents. The parts of report.pdf are report_0.pdf, report_1.pdf, …
func (s split) apply(c *call, docs []doc) ([]doc, error) {
	var out []doc
	if s.mode == "pages" {
		for i, d := range docs {
			one, err := c.each([]doc{d}, "extract_pages", map[string]any{"pages": pageList(s.span)})
			if err != nil {
				if code(err) == "invalid_parameter" || answerOf(err).status == http.StatusBadRequest {
					return nil, refuse(http.StatusBadRequest, "%s", textSplit)
				}
				return nil, err
			}
			docs[i] = one[0]
		}
		if s.unify {
			return docs, nil
		}
	}
	every := 1
	if s.mode == "intervals" {
		every, _ = strconv.Atoi(s.span)
	}
	steps := make([]step, len(docs))
	for i, d := range docs {
		steps[i] = step{"split", map[string]any{"every": min(every, 5000)}, []doc{d}}
	}
	products, err := c.run(steps...)
	if err != nil {
		return nil, err
	}
	for i, p := range products {
		for n, part := range p.docs {
			out = append(out, doc{part.key, fmt.Sprintf("%s_%d%s", docs[i].stem(), n, path.Ext(part.name))})
		}
	}
	return out, nil
}

// positions maps the anchors of pdfcpu to ours.
var positions = map[string]string{
	"c": "center", "tl": "top-left", "tc": "top-center", "tr": "top-right", "l": "center-left", "r": "center-right",
	"bl": "bottom-left", "bc": "bottom-center", "br": "bottom-right",
}

// params returns the parameters of the action watermark for the options of a mark, which are those of
// pdfcpu. Options may be abbreviated.
func (m mark) params() map[string]any {
	params := map[string]any{"opacity": 1.0, "position": "diagonal", "scale": 0.5}
	turned := ""
	for _, name := range slices.Sorted(maps.Keys(m.options)) {
		value := strings.TrimSpace(m.options[name])
		is := func(option string) bool { return len(name) >= 2 && strings.HasPrefix(option, strings.ToLower(name)) }
		switch {
		case is("opacity"):
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				params["opacity"] = min(max(n, 0.01), 1)
			}
		case is("position"):
			if to := positions[strings.ToLower(value)]; to != "" && (to != "center" || turned == "0") {
				params["position"] = to
			}
		case is("scalefactor"):
			first, _, _ := strings.Cut(value, " ")
			if n, err := strconv.ParseFloat(first, 64); err == nil {
				params["scale"] = min(max(n, 0.02), 1)
			}
		case is("rotation"):
			turned = value
		}
	}
	if n, err := strconv.ParseFloat(turned, 64); err == nil && n == 0 && params["position"] == "diagonal" {
		params["position"] = "center"
	}
	if m.tile {
		params["position"], params["scale"] = "tile", 0.25
	}
	if m.pages != "" {
		params["pages"] = pageList(m.pages)
	}
	return params
}

// apply draws a mark on documents.
func (m mark) apply(c *call, docs []doc, kind string) ([]doc, error) {
	params := m.params()
	switch m.source {
	case "text":
		if strings.TrimSpace(m.expression) == "" {
			return nil, refuse(http.StatusBadRequest, "Invalid form data: form field '%sExpression' is required for text source", kind)
		}
		params["text"] = m.expression
	case "pdf":
		picture, err := c.run(step{"convert", map[string]any{"convert_to": "png", "pages": "1"}, []doc{{m.file.key, m.file.name}}})
		if err != nil {
			return nil, err
		}
		params["image_key"] = picture[0].docs[0].key
		params["position"], params["scale"] = "center", 1.0
	default:
		params["image_key"] = m.file.key
		if params["position"] == "diagonal" {
			params["position"] = "center"
		}
	}
	return c.each(docs, "watermark", params)
}

// optimized compresses documents. quality is that of JPEG files.
func (c *call) optimized(docs []doc, quality int) ([]doc, error) {
	level := "recommended_compression"
	switch {
	case quality <= 50:
		level = "extreme_compression"
	case quality > 85:
		level = "less_compression"
	}
	return c.each(docs, "compress", map[string]any{"compression_value": level})
}

// archival makes PDF/A files of documents, or files that claim to conform to PDF/UA.
func (c *call) archival(docs []doc, pdfa string, ua bool) ([]doc, error) {
	if pdfa == "" && !ua {
		return docs, nil
	}
	params := map[string]any{"convert_to": "pdf", "pdfua": ua}
	if pdfa != "" {
		l := level(pdfa)
		if l == "" {
			return nil, refuse(http.StatusBadRequest, "%s", textFormat)
		}
		params["pdfa"] = l
	}
	return c.each(docs, "convert", params)
}

// level returns the value of the parameter pdfa for a format, or "".
func level(pdfa string) string {
	switch pdfa {
	case "PDF/A-1b", "PDF/A-2b", "PDF/A-3b":
		return strings.TrimPrefix(pdfa, "PDF/A-")
	}
	return ""
}

// fields maps the names of metadata in ExifTool, which Gotenberg uses, to ours.
var fields = map[string]string{
	"title": "title", "author": "author", "subject": "subject", "keywords": "keywords", "creator": "creator", "producer": "producer",
	"createdate": "created", "creationdate": "created", "moddate": "modified", "modifydate": "modified",
	"copyright": "copyright", "rights": "copyright", "marked": "marked", "trapped": "trapped", "pdfversion": "pdf_version",
}

// pdfVersions are the versions that a file can be raised to.
var pdfVersions = []string{"1.4", "1.5", "1.6", "1.7", "2.0"}

// described changes the metadata of documents. A name may have a group as in ExifTool, such as
// PDF:Title. Other metadata than ours is ignored.
func (c *call) described(docs []doc, metadata map[string]any) ([]doc, error) {
	set, remove := map[string]any{}, []any{}
	for name, value := range metadata {
		name = strings.ToLower(name[strings.LastIndexByte(name, ':')+1:])
		var values []any
		if list, ok := value.([]any); ok {
			values = list
		} else {
			values = []any{value}
		}
		for i, v := range values {
			s, ok := v.(string)
			if !ok {
				s = strings.TrimSpace(fmt.Sprint(v))
			}
			if strings.ContainsFunc(s, unicode.IsControl) {
				return nil, refuse(http.StatusBadRequest, "%s", textMetadata)
			}
			values[i] = s
		}
		to := fields[name]
		switch {
		case to == "", to == "pdf_version" && !slices.Contains(pdfVersions, fmt.Sprint(values...)):
		case value == nil || len(values) == 0 || len(values) == 1 && values[0] == "":
			remove = append(remove, to)
		case len(values) == 1 || to != "author" && to != "keywords":
			set[to] = values[0]
		default:
			set[to] = values
		}
	}
	params := map[string]any{}
	if len(set) > 0 {
		params["set"] = set
	}
	if len(remove) > 0 {
		params["remove"] = remove
	}
	if len(params) == 0 {
		return docs, nil
	}
	return c.each(docs, "metadata", params)
}

// apply encrypts documents.
func (l lock) apply(c *call, docs []doc) ([]doc, error) {
	if l.user == "" && l.owner == "" {
		return docs, nil
	}
	params := map[string]any{"password": l.user, "permissions": "all"}
	if l.owner != "" {
		params["owner_password"] = l.owner
	}
	if len(l.denied) > 0 {
		params["permissions"] = "none"
		if !slices.Contains(l.denied, "allowPrinting") {
			params["permissions"] = "print"
		}
	}
	return c.each(docs, "lock", params)
}
