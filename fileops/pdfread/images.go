package pdfread

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

	"github.com/filewright/filewright/internal/imagefile"
)

// Limits of pictures in one document.
const (
	maxMedia      = 2000
	maxMediaBytes = 512 << 20
	maxImageSide  = 20_000
)

// A mediaStore keeps the pictures of a document in a directory, each once.
type mediaStore struct {
	dir   string
	known map[[sha256.Size]byte]*media
	all   []*media
	size  int64
}

func newMediaStore(dir string) *mediaStore {
	return &mediaStore{dir: dir, known: make(map[[sha256.Size]byte]*media)}
}

// add keeps a picture. It returns nil if there are too many.
func (s *mediaStore) add(ext string, w, h int, content []byte) (*media, error) {
	sum := sha256.Sum256(content)
	if m, ok := s.known[sum]; ok {
		return m, nil
	}
	if len(s.all) >= maxMedia || s.size+int64(len(content)) > maxMediaBytes {
		return nil, nil
	}
	m := &media{path: filepath.Join(s.dir, fmt.Sprintf("media-%d.%s", len(s.all)+1, ext)), ext: ext, w: w, h: h, id: len(s.all) + 1}
	if err := os.WriteFile(m.path, content, 0o600); err != nil {
		return nil, err
	}
	s.known[sum] = m
	s.all = append(s.all, m)
	s.size += int64(len(content))
	return m, nil
}

// image keeps an image of the page. A JPEG stays the file it is; others become
// PNG. What is turned or has a mask is taken from the drawn page.
func (w *walker) image(obj uint64, m matrix) {
	in := w.x.in
	box, ok := w.bounds(obj, m)
	if !ok || box.w() < 5 || box.h() < 5 || box.area() < 100 {
		return
	}
	if w.behindText(box) || !in.ok("FPDFPageObj_GetMatrix", obj, in.arg(0)) {
		return
	}
	place := in.matrixOut().then(m)
	if !in.ok("FPDFImageObj_GetImageMetadata", obj, w.page.ptr, in.arg(0)) {
		return
	}
	// FPDF_IMAGEOBJ_METADATA: width, height, dpi in both directions, bits per
	// pixel, colour space, marked content.
	field := func(i uint32) uint32 {
		v, _ := in.module.Memory().ReadUint32Le(in.out + 4*i)
		return v
	}
	width, height, bits := int(field(0)), int(field(1)), field(4)
	if width < 1 || height < 1 || width > maxImageSide || height > maxImageSide || float64(width)*float64(height) > maxPixels {
		return
	}
	// The matrix maps the unit square, upwards, to the page, downwards.
	upright := place.a > 0 && place.d < 0 && math.Abs(place.b) < 0.02*place.a && math.Abs(place.c) < -0.02*place.d
	p := &picture{rect: box}
	masked := in.ok("FPDFPageObj_HasTransparency", obj) || w.seeThrough(obj)
	full := place.rect(0, 0, 1, 1)
	cut := box.area() < 0.95*full.area()
	switch {
	case w.x.media == nil:
	case !upright || masked || cut || bits == 1:
		p.media = w.drawn(box)
	default:
		if p.media = w.jpeg(obj); p.media == nil {
			p.media = w.bitmap(obj)
		}
		if p.media == nil {
			p.media = w.drawn(box)
		}
	}
	w.sheet.pictures = append(w.sheet.pictures, p)
}

