package fileops_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// action is an action that does nothing.
func action(spec fileops.Spec) fileops.Action {
	return fileops.Func(spec, func(context.Context, *fileops.Job) error { return nil })
}

func convert(engine string, to []string, formats ...format.Format) fileops.Action {
	return action(fileops.Spec{Name: "convert", Engine: engine, Accepts: []fileops.Accept{{
		Formats: formats, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", to...)},
	}}})
}

func testRegistry(t testing.TB) *fileops.Registry {
	t.Helper()
	dpi := fileops.Param{Name: "dpi", Doc: "Resolution.", Type: fileops.Integer, Min: 36, Max: 600, Default: 150}
	reg, err := fileops.NewRegistry(
		convert("first", []string{"webp", "jpg"}, format.PNG, format.JPG),
		convert("second", []string{"jpg", "pdf"}, format.PNG),
		action(fileops.Spec{Name: "convert", Engine: "pages", Accepts: []fileops.Accept{
			{Formats: []format.Format{format.PDF}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "png"), dpi}},
			{Formats: []format.Format{format.PDF}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "docx")}},
		}}),
		action(fileops.Spec{Name: "merge", Engine: "pdf", Joint: true, Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}}}}),
		action(fileops.Spec{Name: "zip", Engine: "zip", Joint: true, Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}}}),
	)
	systest.NoError(t, err)
	return reg
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, action string
		inputs       []format.Format
		args         fileops.Args
		engine       string // of the action that is found; "" if the request fails
		param        string // that the error names; "" for an UnsupportedError
		allowed      []string
	}{
		{name: "the first that fits", action: "convert", inputs: []format.Format{"png"}, args: fileops.Args{"convert_to": "jpg"}, engine: "first"},
		{name: "only the second fits", action: "convert", inputs: []format.Format{"png"}, args: fileops.Args{"convert_to": "pdf"}, engine: "second"},
		{name: "name in capitals", action: "CONVERT", inputs: []format.Format{"png"}, args: fileops.Args{"convert_to": "pdf"}, engine: "second"},
		{name: "second entry", action: "convert", inputs: []format.Format{"pdf"}, args: fileops.Args{"convert_to": "docx"}, engine: "pages"},
		{name: "several inputs of one format", action: "merge", inputs: []format.Format{"pdf", "pdf"}, engine: "pdf"},
		{name: "several inputs, one is wrong", action: "merge", inputs: []format.Format{"pdf", "png"}},
		{name: "any file", action: "zip", inputs: []format.Format{"pdf", "xyz", ""}, engine: "zip"},
		{name: "no inputs", action: "zip"},
		{name: "unknown action", action: "fold", inputs: []format.Format{"pdf"}},
		{name: "no action", action: "", inputs: []format.Format{"pdf"}},
		{name: "action on another format", action: "merge", inputs: []format.Format{"png"}},
		{name: "value of another action", action: "convert", inputs: []format.Format{"png"}, args: fileops.Args{"convert_to": "docx"}, param: "convert_to", allowed: []string{"jpg", "pdf", "webp"}},
		{name: "missing value", action: "convert", inputs: []format.Format{"png"}, param: "convert_to", allowed: []string{"jpg", "pdf", "webp"}},
		{name: "parameter where there is none", action: "merge", inputs: []format.Format{"pdf"}, args: fileops.Args{"x": 1.0}, param: "x"},
		{name: "bad value beside a listed one", action: "convert", inputs: []format.Format{"pdf"}, args: fileops.Args{"convert_to": "png", "dpi": 7.0}, param: "dpi"},
		{name: "parameter of the other entry", action: "convert", inputs: []format.Format{"pdf"}, args: fileops.Args{"convert_to": "docx", "dpi": 100.0}, param: "dpi", allowed: []string{"convert_to"}},
		{name: "bad listed value beside a bad one", action: "convert", inputs: []format.Format{"pdf"}, args: fileops.Args{"convert_to": "mp3", "dpi": 7.0}, param: "convert_to", allowed: []string{"docx", "png"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, p, err := testRegistry(t).Resolve(tt.action, tt.inputs, tt.args)
			if tt.engine != "" {
				if err != nil || a.Spec().Engine != tt.engine {
					t.Fatalf("got %v, %v", a, err)
				}
				if to, ok := tt.args["convert_to"]; ok && p.Get("convert_to") != to {
					t.Errorf("parameters are %v", p)
				}
				return
			}
			if a != nil {
				t.Errorf("got %v", a.Spec())
			}
			var pe *fileops.ParamError
			var ue *fileops.UnsupportedError
			switch {
			case tt.param != "" && (!errors.As(err, &pe) || pe.Param != tt.param || !slices.Equal(pe.Allowed, tt.allowed)):
				t.Errorf("got %#v", err)
			case tt.param == "" && (!errors.As(err, &ue) || ue.Action != strings.ToLower(tt.action) || !slices.Equal(ue.Inputs, tt.inputs)):
				t.Errorf("got %#v", err)
			}
		})
	}
}

