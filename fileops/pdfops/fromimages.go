package pdfops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// FromImages returns the action "convert" from jpg and png to pdf. Each image
// becomes a PDF file of one page.
//
// JPEG files, and PNG files without an alpha channel, are embedded without
// recompression, with their colour profile. The page follows the EXIF
// orientation.
//
// With page_size "auto" the page is as large as the image at its density. A
// missing density counts as 96 dpi. Densities up to 96 dpi are often
// placeholders, so such a page is at most as long as A4 is high (842 points).
// Otherwise a camera's 4,000 pixels would fill a metre of paper. With any other
// page_size the image is centred on the page, and scaled down if it does not fit
// at its density.
func (t Tools) FromImages() fileops.Action {
	return fileops.Func(t.imageSpec(false), t.fromImages)
}

// ImagesToPDF returns [Tools.FromImages] as a joint action. All images become
// one PDF file, in their order, named after the first.
func (t Tools) ImagesToPDF() fileops.Action {
	return fileops.Func(t.imageSpec(true), t.fromImages)
}

func (t Tools) imageSpec(joint bool) fileops.Spec {
	return fileops.Spec{
		Name: "convert", Engine: "go", Family: "pdf", Joint: joint,
		Summary: "Makes a PDF file of pictures.",
		Accepts: []fileops.Accept{{
			Formats: []format.Format{format.JPG, format.PNG},
			Params: fileops.Schema{
				fileops.Enum("convert_to", "Format of the result.", string(format.PDF)),
				{
					Name: "page_size", Doc: "Size of the page; auto makes it as large as the picture.",
					Enum: []string{"auto", "a4", "letter"}, Default: "auto",
				},
				{
					Name: "orientation", Doc: "Orientation of a page of given size; auto takes that of the picture.",
					Enum: []string{"auto", "portrait", "landscape"}, Default: "auto",
				},
				{Name: "margin", Doc: "Margin on each side in points (1/72 inch).", Type: fileops.Number, Default: 0, Max: 200},
			},
		}},
	}
}

func (t Tools) fromImages(ctx context.Context, job *fileops.Job) error {
	d := pdf.New()
	d.Version = "1.7"
	root := d.Add(types.Dict{"Type": types.Name("Catalog")})
	d.Root = root.ObjectNumber.Value()
	m := &merger{out: d}
	if most := t.Limits.pages(); len(job.Inputs) > most {
		return fileops.Fail(fileops.ErrLimit, nil, "there are %d pictures, more than the limit of %d pages; do it in several parts", len(job.Inputs), most)
	}
	total := int64(0)
	for i, f := range job.Inputs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if total += f.Size(); total > pdf.MaxFile {
			return fileops.Fail(fileops.ErrLimit, nil, "the pictures have more than %d bytes together", int64(pdf.MaxFile))
		}
		p, err := t.loadPicture(d, f)
		if err != nil {
			return err
		}
		m.pages = append(m.pages, addPicturePage(d, p, job.Params))
		job.Progress(0.9 * float64(i+1) / float64(len(job.Inputs)))
	}
	d.Catalog()["Pages"] = d.AddPageTree(m.pages)
	name := fileops.ResultName(job.Input(), format.PDF)
	return job.Write(name, func(w io.Writer) error { return d.Write(w, false, nil) })
}

// A picture is an image in a document, with the attributes that decide how it is
// shown.
type picture struct {
	image         types.IndirectRef
	width, height int               // in pixels, as stored
	density       imagefile.Density // along the stored axes
	orientation   int               // 1 to 8 (Exif 2.3, table 5)
}

func (t Tools) loadPicture(d *pdf.Document, f *fileops.File) (picture, error) {
	b, err := f.ReadAll(pdf.MaxFile)
	if err != nil {
		return picture{}, err
	}
	var p picture
	if f.Format() == format.PNG {
		p, err = pngPicture(d, b, t.Limits)
	} else {
		p, err = jpegPicture(d, b, t.Limits)
	}
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, fileops.ErrLimit):
		return picture{}, err
	case errors.Is(err, errors.ErrUnsupported):
		return picture{}, fileops.Fail(fileops.ErrUnsupportedInput, err, "%s is a kind of picture that cannot be in a PDF file; convert it to png first", f.Name())
	}
	return picture{}, fileops.Fail(fileops.ErrCorruptInput, err, "%s is damaged", f.Name())
}

// jpegPicture embeds a JPEG file in the document, byte for byte.
func jpegPicture(d *pdf.Document, b []byte, limits Limits) (picture, error) {
	info, err := imagefile.ReadJPEG(b)
	if err != nil {
		return picture{}, err
	}
	if err := limits.checkPixels(info.Width, info.Height); err != nil {
		return picture{}, err
	}
	if !info.Complete {
		return picture{}, errors.New("the end of the picture is missing")
	}
	// DCTDecode supports baseline, extended and progressive JPEG with Huffman
	// codes.
	if info.Process > 0xc2 || info.Components != 1 && info.Components != 3 && info.Components != 4 {
		return picture{}, fmt.Errorf("JPEG process %#x with %d components: %w", info.Process, info.Components, errors.ErrUnsupported)
	}
	dict := imageDict(info.Width, info.Height, 8)
	dict["Filter"] = types.Name("DCTDecode")
	dict["ColorSpace"] = pictureSpace(d, info.Profile, info.Components)
	if info.Components == 4 && info.Adobe {
		// Adobe's programs store CMYK inverted.
		dict["Decode"] = types.NewIntegerArray(1, 0, 1, 0, 1, 0, 1, 0)
	}
	return picture{
		image: d.AddStream(dict, b), width: info.Width, height: info.Height,
		density: info.Density, orientation: max(1, info.Orientation),
	}, nil
}

