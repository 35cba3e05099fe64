package extract

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/internal/imagefile"
)

// Limits of pictures in one document.
const (
	maxMedia       = 2000
	maxMediaBytes  = 512 << 20
	maxImageSide   = 20_000
	maxMediaPixels = 100e6
)

// A Store keeps the pictures of a document in a directory, without duplicates.
type Store struct {
	dir   string
	known map[[sha256.Size]byte]*model.Media
	All   []*model.Media
	size  int64
}

// NewStore returns a Store that keeps pictures in files of dir.
func NewStore(dir string) *Store {
	return &Store{dir: dir, known: make(map[[sha256.Size]byte]*model.Media)}
}

// add stores a picture. It returns nil if there are too many.
func (s *Store) add(ext string, w, h int, content []byte) (*model.Media, error) {
	sum := sha256.Sum256(content)
	if m, ok := s.known[sum]; ok {
		return m, nil
	}
	if len(s.All) >= maxMedia || s.size+int64(len(content)) > maxMediaBytes {
		return nil, nil
	}
	m := &model.Media{Path: filepath.Join(s.dir, fmt.Sprintf("media-%d.%s", len(s.All)+1, ext)), Ext: ext, W: w, H: h, ID: len(s.All) + 1}
	if err := os.WriteFile(m.Path, content, 0o600); err != nil {
		return nil, err
	}
	s.known[sum] = m
	s.All = append(s.All, m)
	s.size += int64(len(content))
	return m, nil
}

// image stores an image of the page. A JPEG file stays unchanged; other images
// become PNG. Rotated and masked images are cut from the rendered page.
func (w *walker) image(obj uint64, m geom.Matrix) {
	in := w.x.In
	box, ok := w.bounds(obj, m)
	if !ok || box.W() < 5 || box.H() < 5 || box.Area() < 100 {
		return
	}
	behind := w.behindText(box)
	lost := func() {
		if behind {
			w.sheet.Lost = append(w.sheet.Lost, box)
		}
	}
	if !in.Ok("FPDFPageObj_GetMatrix", obj, in.Arg(0)) {
		lost()
		return
	}
	place := in.OutMatrix().Then(m)
	if !in.Ok("FPDFImageObj_GetImageMetadata", obj, w.page.Ptr, in.Arg(0)) {
		lost()
		return
	}
	// FPDF_IMAGEOBJ_METADATA: width, height, dpi in both directions, bits per
	// pixel, colour space, marked content.
	field := func(i uint32) uint32 {
		v, _ := in.Module.Memory().ReadUint32Le(in.Out + 4*i)
		return v
	}
	width, height, bits := int(field(0)), int(field(1)), field(4)
	if width < 1 || height < 1 || width > maxImageSide || height > maxImageSide || float64(width)*float64(height) > maxMediaPixels {
		lost()
		return
	}
	// The matrix maps the unit square, upwards, to the page, downwards.
	upright := place.A > 0 && place.D < 0 && math.Abs(place.B) < 0.02*place.A && math.Abs(place.C) < -0.02*place.D
	p := &model.Picture{Rect: box}
	masked := in.Ok("FPDFPageObj_HasTransparency", obj) || w.seeThrough(obj)
	full := place.Rect(0, 0, 1, 1)
	cut := box.Area() < 0.95*full.Area()
	switch {
	case w.x.media == nil:
	case behind && (!upright || masked || cut || bits == 1):
		lost() // drawn, it would show the text too
		return
	case !upright || masked || cut || bits == 1:
		p.Media = w.drawn(box)
	default:
		if p.Media = w.jpeg(obj); p.Media == nil {
			p.Media = w.bitmap(obj)
		}
		if p.Media == nil && !behind {
			p.Media = w.drawn(box)
		}
	}
	if behind {
		w.sheet.Backs = append(w.sheet.Backs, p)
		return
	}
	w.sheet.Pictures = append(w.sheet.Pictures, p)
}

