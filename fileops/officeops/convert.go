package officeops

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/odfcrypt"
	"github.com/filewright/filewright/internal/pdfpack"
	"github.com/filewright/filewright/internal/route"
	"github.com/filewright/filewright/internal/safezip"
)

// A filter is the name of LibreOffice's reader or writer of a format.
type filter struct {
	name    string
	options string
}

// An app is one of LibreOffice's applications.
type app struct {
	kind string
	in   map[format.Format]filter
	out  map[format.Format]filter
}

// apps lists LibreOffice's applications and their formats; it is read-only. With an
// empty import filter, LibreOffice detects the format, because the old formats have
// several versions.
var apps = []app{
	{
		kind: kindText,
		in: map[format.Format]filter{
			format.DOCX: {"MS Word 2007 XML", ""},
			format.DOC:  {},
			format.ODT:  {"writer8", ""},
			format.FODT: {"OpenDocument Text Flat XML", ""},
			format.RTF:  {"Rich Text Format", ""},
			format.TXT:  {"Text (encoded)", "UTF8,LF"},
			format.HTML: {"HTML (StarWriter)", ""},

			format.Pages: {"Apple Pages", ""},
		},
		out: map[format.Format]filter{
			format.PDF:  {"writer_pdf_Export", ""},
			format.DOCX: {"MS Word 2007 XML", ""},
			format.DOC:  {"MS Word 97", ""},
			format.ODT:  {"writer8", ""},
			format.RTF:  {"Rich Text Format", ""},
			format.TXT:  {"Text (encoded)", "UTF8,LF,,,FALSE"}, // no byte order mark
			format.HTML: {"HTML (StarWriter)", "EmbedImages"},
		},
	},
	{
		kind: kindSlides,
		in: map[format.Format]filter{
			format.PPTX: {"Impress MS PowerPoint 2007 XML", ""},
			format.PPT:  {},
			format.ODP:  {"impress8", ""},
			format.FODP: {"OpenDocument Presentation Flat XML", ""},
			format.Key:  {"Apple Keynote", ""},
		},
		out: map[format.Format]filter{
			format.PDF:  {"impress_pdf_Export", ""},
			format.PPTX: {"Impress MS PowerPoint 2007 XML", ""},
			format.PPT:  {"MS PowerPoint 97", ""},
			format.ODP:  {"impress8", ""},
		},
	},
	{
		kind: kindSheet,
		in: map[format.Format]filter{
			format.XLSX: {"Calc MS Excel 2007 XML", ""},
			format.XLS:  {},
			format.ODS:  {"calc8", ""},
			format.FODS: {"OpenDocument Spreadsheet Flat XML", ""},
			format.XLSB: {"Calc MS Excel 2007 Binary", ""},
			format.CSV:  {"Text - txt - csv (StarCalc)", ""}, // options depend on the content
			format.TSV:  {"Text - txt - csv (StarCalc)", ""},

			format.Numbers: {"Apple Numbers", ""},
		},
		out: map[format.Format]filter{
			format.PDF:  {"calc_pdf_Export", ""},
			format.XLSX: {"Calc MS Excel 2007 XML", ""},
			format.XLS:  {"MS Excel 97", ""},
			format.ODS:  {"calc8", ""},
			format.HTML: {"HTML (StarCalc)", "EmbedImages"},
			// Separator, quote, UTF-8, from line 1, …, values as displayed.
			format.CSV: {"Text - txt - csv (StarCalc)", "44,34,76,1,,0,false,true,false"},
			format.TSV: {"Text - txt - csv (StarCalc)", "9,34,76,1,,0,false,true,false"},
		},
	},
	{
		kind: kindDrawing,
		in: map[format.Format]filter{
			format.ODG:  {"draw8", ""},
			format.VSDX: {"Visio Document", ""},
			format.VSD:  {"Visio Document", ""},
			format.PUB:  {"Publisher Document", ""},
		},
		out: map[format.Format]filter{
			format.PDF: {"draw_pdf_Export", ""},
			format.ODG: {"draw8", ""},
		},
	},
	{ // a metafile stays one picture, which is no drawing to edit
		kind: kindDrawing,
		in: map[format.Format]filter{
			format.EMF: {"EMF - MS Windows Metafile", ""},
			format.WMF: {"WMF - MS Windows Metafile", ""},
		},
		out: map[format.Format]filter{format.PDF: {"draw_pdf_Export", ""}},
	},
}