// Values that are allowed separately, but not in combination, are not a ParamError.
func TestResolveTogether(t *testing.T) {
	t.Parallel()
	flag := func(name string) fileops.Param {
		return fileops.Param{Name: name, Doc: "Doc.", Type: fileops.Boolean}
	}
	formats := []format.Format{format.PDF}
	reg, err := fileops.NewRegistry(action(fileops.Spec{Name: "x", Accepts: []fileops.Accept{
		{Formats: formats, Params: fileops.Schema{flag("a")}}, {Formats: formats, Params: fileops.Schema{flag("b")}},
	}}))
	systest.NoError(t, err)
	_, _, err = reg.Resolve("x", formats, fileops.Args{"a": true, "b": true})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// keeper converts png to png if a parameter changes the picture.
func keeper() fileops.Action {
	return action(fileops.Spec{Name: "convert", Engine: "keeper", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.PNG}, Changes: []string{"width", "rotate", "strip"},
		Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "png"),
			{Name: "width", Doc: "Width.", Type: fileops.Integer, Min: 1, Max: 100},
			{Name: "rotate", Doc: "Angle.", Type: fileops.Integer, Enum: []string{"0", "90"}, Default: 0},
			{Name: "strip", Doc: "Metadata.", Type: fileops.Boolean, Default: false},
			{Name: "fit", Doc: "Fit.", Enum: []string{"inside", "fill"}, Default: "inside"},
		},
	}}})
}

// A conversion to the same format needs a parameter with which it changes the file.
func TestResolveSameFormat(t *testing.T) {
	t.Parallel()
	reg, err := fileops.NewRegistry(convert("other", []string{"jpg", "webp"}, format.PNG), keeper())
	systest.NoError(t, err)
	for _, tt := range []struct {
		args  fileops.Args
		param string // that the error names; "" if the request is accepted
	}{
		{fileops.Args{}, "convert_to"},
		{fileops.Args{"width": 10}, ""},
		{fileops.Args{"width": "10"}, "width"},
		{fileops.Args{"width": nil}, "convert_to"},
		{fileops.Args{"rotate": 0}, "convert_to"},
		{fileops.Args{"rotate": fileops.Text("0")}, "convert_to"},
		{fileops.Args{"rotate": fileops.Text("90")}, ""},
		{fileops.Args{"strip": false}, "convert_to"},
		{fileops.Args{"strip": true}, ""},
		{fileops.Args{"fit": "fill"}, "convert_to"},
		{fileops.Args{"fit": "fill", "strip": true}, ""},
		{fileops.Args{"height": 5}, "height"},
	} {
		tt.args["convert_to"] = "PNG"
		a, p, err := reg.Resolve("convert", []format.Format{format.PNG}, tt.args)
		var pe *fileops.ParamError
		switch {
		case tt.param == "" && (err != nil || a.Spec().Engine != "keeper" || p.Get("convert_to") != "png"):
			t.Errorf("%v: %v", tt.args, err)
		case tt.param != "" && (!errors.As(err, &pe) || pe.Param != tt.param || !errors.Is(err, fileops.ErrParameter)):
			t.Errorf("%v: %v", tt.args, err)
		case tt.param == "convert_to" && (!slices.Equal(pe.Allowed, []string{"jpg", "webp"}) || !strings.Contains(pe.Reason, "width, rotate, strip")):
			t.Errorf("%v: %v, allowed %v", tt.args, pe, pe.Allowed)
		}
	}
	s, _ := reg.Schema("convert", format.PNG)
	if len(s) != 5 || !slices.Equal(s[0].Enum, []string{"jpg", "webp"}) || !s[0].Required {
		t.Errorf("schema %+v", s)
	}
	if got := reg.Changes("convert", format.PNG); !slices.Equal(got, []string{"width", "rotate", "strip"}) {
		t.Errorf("changes %v", got)
	}
	if got := reg.Changes("convert", format.JPG); got != nil {
		t.Errorf("changes of jpg: %v", got)
	}
}

