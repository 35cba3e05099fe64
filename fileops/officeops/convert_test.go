package officeops_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"image/png"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/internal/officetext"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/textlayer"
)

// convert runs the action and returns the content of its only result.
func convert(ctx context.Context, e *officeops.Engine, in *fileops.File, to format.Format) ([]byte, error) {
	out, _, err := convertWarned(ctx, e, in, to)
	return out, err
}

// convertWarned is like convert. It also returns the warnings, each as "CODE: MESSAGE" on a line.
func convertWarned(ctx context.Context, e *officeops.Engine, in *fileops.File, to format.Format) (out []byte, warnings string, err error) {
	var lines []string
	r := fileops.Runner{Warn: func(w fileops.Warning) { lines = append(lines, w.Code+": "+w.Message) }}
	n := 0
	err = r.Run(ctx, e.Convert(), fileops.Args{"convert_to": string(to)}, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		if want := format.Base(in.Name()) + "." + string(to); f.Name() != want {
			return fmt.Errorf("result is named %q, want %q", f.Name(), want)
		}
		n++
		var err error
		out, err = io.ReadAll(f.Reader())
		return err
	}), in)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d results", n)
	}
	return out, strings.Join(lines, "\n"), err
}

// textOf returns the text of a result. Where possible it uses another program than the
// one that wrote the result.
func textOf(t testing.TB, f format.Format, b []byte) string {
	t.Helper()
	path := save(t, "result."+string(f), b)
	switch f {
	case format.PDF:
		return tool(t, "pdftotext", "-layout", path, "-")
	case format.DOCX, format.ODT, format.EPUB, format.RTF:
		return tool(t, "pandoc", "--from="+string(f), "--to=plain", "--wrap=none", path)
	case format.HTML:
		return tool(t, "pandoc", "--from=html", "--to=plain", "--wrap=none", path)
	case format.TXT, format.MD, format.CSV, format.TSV, format.RST, format.Org, format.TeX:
		return string(b)
	case format.FB2: // pandoc does not read its tables
		return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(b), " ")
	case format.ODG, format.PPTX, format.XLSX, format.ODP, format.ODS:
		return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(tool(t, "unzip", "-p", path, "*.xml"), " ")
	}
	// No other program reads the formats before 2007, so LibreOffice does.
	to := map[format.Format]string{format.DOC: "txt:Text (encoded):UTF8", format.XLS: "csv:Text - txt - csv (StarCalc):44,34,76", format.PPT: "pdf"}[f]
	dir := t.TempDir()
	tool(t, "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--convert-to", to, "--outdir", dir, path)
	if f == format.PPT {
		return tool(t, "pdftotext", dir+"/result.pdf", "-")
	}
	return tool(t, "cat", dir+"/result."+to[:3])
}

// words returns the words that the result of a conversion must contain.
func words(from, to format.Format) []string {
	switch from.Family() {
	case format.Slides:
		return []string{sentence}
	case format.Sheet:
		switch {
		case from == format.XLSB, from == format.Numbers:
			return []string{latin, cjk, "Pear"}
		case from != from.Plain() && to == format.PDF: // the next cell covers the end of the sentence
			return []string{latin, "The quick"}
		case from == format.FODS, from != from.Plain():
			return []string{latin, sentence}
		}
		return []string{latin, cjk, cell}
	}
	switch from { // samples of fileopstest
	case format.PUB, format.EMF, format.WMF: // of EMF, glyphs that the font lacks have no text
		return []string{"Filewright sample", sentence, "Äpfel", "Apple", "Pear"}
	case format.FODT, format.OTT:
		return []string{"A sample", sentence}
	case format.RST, format.Org, format.TeX, format.FB2, format.ODG, format.VSDX, format.VSD, format.Pages:
		return []string{"Filewright sample", sentence, latin, cjk, "Apple", "Pear"}
	}
	if from != from.Plain() {
		return []string{"A sample", sentence, latin, cjk}
	}
	all := []string{"A sample", sentence, latin, cjk, item, cell, "Second part", "The end."}
	if to != format.RTF { // pandoc does not join surrogate pairs; see TestRTFEmoji
		all = append(all, emoji)
	}
	if to != format.PDF { // pdftotext may use other forms of Arabic letters
		all = append(all, arabic)
	}
	return all
}

var mimeOf = map[format.Format]string{
	format.PDF: "application/pdf", format.DOCX: format.DOCX.MIME(), format.ODT: format.ODT.MIME(), format.RTF: "text/rtf", format.HTML: "text/html",
	format.EPUB: format.EPUB.MIME(), format.PPTX: format.PPTX.MIME(), format.XLSX: format.XLSX.MIME(), format.ODS: format.ODS.MIME(), format.ODP: format.ODP.MIME(),
	format.DOC: "application/msword", format.XLS: "application/vnd.ms-excel", format.PPT: "application/vnd.ms-powerpoint",
}

