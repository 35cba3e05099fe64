package dataops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func TestJSONToCSV(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"objects", `[{"a":1,"b":"x"},{"a":2,"b":"y"}]`, "a,b\n1,x\n2,y\n"},
		{"columns in the order of appearance", `[{"z":1},{"a":2,"z":3},{"m":4}]`, "z,a,m\n1,,\n3,2,\n,,4\n"},
		{"nested objects", `[{"a":{"b":{"c":1},"d":2}},{"a":{"d":3}}]`, "a.b.c,a.d\n1,2\n,3\n"},
		{"array of simple values", `[{"a":["x",1,true,null,"y"]}]`, "a\n\"x; 1; true; ; y\"\n"},
		{"array of nested values", `[{"a":[ {"b" : [1, "\u00e4"]}, 2 ]}]`, "a\n\"[{\"\"b\"\":[1,\"\"\\u00e4\"\"]},2]\"\n"},
		{"empty array and object", `[{"a":[],"b":{}}]`, "a,b\n,{}\n"},
		{"null where others have an object", `[{"a":null},{"a":{"b":1}}]`, "a.b\n\"\"\n1\n"},
		{"value where others have an object", `[{"a":5},{"a":{"b":1}}]`, "a,a.b\n5,\n,1\n"},
		{"column that is always null", `[{"a":null,"b":1}]`, "a,b\n,1\n"},
		{"names that look alike", `[{"a.b":1,"a":{"b":2},"a.b_2":3}]`, "a.b,a.b_3,a.b_2\n1,2,3\n"},
		{"name twice", `[{"a":1,"a":2}]`, "a\n2\n"},
		{"empty name", `[{"":1,"b":2}]`, ",b\n1,2\n"},
		{"digits are kept", `[{"n":12345678901234567890.10},{"n":1E+400},{"n":-0.0}]`, "n\n12345678901234567890.10\n1E+400\n-0.0\n"},
		{"booleans", `[{"b":true},{"b":false}]`, "b\ntrue\nfalse\n"},
		{"quotes, line ends, separators", `[{"a":"say \"x\"","b":"1\r\n2","c":"p;q|r\ts, t"}]`, "a,b,c\n\"say \"\"x\"\"\",\"1\r\n2\",\"p;q|r\ts, t\"\n"},
		{"escapes", `[{"a":"\u00e4\ud83d\ude00\/\b\f\n\r\t\\","\u0062":"\ud800x\udc00"}]`, "a,b\n\"ä😀/\b\f\n\r\t\\\",\ufffdx\ufffd\n"},
		{"control characters", `[{"a":"x\u0000\u0001\u007f\u001by"}]`, "a\nx\ufffd\ufffd\ufffd\x1by\n"},
		{"null row", `[{"a":1},null,{"a":2}]`, "a\n1\n\"\"\n2\n"},
		{"arrays", `[["a","b"],[1,[2,3]],[4]]`, "a,b\n1,\"2; 3\"\n4,\n"},
		{"arrays with objects", `[[1,{"x":[]}],null]`, "1,\"{\"\"x\"\":[]}\"\n,\n"},
		{"simple values", `[1,"x",null,true]`, "value\n1\nx\n\"\"\ntrue\n"},
		{"lines of objects", "{\"a\":1}\n\n{\"b\":{\"c\":2}}\r\n", "a,b.c\n1,\n,2\n"},
		{"lines of arrays", "[1,2]\n[3]\n", "1,2\n3,\n"},
		{"lines of values", "1\n\"x\"\n", "value\n1\nx\n"},
		{"one object", `{"a":1,"b":{"c":[1,2]},"d":null}`, "a,b.c,d\n1,\"1; 2\",\n"},
		{"object of objects", `{"x":{"a":1},"y":null,"z":{"b":2,"key":"k"}}`, "key,a,b,key_2\nx,1,,\ny,,,\nz,,2,k\n"},
		{"object of one array", `{"rows":[{"a":1},{"a":2}]}`, "a\n1\n2\n"},
		{"object of one array of arrays", `{"rows":[["a"],[2]]}`, "a\n2\n"},
		{"object of one array of values", `{"ids":[7,8]}`, "ids\n7\n8\n"},
		{"object of columns", `{"a":[1,2],"b":["x",null]}`, "a,b\n1,x\n2,\n"},
		{"object of arrays that are no columns", `{"a":[1,2],"b":["x"]}`, "a,b\n\"1; 2\",x\n"},
		{"answer of a service", `{"total":2,"data":[{"id":1},{"id":2,"n":{"x":3}}],"page":{"next":null}}`, "total,data.id,data.n.x,page.next\n2,1,,\n2,2,3,\n"},
		{"answer with two lists", `{"a":[{"x":1}],"b":[{"y":2}]}`, "a,b\n\"[{\"\"x\"\":1}]\",\"[{\"\"y\"\":2}]\"\n"},
		{"byte order mark", "\ufeff[{\"a\":\"ä\"}]", "a\nä\n"},
		{"utf-16", "\xff\xfe[\x00{\x00\"\x00a\x00\"\x00:\x00\"\x00\xe4\x00\"\x00}\x00]\x00", "a\nä\n"},
		{"windows-1252", "[{\"a\":\"Gr\xfc\xdfe \x80\"}]", "a\nGrüße €\n"},
		{"one broken byte", "[{\"a\":\"äöü\xff\"}]", "a\näöü\ufffd\n"},
		{"name like a mark", `[{"\ufeffa":1}]`, "\"\ufeffa\"\n1\n"},
		{"name like a separator", `[{"sep=;":1,"b":2}]`, "\"sep=;\",b\n1,2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name, got, err := convert(t, "data.of.json", tt.in, to("csv"))
			systest.NoError(t, err)
			if name != "data.of.csv" || got != tt.want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
			}
		})
	}
}

