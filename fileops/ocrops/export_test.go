package ocrops

import (
	"image"
	"io"

	"github.com/filewright/filewright/fileops"
)

// ParseHOCR makes parseHOCR testable, with what is made of its result.
func ParseHOCR(r io.Reader) {
	pages, err := parseHOCR(r)
	if err != nil {
		return
	}
	for _, p := range pages {
		p.turn()
		p.page()
	}
}

// PictureSizes makes pictureSizes testable.
func PictureSizes(f *fileops.File) ([]image.Point, error) { return pictureSizes(f, 500) }
