package pdfops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// formFile has a field of every kind. Its widgets are f0, f1, …, and rows of radio buttons
// and of texts below parents.
func formFile(more string) []byte {
	form := stream("/Type/XObject/Subtype/Form/BBox[0 0 20 20]", "0 0 1 rg 0 0 20 20 re f")
	return handmade("1.7",
		"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R 6 0 R 7 0 R 8 0 R 11 0 R 12 0 R 13 0 R 14 0 R 16 0 R 17 0 R]/DA(/F1 12 Tf 0 g)/DR<</Font<</F1 4 0 R>>>>"+more+">>>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 500]/Annots[5 0 R 6 0 R 7 0 R 9 0 R 10 0 R 11 0 R 12 0 R 13 0 R 15 0 R 16 0 R 17 0 R 19 0 R]>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 10 210 40]/FT/Tx/T(text)/V(old)/AP<</N 18 0 R>>/MaxLen 20>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 50 30 70]/FT/Btn/T(check)/AS/Off/V/Off/AP<</N<</Agreed 18 0 R>>>>>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 80 30 100]/FT/Btn/T(plain)>>",
		"<</FT/Btn/Ff 32768/T(radio)/Kids[9 0 R 10 0 R]/V/b>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 110 30 130]/Parent 8 0 R/AS/Off/AP<</N<</a 18 0 R>>>>>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[40 110 60 130]/Parent 8 0 R/AS/b/AP<</N<</b 18 0 R>>>>>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 140 210 170]/FT/Ch/Ff 131072/T(combo)/Opt[[(x)(Apple)][(y)(Pear)]]/V(x)>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 180 210 250]/FT/Ch/Ff 2097152/T(list)/Opt[(one)(two)(three)]/V(one)/I[0]>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 260 210 290]/FT/Tx/Ff 1/T(fixed)/V(fixed)>>",
		"<</T(address)/FT/Tx/Kids[15 0 R]>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 300 210 330]/T(city)/Parent 14 0 R/DA(/F1 0 Tf)>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 340 210 370]/FT/Ch/Ff 393216/T(editable)/Opt[(red)(green)]>>",
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 380 210 410]/FT/Btn/Ff 65536/T(push)>>",
		form,
		"<</Type/Annot/Subtype/Widget/F 4/Rect[10 420 210 450]/FT/Tx/T(orphan)>>")
}

// exported returns the fields as pdfcpu exports them.
func exported(t *testing.T, f *fileops.File) string {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, api.ExportFormJSON(bytes.NewReader(content(t, f)), &b, "a.pdf", nil))
	var v struct{ Forms []map[string]any }
	systest.NoError(t, json.Unmarshal(b.Bytes(), &v))
	var out []string
	for _, kind := range []string{"textfield", "checkbox", "radiobuttongroup", "combobox", "listbox"} {
		all, _ := v.Forms[0][kind].([]any)
		for _, one := range all {
			m, _ := one.(map[string]any)
			value := m["value"]
			if many, ok := m["values"]; ok {
				value = many
			}
			out = append(out, fmt.Sprintf("%v=%v", m["name"], value))
		}
	}
	return strings.Join(out, " ")
}