// backs drops pictures behind text that cannot be shown behind it: those without
// content, and those that show the text, as scans with a text layer do.
func (w *walker) backs() {
	s := w.sheet
	s.Backs = slices.DeleteFunc(s.Backs, func(p *model.Picture) bool {
		drop := p.Media == nil || slices.ContainsFunc(s.Words, func(word *model.Word) bool { return word.Hidden && p.Contains(word.CX(), word.CY()) })
		if drop {
			s.Lost = append(s.Lost, p.Rect)
		}
		return drop
	})
}

// seeThrough reports whether an image has a mask. pdfium reveals that only by
// rendering, so the image is rendered small, at screen size.
func (w *walker) seeThrough(obj uint64) bool {
	in := w.x.In
	bitmap := in.Call("FPDFImageObj_GetRenderedBitmap", w.x.Doc.Ptr, w.page.Ptr, obj)
	if bitmap == 0 {
		return false
	}
	defer in.Call("FPDFBitmap_Destroy", bitmap)
	if in.Int("FPDFBitmap_GetFormat", bitmap) != pdfium.FormatBGRA {
		return false
	}
	width, height := in.Int("FPDFBitmap_GetWidth", bitmap), in.Int("FPDFBitmap_GetHeight", bitmap)
	stride := in.Int("FPDFBitmap_GetStride", bitmap)
	pix := in.Bytes(uint32(in.Call("FPDFBitmap_GetBuffer", bitmap)), stride*height)
	// The border pixels may be covered partially.
	clear := 0
	for y := 1; y < height-1 && pix != nil; y++ {
		for x := 1; x < width-1; x++ {
			if pix[y*stride+4*x+3] < 250 {
				clear++
			}
		}
	}
	return clear > 0
}

// behindText reports whether a picture is the background of a page, or a scan
// with a text layer.
func (w *walker) behindText(box geom.Rect) bool {
	part := box.Area() / (w.sheet.W * w.sheet.H)
	if part < 0.25 {
		return false
	}
	over := 0
	for _, word := range w.sheet.Words {
		if box.Contains(word.CX(), word.CY()) {
			over++
		}
	}
	return over > 0 && part > 0.5 || over > 12
}

// jpeg stores an image that is a JPEG file, if every program shows it correctly.
func (w *walker) jpeg(obj uint64) *model.Media {
	in := w.x.In
	if in.Int("FPDFImageObj_GetImageFilterCount", obj) != 1 {
		return nil
	}
	name := pdfium.CString(in.WithBuffer(64, func(p, n uint64) int { return in.Int("FPDFImageObj_GetImageFilter", obj, 0, p, n) }))
	if name != "DCTDecode" {
		return nil
	}
	data := in.WithBuffer(pdfium.MaxFileSize, func(p, n uint64) int { return in.Int("FPDFImageObj_GetImageDataRaw", obj, p, n) })
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || cfg.ColorModel == color.CMYKModel { // some programs invert four components
		return nil
	}
	return w.keep("jpg", cfg.Width, cfg.Height, data)
}

