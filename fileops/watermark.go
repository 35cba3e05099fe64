package fileops

import "github.com/filewright/filewright/fileops/format"

// Watermark returns the parameters of all watermark actions. pictures are the formats of
// pictures that the action can draw, and text says that it can draw text. Use it with
// [WatermarkMarks] as [Accept.Changes]: one of the two is required.
func Watermark(text bool, pictures ...format.Format) Schema {
	const mark = "mark"
	var s Schema
	if text {
		s = append(s, Param{Name: "text", Min: 1, Max: 1000, OneOf: mark, Doc: "Text to draw; a line break starts a new line. Either this or image_key is required."})
	}
	if len(pictures) > 0 {
		s = append(s, Param{Name: "image_key", Type: Upload, Formats: pictures, OneOf: mark, Doc: "Picture to draw, such as a logo: the file_key of an upload. Transparent parts stay transparent."})
	}
	return append(s, Param{
		Name: "opacity", Type: Number, Default: 0.4, Min: 0.01, Max: 1,
		Doc: "How much the watermark covers, from 0.01 to 1 (opaque).",
	}, Param{
		Name: "position", Default: "center",
		Enum: []string{
			"center", "diagonal", "tile", "top-left", "top-center", "top-right", "center-left", "center-right",
			"bottom-left", "bottom-center", "bottom-right",
		},
		Aliases: map[string]string{"top": "top-center", "bottom": "bottom-center", "left": "center-left", "right": "center-right", "center-center": "center"},
		Doc:     "Place of the watermark: at an edge, a corner or in the middle, along the diagonal, or repeated.",
	}, Param{
		Name: "scale", Type: Number, Min: 0.02, Max: 1,
		Doc: "Width of the watermark as a part of the width of the page or picture; by default 0.6 for center and diagonal, else 0.25.",
	})
}

// WatermarkMarks returns the names of the parameters in s, made by [Watermark], that say
// what to draw.
func WatermarkMarks(s Schema) []string {
	var names []string
	for _, d := range s {
		if d.OneOf != "" {
			names = append(names, d.Name)
		}
	}
	return names
}

// WatermarkScale returns the width of a watermark as a part of the width of the page or
// picture, from the parameters of [Watermark].
func WatermarkScale(p Params) float64 {
	if s := p.Float("scale"); s != 0 {
		return s
	}
	switch p.Get("position") {
	case "center", "diagonal":
		return 0.6
	}
	return 0.25
}
