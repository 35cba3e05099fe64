package fileops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// everything has a parameter of every kind.
func everything() fileops.Schema {
	return fileops.Schema{
		fileops.Enum("convert_to", "Target.", "pdf", "PNG"),
		{Name: "level", Doc: "How hard.", Enum: []string{"less", "more"}, Aliases: map[string]string{"low": "less", "high": "more"}, Default: "less"},
		{Name: "pages", Doc: "Which.", Pattern: `[0-9]+(-[0-9]+)?|all`, Max: 20},
		{Name: "title", Doc: "Any text.", Min: 2, Max: 10},
		{Name: "free", Doc: "Any text at all."},
		{Name: "dpi", Doc: "Resolution.", Type: fileops.Integer, Min: 36, Max: 600, Default: 150},
		{Name: "offset", Doc: "Seconds.", Type: fileops.Number, Min: -1.5, Max: 0},
		{Name: "ratio", Doc: "Any number.", Type: fileops.Number},
		{Name: "deep", Doc: "Or not.", Type: fileops.Boolean, Default: false},
		{Name: "password", Doc: "Opens it.", Min: 1, Max: 1024, Secret: true},
	}
}

func TestSchemaParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		args    fileops.Args
		param   string // that the error names; "" if Parse succeeds
		reason  string
		allowed []string
		want    fileops.Args // in addition to the defaults
	}{
		{name: "only what is required", args: fileops.Args{"convert_to": "pdf"}, want: fileops.Args{"convert_to": "pdf"}},
		{name: "nothing", param: "convert_to", reason: "is required", allowed: []string{"pdf", "PNG"}},
		{name: "null is absent", args: fileops.Args{"convert_to": nil}, param: "convert_to", reason: "is required", allowed: []string{"pdf", "PNG"}},
		{name: "optional null", args: fileops.Args{"convert_to": "pdf", "dpi": nil, "free": nil}, want: fileops.Args{"convert_to": "pdf"}},
		{name: "unknown null", args: fileops.Args{"convert_to": "pdf", "what": nil}, want: fileops.Args{"convert_to": "pdf"}},
		{name: "unknown", args: fileops.Args{"convert_to": "pdf", "what": 1}, param: "what", reason: "is not known here; known are: convert_to, level, pages",
			allowed: []string{"convert_to", "level", "pages", "title", "free", "dpi", "offset", "ratio", "deep", "password"}},
		{name: "names have a case", args: fileops.Args{"convert_to": "pdf", "DPI": 100}, param: "DPI", reason: "is not known here", allowed: nil},

		{name: "value in capitals", args: fileops.Args{"convert_to": "PDF"}, want: fileops.Args{"convert_to": "pdf"}},
		{name: "canonical spelling in capitals", args: fileops.Args{"convert_to": "png"}, want: fileops.Args{"convert_to": "PNG"}},
		{name: "value that is not listed", args: fileops.Args{"convert_to": "mp3"}, param: "convert_to", reason: "must be one of: pdf, PNG", allowed: []string{"pdf", "PNG"}},
		{name: "value with a space", args: fileops.Args{"convert_to": "pdf "}, param: "convert_to", reason: "must be one of", allowed: []string{"pdf", "PNG"}},
		{name: "empty value", args: fileops.Args{"convert_to": ""}, param: "convert_to", reason: "must be one of", allowed: []string{"pdf", "PNG"}},
		{name: "value of another type", args: fileops.Args{"convert_to": 3.0}, param: "convert_to", reason: "must be a string", allowed: []string{"pdf", "PNG"}},
		{name: "list", args: fileops.Args{"convert_to": []any{"pdf"}}, param: "convert_to", reason: "must be a string", allowed: []string{"pdf", "PNG"}},
		{name: "alias", args: fileops.Args{"convert_to": "pdf", "level": "HIGH"}, want: fileops.Args{"convert_to": "pdf", "level": "more"}},
		{name: "alias of another parameter", args: fileops.Args{"convert_to": "high"}, param: "convert_to", reason: "must be one of", allowed: []string{"pdf", "PNG"}},

		{name: "pattern", args: fileops.Args{"convert_to": "pdf", "pages": "12-34"}, want: fileops.Args{"convert_to": "pdf", "pages": "12-34"}},
		{name: "second alternative of a pattern", args: fileops.Args{"convert_to": "pdf", "pages": "all"}, want: fileops.Args{"convert_to": "pdf", "pages": "all"}},
		{name: "pattern must match the whole", args: fileops.Args{"convert_to": "pdf", "pages": "12-34x"}, param: "pages", reason: "must have the form"},
		{name: "pattern must match the start", args: fileops.Args{"convert_to": "pdf", "pages": "xall"}, param: "pages", reason: "must have the form"},
		{name: "pattern and line breaks", args: fileops.Args{"convert_to": "pdf", "pages": "1\n"}, param: "pages", reason: "must have the form"},
		{name: "pattern and length", args: fileops.Args{"convert_to": "pdf", "pages": strings.Repeat("1", 21)}, param: "pages", reason: "must be 0 to 20 bytes long"},

		{name: "shortest text", args: fileops.Args{"convert_to": "pdf", "title": "ab"}, want: fileops.Args{"convert_to": "pdf", "title": "ab"}},
		{name: "longest text", args: fileops.Args{"convert_to": "pdf", "title": "0123456789"}, want: fileops.Args{"convert_to": "pdf", "title": "0123456789"}},
		{name: "text that is too short", args: fileops.Args{"convert_to": "pdf", "title": "a"}, param: "title", reason: "must be 2 to 10 bytes long"},
		{name: "text that is too long in bytes", args: fileops.Args{"convert_to": "pdf", "title": "ääääää"}, param: "title", reason: "must be 2 to 10 bytes long"},
		{name: "text that is not UTF-8", args: fileops.Args{"convert_to": "pdf", "free": "a\xff"}, param: "free", reason: "must be a string"},
		{name: "empty text", args: fileops.Args{"convert_to": "pdf", "free": ""}, want: fileops.Args{"convert_to": "pdf", "free": ""}},

		{name: "integer of JSON", args: fileops.Args{"convert_to": "pdf", "dpi": 300.0}, want: fileops.Args{"convert_to": "pdf", "dpi": 300.0}},
		{name: "int", args: fileops.Args{"convert_to": "pdf", "dpi": 300}, want: fileops.Args{"convert_to": "pdf", "dpi": 300.0}},
		{name: "int64", args: fileops.Args{"convert_to": "pdf", "dpi": int64(36)}, want: fileops.Args{"convert_to": "pdf", "dpi": 36.0}},
		{name: "uint8", args: fileops.Args{"convert_to": "pdf", "dpi": uint8(200)}, want: fileops.Args{"convert_to": "pdf", "dpi": 200.0}},
		{name: "number as text", args: fileops.Args{"convert_to": "pdf", "dpi": json.Number("600")}, want: fileops.Args{"convert_to": "pdf", "dpi": 600.0}},
		{name: "integer with an exponent", args: fileops.Args{"convert_to": "pdf", "dpi": json.Number("1e2")}, want: fileops.Args{"convert_to": "pdf", "dpi": 100.0}},
		{name: "no number", args: fileops.Args{"convert_to": "pdf", "dpi": json.Number("many")}, param: "dpi", reason: "must be a number"},
		{name: "string for a number", args: fileops.Args{"convert_to": "pdf", "dpi": "300"}, param: "dpi", reason: "must be a number"},
		{name: "boolean for a number", args: fileops.Args{"convert_to": "pdf", "dpi": true}, param: "dpi", reason: "must be a number"},
		{name: "fraction for an integer", args: fileops.Args{"convert_to": "pdf", "dpi": 300.5}, param: "dpi", reason: "must be a whole number"},
		{name: "integer below", args: fileops.Args{"convert_to": "pdf", "dpi": 35}, param: "dpi", reason: "must be from 36 to 600"},
		{name: "integer above", args: fileops.Args{"convert_to": "pdf", "dpi": 601}, param: "dpi", reason: "must be from 36 to 600"},
		{name: "integer that a float cannot hold", args: fileops.Args{"convert_to": "pdf", "dpi": 1e17}, param: "dpi", reason: "must be a whole number"},
		{name: "number at its bounds", args: fileops.Args{"convert_to": "pdf", "offset": -1.5}, want: fileops.Args{"convert_to": "pdf", "offset": -1.5}},
		{name: "zero as a bound", args: fileops.Args{"convert_to": "pdf", "offset": 0.1}, param: "offset", reason: "must be from -1.5 to 0"},
		{name: "number without bounds", args: fileops.Args{"convert_to": "pdf", "ratio": -1e300}, want: fileops.Args{"convert_to": "pdf", "ratio": -1e300}},
		{name: "not a number", args: fileops.Args{"convert_to": "pdf", "ratio": math.NaN()}, param: "ratio", reason: "must be a number"},
		{name: "infinite", args: fileops.Args{"convert_to": "pdf", "ratio": math.Inf(1)}, param: "ratio", reason: "must be a number"},
		{name: "too large for a float", args: fileops.Args{"convert_to": "pdf", "ratio": json.Number("1e999")}, param: "ratio", reason: "must be a number"},

		{name: "true", args: fileops.Args{"convert_to": "pdf", "deep": true}, want: fileops.Args{"convert_to": "pdf", "deep": true}},
		{name: "text for a boolean", args: fileops.Args{"convert_to": "pdf", "deep": "true"}, param: "deep", reason: "must be true or false"},
		{name: "one for a boolean", args: fileops.Args{"convert_to": "pdf", "deep": 1.0}, param: "deep", reason: "must be true or false"},

		{name: "secret", args: fileops.Args{"convert_to": "pdf", "password": "s3cret"}, want: fileops.Args{"convert_to": "pdf", "password": "s3cret"}},
		{name: "empty secret", args: fileops.Args{"convert_to": "pdf", "password": ""}, param: "password", reason: "must be 1 to 1024 bytes long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(tt.args)
			p, err := everything().Parse(tt.args)
			if !reflect.DeepEqual(tt.args, before) && !math.IsNaN(toFloat(tt.args["ratio"])) {
				t.Errorf("the arguments were changed to %v", tt.args)
			}
			if tt.param != "" {
				var pe *fileops.ParamError
				if !errors.As(err, &pe) || pe.Param != tt.param || !strings.HasPrefix(pe.Reason, tt.reason) {
					t.Fatalf("got %v, want an error about %s: %s", err, tt.param, tt.reason)
				}
				if tt.reason != "is not known here" && !slices.Equal(pe.Allowed, tt.allowed) {
					t.Errorf("allowed are %q, want %q", pe.Allowed, tt.allowed)
				}
				if want := fmt.Sprintf("parameter %q %s", pe.Param, pe.Reason); err.Error() != want {
					t.Errorf("got %q, want %q", err, want)
				}
				if len(p.Args()) > 0 {
					t.Errorf("there are parameters %v in spite of the error", p.Args())
				}
				return
			}
			systest.NoError(t, err)
			want := fileops.Args{"level": "less", "dpi": 150.0, "deep": false}
			maps.Copy(want, tt.want)
			if got := p.Args(); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			// Validated parameters are valid again.
			if again, err := everything().Parse(p.Args()); err != nil || !reflect.DeepEqual(again.Args(), p.Args()) {
				t.Errorf("parsed again: %v, %v", again.Args(), err)
			}
		})
	}
	t.Run("no parameters", func(t *testing.T) {
		t.Parallel()
		for _, s := range []fileops.Schema{nil, {}} {
			if _, err := s.Parse(nil); err != nil {
				t.Error(err)
			}
			if _, err := s.Parse(fileops.Args{"x": 1}); err == nil || err.Error() != `parameter "x" is not known here; this operation takes no parameters` {
				t.Errorf("got %v", err)
			}
		}
	})
}

