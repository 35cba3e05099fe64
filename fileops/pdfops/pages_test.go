package pdfops_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
)

// pageTexts returns the text of each page, as poppler reads it.
func pageTexts(t *testing.T, f *fileops.File) []string {
	t.Helper()
	out := strings.Split(shell(t, "pdftotext", save(t, f), "-"), "\f")
	for i := range out {
		out[i] = strings.Join(strings.Fields(out[i]), " ")
	}
	return out[:len(out)-1] // each page ends with a form feed
}

// withWarnings runs an action and returns its first result with the codes of its
// warnings.
func withWarnings(t *testing.T, a fileops.Action, args fileops.Args, in *fileops.File) (*fileops.File, []string) {
	t.Helper()
	out, err := try(t.Context(), t, a, args, in)
	if err != nil {
		t.Fatal(err)
	}
	return out[0], warned(t, a, args, in)
}

// numberedPages returns a document whose pages show their number.
func numberedPages(t *testing.T, n int) *fileops.File {
	t.Helper()
	var in []*fileops.File
	for i := range n {
		in = append(in, pdf(fmt.Sprintf("%d.pdf", i+1), simple(fmt.Sprint(i+1))))
	}
	return run(t, pdfops.Merge(), nil, in...).Named("report.pdf")
}

func TestExtractPages(t *testing.T) {
	t.Parallel()
	in := numberedPages(t, 40)
	for pages, want := range map[string]string{"3": "3", "5,1-2": "5 1 2", "-1": "40", "38-": "38 39 40", "2,-39,2": "2"} {
		out := run(t, pdfops.ExtractPages(), fileops.Args{"pages": pages}, in)
		sound(t, out)
		if got := strings.Join(pageTexts(t, out), " "); got != want || out.Name() != "report.pdf" {
			t.Errorf("pages %s are %s in %s, want %s", pages, got, out.Name(), want)
		}
	}
	var param *fileops.ParamError
	if _, err := try(t.Context(), t, pdfops.ExtractPages(), fileops.Args{"pages": "41"}, in); !errors.As(err, &param) || param.Param != "pages" || !strings.Contains(err.Error(), "40 pages") {
		t.Errorf("page 41: %v", err)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	in := numberedPages(t, 7)
	for _, tt := range []struct {
		args fileops.Args
		want []string
	}{
		{nil, []string{"1", "2", "3", "4", "5", "6", "7"}},
		{fileops.Args{"every": 3}, []string{"1 2 3", "4 5 6", "7"}},
		{fileops.Args{"every": 9}, []string{"1 2 3 4 5 6 7"}},
		{fileops.Args{"pages": "1-2;-1;2,4"}, []string{"1 2", "7", "2 4"}},
		{fileops.Args{"at": "bookmarks"}, []string{"1", "2", "3", "4", "5", "6", "7"}},
	} {
		out, err := try(t.Context(), t, pdfops.Split(), tt.args, in)
		if err != nil {
			t.Fatal(err)
		}
		var got, names []string
		for _, f := range out {
			sound(t, f)
			got, names = append(got, strings.Join(pageTexts(t, f), " ")), append(names, f.Name())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v gives %q, want %q", tt.args, got, tt.want)
		}
		if want := []string{"report-001.pdf", "report-002.pdf"}; len(names) > 1 && !slices.Equal(names[:2], want) {
			t.Errorf("names %v", names)
		}
	}
	if msg := fails(t, fileops.ErrUnsupportedInput, pdfops.Split(), fileops.Args{"at": "bookmarks"}, pdf("a.pdf", simple("a"))); !strings.Contains(msg, "no bookmarks") {
		t.Error(msg)
	}
}

// The pages of a file take everything along that belongs to them, and nothing of
// the others.
func TestExcerptOfRichFile(t *testing.T) {
	t.Parallel()
	one, two := pdf("one.pdf", rich("alpha")), pdf("two.pdf", rich("beta"))
	both := run(t, pdfops.Merge(), nil, one, two)
	original := summarize(t, one)
	for pages, name := range map[string]string{"1-2": "alpha", "3-4": "beta"} {
		out, warnings := withWarnings(t, pdfops.ExtractPages(), fileops.Args{"pages": pages}, both)
		sound(t, out)
		got := summarize(t, out)
		want := original
		want.Outlines++      // that of the file
		want.Attachments = 0 // they belong to the document
		want.Version = got.Version
		if got != want {
			t.Errorf("pages %s have %+v, want %+v", pages, got, want)
		}
		if text := pageTexts(t, out); !slices.Equal(text, []string{name + " " + name, "second " + name}) {
			t.Errorf("pages %s show %q", pages, text) // text and field; the hidden layer stays hidden
		}
		if b := content(t, out); bytes.Contains(inflated(t, b), []byte(map[string]string{"alpha": "beta", "beta": "alpha"}[name])) {
			t.Errorf("pages %s contain text of the others", pages)
		}
		if !slices.Equal(warnings, []string{fileops.WarnContentDropped}) {
			t.Errorf("warnings %q", warnings)
		}
	}

	// The link of the first page leads to the second.
	out, warnings := withWarnings(t, pdfops.ExtractPages(), fileops.Args{"pages": "1"}, one)
	sound(t, out)
	if got := summarize(t, out); got.Links != 0 || got.Widgets != 1 || got.Fields != 1 || got.Outlines != 0 || !got.Tagged {
		t.Errorf("first page: %+v", got)
	}
	if want := []string{fileops.WarnContentDropped, fileops.WarnLinksDropped}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	out, _ = withWarnings(t, pdfops.ExtractPages(), fileops.Args{"pages": "2"}, one)
	sound(t, out)
	if got := summarize(t, out); got.Links != 1 || got.Widgets+got.Fields != 0 || got.Outlines != 2 || got.Tagged {
		t.Errorf("second page: %+v", got)
	}
}

// inflated returns the content of a file with readable streams.
func inflated(t *testing.T, b []byte) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.pdf")
	shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, pdf("in.pdf", b)), out)
	return read(t, out)
}

