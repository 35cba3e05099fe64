package capability_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// stepped returns a matrix with joint actions, an action whose results are not known,
// and families of several names.
func stepped(t *testing.T) *capability.Matrix {
	act := func(s fileops.Spec, formats []format.Format, params ...fileops.Param) fileops.Action {
		s.Engine, s.Accepts = "go", []fileops.Accept{{Formats: formats, Params: params}}
		return fileops.Func(s, func(context.Context, *fileops.Job) error { return nil })
	}
	reg, err := fileops.NewRegistry(
		act(fileops.Spec{Name: "convert", Family: "office"}, []format.Format{format.DOCX, format.ODT}, fileops.Enum("convert_to", "Target.", "pdf", "odt")),
		act(fileops.Spec{Name: "convert", Family: "pdf"}, []format.Format{format.PDF}, fileops.Enum("convert_to", "Target.", "png")),
		act(fileops.Spec{Name: "merge", Family: "pdf", Joint: true, Results: map[format.Format]format.Format{format.Any: format.PDF}}, []format.Format{format.PDF, format.PNG}),
		act(fileops.Spec{Name: "merge", Family: "media", Joint: true}, []format.Format{format.MP3}),
		act(fileops.Spec{Name: "lock", Family: "pdf"}, []format.Format{format.PDF, format.DOCX}, fileops.Secret("password", "Password.")),
		act(fileops.Spec{Name: "mark", Family: "pdf"}, []format.Format{format.PDF}, fileops.Param{Name: "image_key", Type: fileops.Upload, Formats: []format.Format{format.PNG}, Doc: "Picture."}),
		act(fileops.Spec{Name: "zip", Family: "archive", Joint: true, Results: map[format.Format]format.Format{format.Any: format.ZIP}}, []format.Format{format.Any}),
		act(fileops.Spec{Name: "extract", Family: "archive", Verbatim: true}, []format.Format{format.ZIP}),
	)
	systest.NoError(t, err)
	return capability.New(reg, map[string]string{"create_zip": "zip"})
}

func to(f string) map[string]any { return map[string]any{"convert_to": f} }

func TestPlan(t *testing.T) {
	t.Parallel()
	m := stepped(t)
	secret := map[string]any{"password": "x"}
	stages, err := m.Plan([]format.Format{format.DOCX, format.DOCX}, []capability.Step{
		{"Convert", to("PDF")}, {"merge", nil}, {"lock", secret}, {"create_zip", nil}, {"extract", nil}, {"lock", secret}, {"zip", nil},
	})
	systest.NoError(t, err)
	pdf := []format.Format{format.PDF}
	none := map[string]string{}
	want := []capability.Stage{
		{Action: "convert", Families: map[format.Format]string{format.DOCX: "office"}, Results: pdf, Uploads: none},
		{Action: "merge", Joint: true, Families: map[format.Format]string{format.PDF: "pdf"}, Results: pdf, Uploads: none},
		{Action: "lock", Families: map[format.Format]string{format.PDF: "pdf"}, Results: pdf, Uploads: none},
		{Action: "zip", Joint: true, Families: map[format.Format]string{format.PDF: "archive"}, Results: []format.Format{format.ZIP}, Uploads: none},
		{Action: "extract", Families: map[format.Format]string{format.ZIP: "archive"}, Uploads: none},
		{Action: "lock", Guessed: true, Families: map[format.Format]string{format.PDF: "pdf", format.DOCX: "pdf"}, Uploads: none},
		{Action: "zip", Guessed: true, Joint: true, Results: []format.Format{format.ZIP}, Uploads: none, Families: map[format.Format]string{
			format.Any: "archive", format.DOCX: "archive", format.MP3: "archive", format.ODT: "archive", format.PDF: "archive", format.PNG: "archive", format.ZIP: "archive",
		}},
	}
	for i := range want {
		if !reflect.DeepEqual(stages[i], want[i]) {
			t.Errorf("stage %d is\n%+v, want\n%+v", i, stages[i], want[i])
		}
	}

	stages, err = m.Plan([]format.Format{format.PDF}, []capability.Step{{"lock", secret}, {"mark", map[string]any{"image_key": "k"}}})
	systest.NoError(t, err)
	if stages[1].Uploads["image_key"] != "k" {
		t.Errorf("uploads %v", stages[1].Uploads)
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	m := stepped(t)
	for _, tt := range []struct {
		inputs  []format.Format
		steps   []capability.Step
		step    int
		accepts []format.Format
		want    string
	}{
		{[]format.Format{format.PNG}, []capability.Step{{"lock", nil}, {"zip", nil}}, 0, []format.Format{format.DOCX, format.PDF},
			"step 1 (lock) does not accept png; it accepts docx, pdf"},
		{[]format.Format{format.PDF}, []capability.Step{{"convert", to("png")}, {"lock", nil}}, 1, []format.Format{format.DOCX, format.PDF},
			"step 2 (lock) does not accept png from step 1 (convert); it accepts docx, pdf"},
		{[]format.Format{format.DOCX}, []capability.Step{{"convert", to("pdf")}, {"convert", to("odt")}}, 1, nil,
			`step 2 (convert): parameter "convert_to" must be one of: png`},
		{[]format.Format{format.PDF}, []capability.Step{{"convert", to("png")}, {"fly", nil}}, 1, nil,
			`step 2 (fly): the action "fly" is not supported for png`},
		{[]format.Format{format.PDF, format.MP3}, []capability.Step{{"merge", nil}}, 0, nil,
			"step 1 (merge) does not accept these formats together: pdf, mp3"},
		{[]format.Format{format.ZIP}, []capability.Step{{"extract", nil}, {"convert", to("mp4")}}, 1, nil,
			`step 2 (convert): parameter "convert_to" must be one of: pdf, odt, png`},
		{[]format.Format{format.ZIP}, []capability.Step{{"extract", nil}, {"fly", nil}}, 1, nil, `step 2 (fly): the action "fly" is not supported`},
	} {
		_, err := m.Plan(tt.inputs, tt.steps)
		var e *capability.StepError
		if !errors.As(err, &e) {
			t.Errorf("%v: error %v", tt.steps, err)
			continue
		}
		if e.Step != tt.step || !reflect.DeepEqual(e.Accepts, tt.accepts) || e.Error() != tt.want {
			t.Errorf("%v: step %d, accepts %v: %s, want\n%s", tt.steps, e.Step, e.Accepts, e, tt.want)
		}
	}
}

// A plan of one step accepts what Resolve accepts.
func TestPlanAgreesWithResolve(t *testing.T) {
	t.Parallel()
	m := stepped(t)
	for _, f := range []format.Format{format.PDF, format.PNG, format.DOCX, format.MP3, format.ZIP, "xyz"} {
		for _, action := range []string{"convert", "merge", "lock", "zip", "extract", "fly"} {
			for _, args := range []map[string]any{nil, to("pdf"), to("png"), {"password": "x"}} {
				_, _, err := m.Resolve(action, []format.Format{f}, args)
				_, planned := m.Plan([]format.Format{f}, []capability.Step{{action, args}})
				if (err == nil) != (planned == nil) {
					t.Errorf("%s %s %v: resolve says %v, plan %v", action, f, args, err, planned)
				}
			}
		}
	}
}
