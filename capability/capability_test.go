package capability_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func registry(t testing.TB) *fileops.Registry {
	do := func(context.Context, *fileops.Job) error { return nil }
	act := func(name string, formats []format.Format, s fileops.Schema) fileops.Action {
		return fileops.Func(fileops.Spec{Name: name, Engine: name + "-engine", Family: "f", Accepts: []fileops.Accept{{Formats: formats, Params: s}}}, do)
	}
	dpi := fileops.Param{Name: "dpi", Doc: "Resolution.", Type: fileops.Integer, Min: 36, Max: 600, Default: 150}
	width := fileops.Param{Name: "width", Doc: "Width.", Type: fileops.Integer, Min: 1, Max: 600}
	reg, err := fileops.NewRegistry(
		act("convert", []format.Format{format.PNG, format.JPG}, fileops.Schema{fileops.Enum("convert_to", "Target.", "webp", "jpg")}),
		act("convert", []format.Format{format.PNG}, fileops.Schema{fileops.Enum("convert_to", "Target.", "pdf")}),
		act("convert", []format.Format{format.PDF}, fileops.Schema{fileops.Enum("convert_to", "Target.", "png"), dpi}),
		act("convert", []format.Format{format.PDF}, fileops.Schema{fileops.Enum("convert_to", "Target.", "docx")}),
		act("lock", []format.Format{format.PDF}, fileops.Schema{fileops.Secret("password", "Password that opens the result.")}),
		act("zip", []format.Format{format.Any}, nil),
		fileops.Func(fileops.Spec{Name: "convert", Engine: "same", Accepts: []fileops.Accept{{
			Formats: []format.Format{format.PDF}, Changes: []string{"width"},
			Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "pdf"), width},
		}}}, do),
	)
	systest.NoError(t, err)
	return reg
}

func TestQuery(t *testing.T) {
	t.Parallel()
	m := capability.New(registry(t), map[string]string{"create_zip": "zip"})
	for _, tt := range []struct {
		name    string
		q       capability.Query
		want    bool
		ext     string
		action  string
		actions []string
		params  string // JSON of Parameters, "" = not checked
	}{
		{"actions of an extension", capability.Query{Ext: "pdf"}, true, "pdf", "", []string{"convert", "lock", "zip"}, "null"},
		{"dot and capitals", capability.Query{Ext: ".PDF"}, true, "pdf", "", []string{"convert", "lock", "zip"}, ""},
		{"alias of an extension", capability.Query{Ext: "JPEG"}, true, "jpg", "", []string{"convert", "zip"}, ""},
		{"unknown extension", capability.Query{Ext: "xyz"}, true, "xyz", "", []string{"zip"}, ""},
		{"values merged over actions", capability.Query{Ext: "png", Action: "convert"}, true, "png", "convert", nil, `{"convert_to":["jpg","pdf","webp"]}`},
		{"action in capitals", capability.Query{Ext: "png", Action: "CONVERT"}, true, "png", "convert", nil, ""},
		{"alias of an action", capability.Query{Ext: "png", Action: "create_zip"}, true, "png", "zip", nil, `{}`},
		{"value that exists", capability.Query{Ext: "png", Action: "convert", Parameters: map[string]any{"convert_to": "PDF"}}, true, "png", "convert", nil, ""},
		{"value that does not", capability.Query{Ext: "png", Action: "convert", Parameters: map[string]any{"convert_to": "mp3"}}, false, "png", "convert", nil, `{"convert_to":["jpg","pdf","webp"]}`},
		{"parameter of the chosen value", capability.Query{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "png", "dpi": 300.0}}, true, "pdf", "convert", nil, ""},
		{"parameter of another value", capability.Query{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "docx", "dpi": 300.0}}, false, "pdf", "convert", nil, ""},
		{"own format without a change", capability.Query{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "pdf"}}, false, "pdf", "convert", nil, ""},
		{"own format with a change", capability.Query{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "PDF", "width": 5.0}}, true, "pdf", "convert", nil, ""},
		{"action not on this extension", capability.Query{Ext: "png", Action: "lock"}, false, "png", "lock", nil, "null"},
		{"unknown action", capability.Query{Ext: "pdf", Action: "fold"}, false, "pdf", "fold", nil, "null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := m.Query(tt.q)
			if a.Supported != tt.want || a.Ext != tt.ext || a.Action != tt.action || !reflect.DeepEqual(a.AvailableActions, tt.actions) {
				t.Errorf("got %+v", a)
			}
			if a.Action != "" && a.Supported != (a.Err == nil) {
				t.Errorf("supported %v with error %v", a.Supported, a.Err)
			}
			if b, _ := json.Marshal(a.Parameters); tt.params != "" && string(b) != tt.params {
				t.Errorf("parameters %s, want %s", b, tt.params)
			}
		})
	}
}

