package ocrops

import (
	"encoding/binary"
	"errors"
	"image"
	_ "image/gif" // decodes headers
	_ "image/jpeg"
	_ "image/png"
	"io"

	"golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff" // in tiles, which Tesseract does not read
	_ "golang.org/x/image/webp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A pageSize is the width and height of a page of a picture.
type pageSize struct {
	image.Point
	copy bool // the page is a smaller copy of another one
}

// pictureSizes returns the size of each page of a picture, read from its headers only. It
// fails if there are more than most pages.
func pictureSizes(f *fileops.File, most int) ([]pageSize, error) {
	var sizes []pageSize
	var err error
	if f.Format() == format.TIFF {
		sizes, err = tiffSizes(f.Reader(), most)
	} else {
		var cfg image.Config
		cfg, _, err = image.DecodeConfig(f.Reader())
		sizes = []pageSize{{Point: image.Pt(cfg.Width, cfg.Height)}}
	}
	if errors.Is(err, errPages) {
		return nil, fileops.Fail(fileops.ErrLimit, err, "the picture has more than the limit of %d pages for character recognition; split it first", most)
	}
	if errors.Is(err, bmp.ErrUnsupported) {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, err, "text cannot be read from this variant of BMP; convert it to PNG first")
	}
	if err != nil {
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the picture is damaged")
	}
	return sizes, nil
}

var errPages = errors.New("tiff: too many pages")

// Tags of TIFF 6.0, section 8.
const (
	tagSubfileType = 254 // bit 0: a smaller copy
	tagWidth       = 256
	tagHeight      = 257
)

// tiffSizes reads the page directories of a TIFF file (TIFF 6.0, section 2).
func tiffSizes(r io.ReaderAt, most int) ([]pageSize, error) {
	var head [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch string(head[:4]) {
	case "II*\x00":
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return nil, errors.New("tiff: bad header")
	}
	var sizes []pageSize
	for at := int64(order.Uint32(head[4:])); at != 0; {
		if len(sizes) >= most { // or the directories form a loop
			return nil, errPages
		}
		var n [2]byte
		if _, err := r.ReadAt(n[:], at); err != nil {
			return nil, err
		}
		dir := make([]byte, 12*int(order.Uint16(n[:]))+4)
		if _, err := r.ReadAt(dir, at+2); err != nil {
			return nil, err
		}
		var size pageSize
		for e := dir; len(e) > 4; e = e[12:] {
			v := int(order.Uint32(e[8:]))
			if order.Uint16(e[2:]) == 3 { // SHORT
				v = int(order.Uint16(e[8:]))
			}
			switch order.Uint16(e) {
			case tagSubfileType:
				size.copy = v&1 != 0
			case tagWidth:
				size.X = v
			case tagHeight:
				size.Y = v
			}
		}
		sizes = append(sizes, size)
		at = int64(order.Uint32(dir[len(dir)-4:]))
	}
	if len(sizes) == 0 {
		return nil, errors.New("tiff: no page")
	}
	return sizes, nil
}