func toFloat(v any) float64 { f, _ := v.(float64); return f }

func TestParams(t *testing.T) {
	t.Parallel()
	p, err := everything().Parse(fileops.Args{"convert_to": "pdf", "dpi": 300, "offset": -0.5, "deep": true})
	systest.NoError(t, err)
	if p.Get("convert_to") != "pdf" || p.Get("level") != "less" || p.Get("free") != "" || p.Get("dpi") != "" || p.Get("none") != "" {
		t.Error("Get")
	}
	if p.Int("dpi") != 300 || p.Int("offset") != 0 || p.Int("convert_to") != 0 || p.Int("none") != 0 {
		t.Error("Int")
	}
	if p.Float("dpi") != 300 || p.Float("offset") != -0.5 || p.Float("deep") != 0 {
		t.Error("Float")
	}
	if !p.Bool("deep") || p.Bool("dpi") || p.Bool("none") {
		t.Error("Bool")
	}
	if !p.Has("deep") || !p.Has("level") || p.Has("free") || p.Has("none") {
		t.Error("Has")
	}
	p.Args()["convert_to"] = "changed"
	if p.Get("convert_to") != "pdf" {
		t.Error("Args is not a copy")
	}
	var zero fileops.Params
	if zero.Get("x") != "" || zero.Int("x") != 0 || zero.Bool("x") || zero.Has("x") || zero.String() != "[]" {
		t.Error("the zero Params are not empty")
	}
}