// The tags of a page are those that it had in a file of its own.
func TestExcerptTags(t *testing.T) {
	t.Parallel()
	a := pdf("a.pdf", taggedFile("alpha", "en", "/Title/H1/Art/Sect", "/O/Layout/TextAlign/Center"))
	b := pdf("b.pdf", taggedFile("beta", "en", "/Title/H1/Art/Sect", "/O/Layout/TextAlign/Center"))
	both := run(t, pdfops.Merge(), nil, a, b)
	for pages, in := range map[string]*fileops.File{"1": a, "2": b} {
		out := run(t, pdfops.ExtractPages(), fileops.Args{"pages": pages}, both)
		sound(t, out)
		p := save(t, out)
		// The aside has no content, so it belongs to no page.
		aside := strings.NewReplacer("aside of alpha", "", "aside of beta", "")
		got, want := aside.Replace(structureOf(t, p)), aside.Replace(structureOf(t, save(t, in)))
		if i := strings.Index(want, "Art"); i >= 0 {
			want = want[:i]
		}
		if !strings.HasPrefix(strings.TrimSpace(want), strings.TrimSpace(got)) || len(got) < 150 {
			t.Errorf("page %s has the structure\n%s\nwant\n%s", pages, got, want)
		}
		if q := readStructure(t, p); len(q.parents) != 3 || len(q.content) != 3 || len(q.orphans) > 0 || len(q.ids) != 1 {
			t.Errorf("page %s: %+v", pages, q)
		}
	}
}

// A cell without text stays in its row, and a row of another page does not.
func TestExcerptTable(t *testing.T) {
	t.Parallel()
	page := func(n, contents int) string {
		return fmt.Sprintf(`<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents %d 0 R/StructParents %d/Resources<</Font<</F 7 0 R>>>>>>`, contents, n)
	}
	in := pdf("table.pdf", handmade("1.7",
		`<</Type/Catalog/Pages 2 0 R/StructTreeRoot 8 0 R/MarkInfo<</Marked true>>>>`,
		`<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>`, page(0, 5), page(1, 6),
		stream("", "/TD<</MCID 0>>BDC BT /F 9 Tf 20 60 Td (first) Tj ET EMC"), stream("", "/TD<</MCID 0>>BDC BT /F 9 Tf 20 60 Td (second) Tj ET EMC"),
		`<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>`,
		`<</Type/StructTreeRoot/K 9 0 R/ParentTree<</Nums[0[12 0 R]1[14 0 R]]>>>>`,
		`<</S/Table/P 8 0 R/K[10 0 R 11 0 R]>>`,
		`<</S/TR/P 9 0 R/K[12 0 R 13 0 R]>>`, `<</S/TR/P 9 0 R/K[14 0 R 15 0 R]>>`,
		`<</S/TD/P 10 0 R/Pg 3 0 R/K 0/T(one)>>`, `<</S/TD/P 10 0 R/T(empty one)>>`,
		`<</S/TD/P 11 0 R/Pg 4 0 R/K 0/T(two)>>`, `<</S/TD/P 11 0 R/T(empty two)>>`))
	out := run(t, pdfops.ExtractPages(), fileops.Args{"pages": "2"}, in)
	sound(t, out)
	got := string(inflated(t, content(t, out)))
	for text, want := range map[string]int{"(empty two)": 1, "(two)": 1, "(one)": 0, "(empty one)": 0, "/TR": 1, "/Table": 1} {
		if n := strings.Count(got, text); n != want {
			t.Errorf("%s occurs %d times, want %d", text, n, want)
		}
	}
}

