package officeops

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/route"
)

// Optional parameters of Convert, each only for the formats where it applies.
var (
	paramSheet = fileops.Param{
		Name: "sheet", Doc: "Name or number, counted from 1, of the sheet to convert, or all for one result for each sheet; the first sheet by default.",
		Min: 1, Max: 256, Scope: fileops.ScopeContent,
	}
	paramDelimiter = fileops.Param{
		Name: "delimiter", Doc: `Character between the values of the csv file, or "tab". By default it is detected in an input, and is a comma in a result.`,
		Min: 1, Max: 4, Pattern: `tab|\\t|[^"\r\n]`, Scope: fileops.ScopeFile,
	}
)

// paramPassword opens encrypted documents. LibreOffice decrypts them.
var paramPassword = fileops.Param{
	Name: "password", Doc: "Password that opens the document.",
	Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
}

// encryptable reports whether encrypted documents of a format can be opened: by LibreOffice,
// or here.
func encryptable(f format.Format) bool {
	switch f = f.Plain(); f {
	case format.DOCX, format.XLSX, format.PPTX, format.DOC, format.XLS:
		return true
	}
	return decrypters[f] != nil
}

// encryptedFilter returns the import filter for an encrypted document. The filters of
// Office Open XML expect a ZIP archive; without a filter, LibreOffice decrypts the
// document while it detects the format.
func encryptedFilter(f format.Format, filter string) string {
	if f == format.DOCX || f == format.XLSX || f == format.PPTX {
		return ""
	}
	return filter
}

// accepts returns the conversions from one format, with an entry for each set of
// parameters.
func (e *Engine) accepts(from format.Format) (out []fileops.Accept) {
	var keys []string
	for _, to := range targets {
		if e.router.Steps(from.Plain(), to) == nil {
			continue
		}
		params := e.params(from, to)
		key := ""
		for _, p := range params {
			key += p.Name + " "
		}
		i := slices.Index(keys, key)
		if i < 0 {
			i = len(keys)
			keys = append(keys, key)
			target := fileops.Enum("convert_to", "Format of the result.")
			target.Aliases = make(map[string]string)
			out = append(out, fileops.Accept{Formats: []format.Format{from}, Params: append(fileops.Schema{target}, params...)})
		}
		p := &out[i].Params[0]
		p.Enum = append(p.Enum, string(to))
		for _, a := range to.Aliases() {
			p.Aliases[string(a)] = string(to)
		}
	}
	return out
}

func (e *Engine) params(from, to format.Format) (out fileops.Schema) {
	from = from.Plain() // a template or a document with macros is converted as its plain form
	if to == format.PDF {
		out = append(out, e.pdfParams(from)...)
	}
	if encryptable(from) && e.python != nil {
		out = append(out, paramPassword)
	}
	if from == format.TXT || from == format.CSV || from == format.TSV {
		out = append(out, charset.EncodingParam())
	}
	separated := to == format.CSV || to == format.TSV
	if separated && from != format.CSV && from != format.TSV && e.python != nil {
		out = append(out, paramSheet)
	}
	if (separated || to == format.TXT) && from != format.CSV && from != format.TSV && from != format.TXT {
		out = append(out, charset.OutputParams()...)
	}
	if from == format.CSV || to == format.CSV {
		out = append(out, paramDelimiter)
	}
	return out
}

// extras holds the values of the optional parameters.
type extras struct {
	pdf   fileops.Params // the parameters of pdfParams
	sheet string
	comma rune // 0 if absent

	encoding encoding.Encoding // of a text; nil if absent
	output   *charset.Output   // of a text that is written
}

func readExtras(p fileops.Params) (x extras, err error) {
	x.pdf = p
	x.sheet = p.Get("sheet")
	if x.encoding, err = charset.Encoding(p); err != nil {
		return x, err
	}
	if x.output, err = charset.OutputOf(p); err != nil {
		return x, err
	}
	switch v := p.Get("delimiter"); strings.ToLower(v) {
	case "":
	case "tab", `\t`:
		x.comma = '\t'
	default:
		if x.comma, _ = utf8.DecodeRuneInString(v); x.comma == utf8.RuneError || x.comma == 0 {
			return x, &fileops.ParamError{Param: "delimiter", Reason: "must be a character"}
		}
	}
	return x, nil
}

// allSheets reports whether each sheet becomes a result.
func (x extras) allSheets() bool { return strings.EqualFold(x.sheet, "all") }

// apply adds the values to a request for LibreOffice.
func (x extras) apply(s route.Step, r *request) {
	if s.To == format.PDF {
		x.applyPDF(r)
	} else {
		r.Sheet = x.sheet
		r.AllSheets = x.allSheets() && (s.To == format.CSV || s.To == format.TSV)
	}
	r.ISODates = s.To == format.CSV || s.To == format.TSV
	if s.To == format.CSV && x.comma != 0 {
		_, rest, _ := strings.Cut(r.Options, ",")
		r.Options = fmt.Sprintf("%d,%s", x.comma, rest)
	}
}
