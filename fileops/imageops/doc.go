// Package imageops converts and compresses pictures.
//
// # Engines
//
// With cgo the package uses libvips through govips. [New] tests each encoder and
// decoder with a small picture, and offers only formats that libvips supports on this
// host. Without cgo the package is pure Go and supports fewer formats. The
// constructor and the actions are the same.
//
//	e, err := imageops.New(ctx, imageops.Options{})
//	if err != nil {
//		return err
//	}
//	actions := e.Actions()
//
// # Conversion rules
//
// The EXIF orientation is applied. A colour profile is kept if the target
// supports it. Otherwise, and for CMYK, the colours are converted to sRGB. If
// the target has no transparency, the background becomes white or the requested
// colour.
//
// Animations stay animations between GIF and WebP, and become the pages of a
// TIFF. Other targets, and all targets without libvips, get the first frame. A
// TIFF with several pages gives one result for each page, except as TIFF. Pictures
// are enlarged only on request, except SVG, which has no pixels.
//
// # Hostile input
//
// The content selects the decoder; the package never tries several decoders.
// libvips loaders for formats outside this package's list, including
// ImageMagick's, are disabled for the whole process. Dimensions and frames are
// checked before decoding. BMP, ICO and PSD are decoded in Go.
package imageops
