package colour_test

import (
	"fmt"
	"image/color"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/colour"
)

func TestParam(t *testing.T) {
	t.Parallel()
	schema := fileops.Schema{colour.Param("background", "Colour behind it.")}
	for in, want := range map[string]*color.NRGBA{
		"orange": {R: 255, G: 165, A: 255}, "#FFa500": {R: 255, G: 165, A: 255}, "black": {A: 255}, "white": &colour.White,
		"#ffa50": nil, "#+fa500": nil, "#ffa5000": nil, "Orange!": nil, "red ": nil, "reddish": nil, "ffa500": nil,
	} {
		params, err := schema.Parse(fileops.Args{"background": in})
		if (err == nil) != (want != nil) {
			t.Errorf("%q as a parameter: %v", in, err)
		}
		if got := colour.Parse(in); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
		if err == nil && params.Get("background") != in {
			t.Errorf("%q became %q", in, params.Get("background"))
		}
	}
	if colour.Parse("") != nil {
		t.Error("nothing is a colour")
	}
}

func Example() {
	schema := fileops.Schema{colour.Param("background", "Colour behind transparent parts.")}
	params, err := schema.Parse(fileops.Args{"background": "#ffa500"})
	fmt.Println(*colour.Parse(params.Get("background")), err)
	// Output: {255 165 0 255} <nil>
}