// An action without a format that needs a parameter with which it changes the file misses one.
func TestResolveChangesNothing(t *testing.T) {
	t.Parallel()
	params := fileops.Schema{{Name: "text", Doc: "Text."}, {Name: "image", Doc: "Picture."}}
	for reason, changes := range map[string][]string{
		"is required": {"text"}, "is required, or another parameter that changes the file: image": {"text", "image"},
	} {
		reg, err := fileops.NewRegistry(action(fileops.Spec{Name: "mark", Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Changes: changes, Params: params}}}))
		systest.NoError(t, err)
		_, _, err = reg.Resolve("mark", []format.Format{format.PDF}, nil)
		var pe *fileops.ParamError
		if !errors.As(err, &pe) || !pe.Missing || pe.Param != "text" || pe.Reason != reason {
			t.Errorf("%v: %v", changes, err)
		}
	}
}

// A format without other targets keeps the list of its own.
func TestSchemaSameFormatOnly(t *testing.T) {
	t.Parallel()
	reg, err := fileops.NewRegistry(keeper())
	systest.NoError(t, err)
	s, ok := reg.Schema("convert", format.PNG)
	if !ok || !slices.Equal(s[0].Enum, []string{"png"}) {
		t.Errorf("schema %+v", s)
	}
}

func TestRegistrySchema(t *testing.T) {
	t.Parallel()
	reg := testRegistry(t)
	s, ok := reg.Schema("Convert", format.PNG)
	if !ok || len(s) != 1 || !slices.Equal(s[0].Enum, []string{"jpg", "pdf", "webp"}) || !s[0].Required {
		t.Errorf("png: %+v, %v", s, ok)
	}
	s, ok = reg.Schema("convert", format.PDF)
	if !ok || len(s) != 2 || s[1].Name != "dpi" || s[1].Required {
		t.Errorf("pdf: %+v, %v", s, ok)
	}
	if s, ok := reg.Schema("zip", "xyz"); !ok || len(s) != 0 {
		t.Errorf("zip: %+v, %v", s, ok)
	}
	if s, ok := reg.Schema("merge", format.PNG); ok || len(s) != 0 {
		t.Errorf("merge of png: %+v, %v", s, ok)
	}
}

func TestRegistryLists(t *testing.T) {
	t.Parallel()
	reg := testRegistry(t)
	if got := reg.Names(); !slices.Equal(got, []string{"convert", "merge", "zip"}) {
		t.Errorf("names are %v", got)
	}
	var engines []string
	for a := range reg.Actions() {
		engines = append(engines, a.Spec().Engine)
	}
	if !slices.Equal(engines, []string{"first", "second", "pages", "pdf", "zip"}) {
		t.Errorf("engines are %v", engines)
	}
	empty, err := fileops.NewRegistry()
	if err != nil || len(empty.Names()) != 0 {
		t.Errorf("an empty registry: %v, %v", empty, err)
	}
	// Changing the caller's list does not change the registry.
	list := []fileops.Action{action(fileops.Spec{Name: "a", Accepts: []fileops.Accept{{Formats: []format.Format{"pdf"}}}})}
	reg, err = fileops.NewRegistry(list...)
	systest.NoError(t, err)
	list[0] = nil
	if got := reg.Names(); !reflect.DeepEqual(got, []string{"a"}) {
		t.Errorf("names are %v", got)
	}
}

func TestNewRegistryErrors(t *testing.T) {
	t.Parallel()
	pdf := []fileops.Accept{{Formats: []format.Format{format.PDF}}}
	for _, tt := range []struct {
		name string
		spec fileops.Spec
		want string
	}{
		{"no name", fileops.Spec{Accepts: pdf}, "snake case"},
		{"capitals", fileops.Spec{Name: "Convert", Accepts: pdf}, "snake case"},
		{"hyphen", fileops.Spec{Name: "reset-password", Accepts: pdf}, "snake case"},
		{"accepts nothing", fileops.Spec{Name: "a"}, "accepts nothing"},
		{"entry without formats", fileops.Spec{Name: "a", Accepts: []fileops.Accept{{}}}, "no formats"},
		{"alias of a format", fileops.Spec{Name: "a", Accepts: []fileops.Accept{{Formats: []format.Format{"jpeg"}}}}, `"jpeg" is not canonical`},
		{"format in capitals", fileops.Spec{Name: "a", Accepts: []fileops.Accept{{Formats: []format.Format{"PDF"}}}}, "not canonical"},
		{"format with a dot", fileops.Spec{Name: "a", Accepts: []fileops.Accept{{Formats: []format.Format{".pdf"}}}}, "not canonical"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := fileops.NewRegistry(action(tt.spec))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	// Unknown formats are allowed: an action may define its own.
	if _, err := fileops.NewRegistry(action(fileops.Spec{Name: "reset_password_2", Accepts: []fileops.Accept{{Formats: []format.Format{"myown", format.Any, "tar.gz"}}}})); err != nil {
		t.Error(err)
	}
}
