// Package colour provides the action parameter for a colour: [Param] describes
// it, [Parse] parses its value.
package colour

import (
	"image/color"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// names maps the colour names of CSS 2.1, 4.3.6.
var names = map[string]uint32{
	"aqua": 0x00ffff, "black": 0x000000, "blue": 0x0000ff, "fuchsia": 0xff00ff, "gray": 0x808080, "green": 0x008000,
	"lime": 0x00ff00, "maroon": 0x800000, "navy": 0x000080, "olive": 0x808000, "orange": 0xffa500, "purple": 0x800080,
	"red": 0xff0000, "silver": 0xc0c0c0, "teal": 0x008080, "white": 0xffffff, "yellow": 0xffff00,
}

// White is the default background.
var White = color.NRGBA{255, 255, 255, 255}

// Param returns a String parameter for a colour: #rrggbb or a CSS 2.1 name.
func Param(name, doc string) fileops.Param {
	return fileops.Param{
		Name: name, Doc: doc, Min: 3, Max: 7,
		Pattern: "#[0-9A-Fa-f]{6}|" + strings.Join(slices.Sorted(maps.Keys(names)), "|"),
	}
}

// Parse parses a value that [Param] accepts and returns an opaque colour. It
// returns nil for "" and for any other text.
func Parse(s string) *color.NRGBA {
	v, ok := names[s]
	if hex, found := strings.CutPrefix(s, "#"); found && len(hex) == 6 {
		n, err := strconv.ParseUint(hex, 16, 24)
		v, ok = uint32(n), err == nil
	}
	if !ok {
		return nil
	}
	return &color.NRGBA{byte(v >> 16), byte(v >> 8), byte(v), 255}
}
