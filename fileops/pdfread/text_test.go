package pdfread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// columns returns content with n columns of prose, and the text in reading
// order. The content is written line by line across the page, as some programs
// do.
func columns(n, perColumn int, y float64) (content, text string) {
	width := (595 - 100 - 20*float64(n-1)) / float64(n)
	var all []string
	for c := range n {
		var ls []string
		words := strings.Split(prose(c+1, 600), " ")
		for range perColumn { // Courier: 0.6 em per character
			l := words[0]
			words = words[1:]
			for float64(len(l)+1+len(words[0]))*9*0.6 < width {
				l += " " + words[0]
				words = words[1:]
			}
			ls = append(ls, l)
		}
		all = append(all, ls...)
	}
	for i := range perColumn {
		for c := range n {
			content += lines("F3", 9, 50+float64(c)*(width+20), y-float64(i)*12, 12, all[c*perColumn+i])
		}
	}
	return content, strings.Join(all, "\n")
}

func TestTextOrder(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	two, twoText := columns(2, 40, 700)
	three, threeText := columns(3, 30, 640)
	title := lines("F1", 24, 80, 760, 30, "A title over all of the columns here")
	for _, tc := range []struct{ name, content, want string }{
		{"two columns", two, twoText},
		{"three columns", three, threeText},
		{"title and three columns", title + three, "A title over all of the columns here\n" + threeText},
		{"lines out of order", lines("F1", 12, 72, 600, 20, "third line", "fourth line") + lines("F1", 12, 72, 640, 20, "first line", "second line"),
			"first line second line third line fourth line"},
		{"words out of order", lines("F1", 12, 150, 600, 20, "world") + lines("F1", 12, 100, 600, 20, "hello"), "hello world"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(pdfPage{content: tc.content}))
			got := string(out[0].b)
			want, have := tokens(tc.want), tokens(got)
			if r, o := recall(want, have), order(want, have); r < 0.999 || o < 0.999 || len(have) != len(want) {
				t.Errorf("recall %.3f, order %.3f, %d of %d words:\n%s", r, o, len(have), len(want), got)
			}
		})
	}
}

func TestTextCharacters(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	// A font whose letters a to d stand for ligatures and other characters.
	p := &pdfFile{}
	cmap := p.stream("", `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def
1 begincodespacerange <00> <ff> endcodespacerange
4 beginbfchar <61> <FB01> <62> <00660066> <63> <6F22> <64> <00E9> endbfchar
endcmap end end`)
	font := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode %s>>", cmap)
	latin := p.add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	content := p.stream("", "BT /F2 12 Tf 50 150 Td (of) Tj /F1 12 Tf <61> Tj /F2 12 Tf (ce and e) Tj /F1 12 Tf <62> Tj /F2 12 Tf (ect) Tj ET\n"+
		"BT /F1 12 Tf 50 120 Td <6363> Tj ET BT /F2 12 Tf 50 90 Td (caf) Tj /F1 12 Tf <64> Tj ET\n"+
		"BT /F2 12 Tf 50 60 Td (x) Tj /F2 7 Tf 5 Ts (2) Tj /F2 12 Tf 0 Ts ( and H) Tj /F2 7 Tf -3 Ts (2) Tj /F2 12 Tf 0 Ts (O) Tj ET")
	tree := fmt.Sprintf("%d 0 R", len(p.objs)+2)
	pg := p.add("<</Type/Page/Parent %s/MediaBox[0 0 300 200]/Resources<</Font<</F1 %s/F2 %s>>>>/Contents %s>>", tree, font, latin, content)
	p.add("<</Type/Pages/Kids[%s]/Count 1>>", pg)
	out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, p.finish(p.add("<</Type/Catalog/Pages %s>>", tree)))
	got := strings.Join(strings.Fields(string(out[0].b)), " ")
	if want := "office and effect 漢漢 café x2 and H2O"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if strings.Count(string(out[0].b), "\f") != 1 {
		t.Errorf("no form feed at the end of the page")
	}
}