// Tools. Each step of a conversion uses one of them.
const (
	byText   = "text"  // decodes text, or converts it to HTML
	byTable  = "table" // rewrites separated values
	byPandoc = "pandoc"
	byOffice = "libreoffice"
)

// newRouter returns the router for the conversions of this host.
func (e *Engine) newRouter() *route.Router {
	return &route.Router{
		Converters: []string{byText, byTable, byPandoc, byOffice},
		Can:        e.can,
		Joins: []route.Join{
			// Pandoc does not support all of OpenDocument.
			{First: byOffice, Mid: format.DOCX, Second: byPandoc, Before: true, Only: func(from, _ format.Format) bool { return from == format.ODT }},
			{First: byText, Mid: format.HTML, Second: byPandoc},
			{First: byPandoc, Mid: format.HTML, Second: byPandoc},
			{First: byPandoc, Mid: format.HTML, Second: byOffice},
			{First: byOffice, Mid: format.DOCX, Second: byPandoc},
		},
	}
}

// can reports whether this host should use a tool for a step.
func (e *Engine) can(s route.Step) bool {
	switch s.By {
	case byText:
		return s.From == format.TXT && (s.To == format.MD || s.To == format.HTML)
	case byTable:
		return s.From == format.CSV && s.To == format.TSV || s.From == format.TSV && s.To == format.CSV
	case byPandoc:
		if e.pandoc == nil || pandocIn[s.From] == "" || pandocOut[s.To] == "" {
			return false
		}
		switch s.From {
		case s.To:
			return false
		case format.MD, format.RST, format.Org, format.TeX, format.FB2: // for books pandoc reads pictures only from HTML
			return s.To != format.EPUB && s.To != format.FB2
		case format.DOCX, format.ODT: // LibreOffice converts the others better
			return s.To != format.TXT && s.To != format.HTML
		}
		return true
	}
	if e.office == nil || appFor(s) == nil {
		return false
	}
	// Excel 97 has fewer rows, and LibreOffice silently drops the rest. The driver
	// checks the number of rows; this package checks text itself.
	return s.To != format.XLS || e.python != nil || s.From == format.CSV || s.From == format.TSV
}

// appFor returns the application for step s, or nil.
func appFor(s route.Step) *app {
	for i, a := range apps {
		_, in := a.in[s.From]
		_, out := a.out[s.To]
		if in && out {
			return &apps[i]
		}
	}
	return nil
}

var (
	inputs = []format.Format{
		format.DOCX, format.DOC, format.ODT, format.FODT, format.RTF, format.TXT, format.HTML, format.MD, format.EPUB,
		format.RST, format.Org, format.TeX, format.FB2,
		format.PPTX, format.PPT, format.ODP, format.FODP,
		format.XLSX, format.XLS, format.ODS, format.FODS, format.XLSB, format.CSV, format.TSV,
		format.ODG, format.VSDX, format.VSD, format.PUB, format.EMF, format.WMF,
		format.Pages, format.Numbers, format.Key,
	}
	targets = []format.Format{
		format.PDF, format.DOCX, format.DOC, format.ODT, format.RTF, format.TXT, format.HTML, format.MD, format.EPUB,
		format.RST, format.Org, format.TeX, format.FB2, format.ODG,
		format.PPTX, format.PPT, format.ODP, format.XLSX, format.XLS, format.ODS, format.CSV, format.TSV,
	}
)

// Convert returns the action "convert" with convert_to. It accepts the formats that the
// installed programs support.
func (e *Engine) Convert() fileops.Action {
	spec := fileops.Spec{
		Name:    "convert",
		Engine:  e.name(),
		Family:  "office",
		Summary: "Converts documents, slides and sheets to PDF and to each other.",

		Encrypted: e.python != nil,
	}
	for _, from := range format.WithVariants(inputs...) {
		spec.Accepts = append(spec.Accepts, e.accepts(from)...)
	}
	return fileops.Func(spec, e.convert)
}

