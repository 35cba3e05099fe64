package ocrops

import (
	"image"
	"io"

	"github.com/filewright/filewright/fileops"
)

// ParseHOCR exports parseHOCR and the processing of its result.
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

// PictureSizes exports pictureSizes.
func PictureSizes(f *fileops.File) (sizes []image.Point, err error) {
	all, err := pictureSizes(f, 500)
	for _, s := range all {
		sizes = append(sizes, s.Point)
	}
	return sizes, err
}