func TestFillForm(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", formFile(""))
	values := map[string]any{
		"text": "Grüße", "check": true, "plain": true, "radio": "a", "combo": "Pear", "list": []string{"three", "one"},
		"address.city": "Kyïv", "editable": "blue", "orphan": 7.5,
	}
	for _, flat := range []bool{false, true} {
		out := run(t, pdfops.FillForm(), fileops.Args{"fields": values, "flatten": flat}, in)
		sound(t, out)
		text := strings.Join(strings.Fields(shell(t, "pdftotext", save(t, out), "-")), " ")
		for _, want := range []string{"Grüße", "Pear", "three", "one", "Kyïv", "blue", "7.5", "fixed"} {
			if !strings.Contains(text, want) {
				t.Errorf("flatten %v: %q is not shown: %q", flat, want, text)
			}
		}
		if strings.Contains(text, "old") || strings.Contains(text, "Apple") {
			t.Errorf("flatten %v: old values are shown: %q", flat, text)
		}
		img := drawn(t, save(t, out), 1)
		for what, r := range map[string][4]int{"check": {10, 50, 30, 70}, "plain": {10, 80, 30, 100}, "radio a": {10, 110, 30, 130}, "radio b": {40, 110, 60, 130}} {
			if n := ink(img, r[0], r[1], r[2], r[3]); n > 0 != (what != "radio b") {
				t.Errorf("flatten %v: %s has %d dark pixels", flat, what, n)
			}
		}
		if got := summarize(t, out); flat != (got.Widgets == 0) || flat != (got.Fields == 0) {
			t.Errorf("flatten %v: %+v", flat, got)
		}
		if flat {
			continue
		}
		got := exported(t, out)
		for _, want := range []string{"text=Grüße", "check=true", "radio=a", "combo=y", "list=[three one]", "orphan=7.5"} {
			if !strings.Contains(got, want) {
				t.Errorf("pdfcpu reads %s, want %s", got, want)
			}
		}
		// Values can be taken back.
		empty := map[string]any{}
		for name := range values {
			empty[name] = nil
		}
		again := run(t, pdfops.FillForm(), fileops.Args{"fields": empty}, out.Named("a.pdf"))
		sound(t, again)
		if text := strings.Fields(shell(t, "pdftotext", save(t, again), "-")); !slices.Equal(text, []string{"fixed", "three", "two", "one"}) && !slices.Equal(text, []string{"fixed", "one", "two", "three"}) {
			t.Errorf("emptied: %q", text)
		}
		if n := ink(drawn(t, save(t, again), 1), 10, 50, 60, 130); n > 0 {
			t.Errorf("emptied: buttons have %d dark pixels", n)
		}
	}
}

// Values in any script are drawn in embedded fonts where the field's font lacks them.
func TestFillFormScripts(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"Đà Nẵng", "ウィーン", "ภาษาไทย", "שלום", "Ωμέγα"} {
		out, warnings := withWarnings(t, pdfops.FillForm(), fileops.Args{"fields": map[string]any{"text": value}}, pdf("a.pdf", formFile("")))
		sound(t, out)
		if text := shell(t, "pdftotext", save(t, out), "-"); !strings.Contains(text, value) || len(warnings) > 0 {
			t.Errorf("%s: warnings %q, text %q", value, warnings, text)
		}
	}
}

func TestFillFormErrors(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", formFile(""))
	for _, tt := range []struct {
		field string
		value any
		want  string
	}{
		{"nobody", "x", `"nobody" does not exist; the form has "address.city", "check", "combo", "editable", "fixed", "list", "orphan", "plain", "radio", "text"`},
		{"address", "x", "does not exist"},
		{"fixed", "x", "read-only"},
		{"push", true, "without a value"},
		{"text", strings.Repeat("x", 21), "at most 20 characters, not 21"},
		{"text", true, "takes a text"},
		{"check", "No", `"check" has no value "No"; it takes one of "Agreed", "Off"`},
		{"radio", true, `takes one of "a", "b"`},
		{"radio", "c", `has no value "c"`},
		{"combo", "Plum", `has no value "Plum"; it takes one of "x", "y"`},
		{"combo", []string{"x", "y"}, "one value only"},
		{"list", []string{"one", "four"}, `has no value "four"`},
		{"list", []any{true}, "a text or a list"},
	} {
		_, err := try(t.Context(), t, pdfops.FillForm(), fileops.Args{"fields": map[string]any{tt.field: tt.value}}, in)
		var param *fileops.ParamError
		if !errors.As(err, &param) || param.Param != "fields" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %v: %v", tt.field, tt.value, err)
		}
	}
	fails(t, fileops.ErrUnsupportedInput, pdfops.FillForm(), fileops.Args{"fields": map[string]any{"a": "b"}}, pdf("a.pdf", simple("x")))
	args := fileops.Args{"fields": map[string]any{"text": "x"}}
	if codes := warned(t, pdfops.FillForm(), args, pdf("a.pdf", formFile("/XFA(x)/CO[5 0 R]"))); !slices.Equal(codes, []string{fileops.WarnContentDropped, fileops.WarnScriptNotRun}) {
		t.Errorf("warnings %q", codes)
	}
	locked := pdf("a.pdf", encrypted(t, formFile(""), "0pensesame", "owner", "256"))
	fails(t, fileops.ErrPasswordRequired, pdfops.FillForm(), args, locked)
	args["password"] = "0pensesame"
	if codes := warned(t, pdfops.FillForm(), args, locked); !slices.Equal(codes, []string{fileops.WarnProtectionRemoved}) {
		t.Errorf("warnings %q", codes)
	}
}