// A task is one conversion with its steps.
type task struct {
	*Engine
	job   *fileops.Job
	in    *fileops.File // the input, decrypted if it is OpenDocument
	dir   string
	n     int     // number of intermediate files
	first bool    // the current step reads the input
	last  bool    // the current step writes the result
	start float64 // progress at the start of the current step
	share float64 // progress share of one step
	extra extras
	names []string // of the sheets that became files

	password string // of the input; "" if it is not encrypted
}

// asPlain returns a template, or a document with macros, under the name of an ordinary
// document. The engines read both alike.
func asPlain(f *fileops.File) *fileops.File {
	if plain := f.Format().Plain(); plain != f.Format() {
		return f.Named(fileops.ResultName(f, plain))
	}
	return f
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	in := asPlain(job.Input())
	to := format.Format(job.Params.Get("convert_to"))
	steps := e.router.Steps(in.Format(), to)
	if steps == nil {
		return fmt.Errorf("no route from %s to %s", in.Format(), to)
	}
	given := in
	in, password, err := e.open(ctx, in, job.Params.Get("password"))
	unsure := errors.Is(err, errMaybeProtected)
	if err != nil && !unsure {
		return err
	}
	if in == given && password == "" && !unsure {
		job.WarnPasswordUnused()
	}
	if password != "" && steps[0].By != byOffice {
		steps = append([]route.Step{{By: byOffice, From: in.Format(), To: in.Format()}}, steps...)
	}
	t := &task{Engine: e, job: job, in: in, share: 1 / float64(len(steps)), password: password}
	if t.dir, err = job.Dir(); err != nil {
		return err
	}
	if t.extra, err = readExtras(job.Params); err != nil {
		return err
	}
	path, err := job.Path(in)
	if err != nil {
		return err
	}
	// It is read while LibreOffice works. A panic happens again in warn.
	source := sync.OnceValue(func() source { return t.readSource(ctx, to) })
	var reading sync.WaitGroup
	defer reading.Wait()
	allSheets := t.extra.allSheets() && (to == format.CSV || to == format.TSV)
	if !allSheets { // warn is called
		reading.Go(func() {
			defer func() { _ = recover() }()
			source()
		})
	}
	t.first = true
	for _, s := range steps[:len(steps)-1] {
		out := t.temp(s.To)
		if err = t.do(ctx, s, path, out); err != nil {
			break
		}
		path = out
		t.first = false
		t.start += t.share
		job.Progress(t.start)
	}
	if err == nil && allSheets {
		err = t.sheets(ctx, steps[len(steps)-1], path)
	} else if err == nil {
		t.last = true
		err = job.WriteFile(fileops.ResultName(in, to), func(out string) error {
			if err := t.do(ctx, steps[len(steps)-1], path, out); err != nil {
				return err
			}
			if err := t.warn(ctx, to, out, source()); err != nil {
				return err
			}
			if to == format.PDF && job.Params.Get("pdfa") != "1b" { // PDF/A-1 has no object streams
				if _, err := pdfpack.File(out); err != nil {
					return err
				}
			}
			return t.encode(out)
		})
	}
	if unsure && errors.Is(err, fileops.ErrCorruptInput) {
		return protected()
	}
	return err
}