func checkResult(t *testing.T, from, to format.Format, b []byte) {
	t.Helper()
	text := strings.Join(strings.Fields(textOf(t, to, b)), " ")
	for _, w := range words(from, to) {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in: %.600s", w, text)
		}
	}
	path := save(t, "result."+string(to), b)
	if want := mimeOf[to]; want != "" {
		got := strings.TrimSpace(tool(t, "file", "--brief", "--mime-type", path))
		if got != want && !(want == format.XLS.MIME() && got == "application/vnd.ms-office") && !(want == format.PPT.MIME() && got == "application/vnd.ms-office") {
			t.Errorf("file says %s, want %s", got, want)
		}
	}
	if to == format.HTML && regexp.MustCompile(`(?i)<img[^>]*src="[^d]`).Match(b) {
		t.Error("a picture is not in the page itself")
	}
	if rich := from == format.DOCX || from == format.HTML || from == format.MD; rich {
		switch to {
		case format.HTML, format.MD:
			if !bytes.Contains(b, []byte("data:image/png;base64,")) {
				t.Error("the picture is missing")
			}
		case format.DOCX, format.ODT, format.EPUB:
			if !regexp.MustCompile(`(?m)\.(png|jpe?g)\s*$`).MatchString(tool(t, "unzip", "-l", path)) {
				t.Error("the picture is missing")
			}
		case format.PDF:
			if !strings.Contains(tool(t, "pdfimages", "-list", path), "image") {
				t.Error("the picture is missing")
			}
		}
	}
	if to == format.PDF {
		info := tool(t, "pdfinfo", path)
		if !regexp.MustCompile(`(?m)^Tagged: +yes`).MatchString(info) {
			t.Error("the PDF has no structure")
		}
		for _, line := range strings.Split(strings.TrimSpace(tool(t, "pdffonts", path)), "\n")[2:] {
			if f := strings.Fields(line); f[len(f)-5] != "yes" {
				t.Errorf("font not embedded: %s", line)
			}
		}
		if n := pageCount(t, b); n < 1 || n > 3 {
			t.Errorf("%d pages", n)
		}
	}
}

func pageCount(t testing.TB, pdf []byte) int {
	t.Helper()
	m := regexp.MustCompile(`Pages:\s+(\d+)`).FindStringSubmatch(tool(t, "pdfinfo", save(t, "x.pdf", pdf)))
	n, _ := strconv.Atoi(m[1])
	return n
}

// Every advertised pair works and keeps the words.
func TestSuite(t *testing.T) {
	runSuite(t, fileopstest.Suite{
		Action: office.Convert(), Fixture: fixture, Concurrency: systest.Scale(8, 4),
		Check: func(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
			if len(args) == 1 { // only convert_to
				checkResult(t, in[0].Format(), out[0].Format(), bytesOf(t, out[0]))
			}
		},
	})
}

// runSuite runs a suite after the start of the pool's goroutines, which the suite would count as left over.
func runSuite(t *testing.T, s fileopstest.Suite) {
	t.Helper()
	systest.NoError(t, office.Warm(t.Context()))
	fileopstest.Run(t, s)
}

// RTF stores characters beyond the first plane as surrogate pairs.
func TestRTFEmoji(t *testing.T) {
	t.Parallel()
	b, err := convert(t.Context(), office, fixture(t, format.DOCX), format.RTF)
	systest.NoError(t, err)
	if !regexp.MustCompile(`\\u55357\\uc1 \\u56832`).Match(b) {
		t.Error("the emoji is missing")
	}
}

// The first sheet becomes the text file, whichever sheet is active.
func TestSheetToCSV(t *testing.T) {
	t.Parallel()
	for _, from := range []format.Format{format.XLSX, format.XLS, format.ODS} {
		b, err := convert(t.Context(), office, fixture(t, from), format.CSV)
		systest.NoError(t, err)
		r := csv.NewReader(bytes.NewReader(b))
		r.FieldsPerRecord = -1
		got, err := r.ReadAll()
		systest.NoError(t, err)
		if len(got) != 4 || got[0][0] != "name" || got[1][0] != latin+" "+cjk || got[1][1] != "3.5" || got[2][0] != cell+`, "quoted"` || got[2][1] != "7" {
			t.Errorf("%s: %q", from, got)
		}
	}
}