// Printing parameters never shows a secret.
func TestParamsHideSecrets(t *testing.T) {
	t.Parallel()
	p, err := everything().Parse(fileops.Args{"convert_to": "pdf", "password": "s3cret"})
	systest.NoError(t, err)
	type holder struct {
		Name   string
		Params fileops.Params
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "params", p, "any", any(p), "pointer", &p)
		slog.New(h).With("params", p).Info("x")
	}
	asJSON, err := json.Marshal(holder{"x", p})
	systest.NoError(t, err)
	outs := map[string]string{"String": p.String(), "LogValue": p.LogValue().String(), "log": log.String(), "JSON": string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		outs[verb] = fmt.Sprintf(verb, p)
		outs[verb+" of a pointer"] = fmt.Sprintf(verb, &p)
		outs[verb+" in a struct"] = fmt.Sprintf(verb, holder{"x", p})
		outs[verb+" in a slice"] = fmt.Sprintf(verb, []fileops.Params{p})
		outs[verb+" in a job"] = fmt.Sprintf(verb, &fileops.Job{Params: p})
	}
	for how, out := range outs {
		if strings.Contains(out, "s3cret") || strings.Contains(out, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("%s shows the secret: %s", how, out)
		}
		if how != "JSON" && !strings.Contains(out, "REDACTED") {
			t.Errorf("%s does not show that there is a secret: %s", how, out)
		}
	}
	if want := "[convert_to=pdf level=less dpi=150 deep=false password=REDACTED]"; p.String() != want {
		t.Errorf("got %s, want %s", p, want)
	}
	// Errors do not show it either.
	_, err = everything().Parse(fileops.Args{"convert_to": "pdf", "password": strings.Repeat("s3cret", 1000)})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	b, err := json.MarshalIndent(everything().Options(), "", " ")
	systest.NoError(t, err)
	want := `{
 "convert_to": ["pdf", "PNG"],
 "level": ["less", "more"],
 "pages": {"type": "string", "description": "Which.", "pattern": "^(?:[0-9]+(-[0-9]+)?|all)$", "minLength": 0, "maxLength": 20, "required": false},
 "title": {"type": "string", "description": "Any text.", "minLength": 2, "maxLength": 10, "required": false},
 "free": {"type": "string", "description": "Any text at all.", "required": false},
 "dpi": {"type": "integer", "description": "Resolution.", "minimum": 36, "maximum": 600, "default": 150, "required": false},
 "offset": {"type": "number", "description": "Seconds.", "minimum": -1.5, "maximum": 0, "required": false},
 "ratio": {"type": "number", "description": "Any number.", "required": false},
 "deep": {"type": "boolean", "description": "Or not.", "default": false, "required": false},
 "password": {"type": "string", "description": "Opens it.", "format": "password", "writeOnly": true, "minLength": 1, "maxLength": 1024, "required": false}
}`
	var got, wanted any
	systest.NoError(t, errors.Join(json.Unmarshal(b, &got), json.Unmarshal([]byte(want), &wanted)))
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %s", b)
	}
	if got := fileops.Schema(nil).Options(); got == nil || len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// A JSON Schema validator agrees with Parse.