func TestJSONErrors(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `[{"a":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}]"
	}
	wide := func(n int) string {
		var b strings.Builder
		b.WriteString("[")
		for i := range n {
			fmt.Fprintf(&b, `{"c%d":1},`, i)
		}
		return b.String() + "{}]"
	}
	if _, _, err := convert(t, "x.json", deep(98), to("csv")); err != nil {
		t.Error(err)
	}
	if _, _, err := convert(t, "x.json", `[[`+strings.Repeat("1,", 16383)+"1]]", to("csv")); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name, in string
		kind     error
		message  string
	}{
		{"empty", "", fileops.ErrCorruptInput, "empty"},
		{"spaces", " \n ", fileops.ErrCorruptInput, "empty"},
		{"not closed", `[{"a":1},`, fileops.ErrCorruptInput, "line 1, column 10: unexpected end of the file"},
		{"word", "[\n  {\"ä\": nul}]", fileops.ErrCorruptInput, "line 2, column 12"},
		{"comma at the end", `[{"a":1},]`, fileops.ErrCorruptInput, "']' instead of a value"},
		{"no colon", `[{"a" 1}]`, fileops.ErrCorruptInput, "1 instead of a colon"},
		{"no quotes", `[{a:1}]`, fileops.ErrCorruptInput, "unexpected 'a'"},
		{"number", `[01]`, fileops.ErrCorruptInput, "01 is not a number"},
		{"escape", `["\x"]`, fileops.ErrCorruptInput, "invalid escape"},
		{"hex", `["\u12g4"]`, fileops.ErrCorruptInput, "invalid escape"},
		{"control character", "[\"a\nb\"]", fileops.ErrCorruptInput, "control character"},
		{"brace", `[{"a":1}]}`, fileops.ErrCorruptInput, "'}'"},
		{"word at the end", "{}1n", fileops.ErrCorruptInput, "unexpected end"},
		{"text", "no json at all", fileops.ErrCorruptInput, "unknown word"},
		{"single value", `"hello"`, fileops.ErrUnsupportedInput, "single value"},
		{"mixed", `[{"a":1},2]`, fileops.ErrUnsupportedInput, "mixes"},
		{"empty array", `[]`, fileops.ErrUnsupportedInput, "no values"},
		{"empty object", `{}`, fileops.ErrUnsupportedInput, "no values"},
		{"empty rows", `[{},{}]`, fileops.ErrUnsupportedInput, "no values"},
		{"empty arrays", `[[],[]]`, fileops.ErrUnsupportedInput, "no values"},
		{"nulls", `[null,null]`, fileops.ErrUnsupportedInput, "no values"},
		{"depth", deep(99), fileops.ErrLimit, "100 levels deep"},
		{"endless depth", strings.Repeat("[", 1<<20), fileops.ErrLimit, "100 levels deep"},
		{"columns", wide(16385), fileops.ErrLimit, "16384 columns"},
		{"columns of an array", `[[` + strings.Repeat("1,", 16384) + "1]]", fileops.ErrLimit, "16384 columns"},
		{"names", `[{"` + strings.Repeat("n", 3<<20) + `":{"a":1,"b":2}}]`, fileops.ErrLimit, "4 MiB"},
		{"cell", `["` + strings.Repeat("n", 16<<20) + `"]`, fileops.ErrLimit, "16 MiB"},
		{"number that never ends", `[` + strings.Repeat("1", 17<<20) + `]`, fileops.ErrLimit, "16 MiB"},
		{"growth", wide(16000)[:1] + `{}` + strings.Repeat(",{}", 200000) + "," + wide(16000)[1:], fileops.ErrLimit, "times the size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := convert(t, "x.json", tt.in, to("csv"))
			if !errors.Is(err, tt.kind) || !strings.Contains(fileops.Message(err), tt.message) {
				t.Errorf("got %.300v (%.300s), want %v with %q", err, fileops.Message(err), tt.kind, tt.message)
			}
		})
	}
}

// awkward lists difficult cell texts.
var awkward = []string{
	"", " ", "a", "ä€😀", `"`, `""`, ",", ";", "\t", "|", "\n", "\r\n", "\r", "a\nb", " lead", "trail ", `"quoted"`, "=1+1", "-", "+49", "007", "1e5", "true",
	"null", "\\", `\n`, "<b>&amp;</b>", "*x* _y_ `z`", "a_b", "[l](u)", "sep=;", "\ufeff", "\u2028", strings.Repeat("long ", 30000),
}

// flatten implements the rules of the package comment in Python.
const flatten = `
def flat(prefix, v, row):
    if isinstance(v, dict) and v:
        for k, w in v.items():
            flat(prefix + [k], w, row)
        return
    if v is None: s = ""
    elif v is True: s = "true"
    elif v is False: s = "false"
    elif isinstance(v, list) and not any(isinstance(w, (list, dict)) for w in v):
        s = "; ".join("" if w is None else "true" if w is True else "false" if w is False else str(w) for w in v)
    elif isinstance(v, (list, dict)): s = json.dumps(v, separators=(",", ":"))
    else: s = str(v)
    row[".".join(prefix)] = s
`

// Python's csv module reads the same from the result as its json module reads
// from the input.
func TestPythonReadsCSV(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	text := func() string { return awkward[rng.IntN(len(awkward))] }
	var files []string
	for range 60 {
		var rows []any
		for range 1 + rng.IntN(30) {
			row := map[string]any{"id": rng.IntN(1e6), "name": text()}
			if rng.IntN(2) == 0 {
				row["inner"] = map[string]any{"x": text(), "y": map[string]any{"z": rng.IntN(2) == 0, "n": nil}}
			}
			if rng.IntN(3) == 0 {
				row["list"] = []any{text(), rng.IntN(9), nil, true}
			}
			if rng.IntN(4) == 0 {
				row["deep"] = []any{map[string]any{"k": []any{1, "v"}}}
			}
			rows = append(rows, row)
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(rng.IntN(2) == 0)
		if rng.IntN(2) == 0 {
			enc.SetIndent("", "  ")
		}
		systest.NoError(t, enc.Encode(rows))
		files = append(files, b.String())
	}
	for _, f := range []string{"csv", "tsv"} {
		var pairs [][2]string
		for _, in := range files {
			_, out, err := convert(t, "x.json", in, to(f))
			systest.NoError(t, err)
			pairs = append(pairs, [2]string{in, out})
		}
		var diff []string
		python(t, flatten+`
csv.field_size_limit(1 << 30)
bad = []
for src, out in d:
    want = []
    for r in json.loads(src):
        row = {}
        flat([], r, row)
        want.append(row)
    got = list(csv.DictReader(io.StringIO(out, newline=""), delimiter=`+map[string]string{"csv": `","`, "tsv": `"\t"`}[f]+`))
    names = {k for r in want for k in r}
    if len(got) != len(want) or got and set(got[0]) != names:
        bad.append("%d rows, want %d; %s, want %s" % (len(got), len(want), list(got[0]), names))
    for g, w in zip(got, want):
        for k in names:
            if g[k] != w.get(k, ""):
                bad.append("%s: %r, want %r" % (k, g[k][:80], w.get(k, "")[:80]))
print(json.dumps(bad[:5]))
`, pairs, &diff)
		if len(diff) > 0 {
			t.Errorf("%s: %v", f, diff)
		}
	}
}

// Flat tables of texts survive a round trip through CSV or TSV.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		width := 1 + rng.IntN(6)
		var rows []map[string]string
		for range 1 + rng.IntN(20) {
			row := make(map[string]string)
			for c := range width {
				row[fmt.Sprintf("%.9s %d", awkward[c*i%len(awkward)], c)] = awkward[rng.IntN(len(awkward))]
			}
			rows = append(rows, row)
		}
		b, err := json.Marshal(rows)
		systest.NoError(t, err)
		for _, f := range []string{"csv", "tsv"} {
			_, mid, err := convert(t, "x.json", string(b), to(f))
			systest.NoError(t, err)
			_, back, err := convert(t, "x."+f, mid, to("json"))
			systest.NoError(t, err)
			var got []map[string]string
			systest.NoError(t, json.Unmarshal([]byte(back), &got))
			if !reflect.DeepEqual(got, rows) {
				t.Errorf("%s: %.500s\nbecame\n%.500s\nover\n%.500s", f, b, back, mid)
			}
		}
	}
}

func FuzzJSONToCSV(f *testing.F) {
	for _, s := range []string{
		`[{"a":1,"b":{"c":[1,"x",null]}},null]`, "{\"a\":\"\\u00e4\\ud83d\\ude00\"}\n{}", `[[1,2],[{"x":1.5e-7}]]`, `{"a":{"b":1},"c":null}`,
		`{"n":2,"data":[{"x":1},null]}`, `{"a":[1,2],"b":["x","y"]}`, `[1,"\"",true,false]`, `{"a":[]}`, "\ufeff[{\"\":\"\"}]", `[01]`, `{"a":1,}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || format.Check(format.JSON, bytes.NewReader(b), int64(len(b))) != nil {
			return // rejected before the action
		}
		_, out, err := convert(t, "x.json", string(b), to("csv"))
		switch {
		case errors.Is(err, fileops.ErrLimit):
			return
		case err != nil && fileops.Code(err) == "internal_error":
			t.Fatal(err)
		}
		if text, ok := bytes.CutPrefix(b, []byte("\ufeff")); ok || utf8.Valid(b) {
			// The standard library must agree on whether it is JSON. Exception: it reads
			// "00" as two values.
			dec := json.NewDecoder(bytes.NewReader(text))
			var derr error
			values := 0
			for derr == nil {
				var v json.RawMessage
				if derr = dec.Decode(&v); derr == nil {
					values++
				}
			}
			valid := errors.Is(derr, io.EOF) && values > 0
			corrupt := errors.Is(err, fileops.ErrCorruptInput)
			if utf8.Valid(text) && (corrupt && json.Valid(text) || !corrupt && !valid) {
				t.Fatalf("%q: got %v, the standard library says %v", b, err, derr)
			}
		}
		if err != nil {
			return
		}
		// All rows have the same length, and the way back works.
		if _, _, err := convert(t, "x.csv", out, to("json")); err != nil {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
	})
}