// The main part of a document may have any name.
func TestMainPart(t *testing.T) {
	t.Parallel()
	for from, to := range map[format.Format][]format.Format{
		format.DOCX: {format.PDF, format.MD}, format.XLSX: {format.CSV}, format.PPTX: {format.PDF},
	} {
		for _, name := range []string{"word/document22.xml", "main.xml"} {
			if from != format.DOCX { // their other parts are named relative to it
				name = map[format.Format]string{format.XLSX: "xl/book1.xml", format.PPTX: "ppt/show.xml"}[from]
			}
			in := specimen.WithMainPart(t, fileopstest.Sample(t, from), name)
			for _, to := range to {
				b, err := convert(t.Context(), office, in, to)
				if err != nil {
					t.Errorf("%s with %s to %s: %v", from, name, to, err)
					continue
				}
				if got := strings.Join(strings.Fields(textOf(t, to, b)), " "); !strings.Contains(got, fileopstest.Text) {
					t.Errorf("%s with %s to %s: %q", from, name, to, got)
				}
			}
		}
	}
}

// A picture wider than the page is scaled down to it.
func TestLargePicture(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, fileopstest.Picture(3000, 300)))
	page := `<p>x</p><img src="data:image/png;base64,` + base64.StdEncoding.EncodeToString(b.Bytes()) + `">`
	doc, err := convert(t.Context(), office, fileops.Bytes("x.html", []byte(page)), format.DOCX)
	systest.NoError(t, err)
	m := regexp.MustCompile(`<wp:extent cx="(\d+)" cy="(\d+)"`).FindStringSubmatch(tool(t, "unzip", "-p", save(t, "x.docx", doc), "word/document.xml"))
	if m == nil {
		t.Fatal("no picture")
	}
	w, _ := strconv.Atoi(m[1])
	h, _ := strconv.Atoi(m[2])
	if const17cm := 17 * 360000; w > const17cm+1000 || w < const17cm-360000 || w/h < 9 || w/h > 10 {
		t.Errorf("%d by %d EMU", w, h)
	}
}

// Progress has meaningful steps.
func TestProgress(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []float64
	r := fileops.Runner{Progress: func(done float64) {
		mu.Lock()
		got = append(got, done)
		mu.Unlock()
	}}
	discard := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	systest.NoError(t, r.Run(t.Context(), office.Convert(), fileops.Args{"convert_to": "pdf"}, discard, fixture(t, format.MD)))
	if want := []float64{0.5, 0.75, 0.95, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Formats have aliases.
func TestAliases(t *testing.T) {
	t.Parallel()
	reg, err := fileops.NewRegistry(office.Actions()...)
	systest.NoError(t, err)
	for alias, want := range map[string]string{"htm": "html", "Markdown": "md", "text": "txt", "PDF": "pdf"} {
		_, p, err := reg.Resolve("convert", []format.Format{format.DOCX}, fileops.Args{"convert_to": alias})
		if err != nil || p.Get("convert_to") != want {
			t.Errorf("%s: %q, %v", alias, p.Get("convert_to"), err)
		}
	}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range office.Dependencies() {
		names = append(names, filepath.Base(d.Path))
		if d.Version == "" || d.Err != nil {
			t.Errorf("%s %q: %v", d.Name, d.Version, d.Err)
		}
	}
	if want := []string{"soffice.bin", "python3", "pandoc"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if e := office.Convert().Spec().Engine; !strings.HasPrefix(e, "libreoffice 7.") && !strings.HasPrefix(e, "libreoffice 2") {
		t.Errorf("engine %q", e)
	}
}

// The quick look at a PDF finds the letters that another program finds, so that it is enough to know that
// the result has the text.
func TestQuickText(t *testing.T) {
	t.Parallel()
	for _, from := range []format.Format{format.DOCX, format.ODT, format.RTF, format.HTML, format.TXT, format.PPTX, format.ODP, format.XLSX, format.ODS, format.ODG} {
		b, err := convert(t.Context(), office, fixture(t, from), format.PDF)
		systest.NoError(t, err)
		packed := save(t, "packed.pdf", b)
		plain := packed + ".plain"
		tool(t, "qpdf", "--object-streams=disable", "--stream-data=preserve", packed, plain)
		got, err := textlayer.Text(t.Context(), systest.ReadFile(t, plain), 100)
		systest.NoError(t, err)
		text := tool(t, "pdftotext", plain, "-")
		all, kept := officetext.Kept(text, got)
		more, _ := officetext.Kept(got, text)
		if kept < all*98/100 || more > all*102/100 || all == 0 {
			t.Errorf("%s: %d letters, %d of %d that pdftotext finds", from, more, kept, all)
		}
	}
}