// Page labels stay those of the pages, in any order.
func TestExcerptLabels(t *testing.T) {
	t.Parallel()
	objects := []string{`<</Type/Catalog/Pages 2 0 R/PageLabels<</Nums[0<</S/r>>3<</S/D/P(A-)/St 5>>]>>>>`, `<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R 6 0 R 7 0 R]/Count 5>>`}
	for range 5 {
		objects = append(objects, `<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>`)
	}
	out := run(t, pdfops.ExtractPages(), fileops.Args{"pages": "3,5,1-2"}, pdf("a.pdf", handmade("1.7", objects...)))
	sound(t, out)
	got := strings.Join(strings.Fields(shell(t, "qpdf", "--json=2", "--json-key=pagelabels", save(t, out))), "")
	for _, want := range []string{`{"index":0,"label":{"/S":"/r","/St":3}}`, `{"index":1,"label":{"/P":"u:A-","/S":"/D","/St":6}}`, `{"index":2,"label":{"/S":"/r"`} {
		if !strings.Contains(got, want) {
			t.Errorf("labels %s lack %s", got, want)
		}
	}
	if strings.Contains(got, `"index":3`) {
		t.Errorf("labels %s: the last page continues", got)
	}
}

// One page of many costs about as much as a file with this page, even if all
// pages share their resources and one field has a widget on each page.
func TestExcerptIsSmall(t *testing.T) {
	t.Parallel()
	const pages = 100
	objects := []string{"", "", ""}
	var kids, widgets, names strings.Builder
	for i := range pages {
		at := len(objects) + 1
		noise := make([]byte, 3000)
		for j := range noise {
			noise[j] = byte(j * j * (i + 3) >> 3)
		}
		objects = append(objects,
			fmt.Sprintf(`<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents %d 0 R/Annots[%d 0 R]>>`, at+1, at+2),
			stream("", fmt.Sprintf("q 99 0 0 99 0 0 cm /I%d Do Q", i)),
			fmt.Sprintf(`<</Type/Annot/Subtype/Widget/Rect[0 0 9 9]/Parent 3 0 R/P %d 0 R>>`, at),
			imageStream(50, 60, "/DeviceGray", "", noise))
		fmt.Fprintf(&kids, "%d 0 R ", at)
		fmt.Fprintf(&widgets, "%d 0 R ", at+2)
		fmt.Fprintf(&names, "/I%d %d 0 R", i, at+3)
	}
	objects[0] = `<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[3 0 R]>>>>`
	objects[1] = fmt.Sprintf(`<</Type/Pages/Kids[%s]/Count %d/Resources<</XObject<<%s>>>>>>`, kids.String(), pages, names.String())
	objects[2] = fmt.Sprintf(`<</FT/Tx/T(everywhere)/V(x)/Kids[%s]>>`, widgets.String())
	in := pdf("a.pdf", handmade("1.7", objects...))
	out := run(t, pdfops.ExtractPages(), fileops.Args{"pages": "50"}, in)
	sound(t, out)
	if n := out.Size(); n > in.Size()/pages*2 {
		t.Errorf("one page of %d bytes has %d", in.Size(), n)
	}
	if got := summarize(t, out); got.Widgets != 1 || got.Fields != 1 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(shell(t, "pdfimages", "-list", save(t, out)), "50") {
		t.Error("the picture is missing")
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	in := numberedPages(t, 3)
	once := run(t, pdfops.Rotate(), fileops.Args{"angle": 90, "pages": "2-"}, in)
	twice := run(t, pdfops.Rotate(), fileops.Args{"angle": 270, "pages": "2"}, once)
	sound(t, twice)
	info := shell(t, "pdfinfo", "-f", "1", "-l", "3", save(t, twice))
	for i, want := range []string{"0", "0", "90"} {
		if line := fmt.Sprintf("Page    %d rot:   %s\n", i+1, want); !strings.Contains(info, line) {
			t.Errorf("%q is missing in\n%s", line, info)
		}
	}
}

// Encrypted files open with their password; a warning says that the result is
// not encrypted.
func TestPagesOfEncryptedFiles(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", encrypted(t, rich("secret"), "0pensesame", "owner", "256"))
	for _, a := range []fileops.Action{pdfops.ExtractPages(), pdfops.Split(), pdfops.Rotate()} {
		args := func(password string) fileops.Args {
			out := fileops.Args{}
			switch a.Spec().Name {
			case "extract_pages":
				out["pages"] = "1"
			case "rotate":
				out["angle"] = 90
			}
			if password != "" {
				out["password"] = password
			}
			return out
		}
		fails(t, fileops.ErrPasswordRequired, a, args(""), in)
		fails(t, fileops.ErrWrongPassword, a, args("wrong"), in)
		out, warnings := withWarnings(t, a, args("0pensesame"), in)
		sound(t, out)
		if !slices.Contains(warnings, fileops.WarnProtectionRemoved) {
			t.Errorf("%s: warnings %q", a.Spec().Name, warnings)
		}
	}
}

// convert keeps the format if it takes pages, and only then.
func TestConvertPages(t *testing.T) {
	t.Parallel()
	in := numberedPages(t, 4)
	out := run(t, pdfops.ConvertPages(), fileops.Args{"convert_to": "pdf", "pages": "-1,2"}, in)
	sound(t, out)
	if got := pageTexts(t, out); !slices.Equal(got, []string{"4", "2"}) {
		t.Errorf("pages %q", got)
	}
	if msg := fails(t, fileops.ErrParameter, pdfops.ConvertPages(), fileops.Args{"convert_to": "pdf"}, in); !strings.Contains(msg, "pages") {
		t.Error(msg)
	}
}