func TestJSONSchema(t *testing.T) {
	t.Parallel()
	compile := func(s fileops.Schema) *jsonschema.Schema {
		b, err := json.Marshal(s.JSONSchema())
		systest.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		systest.NoError(t, err)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		systest.NoError(t, c.AddResource("https://example.com/s.json", doc))
		return c.MustCompile("https://example.com/s.json")
	}
	full := compile(everything())
	for _, text := range []string{
		`{}`, `{"convert_to":"pdf"}`, `{"convert_to":"mp3"}`, `{"convert_to":3}`, `{"convert_to":"pdf","x":1}`,
		`{"convert_to":"pdf","pages":"3-4"}`, `{"convert_to":"pdf","pages":"3-"}`, `{"convert_to":"pdf","pages":"all"}`, `{"convert_to":"pdf","pages":"allx"}`,
		`{"convert_to":"pdf","title":"a"}`, `{"convert_to":"pdf","title":"abc"}`, `{"convert_to":"pdf","title":"abcdefghijk"}`,
		`{"convert_to":"pdf","dpi":36}`, `{"convert_to":"pdf","dpi":35}`, `{"convert_to":"pdf","dpi":100.5}`, `{"convert_to":"pdf","dpi":1e2}`, `{"convert_to":"pdf","dpi":"9"}`,
		`{"convert_to":"pdf","offset":-1.5}`, `{"convert_to":"pdf","offset":1}`, `{"convert_to":"pdf","ratio":1e30}`,
		`{"convert_to":"pdf","deep":true}`, `{"convert_to":"pdf","deep":0}`, `{"convert_to":"pdf","password":""}`, `{"convert_to":"pdf","password":"x"}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		systest.NoError(t, err)
		_, perr := everything().Parse(v.(map[string]any))
		if serr := full.Validate(v); (serr == nil) != (perr == nil) {
			t.Errorf("%s: the schema says %v, Parse says %v", text, serr, perr)
		}
	}
	none := compile(nil)
	systest.Check(t, none.Validate(map[string]any{}))
	if err := none.Validate(map[string]any{"x": true}); err == nil {
		t.Error("a schema without parameters accepts one")
	}
	// required is a list even if it is empty.
	if b, _ := json.Marshal(fileops.Schema(nil).JSONSchema()); string(b) != `{"additionalProperties":false,"properties":{},"required":[],"type":"object"}` {
		t.Errorf("got %s", b)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	enum := func(values ...string) fileops.Param { return fileops.Enum("p", "Doc.", values...) }
	optional := func(p fileops.Param) fileops.Param { p.Required = false; return p }
	num := func(lo, hi float64) fileops.Param {
		return fileops.Param{Name: "p", Doc: "Doc.", Type: fileops.Number, Min: lo, Max: hi}
	}
	text := func(pattern string) fileops.Param {
		return fileops.Param{Name: "p", Doc: "Doc.", Pattern: pattern}
	}
	for _, tt := range []struct {
		name string
		in   []fileops.Schema
		want fileops.Schema
	}{
		{"nothing", nil, nil},
		{"empty ones", []fileops.Schema{nil, {}}, nil},
		{"one is kept as it is", []fileops.Schema{{enum("b", "a")}}, fileops.Schema{enum("b", "a")}},
		{"values of both, sorted", []fileops.Schema{{enum("png", "jpg")}, {enum("pdf", "jpg")}}, fileops.Schema{enum("jpg", "pdf", "png")}},
		{"required by one only", []fileops.Schema{{enum("a")}, {optional(enum("a"))}}, fileops.Schema{optional(enum("a"))}},
		{"absent from one", []fileops.Schema{{enum("a")}, nil}, fileops.Schema{optional(enum("a"))}},
		{"absent from the first", []fileops.Schema{nil, {enum("a")}}, fileops.Schema{optional(enum("a"))}},
		{"listed and free", []fileops.Schema{{enum("a")}, {text("")}}, fileops.Schema{optional(fileops.Param{Name: "p", Doc: "Doc."})}},
		{"free and listed", []fileops.Schema{{text("")}, {enum("a")}, {enum("b")}}, fileops.Schema{{Name: "p", Doc: "Doc."}}},
		{"bounds", []fileops.Schema{{num(1, 5)}, {num(3, 9)}}, fileops.Schema{num(1, 9)}},
		{"bounds and none", []fileops.Schema{{num(1, 5)}, {num(0, 0)}}, fileops.Schema{num(0, 0)}},
		{"none and bounds", []fileops.Schema{{num(0, 0)}, {num(1, 5)}, {num(2, 3)}}, fileops.Schema{num(0, 0)}},
		{"patterns", []fileops.Schema{{text("a+")}, {text("b")}}, fileops.Schema{text("a+|b")}},
		{"same pattern", []fileops.Schema{{text("a+")}, {text("a+")}}, fileops.Schema{text("a+")}},
		{"pattern and none", []fileops.Schema{{text("a+")}, {text("")}}, fileops.Schema{text("")}},
		{"secret in one", []fileops.Schema{{text("")}, {{Name: "p", Doc: "Doc.", Secret: true}}}, fileops.Schema{{Name: "p", Doc: "Doc.", Secret: true}}},
		{"order of appearance", []fileops.Schema{{{Name: "z"}}, {{Name: "a"}, {Name: "z"}}}, fileops.Schema{{Name: "z"}, {Name: "a"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprintf("%#v", tt.in)
			if got := fileops.Merge(tt.in...); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if after := fmt.Sprintf("%#v", tt.in); after != before {
				t.Errorf("the schemas were changed to %s", after)
			}
		})
	}
	t.Run("aliases", func(t *testing.T) {
		t.Parallel()
		a := fileops.Schema{{Name: "p", Enum: []string{"less"}, Aliases: map[string]string{"low": "less"}}}
		b := fileops.Schema{{Name: "p", Enum: []string{"more"}, Aliases: map[string]string{"high": "more"}}}
		m := fileops.Merge(a, b)
		if !reflect.DeepEqual(m[0].Aliases, map[string]string{"low": "less", "high": "more"}) || len(a[0].Aliases) != 1 || len(b[0].Aliases) != 1 {
			t.Errorf("got %v, from %v and %v", m[0].Aliases, a[0].Aliases, b[0].Aliases)
		}
	})
	t.Run("accepts the values of either", func(t *testing.T) {
		t.Parallel()
		a, b := fileops.Schema{text("a+")}, fileops.Schema{text("b")}
		m := fileops.Merge(a, b)
		for value, want := range map[string]bool{"aaa": true, "b": true, "ab": false, "": false, "c": false} {
			if _, err := m.Parse(fileops.Args{"p": value}); (err == nil) != want {
				t.Errorf("%q: got %v", value, err)
			}
		}
	})
}

// NewRegistry rejects an inconsistent schema.
func TestSchemaCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    fileops.Schema
		want string // "" if the schema is valid
	}{
		{"fine", everything(), ""},
		{"no name", fileops.Schema{{}}, "no name"},
		{"twice", fileops.Schema{{Name: "a"}, {Name: "a"}}, "listed twice"},
		{"listed words for an integer", fileops.Schema{{Name: "a", Type: fileops.Integer, Enum: []string{"1", "x"}}}, "no integer"},
		{"default of one of several", fileops.Schema{{Name: "a", Default: "x", OneOf: "b"}}, "cannot be required or have a default"},
		{"listed fractions", fileops.Schema{{Name: "a", Type: fileops.Number, Enum: []string{"1.5"}}}, "only a string or an integer"},
		{"secret boolean", fileops.Schema{{Name: "a", Type: fileops.Boolean, Secret: true}}, "only a string"},
		{"pattern of a number", fileops.Schema{{Name: "a", Type: fileops.Number, Pattern: "1"}}, "only a string"},
		{"pattern that is none", fileops.Schema{{Name: "a", Pattern: "("}}, "missing closing"},
		{"bounds the wrong way round", fileops.Schema{{Name: "a", Type: fileops.Number, Min: 2, Max: 1}}, "minimum"},
		{"only a lower bound", fileops.Schema{{Name: "a", Min: 1}}, "minimum"},
		{"default that is not valid", fileops.Schema{{Name: "a", Enum: []string{"x"}, Default: "y"}}, "default"},
		{"default of another type", fileops.Schema{{Name: "a", Type: fileops.Integer, Default: "1"}}, "default"},
		{"alias of nothing", fileops.Schema{{Name: "a", Enum: []string{"x"}, Aliases: map[string]string{"z": "y"}}}, "alias"},
		{"alias in capitals", fileops.Schema{{Name: "a", Enum: []string{"x"}, Aliases: map[string]string{"Z": "x"}}}, "alias"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := fileops.NewRegistry(action(fileops.Spec{Name: "a", Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: tt.p}}}))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// For any JSON input, Parse does not panic, accepts its own output unchanged, and shows
// no secret.
func FuzzSchemaParse(f *testing.F) {
	for _, s := range []string{
		`{"convert_to":"pdf"}`, `{"convert_to":"PNG","level":"HIGH","pages":"1-2","title":"abc","dpi":1e2,"offset":-1,"ratio":1.5,"deep":true,"password":"p4ssw0rd"}`,
		`{"convert_to":null}`, `{"dpi":1e400}`, `{"x":[{}]}`, `{"convert_to":"pdf","title":"ä"}`,
	} {
		f.Add(s, "level", "Low", 3.5)
	}
	f.Fuzz(func(t *testing.T, text, name, value string, number float64) {
		args := fileops.Args{}
		if json.Unmarshal([]byte(text), &args) != nil || args == nil {
			args = fileops.Args{"convert_to": "pdf"}
		}
		for _, extra := range []any{nil, value, number, json.Number(value), []any{value}} {
			if extra != nil {
				args[name] = extra
			}
			p, err := everything().Parse(args)
			if err != nil {
				var pe *fileops.ParamError
				if !errors.As(err, &pe) || pe.Param == "" && name != "" && args[""] == nil || pe.Reason == "" {
					t.Fatalf("got %#v", err)
				}
				continue
			}
			again, err := everything().Parse(p.Args())
			if err != nil || !reflect.DeepEqual(again.Args(), p.Args()) {
				t.Fatalf("%v becomes %v, %v", p.Args(), again.Args(), err)
			}
			if p.Get("convert_to") != "pdf" && p.Get("convert_to") != "PNG" || p.Int("dpi") < 36 || p.Int("dpi") > 600 {
				t.Fatalf("got %v", p)
			}
			if secret := p.Get("password"); len(secret) > 8 && strings.Contains(fmt.Sprintf("%v %+v %#v", p, p, p), secret) && !strings.Contains(fmt.Sprint(args["free"], args["title"], args["pages"]), secret) {
				t.Fatalf("the secret is shown: %v", p)
			}
		}
	})
}

func TestCompression(t *testing.T) {
	t.Parallel()
	schema := fileops.Schema{fileops.Compression("How small.")}
	for in, want := range map[string]string{
		"less_compression": fileops.LessCompression, "low": fileops.LessCompression, "less": fileops.LessCompression,
		"recommended": fileops.RecommendedCompression, "Medium": fileops.RecommendedCompression,
		"high": fileops.ExtremeCompression, "extreme": fileops.ExtremeCompression,
	} {
		if p, err := schema.Parse(fileops.Args{"compression_value": in}); err != nil || p.Get("compression_value") != want {
			t.Errorf("%q: %q, %v; want %q", in, p.Get("compression_value"), err, want)
		}
	}
	if p, err := schema.Parse(nil); err != nil || p.Get("compression_value") != fileops.RecommendedCompression {
		t.Errorf("not given: %q, %v", p.Get("compression_value"), err)
	}
	if _, err := schema.Parse(fileops.Args{"compression_value": "most"}); err == nil {
		t.Error("an unknown level was accepted")
	}
}

// A listed integer is a number in requests and answers; its text is accepted too.
func TestListedIntegers(t *testing.T) {
	t.Parallel()
	s := fileops.Schema{fileops.Angle()}
	for _, v := range []any{90, 90.0, "90", fileops.Text("90"), -270, json.Number("90")} {
		p, err := s.Parse(fileops.Args{"angle": v})
		if err != nil || p.Int("angle") != 90 {
			t.Errorf("%v (%T) is %v, %v", v, v, p.Int("angle"), err)
		}
	}
	for _, v := range []any{45, "x", "", true, 90.5, nil} {
		if _, err := s.Parse(fileops.Args{"angle": v}); err == nil {
			t.Errorf("%v is accepted", v)
		}
	}
	angle, ok := s.Options()["angle"].(map[string]any)
	if !ok {
		t.Fatalf("options %v", s.Options())
	}
	if enum, err := json.Marshal(angle["enum"]); err != nil || string(enum) != "[90,180,270]" || angle["required"] != true {
		t.Errorf("options %v, %v", angle, err)
	}
}

func TestOneOf(t *testing.T) {
	t.Parallel()
	s := fileops.Schema{
		{Name: "every", Type: fileops.Integer, OneOf: "parts"}, {Name: "pages", OneOf: "parts"}, {Name: "title"},
	}
	for _, args := range []fileops.Args{nil, {"every": 2}, {"pages": "1", "title": "x"}, {"pages": "1", "every": nil}} {
		if _, err := s.Parse(args); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	var param *fileops.ParamError
	if _, err := s.Parse(fileops.Args{"every": 2, "pages": "1"}); !errors.As(err, &param) || param.Param != "pages" || !strings.Contains(err.Error(), "cannot be combined with every") {
		t.Errorf("two of one: %v", err)
	}
}

func TestObjectsAndLists(t *testing.T) {
	t.Parallel()
	schema := fileops.Schema{
		{Name: "set", Doc: "Names and values.", Type: fileops.Object, Min: 1, Max: 3, Secret: true},
		{Name: "remove", Doc: "Names.", Type: fileops.List, Max: 2},
	}
	for _, tt := range []struct {
		args, want fileops.Args
		reason     string
	}{
		{args: fileops.Args{}, want: fileops.Args{}},
		{args: fileops.Args{"set": map[string]any{"a": 1, "b": []string{"x"}}}, want: fileops.Args{"set": map[string]any{"a": 1.0, "b": []any{"x"}}}},
		{args: fileops.Args{"set": map[string]string{"a": "x"}}, want: fileops.Args{"set": map[string]any{"a": "x"}}},
		{args: fileops.Args{"set": fileops.Text(`{"a":true}`)}, want: fileops.Args{"set": map[string]any{"a": true}}},
		{args: fileops.Args{"set": fileops.Text(`a=b`)}, reason: "must be a JSON object"},
		{args: fileops.Args{"set": []any{"a"}}, reason: "must be a JSON object"},
		{args: fileops.Args{"set": map[string]any{}}, reason: "must have 1 to 3 members"},
		{args: fileops.Args{"remove": "all"}, want: fileops.Args{"remove": []string{"all"}}},
		{args: fileops.Args{"remove": []any{"a", "b"}}, want: fileops.Args{"remove": []string{"a", "b"}}},
		{args: fileops.Args{"remove": fileops.Text(`a, b`)}, want: fileops.Args{"remove": []string{"a", "b"}}},
		{args: fileops.Args{"remove": fileops.Text(`["a,b"]`)}, want: fileops.Args{"remove": []string{"a,b"}}},
		{args: fileops.Args{"remove": []any{1}}, reason: "must be a list of strings"},
		{args: fileops.Args{"remove": map[string]any{}}, reason: "must be a list of strings"},
		{args: fileops.Args{"remove": []string{"a", "b", "c"}}, reason: "must have 0 to 2 elements"},
	} {
		p, err := schema.Parse(tt.args)
		var bad *fileops.ParamError
		if tt.reason != "" {
			if !errors.As(err, &bad) || bad.Reason != tt.reason {
				t.Errorf("%v: %v, want %s", tt.args, err, tt.reason)
			}
			continue
		}
		systest.NoError(t, err)
		if got := p.Args(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %#v, want %#v", tt.args, got, tt.want)
		}
		// Another process receives the arguments as JSON.
		b, err := json.Marshal(p.Args())
		systest.NoError(t, err)
		var sent fileops.Args
		systest.NoError(t, json.Unmarshal(b, &sent))
		again, err := schema.Parse(sent)
		if err != nil || !reflect.DeepEqual(again.Args(), tt.want) {
			t.Errorf("%v sent: %#v, %v", tt.args, again.Args(), err)
		}
		if !reflect.DeepEqual(p.Object("set"), map[string]any(nil)) && strings.Contains(p.String(), "x") {
			t.Errorf("%v: logged as %s", tt.args, p)
		}
	}
	got, err := json.Marshal(schema.JSONSchema()["properties"])
	systest.NoError(t, err)
	if want := `{"remove":{"description":"Names.","items":{"type":"string"},"maxItems":2,"minItems":0,"type":["array","string"]},` +
		`"set":{"description":"Names and values.","maxProperties":3,"minProperties":1,"type":"object","writeOnly":true}}`; string(got) != want {
		t.Errorf("schema %s\nwant %s", got, want)
	}
	for _, bad := range []fileops.Param{
		{Name: "a", Type: fileops.Object, Default: map[string]any{}}, {Name: "a", Type: fileops.List, Default: []string{}},
		{Name: "a", Type: fileops.List, Secret: true}, {Name: "a", Type: fileops.Object, Pattern: "x"}, {Name: "a", Type: fileops.List, Enum: []string{"x"}},
	} {
		if _, err := fileops.NewRegistry(fileops.Func(fileops.Spec{Name: "act", Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: fileops.Schema{bad}}}}, nil)); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// The value of an Upload is a key that the caller resolves, or a file.
func TestUploads(t *testing.T) {
	t.Parallel()
	accept := func(d fileops.Param) (*fileops.Registry, error) {
		return fileops.NewRegistry(fileops.Func(fileops.Spec{Name: "stamp", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{d}}}},
			func(_ context.Context, job *fileops.Job) error {
				b, err := job.Extra["picture"].ReadAll(100)
				if err != nil {
					return err
				}
				return job.WriteBytes("out.txt", b[1:4])
			}))
	}
	reg, err := accept(fileops.Param{Name: "picture", Type: fileops.Upload, Formats: []format.Format{format.PNG, format.JPG}})
	systest.NoError(t, err)
	for _, d := range []fileops.Param{
		{Name: "picture", Type: fileops.Upload}, {Name: "picture", Formats: []format.Format{format.PNG}},
		{Name: "picture", Type: fileops.Upload, Formats: []format.Format{format.PNG}, Default: "0"},
	} {
		if _, err := accept(d); err == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	resolve := func(v any) (fileops.Params, error) {
		_, p, err := reg.Resolve("stamp", []format.Format{format.TXT}, fileops.Args{"picture": v})
		return p, err
	}
	p, err := resolve("a-key")
	systest.NoError(t, err)
	if got := maps.Collect(p.Uploads()); len(got) != 1 || got["picture"] != "a-key" {
		t.Errorf("uploads %v", got)
	}
	file := fileops.Bytes("a.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"))
	p, err = resolve(file)
	systest.NoError(t, err)
	if got := maps.Collect(p.Uploads()); len(got) != 0 || fmt.Sprint(p) != "[picture=a.png]" {
		t.Errorf("uploads %v of %v", got, p)
	}
	for _, v := range []any{"", strings.Repeat("x", 300), 1, true, fileops.Bytes("a.gif", nil), fileops.Bytes("a", nil)} {
		if _, err := resolve(v); !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%v: %v", v, err)
		}
	}

	text := fileops.Bytes("a.txt", []byte("x"))
	for a := range reg.Actions() {
		var got string
		run := func(v any) error {
			return fileops.Run(t.Context(), a, fileops.Args{"picture": v}, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
				b, err := f.ReadAll(100)
				got = string(b)
				return err
			}), text)
		}
		if err := run(file); err != nil || got != "PNG" {
			t.Errorf("result %q, %v", got, err)
		}
		for what, v := range map[string]any{"a key": "a-key", "another format": fileops.Bytes("a.jpg", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")), "nothing": fileops.Bytes("a.png", nil)} {
			if err := run(v); !errors.Is(err, fileops.ErrParameter) || !strings.Contains(fileops.Message(err), `"picture"`) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