// sheets writes a result for each sheet of a workbook.
func (t *task) sheets(ctx context.Context, s route.Step, in string) error {
	out := t.temp(s.To)
	if err := t.do(ctx, s, in, out); err != nil {
		return err
	}
	taken := make(map[string]bool)
	for i, sheet := range t.names {
		name := fileops.ResultName(t.job.Input(), s.To)
		if len(t.names) > 1 {
			ext := "." + string(s.To)
			base := strings.TrimSuffix(name, ext) + "-" + sheetName(sheet+ext)
			name = base + ext
			for n := 2; taken[strings.ToLower(name)]; n++ {
				name = fmt.Sprintf("%s-%d%s", base, n, ext)
			}
			taken[strings.ToLower(name)] = true
		}
		err := t.job.WriteFile(name, func(path string) error {
			if err := os.Rename(sheetFile(out, i), path); err != nil {
				return err
			}
			return t.encode(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// encode gives the text at path the encoding that the parameters choose.
func (t *task) encode(path string) error {
	o := t.extra.output
	if o.Plain() {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(path); err != nil {
		return err
	}
	defer o.Warn(t.job)
	return create(path, func(w io.Writer) error {
		return o.Copy(w, func(w io.Writer) error {
			_, err := io.Copy(w, bufio.NewReader(in))
			return err
		})
	})
}

// open validates a document, and decrypts it if it is OpenDocument. It returns password
// if LibreOffice needs it.
func (e *Engine) open(ctx context.Context, f *fileops.File, password string) (*fileops.File, string, error) {
	err := e.opts.Limits.check(ctx, f)
	if password == "" || !encryptable(f.Format()) || !errors.Is(err, fileops.ErrPasswordRequired) && !errors.Is(err, errMaybeProtected) {
		return f, "", err
	}
	decrypt := decrypters[f.Format()]
	if decrypt == nil {
		return f, password, nil
	}
	if f.Size() > maxDecrypt {
		return f, "", fileops.Fail(fileops.ErrLimit, nil, "the document has %d bytes, more than the limit of %d bytes for encrypted documents", f.Size(), maxDecrypt)
	}
	var plain bytes.Buffer
	if err := decrypt(ctx, e.opts.Limits, f, password, &plain); err != nil {
		return f, "", err
	}
	f = fileops.Bytes(f.Name(), plain.Bytes())
	return f, "", e.opts.Limits.check(ctx, f)
}

// maxDecrypt is the largest document in bytes that is decrypted here.
const maxDecrypt = 256 << 20

// decrypters decrypt the formats that LibreOffice does not open with a password alone.
// They are read-only.
var decrypters = map[format.Format]func(context.Context, Limits, *fileops.File, string, io.Writer) error{
	format.ODT: decryptODF, format.ODS: decryptODF, format.ODP: decryptODF,
	format.PPT: decryptPPT,
}

func decryptODF(ctx context.Context, l Limits, f *fileops.File, password string, w io.Writer) error {
	limits := safezip.Limits{Entries: l.Entries, Unpacked: l.Unpacked, Ratio: l.Ratio}
	return odfcrypt.Decrypt(ctx, limits, f.Reader(), f.Size(), password, w)
}

// temp returns the path of an intermediate file.
func (t *task) temp(f format.Format) string {
	t.n++
	return filepath.Join(t.dir, fmt.Sprintf("step-%d.%s", t.n, f))
}

func (t *task) do(ctx context.Context, s route.Step, in, out string) error {
	switch s.By {
	case byOffice:
		return t.byOffice(ctx, s, in, out)
	case byPandoc:
		return t.byPandoc(ctx, s, in, out)
	}
	f, text, err := t.openText(in)
	if err != nil {
		return err
	}
	defer f.Close()
	return create(out, func(w io.Writer) error {
		switch {
		case s.By == byTable:
			return t.rewriteTable(ctx, s, text, w)
		case s.To == format.HTML:
			return textToHTML(w, fileops.ContextReader(ctx, text.Reader()), format.Base(t.job.Input().Name()))
		}
		_, err := io.Copy(w, fileops.ContextReader(ctx, text.Reader()))
		return err
	})
}

func (t *task) rewriteTable(ctx context.Context, s route.Step, text *charset.Text, w io.Writer) error {
	tab, err := inspect(ctx, text, s.From, t.extra.comma)
	if err != nil {
		return err
	}
	comma := cmp.Or(t.extra.comma, ',')
	if s.To == format.TSV {
		comma = '\t'
	}
	return tab.rewrite(ctx, w, comma)
}

// create creates a file at path with the output of write.
func create(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	return errors.Join(err, w.Flush(), f.Close())
}

func (t *task) byOffice(ctx context.Context, s route.Step, in, out string) error {
	a := appFor(s)
	r := request{
		In: in, Out: out, Kind: a.kind, Name: t.job.Input().Name(),
		InFilter: a.in[s.From].name, InOptions: a.in[s.From].options,
		Filter: a.out[s.To].name, Options: a.out[s.To].options,
	}
	t.extra.apply(s, &r)
	r.onNames = func(names []string) { t.names = names }
	if (s.To == format.CSV || s.To == format.TSV) && t.extra.sheet == "" {
		r.onSheets = func(n int) {
			t.job.Warn(fileops.WarnContentDropped, "%s left out; the result has only the first one.", counted(n, "sheet"))
		}
	}
	if t.first && t.password != "" {
		r.Password, r.InFilter = t.password, encryptedFilter(s.From, r.InFilter)
		if a.kind == kindSheet && s.To != s.From {
			t.job.Warn(fileops.WarnFormulasRecalculated, "The formulas of the encrypted workbook were recalculated.")
		}
		return t.office(ctx, r)
	}
	if s.To == format.XLS {
		r.MaxRows, r.MaxColumns = maxRowsXLS, maxColumnsXLS
	}
	switch s.From {
	case format.TXT, format.HTML, format.CSV, format.TSV:
		if err := t.readable(ctx, s, &r); err != nil {
			return err
		}
	case format.EMF, format.WMF:
		r.FitPage = true
	case format.XLSX, format.ODS, format.FODS:
		if s.To.Family() == format.Sheet && s.To != format.CSV && s.To != format.TSV {
			break // keep formulas
		}
		values := t.temp(s.From)
		frozen, err := freeze(ctx, s.From, in, values)
		if err != nil {
			return err
		}
		if frozen {
			r.In = values
		}
	}
	return t.office(ctx, r)
}

func (t *task) office(ctx context.Context, r request) error {
	return t.pool.do(ctx, r, func(phase string) {
		switch phase {
		case "loaded":
			t.job.Progress(t.start + 0.5*t.share)
		case "stored":
			t.job.Progress(t.start + 0.9*t.share)
		}
	})
}

// readable replaces the input of r, a text in any encoding, with a file that LibreOffice
// reads correctly.
func (t *task) readable(ctx context.Context, s route.Step, r *request) error {
	if s.From == format.HTML {
		f, text, err := openText(r.In, charset.NewHTML)
		if err != nil {
			return err
		}
		defer f.Close()
		r.FitPictures = true
		r.In = t.temp(s.From)
		return create(r.In, func(w io.Writer) error {
			var lost pageLosses
			err := cleaner{tables: !t.first, pageSize: true, lost: &lost}.clean(ctx, w, text.Reader())
			lost.warn(t.job)
			return err
		})
	}
	f, text, err := t.openText(r.In)
	if err != nil {
		return err
	}
	defer f.Close()
	rest := fileops.ContextReader(ctx, text.Reader())
	if s.From != format.TXT {
		tab, err := inspect(ctx, text, s.From, t.extra.comma)
		if err != nil {
			return err
		}
		if r.MaxRows > 0 && (tab.rows > r.MaxRows || tab.width > r.MaxColumns) {
			return failure(reply{Error: "limit"}, *r)
		}
		r.InOptions = tab.options()
		r.Widest = 8000 // 8 cm; longer text is wrapped
		r.SheetName = sheetName(t.job.Input().Name())
		if rest, err = tab.content(ctx); err != nil {
			return err
		}
	}
	r.In = t.temp(s.From)
	return create(r.In, func(w io.Writer) error {
		_, err := io.Copy(w, rest)
		return err
	})
}

// openText opens a text in the chosen encoding, or else in the detected encoding.
func (t *task) openText(path string) (*os.File, *charset.Text, error) {
	if !t.first { // written by an earlier step
		return openText(path, charset.NewText)
	}
	f, text, err := openText(path, func(r io.ReaderAt, size int64) (*charset.Text, error) {
		if t.extra.encoding != nil {
			return charset.NewTextIn(r, size, t.extra.encoding), nil
		}
		return charset.NewText(r, size)
	})
	if err == nil {
		if name := text.Guess(); name != "" {
			t.job.Warn(fileops.WarnEncodingGuessed, "The text is not UTF-8; it was read as %s.", name)
		}
	}
	return f, text, err
}

// openText opens a text in any encoding, which decode detects. The caller must close the
// file after the last use of the text.
func openText(path string, decode func(io.ReaderAt, int64) (*charset.Text, error)) (*os.File, *charset.Text, error) {
	f, size, err := openLimited(path)
	if err != nil {
		return nil, nil, err
	}
	text, err := decode(f, size)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, text, nil
}

// openLimited opens a text of at most maxText bytes.
func openLimited(path string) (*os.File, int64, error) {
	f, err := engine.Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && st.Size() > maxText {
		err = fileops.Fail(fileops.ErrLimit, nil, "the text has %d bytes, more than the limit of %d bytes for this operation", st.Size(), maxText)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}
