// Package imageops converts and compresses pictures.
//
// # Engines
//
// Built with cgo it uses libvips by way of govips, and reads and writes what
// the libvips of the host really can: each encoder and decoder is tried on a
// small picture when an [Engine] is made. Without cgo it is pure Go and knows
// fewer formats. The constructor and the actions are the same.
//
//	e, err := imageops.New(ctx, imageops.Options{})
//	if err != nil {
//		return err
//	}
//	actions := []fileops.Action{e.Convert(), e.Compress()}
//
// # What happens to a picture
//
// The orientation that a camera only noted is applied. A colour profile is kept
// where the target can carry it; otherwise, and for CMYK, the colours are
// converted to sRGB. Where the target has no transparency the picture is laid
// on white or on the colour that is asked for. Animations stay animations between
// GIF and WebP, and become the pages of a TIFF; other targets, and all of them
// without libvips, get the first frame. A TIFF of several pages gives one result
// per page. Pictures are never enlarged, apart from SVG, which has no pixels.
//
// # Hostile input
//
// The decoder is chosen by the content, never by trying them all, and libvips'
// loaders for formats that are not in this package's list (and with them
// ImageMagick's) are switched off for the whole process. Dimensions and frames
// are checked before anything is decoded. BMP, ICO and PSD are decoded in Go.
package imageops
