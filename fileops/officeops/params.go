package officeops

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/route"
)

// Optional parameters of Convert, each only for the formats where it applies.
var (
	paramPDFA = fileops.Param{
		Name: "pdfa", Doc: "Makes a PDF/A file for archiving, of part 1, 2 or 3, conformance level B or better.",
		Enum: []string{"1b", "2b", "3b"},
	}
	paramSheet = fileops.Param{
		Name: "sheet", Doc: "Name or number, counted from 1, of the sheet to take; the first one if absent.",
		Min: 1, Max: 256, Scope: fileops.ScopeContent,
	}
	paramDelimiter = fileops.Param{
		Name: "delimiter", Doc: `Character between the values of the csv file, or "tab"; if absent it is found out when reading, and is a comma when writing.`,
		Min: 1, Max: 4, Pattern: `tab|\\t|[^"\r\n]`, Scope: fileops.ScopeFile,
	}
)

// accepts returns the conversions from one format, with an entry for each set of
// parameters.
func (e *Engine) accepts(from format.Format) (out []fileops.Accept) {
	var keys []string
	for _, to := range targets {
		if e.router.Steps(from, to) == nil {
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
			target := fileops.Enum("convert_to", "The format to convert to.")
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
	if to == format.PDF {
		out = append(out, paramPDFA)
	}
	separated := to == format.CSV || to == format.TSV
	if separated && from != format.CSV && from != format.TSV && e.python != nil {
		out = append(out, paramSheet)
	}
	if from == format.CSV || to == format.CSV {
		out = append(out, paramDelimiter)
	}
	return out
}

// extras are the values of the optional parameters.
type extras struct {
	pdfa  int // part of ISO 19005; 0 for an ordinary PDF
	sheet string
	comma rune // 0 if absent
}

func readExtras(p fileops.Params) (x extras, err error) {
	if v := p.Get("pdfa"); v != "" {
		x.pdfa = int(v[0] - '0')
	}
	x.sheet = p.Get("sheet")
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

// apply adds the values to a request for LibreOffice.
func (x extras) apply(s route.Step, r *request) {
	if s.To == format.PDF && x.pdfa != 0 {
		r.Data["SelectPdfVersion"] = x.pdfa
	}
	r.Sheet = x.sheet
	if s.To == format.CSV && x.comma != 0 {
		_, rest, _ := strings.Cut(r.Options, ",")
		r.Options = fmt.Sprintf("%d,%s", x.comma, rest)
	}
}