func TestTextOfOneSheet(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	t.Run("fields and remarks", func(t *testing.T) {
		t.Parallel()
		out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, formAndNote())
		if got := strings.Join(strings.Fields(string(out[0].b)), " "); got != "Name: Filled value Typed remark" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("sideways", func(t *testing.T) {
		t.Parallel()
		content := "0 1 -1 0 595 0 cm " + lines("F1", 14, 72, 500, 20, "first line of it", "second line of it")
		out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(pdfPage{content: content}))
		if got := string(out[0].b); got != "first line of it\nsecond line of it\n\f" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("in all directions", func(t *testing.T) {
		t.Parallel()
		content := lines("F1", 12, 72, 700, 16, "upright text is most of what there is", "on this page of many words") +
			"q 0 1 -1 0 40 300 cm " + lines("F1", 14, 0, 0, 20, "up the margin") + "Q q 0 -1 1 0 560 600 cm " + lines("F1", 14, 0, 0, 20, "down the other") +
			"Q q 0.707 0.707 -0.707 0.707 200 200 cm " + lines("F1", 40, 0, 0, 20, "across the sheet") + "Q q -1 0 0 -1 500 100 cm " + lines("F1", 14, 0, 0, 20, "head below") + "Q"
		out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(pdfPage{content: content}))
		for _, want := range []string{"upright text is most of what there is\non this page", "up the margin\n", "down the other\n", "across the sheet\n", "head below\n"} {
			if !strings.Contains(string(out[0].b), want) {
				t.Errorf("no %q in %q", want, out[0].b)
			}
		}
	})
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		pdf := pages(pdfPage{content: lines("F1", 14, 72, 500, 20, "one")}, pdfPage{}, pdfPage{content: lines("F1", 14, 72, 500, 20, "three")})
		for pages, want := range map[string]string{"": "one\n\f\fthree\n\f", "2-3": "\fthree\n\f", "3,1": "three\n\fone\n\f"} {
			args := fileops.Args{"convert_to": "txt"}
			if pages != "" {
				args["pages"] = pages
			}
			if out := mustConvert(t, e, args, pdf); string(out[0].b) != want || out[0].name != "in.txt" {
				t.Errorf("pages %q: got %q, want %q", pages, out[0].b, want)
			}
		}
	})
	t.Run("a row of one letter", func(t *testing.T) {
		t.Parallel()
		row := strings.Repeat("W", 24) // each would be a common letter in a shifted font
		out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(pdfPage{content: lines("F1", 14, 72, 500, 20, row, "Potato")}))
		if got := string(out[0].b); got != row+"\nPotato\n\f" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("drawn twice", func(t *testing.T) {
		t.Parallel()
		content := lines("F1", 14, 72, 500, 20, "Bold by force") + lines("F1", 14, 72.3, 500, 20, "Bold by force")
		out := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pages(pdfPage{content: content}))
		if n := len(tokens(string(out[0].b))); n != 3 {
			t.Errorf("%d words: %q", n, out[0].b)
		}
	})
}

// Several instances read a long document. Its pages stay in order, and a damaged one is reported.
func TestTextOfManyPages(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{Instances: 3})
	const n, bad = 80, 70
	var ps []pdfPage
	var want strings.Builder
	for i := range n {
		ps = append(ps, pdfPage{content: lines("F1", 12, 72, 700, 20, fmt.Sprintf("This is page %d.", i+1))})
		if i+1 != bad {
			fmt.Fprintf(&want, "This is page %d.\n", i+1)
		}
		want.WriteByte('\f')
	}
	pdf := string(pages(ps...))
	_, kids, _ := strings.Cut(pdf, "/Kids[")
	kid := strings.Fields(kids)[3*(bad-1)] // "7 0 R" for each page
	pdf = strings.Replace(pdf, " "+kid+" 0 R", " 999 0 R", 1)
	var out []result
	var warnings []fileops.Warning
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	systest.NoError(t, r.Run(t.Context(), e.Convert(), fileops.Args{"convert_to": "txt"}, collect(&out), fileops.Bytes("in.pdf", []byte(pdf))))
	if got := string(out[0].b); got != want.String() {
		t.Errorf("text is %q", got)
	}
	if len(warnings) != 1 || warnings[0].Code != fileops.WarnContentDropped || !strings.HasPrefix(warnings[0].Message, "Page 70 is damaged") {
		t.Errorf("warnings %v", warnings)
	}
}