// bitmap stores the pixels of an image as PNG.
func (w *walker) bitmap(obj uint64) *model.Media {
	in := w.x.In
	bitmap := in.Call("FPDFImageObj_GetBitmap", obj)
	if bitmap == 0 {
		return nil
	}
	defer in.Call("FPDFBitmap_Destroy", bitmap)
	width, height := in.Int("FPDFBitmap_GetWidth", bitmap), in.Int("FPDFBitmap_GetHeight", bitmap)
	stride, kind := in.Int("FPDFBitmap_GetStride", bitmap), in.Int("FPDFBitmap_GetFormat", bitmap)
	if width < 1 || height < 1 || stride < width || float64(width)*float64(height) > maxMediaPixels {
		return nil
	}
	pix := in.Bytes(uint32(in.Call("FPDFBitmap_GetBuffer", bitmap)), stride*height)
	if pix == nil {
		return nil
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	step := map[int]int{pdfium.FormatGray: 1, pdfium.FormatBGR: 3, pdfium.FormatBGRx: 4, pdfium.FormatBGRA: 4}[kind]
	if step == 0 || stride < step*width {
		return nil
	}
	for y := range height {
		src, dst := pix[y*stride:], img.Pix[y*img.Stride:]
		for x := range width {
			s, d := src[x*step:], dst[4*x:4*x+4]
			if step == 1 {
				d[0], d[1], d[2], d[3] = s[0], s[0], s[0], 255
				continue
			}
			d[0], d[1], d[2], d[3] = s[2], s[1], s[0], 255
		}
	}
	return w.keepRGBA(img)
}

// drawn stores a part of the page as rendered. The page is rendered once for all
// its parts.
func (w *walker) drawn(box geom.Rect) *model.Media {
	if !w.shoot() {
		return nil
	}
	r := image.Rect(int(box.L*w.scale), int(box.T*w.scale), int(math.Ceil(box.R*w.scale)), int(math.Ceil(box.B*w.scale))).
		Intersect(image.Rect(0, 0, w.shotW, w.shotH))
	if r.Empty() {
		return nil
	}
	pix := w.x.In.Bytes(w.shotPix, 4*w.shotW*w.shotH)
	if pix == nil {
		return nil
	}
	m := &image.RGBA{Pix: pix, Stride: 4 * w.shotW, Rect: image.Rect(0, 0, w.shotW, w.shotH)}
	return w.keepRGBA(m.SubImage(r).(*image.RGBA))
}

// shotPixels limits the size of a rendered page. Larger pages get a lower
// resolution.
const shotPixels = 25e6

// shoot renders the page on the first call. It reports whether that succeeded.
func (w *walker) shoot() bool {
	if w.shot != 0 {
		return true
	}
	w.scale = min(w.x.dpi/72, math.Sqrt(shotPixels/(w.sheet.W*w.sheet.H)))
	w.shot, w.shotPix, w.shotW, w.shotH = w.render(w.scale)
	return w.shot != 0 && w.x.In.Err == nil
}

// render draws the sheet at a scale in pixels per point. The caller destroys the bitmap,
// which is 0 if there is no memory for it.
func (w *walker) render(scale float64) (bitmap uint64, pix uint32, width, height int) {
	in, s := w.x.In, w.sheet
	width, height = max(1, int(s.W*scale)), max(1, int(s.H*scale))
	bitmap = in.Call("FPDFBitmap_CreateEx", uint64(width), uint64(height), pdfium.BitmapRGBA, 0, uint64(4*width))
	if bitmap == 0 {
		return 0, 0, width, height
	}
	in.Call("FPDFBitmap_FillRect", bitmap, 0, 0, uint64(width), uint64(height), 0xffffffff)
	// A rotated sheet is rendered rotated.
	quarter := []uint64{0, 3, 2, 1}[w.turn]
	in.Call("FPDF_RenderPageBitmap", bitmap, w.page.Ptr, 0, 0, uint64(width), uint64(height), quarter, pdfium.RenderRGBA)
	return bitmap, uint32(in.Call("FPDFBitmap_GetBuffer", bitmap)), width, height
}

// keepRGBA stores a picture as PNG, or as JPEG if that is much smaller, as for
// photographs.
func (w *walker) keepRGBA(img *image.RGBA) *model.Media {
	var b bytes.Buffer
	buf := bufio.NewWriter(&b)
	if err := imagefile.WritePNG(buf, img, 0); err != nil {
		return nil
	}
	buf.Flush()
	ext := "png"
	if b.Len() > 256<<10 {
		var j bytes.Buffer
		if err := imagefile.WriteJPEG(&j, img, 90, 96); err == nil && j.Len() < b.Len()/3 {
			b, ext = j, "jpg"
		}
	}
	return w.keep(ext, img.Rect.Dx(), img.Rect.Dy(), b.Bytes())
}

func (w *walker) keep(ext string, width, height int, content []byte) *model.Media {
	m, err := w.x.media.add(ext, width, height, content)
	if err != nil && w.x.In.Err == nil {
		w.x.In.Err = err
	}
	return m
}
