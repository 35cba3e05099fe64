package dataops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/internal/systest"
)

func TestCSVToJSON(t *testing.T) {
	t.Parallel()
	wide := string([]byte{0xfe, 0xff})
	for _, u := range utf16.Encode([]rune("a,b\n😀,ü\n")) {
		wide += string([]byte{byte(u >> 8), byte(u)})
	}
	for _, tt := range []struct{ name, file, in, want string }{
		{"plain", "x.csv", "a,b\n1,x\n2,y\n", `{"a": "1", "b": "x"}|{"a": "2", "b": "y"}`},
		{"semicolons", "x.csv", "a;b\n1,5;x, y\n2,5;z\n", `{"a": "1,5", "b": "x, y"}|{"a": "2,5", "b": "z"}`},
		{"tabs", "x.csv", "a\tb\n1\tx\n", `{"a": "1", "b": "x"}`},
		{"bars", "x.csv", "a|b\n1|x\n", `{"a": "1", "b": "x"}`},
		{"named separator", "x.csv", "sep=;\r\na;b\r\n1;x\r\n", `{"a": "1", "b": "x"}`},
		{"tsv with commas", "x.tsv", "a,b\tc\n1,2\tx\n", `{"a,b": "1,2", "c": "x"}`},
		{"one column", "x.csv", "a\n1\n\n2", `{"a": "1"}|{"a": "2"}`},
		{"quotes", "x.csv", "a,b\n\"x, \"\"y\"\"\n\",5\"\n", `{"a": "x, \"y\"\n", "b": "5\""}`},
		{"text after quotes", "x.csv", "a,b\n\"x\"y\"z\",1\n", `{"a": "xy\"z\"", "b": "1"}`},
		{"line ends", "x.csv", "a,b\r1,\"2\r\n3\"\r\n4,5\n", `{"a": "1", "b": "2\r\n3"}|{"a": "4", "b": "5"}`},
		{"short and long rows", "x.csv", "a,b\n1\n1,2,3,\n1,2,,\n4,5\n", `{"a": "1", "b": ""}|{"a": "1", "b": "2", "column_3": "3"}|{"a": "1", "b": "2"}|{"a": "4", "b": "5"}`},
		{"names", "x.csv", "a,a,,a_2,column_3, \n1,2,3,4,5,6\n", `{"a": "1", "a_3": "2", "column_3_2": "3", "a_2": "4", "column_3": "5", "column_6": "6"}`},
		{"long row beside a name", "x.csv", "a,column_3\n1,2,3\n", `{"a": "1", "column_3": "2", "column_3_2": "3"}`},
		{"header only", "x.csv", "a,b\n", ""},
		{"nothing", "x.csv", "", ""},
		{"utf-8 with a mark", "x.csv", "\ufeffa,b\nä,😀\n", `{"a": "ä", "b": "😀"}`},
		{"utf-16", "x.csv", wide, `{"a": "😀", "b": "ü"}`},
		{"windows-1252", "x.csv", "a,b\nGr\xfc\xdfe,\x80\n", `{"a": "Grüße", "b": "€"}`},
		{"windows-1251", "x.csv", "a,b\n\xc3\xee\xf0\xee\xe4,\xcc\xee\xf1\xea\xe2\xe0\n", `{"a": "Город", "b": "Москва"}`},
		{"shift-jis", "x.csv", "a,b\n\x93\x8c\x8b\x9e,\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\n", `{"a": "東京", "b": "こんにちは"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, got, err := convert(t, tt.file, tt.in, to("json"))
			systest.NoError(t, err)
			want := "[]\n"
			if tt.want != "" {
				want = "[\n  " + strings.ReplaceAll(tt.want, "|", ",\n  ") + "\n]\n"
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The only row of a table names columns of no record, and a warning says so.
func TestSingleRowToJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, in string
		warns    bool
	}{
		{"x.csv", "a,b\n", true},
		{"x.tsv", "a\tb", true},
		{"x.html", "<table><tr><td>a<td>b</table>", true},
		{"x.csv", "a,b\n1,2\n", false},
		{"x.csv", "", false},
	} {
		var codes []string
		r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
		err := r.Run(t.Context(), dataops.Convert(), to("json"), fileops.ToDir(t.TempDir()), fileops.Bytes(tt.file, []byte(tt.in)))
		if err != nil || slices.Contains(codes, fileops.WarnContentDropped) != tt.warns {
			t.Errorf("%q: warnings %q, %v", tt.in, codes, err)
		}
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"1": "1", "-1.50": "-1.50", "1e3": "1e3", "0": "0", "0.5": "0.5", "true": "true", "false": "false", "": "null", "123456789012345": "123456789012345",
		"007": `"007"`, "-01": `"-01"`, "1234567890123456": `"1234567890123456"`, "+1": `"+1"`, "1,5": `"1,5"`, ".5": `".5"`, "5.": `"5."`, " 1": `" 1"`,
		"True": `"True"`, "TRUE": `"TRUE"`, "null": `"null"`, "NaN": `"NaN"`, "1e999": `"1e999"`, "1e-999": `"1e-999"`, "0x1": `"0x1"`, "1_0": `"1_0"`,
	} {
		_, got, err := convert(t, "x.tsv", "a\tb\n"+in+"\tx\n", fileops.Args{"convert_to": "json", "typed": true})
		if want = "[\n  {\"a\": " + want + ", \"b\": \"x\"}\n]\n"; err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestCSVErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		kind     error
		message  string
	}{
		{"quote", "a,b\n1,2\n\"x,3\n4,5\n", fileops.ErrCorruptInput, "row 3"},
		{"quote in a large file", "a,b\n\"x," + strings.Repeat("4,5\n", 5<<20), fileops.ErrLimit, "quotation mark"},
		{"columns", strings.Repeat("a,", 16384) + "a\n", fileops.ErrLimit, "16384 columns"},
		{"columns of a row", "a\n" + strings.Repeat("a,", 16384) + "a\n", fileops.ErrLimit, "16384 columns"},
		{"names", strings.Repeat("a", 5<<20) + "\n1\n", fileops.ErrLimit, "4 MiB"},
		{"growth", strings.Repeat("a", 1<<20) + ",b\n" + strings.Repeat("x\n", 2000), fileops.ErrLimit, "times the size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := convert(t, "x.csv", tt.in, to("json"))
			if !errors.Is(err, tt.kind) || !strings.Contains(fileops.Message(err), tt.message) {
				t.Errorf("got %.300v, want %v with %q", err, tt.kind, tt.message)
			}
		})
	}
}

// Python's json module reads the same from the result as its csv module reads
// from the input.
func TestPythonReadsJSON(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	parts := []string{"a", "ä", "\"", "\"\"", ",", ",", ",", "\n", "\n", "\r\n", "\r", " ", ";", "1.5", "\\", "\u2028", "'"}
	var pairs [][2]string
	for i := range 400 {
		var b strings.Builder
		// A header that makes the separator and the names unambiguous.
		b.WriteString("n0,n1,n2\n")
		for range 40 {
			b.WriteString("x,y,z\n")
		}
		for range rng.IntN(60) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		_, out, err := convert(t, "x.csv", b.String(), to("json"))
		if errors.Is(err, fileops.ErrCorruptInput) {
			out = "quote" // unclosed quotation mark
		} else if err != nil {
			t.Fatal(i, err)
		}
		pairs = append(pairs, [2]string{b.String(), out})
	}
	var result struct {
		Bad      []string
		Compared int
	}
	python(t, `
bad, compared = [], 0
for src, out in d:
    if out == "quote":
        try:
            list(csv.reader(io.StringIO(src, newline=""), strict=True))
            bad.append("refused: %r" % src[-80:])
        except csv.Error:
            pass
        continue
    rows = [r for r in csv.reader(io.StringIO(src, newline="")) if r][1:]
    got = json.loads(out)
    if len(got) != len(rows):
        bad.append("%d rows, want %d in %r" % (len(got), len(rows), src[250:]))
        continue
    compared += 1
    for g, w in zip(got, rows):
        while len(w) > 3 and w[-1] == "": w.pop()
        w += [""] * (3 - len(w))
        if list(g.values()) != w:
            bad.append("%r, want %r" % (g, w))
print(json.dumps({"Bad": bad[:5], "Compared": compared}))
`, pairs, &result)
	if len(result.Bad) > 0 || result.Compared < 100 {
		t.Errorf("%d compared; %v", result.Compared, strings.Join(result.Bad, "\n"))
	}
}

// inline returns the text of a list of pandoc's inline elements.
func inline(v any) string {
	var b strings.Builder
	for _, e := range v.([]any) {
		m := e.(map[string]any)
		switch m["t"] {
		case "Str":
			b.WriteString(m["c"].(string))
		case "Space", "SoftBreak":
			b.WriteString(" ")
		case "LineBreak":
			b.WriteString("\n")
		case "RawInline":
			if c := m["c"].([]any); c[1] == "<br>" {
				b.WriteString("\n")
			} else {
				fmt.Fprintf(&b, "raw %v", c)
			}
		default:
			fmt.Fprintf(&b, "<%v>", m["t"])
		}
	}
	return b.String()
}

// pandocCells returns the cells of the only table that pandoc finds.
func pandocCells(t *testing.T, from, text string) (cells [][]string) {
	t.Helper()
	var doc struct {
		Blocks []struct {
			T string
			C json.RawMessage
		}
	}
	tool(t, []byte(text), &doc, "pandoc", "-f", from, "-t", "json")
	if len(doc.Blocks) != 1 || doc.Blocks[0].T != "Table" {
		t.Fatalf("pandoc finds %v", doc.Blocks)
	}
	var table []any // attributes, caption, columns, head, bodies, foot
	systest.NoError(t, json.Unmarshal(doc.Blocks[0].C, &table))
	rows := table[3].([]any)[1].([]any)
	for _, body := range table[4].([]any) {
		rows = append(rows, body.([]any)[3].([]any)...)
	}
	for _, row := range rows {
		var r []string
		for _, cell := range row.([]any)[1].([]any) {
			s := ""
			for _, block := range cell.([]any)[4].([]any) {
				s += inline(block.(map[string]any)["c"])
			}
			r = append(r, s)
		}
		cells = append(cells, r)
	}
	return cells
}

// Pandoc reads the tables in HTML and Markdown as intended.
func TestPandocReadsTables(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"name", "snake_case_name", "<th>"},
		{"ä€😀", "a|b||c", `\| \\ \n`},
		{"<script>alert(1)</script>", "&amp; & &lt;", `"quoted" 'single'`},
		{"*x* **y** _z_ __w__", "`code`", "[l](u) ![i](u) ~~s~~"},
		{"one\ntwo\r\nthree\rfour", "1.5", "# no heading"},
		{"$x$ $$y$$", "- no item", "</td></table>"},
	}
	want := func(s string) string {
		return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	}
	b, err := json.Marshal(rows)
	systest.NoError(t, err)
	for f, from := range map[string]string{"html": "html", "md": "gfm"} {
		_, out, err := convert(t, "<b>.json", string(b), to(f))
		systest.NoError(t, err)
		if f == "html" && !strings.Contains(out, "<title>&lt;b&gt;</title>") {
			t.Error("the title is wrong")
		}
		got := pandocCells(t, from, out)
		if len(got) != len(rows) {
			t.Fatalf("%s: %d rows", f, len(got))
		}
		for i, r := range rows {
			for k, w := range r {
				if got[i][k] != want(w) {
					t.Errorf("%s: got %q, want %q", f, got[i][k], want(w))
				}
			}
		}
	}
	// Without column names.
	for f, want := range map[string]string{"html": "[[1 2] [3 ]]", "md": "[[column_1 column_2] [1 2] [3 ]]"} {
		_, out, err := convert(t, "x.json", "[[1,2],[3]]", to(f))
		systest.NoError(t, err)
		got := pandocCells(t, map[string]string{"html": "html", "md": "gfm"}[f], out)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", f, got, want)
		}
	}
}

// A column has one type: a text among numbers makes all of them text.
func TestTypesPerColumn(t *testing.T) {
	t.Parallel()
	got := converted(t, "in.csv", "id,n,mixed,flag,none\n1,1.5,7,true,\n2,,x,false,\n3,-2e3,8,true,\n", fileops.Args{"convert_to": "json", "typed": true})
	want := `[
  {"id": 1, "n": 1.5, "mixed": "7", "flag": true, "none": null},
  {"id": 2, "n": null, "mixed": "x", "flag": false, "none": null},
  {"id": 3, "n": -2e3, "mixed": "8", "flag": true, "none": null}
]
`
	if got != want {
		t.Errorf("got %s", got)
	}
}

// iconv, which does not share code with this package, encodes the text.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "city,note\n台北市,我們今天在這裡學習中文的資料\n高雄,請問您要去什麼地方呢\n"
	const latin = "city,note\nKöln,größer\nZürich,für später\n"
	for name, tt := range map[string]struct {
		text, encoding string
		given          string
		warns          bool
	}{
		"Big5": {text, "BIG5", "", true}, "UTF-16LE": {latin, "UTF-16LE", "", true}, "UTF-16BE": {latin, "UTF-16BE", "", true},
		"given": {"city\nŁódź\n", "CP1250", "windows-1250", false}, "given label": {text, "BIG5", "Big5", false}, "UTF-8": {text, "UTF-8", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			iconv := exec.CommandContext(t.Context(), "iconv", "-f", "UTF-8", "-t", tt.encoding)
			iconv.Stdin = strings.NewReader(tt.text)
			in, err := iconv.Output()
			systest.NoError(t, err)
			args := fileops.Args{"convert_to": "tsv"}
			if tt.given != "" {
				args["encoding"] = tt.given
			}
			var codes []string
			var got string
			r := fileops.Runner{Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
			err = r.Run(t.Context(), dataops.Convert(), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
				b, err := io.ReadAll(f.Reader())
				got = string(b)
				return err
			}), fileops.Bytes("in.csv", in))
			systest.NoError(t, err)
			if want := strings.ReplaceAll(tt.text, ",", "\t"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if warned := slices.Contains(codes, fileops.WarnEncodingGuessed); warned != tt.warns {
				t.Errorf("warnings %v", codes)
			}
		})
	}
	var p *fileops.ParamError
	err := fileops.Run(t.Context(), dataops.Convert(), fileops.Args{"convert_to": "tsv", "encoding": "klingon"}, fileops.ToDir(t.TempDir()), fileops.Bytes("in.csv", []byte(text)))
	if !errors.As(err, &p) || p.Param != "encoding" {
		t.Errorf("unknown encoding: %v", err)
	}
}