func imageDict(width, height, bits int) types.Dict {
	return types.Dict{
		"Type": types.Name("XObject"), "Subtype": types.Name("Image"),
		"Width": types.Integer(width), "Height": types.Integer(height), "BitsPerComponent": types.Integer(bits),
	}
}

// pictureSpace returns the colour space for n components. It uses the profile if
// that has n components too. Otherwise it uses the device colour space, which
// viewers take for sRGB.
func pictureSpace(d *pdf.Document, profile []byte, n int) types.Object {
	device := pdf.DeviceSpace(n)
	want := map[int]string{1: "GRAY", 3: "RGB ", 4: "CMYK"}[n]
	// ICC.1:2010, 7.2: signature "acsp" at 36, colour space at 16.
	if len(profile) < 128 || string(profile[36:40]) != "acsp" || string(profile[16:20]) != want {
		return device
	}
	return types.Array{types.Name("ICCBased"), d.AddStream(types.Dict{
		"N": types.Integer(n), "Alternate": device, "Filter": types.Name("FlateDecode"),
	}, pdf.Deflate(profile))}
}

const (
	placeholder = 96    // dpi: a density up to this may be a placeholder
	longestPage = 842   // points: longest side of a page for such an image
	maxSide     = 14400 // points: of any page (ISO 32000-2, annex C)
)

// size returns the displayed size of an image in points.
func (p picture) size() (width, height float64) {
	dx, dy := p.density.X, p.density.Y
	if !(dx >= 1 && dy >= 1) || math.IsInf(dx, 0) || math.IsInf(dy, 0) {
		dx, dy = placeholder, placeholder
	}
	width, height = float64(p.width)*72/dx, float64(p.height)*72/dy
	longest := float64(maxSide)
	if dx <= placeholder || dy <= placeholder {
		longest = longestPage
	}
	if f := longest / max(width, height); f < 1 {
		width, height = width*f, height*f
	}
	if p.orientation >= 5 {
		width, height = height, width
	}
	return max(width, 1), max(height, 1)
}

// upright returns a transformation of the unit square, in which PDF draws an
// image, onto itself. It turns the image upright.
func upright(orientation int) pdf.Matrix {
	switch orientation {
	case 2: // mirrored
		return pdf.Matrix{-1, 0, 0, 1, 1, 0}
	case 3: // rotated by 180°
		return pdf.Matrix{-1, 0, 0, -1, 1, 1}
	case 4: // mirrored vertically
		return pdf.Matrix{1, 0, 0, -1, 0, 1}
	case 5: // mirrored along the diagonal from the top left
		return pdf.Matrix{0, -1, -1, 0, 1, 1}
	case 6: // rotate clockwise
		return pdf.Matrix{0, -1, 1, 0, 0, 1}
	case 7: // mirrored along the other diagonal
		return pdf.Matrix{0, 1, 1, 0, 0, 0}
	case 8: // rotate counter-clockwise
		return pdf.Matrix{0, 1, -1, 0, 1, 0}
	}
	return pdf.IdentityMatrix()
}

// addPicturePage adds a page that shows an image.
func addPicturePage(d *pdf.Document, p picture, params fileops.Params) types.IndirectRef {
	width, height := p.size()
	margin := params.Float("margin")
	pageWidth, pageHeight := width+2*margin, height+2*margin
	if w, h, ok := paper(params.Get("page_size")); ok {
		landscape := params.Get("orientation") == "landscape" || params.Get("orientation") != "portrait" && width > height
		if landscape {
			w, h = h, w
		}
		pageWidth, pageHeight = w, h
		if f := min((w-2*margin)/width, (h-2*margin)/height); f < 1 {
			width, height = width*f, height*f
		}
	}
	x, y := (pageWidth-width)/2, (pageHeight-height)/2
	m := upright(p.orientation).Times(pdf.Matrix{width, 0, 0, height, x, y})
	content := []byte("q ")
	for _, v := range m {
		content = append(pdf.AppendFloat(content, math.Round(v*1e4)/1e4), ' ')
	}
	content = append(content, "cm /Im Do Q\n"...)
	return d.Add(types.Dict{
		"Type":      types.Name("Page"),
		"MediaBox":  types.Array{types.Integer(0), types.Integer(0), types.Float(math.Round(pageWidth*1e3) / 1e3), types.Float(math.Round(pageHeight*1e3) / 1e3)},
		"Resources": types.Dict{"XObject": types.Dict{"Im": p.image}},
		"Contents":  d.AddStream(types.Dict{}, content),
	})
}

// paper returns the size of a paper format in points.
func paper(name string) (width, height float64, ok bool) {
	switch name {
	case "a4":
		return 595.276, 841.89, true
	case "letter":
		return 612, 792, true
	}
	return 0, 0, false
}
