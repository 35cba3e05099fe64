package mediaops

import (
	"slices"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// transparent tells whether the pictures of s have an alpha channel.
func (s stream) transparent() bool {
	if s.Codec == "gif" || s.Tags["alpha_mode"] == "1" || s.Tags["ALPHA_MODE"] == "1" {
		return true
	}
	for _, p := range []string{"yuva", "rgba", "argb", "bgra", "abgr", "gbrap", "ya8", "ya16"} {
		if strings.HasPrefix(s.PixFmt, p) {
			return true
		}
	}
	return false
}

// alphaDecoders are those that see the transparency of a codec which ffmpeg's own
// decoder does not see.
var alphaDecoders = map[string]string{"vp8": "libvpx", "vp9": "libvpx-vp9"}

// mayBeTransparent tells whether a video format can hold transparency.
func mayBeTransparent(f format.Format) bool {
	switch f {
	case format.WebM, format.MKV, format.MOV, format.AVI, format.GIF:
		return true
	}
	return false
}

// A colour is opaque: red, green and blue.
type colour [3]uint8

var white = colour{255, 255, 255}

// colourNames are those of CSS 2.1, 4.3.6.
var colourNames = map[string]colour{
	"aqua": {0, 255, 255}, "black": {}, "blue": {0, 0, 255}, "fuchsia": {255, 0, 255}, "gray": {128, 128, 128}, "green": {0, 128, 0},
	"lime": {0, 255, 0}, "maroon": {128, 0, 0}, "navy": {0, 0, 128}, "olive": {128, 128, 0}, "orange": {255, 165, 0}, "purple": {128, 0, 128},
	"red": {255, 0, 0}, "silver": {192, 192, 192}, "teal": {0, 128, 128}, "white": white, "yellow": {255, 255, 0},
}

// backgroundParam is the parameter background.
func backgroundParam() fileops.Param {
	names := make([]string, 0, len(colourNames))
	for n := range colourNames {
		names = append(names, n)
	}
	slices.Sort(names)
	return fileops.Param{
		Name: "background", Min: 3, Max: 7, Pattern: "#[0-9A-Fa-f]{6}|" + strings.Join(names, "|"),
		Doc: "Colour behind transparent parts, as #rrggbb or a name of CSS 2.1; without it, white where the format has no transparency.",
	}
}

// parseColour reads what backgroundParam lets through; nil for "".
func parseColour(s string) *colour {
	if c, ok := colourNames[s]; ok {
		return &c
	}
	if hex, found := strings.CutPrefix(s, "#"); found {
		if v, err := strconv.ParseUint(hex, 16, 24); err == nil {
			return &colour{byte(v >> 16), byte(v >> 8), byte(v)}
		}
	}
	return nil
}