// seeThrough tells whether an image has a mask of its own. pdfium tells it only
// by drawing it: small, as it is on a screen.
func (w *walker) seeThrough(obj uint64) bool {
	in := w.x.in
	bitmap := in.call("FPDFImageObj_GetRenderedBitmap", w.x.doc.ptr, w.page.ptr, obj)
	if bitmap == 0 {
		return false
	}
	defer in.call("FPDFBitmap_Destroy", bitmap)
	if in.int("FPDFBitmap_GetFormat", bitmap) != formatBGRA {
		return false
	}
	width, height := in.int("FPDFBitmap_GetWidth", bitmap), in.int("FPDFBitmap_GetHeight", bitmap)
	stride := in.int("FPDFBitmap_GetStride", bitmap)
	pix := in.bytes(uint32(in.call("FPDFBitmap_GetBuffer", bitmap)), stride*height)
	// The outermost pixels may be covered only in part.
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

// behindText tells whether a picture is the background of a page, or a scan
// with a text layer.
func (w *walker) behindText(box rect) bool {
	part := box.area() / (w.sheet.w * w.sheet.h)
	if part < 0.25 {
		return false
	}
	over := 0
	for _, word := range w.sheet.words {
		if box.contains(word.cx(), word.cy()) {
			over++
		}
	}
	return over > 0 && part > 0.5 || over > 12
}

// jpeg keeps an image that is a JPEG file, if any program will show it right.
func (w *walker) jpeg(obj uint64) *media {
	in := w.x.in
	if in.int("FPDFImageObj_GetImageFilterCount", obj) != 1 {
		return nil
	}
	name := cString(in.withBuffer(64, func(p, n uint64) int { return in.int("FPDFImageObj_GetImageFilter", obj, 0, p, n) }))
	if name != "DCTDecode" {
		return nil
	}
	data := in.withBuffer(maxInputSize, func(p, n uint64) int { return in.int("FPDFImageObj_GetImageDataRaw", obj, p, n) })
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || cfg.ColorModel == color.CMYKModel { // some programs show four components inverted
		return nil
	}
	return w.keep("jpg", cfg.Width, cfg.Height, data)
}

// Formats of bitmaps (fpdfview.h).
const (
	formatGray = 1
	formatBGR  = 2
	formatBGRx = 3
	formatBGRA = 4
)

// bitmap keeps the pixels of an image as PNG.
func (w *walker) bitmap(obj uint64) *media {
	in := w.x.in
	bitmap := in.call("FPDFImageObj_GetBitmap", obj)
	if bitmap == 0 {
		return nil
	}
	defer in.call("FPDFBitmap_Destroy", bitmap)
	width, height := in.int("FPDFBitmap_GetWidth", bitmap), in.int("FPDFBitmap_GetHeight", bitmap)
	stride, kind := in.int("FPDFBitmap_GetStride", bitmap), in.int("FPDFBitmap_GetFormat", bitmap)
	if width < 1 || height < 1 || stride < width || float64(width)*float64(height) > maxPixels {
		return nil
	}
	pix := in.bytes(uint32(in.call("FPDFBitmap_GetBuffer", bitmap)), stride*height)
	if pix == nil {
		return nil
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	step := map[int]int{formatGray: 1, formatBGR: 3, formatBGRx: 4, formatBGRA: 4}[kind]
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

// drawn keeps a part of the page as it is shown. The page is drawn once for all
// of its parts.
func (w *walker) drawn(box rect) *media {
	if !w.shoot() {
		return nil
	}
	r := image.Rect(int(box.l*w.scale), int(box.t*w.scale), int(math.Ceil(box.r*w.scale)), int(math.Ceil(box.b*w.scale))).
		Intersect(image.Rect(0, 0, w.shotW, w.shotH))
	if r.Empty() {
		return nil
	}
	pix := w.x.in.bytes(w.shotPix, 4*w.shotW*w.shotH)
	if pix == nil {
		return nil
	}
	m := &image.RGBA{Pix: pix, Stride: 4 * w.shotW, Rect: image.Rect(0, 0, w.shotW, w.shotH)}
	return w.keepRGBA(m.SubImage(r).(*image.RGBA))
}

// shotPixels is how large a drawn page may be. Large pages are drawn in a lower
// resolution.
const shotPixels = 25e6

// shoot draws the page, if that was not done yet.
func (w *walker) shoot() bool {
	if w.shot != 0 {
		return true
	}
	in, s := w.x.in, w.sheet
	w.scale = min(w.x.dpi/72, math.Sqrt(shotPixels/(s.w*s.h)))
	w.shotW, w.shotH = max(1, int(s.w*w.scale)), max(1, int(s.h*w.scale))
	w.shot = in.call("FPDFBitmap_CreateEx", uint64(w.shotW), uint64(w.shotH), bitmapRGBA, 0, uint64(4*w.shotW))
	if w.shot == 0 {
		return false
	}
	in.call("FPDFBitmap_FillRect", w.shot, 0, 0, uint64(w.shotW), uint64(w.shotH), 0xffffffff)
	// Sheets that were turned are drawn turned too.
	quarter := []uint64{0, 3, 2, 1}[w.turn]
	in.call("FPDF_RenderPageBitmap", w.shot, w.page.ptr, 0, 0, uint64(w.shotW), uint64(w.shotH), quarter, renderRGBA)
	w.shotPix = uint32(in.call("FPDFBitmap_GetBuffer", w.shot))
	return in.err == nil
}

// keepRGBA keeps a picture as PNG, or as JPEG if that is much smaller, as it is
// for photographs.
func (w *walker) keepRGBA(img *image.RGBA) *media {
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

func (w *walker) keep(ext string, width, height int, content []byte) *media {
	m, err := w.x.media.add(ext, width, height, content)
	if err != nil && w.x.in.err == nil {
		w.x.in.err = err
	}
	return m
}