// Advertised requests are accepted, and accepted ones are advertised.
func TestQueryAgreesWithResolve(t *testing.T) {
	t.Parallel()
	m := capability.New(registry(t), nil)
	for _, ext := range []string{"pdf", "png", "jpg", "xyz"} {
		for _, action := range []string{"convert", "lock", "zip", "fold"} {
			for _, to := range []any{nil, "webp", "png", "pdf", "docx", "mp3", 3.0} {
				args := fileops.Args{}
				if to != nil {
					args["convert_to"] = to
				}
				_, _, err := m.Resolve(action, []format.Format{format.Parse(ext)}, args)
				a := m.Query(capability.Query{Ext: ext, Action: action, Parameters: args})
				if to != nil && a.Supported != (err == nil) {
					t.Errorf("%s %s %v: supported %v, resolve says %v", action, ext, to, a.Supported, err)
				}
			}
		}
	}
}

// The parameters that change a file are listed, and its own format is not.
func TestSameFormat(t *testing.T) {
	t.Parallel()
	m := capability.New(registry(t), nil)
	a := m.Query(capability.Query{Ext: "pdf", Action: "convert"})
	if to := a.Parameters["convert_to"]; !reflect.DeepEqual(a.Changes, []string{"width"}) || !reflect.DeepEqual(to, []string{"docx", "png"}) {
		t.Errorf("got %+v", a)
	}
}

func TestNearestParameterError(t *testing.T) {
	t.Parallel()
	m := capability.New(registry(t), nil)
	_, _, err := m.Resolve("convert", []format.Format{format.PDF}, fileops.Args{"convert_to": "png", "dpi": 5000})
	var p *fileops.ParamError
	if !errors.As(err, &p) || p.Param != "dpi" {
		t.Errorf("got %v, want an error about dpi", err)
	}
}

func ExampleMatrix_Query() {
	png := fileops.Func(fileops.Spec{
		Name: "convert", Engine: "example",
		Accepts: []fileops.Accept{{
			Formats: []format.Format{format.PNG},
			Params:  fileops.Schema{fileops.Enum("convert_to", "Target format.", "jpg", "webp")},
		}},
	}, func(context.Context, *fileops.Job) error { return nil })
	reg, _ := fileops.NewRegistry(png)
	m := capability.New(reg, nil)

	fmt.Println(m.Query(capability.Query{Ext: ".PNG"}).AvailableActions)
	a := m.Query(capability.Query{Ext: "png", Action: "CONVERT", Parameters: map[string]any{"convert_to": "mp3"}})
	fmt.Println(a.Supported, a.Parameters["convert_to"], "-", a.Err)
	// Output:
	// [convert]
	// false [jpg webp] - parameter "convert_to" must be one of: jpg, webp
}

// The limit is the largest of all actions that could run, or that of the one that will.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	act := func(to string, most int64) fileops.Action {
		return fileops.Func(fileops.Spec{Name: "convert", Engine: to, MaxBytes: most, Accepts: []fileops.Accept{{
			Formats: []format.Format{format.PNG}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", to)},
		}}}, func(context.Context, *fileops.Job) error { return nil })
	}
	for _, tt := range []struct {
		actions    []fileops.Action
		args       map[string]any
		any, exact int64 // 0 means no limit
	}{
		{[]fileops.Action{act("webp", 5), act("pdf", 7)}, map[string]any{"convert_to": "webp"}, 7, 5},
		{[]fileops.Action{act("webp", 5), act("pdf", 0)}, map[string]any{"convert_to": "webp"}, 0, 5},
		{[]fileops.Action{act("webp", 5), act("pdf", 0)}, map[string]any{"convert_to": "pdf"}, 0, 0},
	} {
		reg, err := fileops.NewRegistry(tt.actions...)
		systest.NoError(t, err)
		m := capability.New(reg, nil)
		for q, want := range map[*capability.Query]int64{{Ext: "png"}: tt.any, {Ext: "png", Action: "CONVERT"}: tt.any, {Ext: "png", Action: "convert", Parameters: tt.args}: tt.exact} {
			if got := m.Query(*q).MaxBytes["convert"]; got != want {
				t.Errorf("%+v: %d, want %d", *q, got, want)
			}
		}
	}
}
