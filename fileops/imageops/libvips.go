//go:build cgo

package imageops

/*
#cgo CFLAGS: -D_GNU_SOURCE
#cgo LDFLAGS: -ldl
#cgo pkg-config: vips gmodule-no-export-2.0
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <gmodule.h>
#include <vips/vips.h>

// fw_guard blocks every operation that libvips marks as untrusted, and the matrix
// loader, which this package does not need. Then it allows the untrusted operations
// that this package uses. The package checks the content before it calls them.
static int fw_guard(void) {
#if VIPS_MAJOR_VERSION > 8 || (VIPS_MAJOR_VERSION == 8 && VIPS_MINOR_VERSION >= 13)
	vips_block_untrusted_set(TRUE);
	vips_operation_block_set("VipsForeignLoadMatrix", TRUE);
	vips_operation_block_set("VipsForeignLoadSvg", FALSE);
	vips_operation_block_set("VipsForeignLoadJp2k", FALSE);
	vips_operation_block_set("VipsForeignLoadJxl", FALSE);
	vips_operation_block_set("VipsForeignSaveJxl", FALSE);
	return 0;
#else
	return -1;
#endif
}

// fw_home returns the path of the libvips library.
static const char *fw_home(void) {
	Dl_info info;
	return dladdr((void *)vips_init, &info) ? info.dli_fname : NULL;
}

// fw_plug loads a plug-in for the lifetime of the process.
static int fw_plug(const char *path) {
	GModule *m = g_module_open(path, G_MODULE_BIND_LAZY);
	if (!m)
		return -1;
	g_module_make_resident(m);
	return 0;
}

static int fw_has(const char *operation) {
	return vips_type_find("VipsOperation", operation) != 0;
}

// fw_run builds an operation that has a blob as input or output.
static int fw_run(VipsOperation **op, const char *options) {
	if (vips_object_set_from_string(VIPS_OBJECT(*op), options) || vips_cache_operation_buildp(op)) {
		vips_object_unref_outputs(VIPS_OBJECT(*op));
		g_object_unref(*op);
		return -1;
	}
	return 0;
}

static int fw_load(const char *name, void *data, size_t size, const char *options, VipsImage **out) {
	VipsOperation *op = vips_operation_new(name);
	if (!op)
		return -1;
	VipsBlob *blob = vips_blob_new(NULL, data, size);
	g_object_set(op, "buffer", blob, NULL);
	vips_area_unref(VIPS_AREA(blob));
	if (fw_run(&op, options))
		return -1;
	g_object_get(op, "out", out, NULL);
	vips_object_unref_outputs(VIPS_OBJECT(op));
	g_object_unref(op);
	return 0;
}

static int fw_save(const char *name, void *in, const char *options, void **data, size_t *size) {
	VipsOperation *op = vips_operation_new(name);
	if (!op)
		return -1;
	g_object_set(op, "in", in, NULL);
	if (fw_run(&op, options))
		return -1;
	VipsBlob *blob;
	g_object_get(op, "buffer", &blob, NULL);
	vips_object_unref_outputs(VIPS_OBJECT(op));
	g_object_unref(op);
	*data = VIPS_AREA(blob)->data;
	*size = VIPS_AREA(blob)->length;
	VIPS_AREA(blob)->free_fn = NULL; // the caller owns the data
	vips_area_unref(VIPS_AREA(blob));
	return 0;
}

static VipsImage *fw_samples(const void *data, size_t size, int width, int height, int bands) {
	VipsImage *im = vips_image_new_from_memory_copy(data, size, width, height, bands, VIPS_FORMAT_UCHAR);
	if (im)
		im->Type = bands == 4 ? VIPS_INTERPRETATION_CMYK : bands == 3 ? VIPS_INTERPRETATION_sRGB : VIPS_INTERPRETATION_B_W;
	return im;
}

static int fw_srgb(void *in, int depth, VipsImage **out) {
	return vips_icc_transform((VipsImage *)in, out, "srgb", "embedded", TRUE, "input_profile", "cmyk",
		"intent", VIPS_INTENT_RELATIVE, "black_point_compensation", TRUE, "depth", depth, NULL);
}

static int fw_unsigned(void *in, VipsImage **out) {
	return vips_copy((VipsImage *)in, out, "format", VIPS_FORMAT_UCHAR, NULL);
}

static int fw_shrink(void *in, int width, int height, VipsImage **out) {
	VipsImage *v = in;
	return vips_resize(v, out, (double)width / v->Xsize, "vscale", (double)height / v->Ysize, NULL);
}

// fw_ink returns a colour of 8 bits as the samples of an image of n bands.
static VipsArrayDouble *fw_ink(VipsImage *v, int n, int r, int g, int b, int a) {
	double s = v->BandFmt == VIPS_FORMAT_USHORT ? 257 : 1;
	double rgba[] = { r * s, g * s, b * s, a * s }, gray[] = { g * s, a * s };
	return vips_array_double_new(n <= 2 ? gray : rgba, n);
}

static int fw_flatten(void *in, int r, int g, int b, VipsImage **out) {
	VipsImage *v = in;
	VipsArrayDouble *ink = fw_ink(v, v->Bands - 1, r, g, b, 255);
	int failed = vips_flatten(v, out, "background", ink, "max_alpha", v->BandFmt == VIPS_FORMAT_USHORT ? 65535.0 : 255.0, NULL);
	vips_area_unref(VIPS_AREA(ink));
	return failed;
}

static int fw_embed(void *in, int x, int y, int width, int height, int r, int g, int b, int a, VipsImage **out) {
	VipsImage *v = in;
	VipsArrayDouble *ink = fw_ink(v, v->Bands, r, g, b, a);
	int failed = vips_embed(v, out, x, y, width, height, "extend", VIPS_EXTEND_BACKGROUND, "background", ink, NULL);
	vips_area_unref(VIPS_AREA(ink));
	return failed;
}

// fw_reshape keeps some frames of height tall, the part of each at (x, y), and rotates
// and flips it. The frames of the result are one below the other.
static int fw_reshape(void *in, int tall, int *frames, int n, int x, int y, int w, int h, int angle, int across, int down, VipsImage **out) {
	VipsAngle turn = angle == 90 ? VIPS_ANGLE_D90 : angle == 180 ? VIPS_ANGLE_D180 : angle == 270 ? VIPS_ANGLE_D270 : VIPS_ANGLE_D0;
	VipsObject *scope = VIPS_OBJECT(vips_image_new());
	VipsImage **part = (VipsImage **)vips_object_local_array(scope, 4 * n);
	VipsImage **done = g_new(VipsImage *, n);
	int failed = 0;
	for (int i = 0; i < n && !failed; i++) {
		VipsImage **t = part + 4 * i;
		failed = vips_extract_area(in, &t[0], x, frames[i] * tall + y, w, h, NULL);
		done[i] = t[0];
		if (!failed && turn != VIPS_ANGLE_D0) {
			failed = vips_rot(done[i], &t[1], turn, NULL);
			done[i] = t[1];
		}
		if (!failed && across) {
			failed = vips_flip(done[i], &t[2], VIPS_DIRECTION_HORIZONTAL, NULL);
			done[i] = t[2];
		}
		if (!failed && down) {
			failed = vips_flip(done[i], &t[3], VIPS_DIRECTION_VERTICAL, NULL);
			done[i] = t[3];
		}
	}
	if (!failed)
		failed = n == 1 ? vips_copy(done[0], out, NULL) : vips_arrayjoin(done, out, n, "across", 1, NULL);
	g_free(done);
	g_object_unref(scope);
	return failed;
}

// fw_text draws text, with the markup of Pango, as a mask of one band.
static int fw_text(const char *text, int dpi, VipsImage **out) {
	return vips_text(out, text, "font", "sans bold 48", "dpi", dpi, "align", VIPS_ALIGN_CENTRE, NULL);
}

static int fw_turn_mask(void *in, double angle, VipsImage **out) {
	VipsImage *t;
	if (vips_rotate(in, &t, angle, NULL))
		return -1;
	int failed = vips_cast_uchar(t, out, NULL);
	g_object_unref(t);
	return failed;
}

// fw_place puts a mask on a black page.
static int fw_place(void *in, int x, int y, int width, int height, VipsImage **out) {
	return vips_embed(in, out, x, y, width, height, "extend", VIPS_EXTEND_BLACK, NULL);
}

// fw_repeat repeats a mask, cuts off what is beyond the size, and repeats the result for
// each frame.
static int fw_repeat(void *in, int across, int down, int width, int height, int frames, VipsImage **out) {
	VipsImage *t, *c;
	if (vips_replicate(in, &t, across, down, NULL))
		return -1;
	int failed = vips_extract_area(t, &c, 0, 0, width, height, NULL);
	g_object_unref(t);
	if (failed)
		return -1;
	failed = vips_replicate(c, out, 1, frames, NULL);
	g_object_unref(c);
	return failed;
}

static void *fw_copy_field(VipsImage *in, const char *name, GValue *value, void *out) {
	if (!vips_image_get_typeof(out, name))
		vips_image_set(out, name, value);
	return NULL;
}

// fw_ink_over blends a gray, opaque where the mask is 255, over an image of 8 or 16 bits.
static int fw_ink_over(void *in, void *mask, double opacity, double gray, int alpha, VipsImage **out) {
	VipsImage *v = in, *m = NULL, *u = NULL, *ink = NULL, *b = NULL;
	double s = v->BandFmt == VIPS_FORMAT_USHORT ? 257 : 1;
	double values[4];
	for (int i = 0; i < v->Bands && i < 4; i++)
		values[i] = (alpha && i == v->Bands - 1 ? 255 : gray) * s;
	int failed = vips_linear1(mask, &m, opacity, 0, "uchar", TRUE, NULL);
	if (!failed)
		ink = vips_image_new_from_image(v, values, v->Bands);
	failed = failed || !ink || vips_cast(ink, &u, v->BandFmt, NULL) || vips_ifthenelse(m, u, v, &b, "blend", TRUE, NULL) ||
		vips_copy(b, out, "interpretation", v->Type, "xres", v->Xres, "yres", v->Yres, NULL);
	if (m)
		g_object_unref(m);
	if (ink)
		g_object_unref(ink);
	if (u)
		g_object_unref(u);
	if (b)
		g_object_unref(b);
	if (!failed)
		vips_image_map(v, fw_copy_field, *out);
	return failed;
}

// fw_turn turns a picture of 8 bits with transparency.
static int fw_turn(void *in, double angle, VipsImage **out) {
	VipsImage *p = NULL, *t = NULL, *u = NULL;
	int failed = vips_premultiply(in, &p, NULL) || vips_rotate(p, &t, angle, NULL) || vips_unpremultiply(t, &u, NULL) || vips_cast_uchar(u, out, NULL);
	if (p)
		g_object_unref(p);
	if (t)
		g_object_unref(t);
	if (u)
		g_object_unref(u);
	return failed;
}

// fw_memory computes all pixels of an image.
static int fw_memory(void *in, VipsImage **out) {
	return (*out = vips_image_copy_memory(in)) ? 0 : -1;
}

// fw_bands copies n bands from the first one on.
static int fw_bands(void *in, int first, int n, VipsImage **out) {
	return vips_extract_band(in, out, first, "n", n, NULL);
}

// fw_adapt converts the colours of a picture of 8 bits without transparency to the colour
// space, the depth and, if it has one, the profile of an image.
static int fw_adapt(void *in, void *like, VipsImage **out) {
	VipsImage *l = like, *lab = NULL, *own = NULL;
	const void *data;
	size_t size;
	if (vips_image_get_typeof(l, VIPS_META_ICC_NAME) && !vips_image_get_blob(l, VIPS_META_ICC_NAME, &data, &size)) {
		int failed = vips_colourspace(in, &lab, VIPS_INTERPRETATION_LAB, NULL) || vips_copy(lab, &own, NULL);
		if (!failed) {
			vips_image_set_blob_copy(own, VIPS_META_ICC_NAME, data, size);
			failed = vips_icc_export(own, out, "depth", l->BandFmt == VIPS_FORMAT_USHORT ? 16 : 8, NULL);
		}
		if (lab)
			g_object_unref(lab);
		if (own)
			g_object_unref(own);
		if (!failed)
			return 0;
		vips_error_clear(); // an unreadable profile
	}
	return vips_colourspace(in, out, l->Type, NULL);
}

// fw_picture_over blends a picture without transparency, opaque where the mask is 255,
// over an image of 8 or 16 bits whose last band is transparency if alpha is set.
static int fw_picture_over(void *in, void *over, void *mask, double opacity, int alpha, VipsImage **out) {
	VipsImage *v = in, *scope = vips_image_new();
	VipsImage **t = (VipsImage **) vips_object_local_array(VIPS_OBJECT(scope), 14);
	int colours = v->Bands - (alpha ? 1 : 0);
	double most = v->BandFmt == VIPS_FORMAT_USHORT ? 65535 : 255;
	int failed = vips_linear1(mask, &t[0], opacity, 0, "uchar", TRUE, NULL) ||
		vips_cast(over, &t[1], v->BandFmt, NULL);
	if (!failed && !alpha)
		failed = vips_ifthenelse(t[0], t[1], v, &t[2], "blend", TRUE, NULL);
	if (!failed && alpha) {
		// The opacity of the result is a + b - a·b, and a part a of it is the colour above.
		failed = vips_extract_band(v, &t[3], 0, "n", colours, NULL) || vips_extract_band(v, &t[4], colours, NULL) ||
			vips_linear1(t[0], &t[5], 1.0 / 255, 0, NULL) || vips_linear1(t[4], &t[6], 1.0 / most, 0, NULL) ||
			vips_linear1(t[5], &t[7], -1, 1, NULL) || vips_multiply(t[6], t[7], &t[8], NULL) || vips_add(t[5], t[8], &t[9], NULL) ||
			vips_divide(t[5], t[9], &t[10], NULL) || vips_linear1(t[10], &t[11], 255, 0.5, "uchar", TRUE, NULL) ||
			vips_ifthenelse(t[11], t[1], t[3], &t[12], "blend", TRUE, NULL);
		VipsImage *a = NULL, *c = NULL;
		failed = failed || vips_linear1(t[9], &a, most, 0.5, NULL) || vips_cast(a, &c, v->BandFmt, NULL) || vips_bandjoin2(t[12], c, &t[2], NULL);
		if (a)
			g_object_unref(a);
		if (c)
			g_object_unref(c);
	}
	failed = failed || vips_copy(t[2], out, "interpretation", v->Type, "xres", v->Xres, "yres", v->Yres, NULL);
	g_object_unref(scope);
	if (!failed)
		vips_image_map(v, fw_copy_field, *out);
	return failed;
}

// fw_luma converts one or three bands to one band of 8 bits. It uses the weights of
// ITU-R BT.601; libvips would use those of linear light.
static int fw_luma(void *in, VipsImage **out) {
	VipsImage *v = in, *w, *m, *t;
	if (v->Bands != 3)
		return vips_extract_band(v, out, 0, NULL);
	double weights[] = { 0.299, 0.587, 0.114 };
	if (!(m = vips_image_new_matrix_from_array(3, 1, weights, 3)))
		return -1;
	if (vips_recomb(v, &w, m, NULL)) {
		g_object_unref(m);
		return -1;
	}
	g_object_unref(m);
	int failed = vips_linear1(w, &t, 1.0, 0.5, "uchar", TRUE, NULL);
	g_object_unref(w);
	if (failed)
		return -1;
	*out = t;
	return 0;
}

static int fw_icc_space(void *in, char *space) {
	const void *data;
	size_t size;
	if (!vips_image_get_typeof(in, VIPS_META_ICC_NAME))
		return 0;
	if (vips_image_get_blob(in, VIPS_META_ICC_NAME, &data, &size) || size < 128)
		return -1;
	memcpy(space, (const char *)data + 16, 4);
	return 1;
}

// fw_set_profile copies an ICC profile into the metadata of an image.
static void fw_set_profile(void *im, const void *data, size_t size) {
	vips_image_set_blob_copy(im, VIPS_META_ICC_NAME, data, size);
}

// fw_blank creates a black picture with the metadata of in.
static VipsImage *fw_blank(void *in, int width, int height) {
	VipsImage *im = in, *black, *out;
	if (vips_black(&black, width, height, "bands", im->Bands, NULL))
		return NULL;
	int failed = vips_copy(black, &out, "interpretation", im->Type, "xres", im->Xres, "yres", im->Yres, NULL);
	g_object_unref(black);
	if (failed)
		return NULL;
	vips_image_map(im, fw_copy_field, out);
	return out;
}

// fw_one_thread makes libvips compute an image, and images derived from it, in one
// thread.
static void fw_one_thread(void *im) { vips_image_set_int(im, VIPS_META_CONCURRENCY, 1); }
extern int fileopsRows(uintptr_t, void *, int, int);

static int fw_area(VipsRegion *r, VipsRect *area, void *h) {
	return fileopsRows((uintptr_t)h, VIPS_REGION_ADDR(r, area->left, area->top), VIPS_REGION_LSKIP(r), area->height);
}

// fw_rows computes all pixels of an image and passes them to Go from top to bottom.
static int fw_rows(void *in, uintptr_t h) { return vips_sink_disc(in, fw_area, (void *)h); }
static void *fw_pixels(void *in, size_t *size) { return vips_image_write_to_memory(in, size); }
static void fw_kill(void *im) { vips_image_set_kill(im, TRUE); }
static void fw_ref(void *im) { g_object_ref(im); }
static void fw_unref(void *im) { g_object_unref(im); }
*/
import "C"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/cgo"
	"strings"
	"sync"
	"unsafe"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/raster"
)

// This file contains the process-wide state of libvips, and functions that
// govips lacks: blocking loaders, choosing a loader with all its options, savers
// that keep colour profiles, raw pixels, and cancelling a computation.

// startVips starts libvips. libvips cannot be restarted in a process, so it is
// never stopped.
var startVips = sync.OnceValue(func() error {
	vips.LoggingSettings(func(string, vips.LogLevel, string) {}, vips.LogLevelError)
	// No cache: inputs do not repeat, and one tenant's pixels must not stay in
	// memory for the next.
	err := vips.Startup(&vips.Config{ConcurrencyLevel: min(2, runtime.NumCPU())})
	if err != nil {
		return errors.New("libvips does not start")
	}
	if C.fw_guard() != 0 {
		return fmt.Errorf("libvips %s cannot block untrusted loaders; 8.13 or later is needed", vipsVersion())
	}
	// wrap and pointer depend on the internals of govips.
	gray := C.fw_samples(unsafe.Pointer(unsafe.StringData("ab")), 2, 2, 1, 1)
	if gray == nil {
		return vipsError()
	}
	f, ok := reflect.TypeFor[vips.ImageRef]().FieldByName("image")
	if !ok || f.Type.Kind() != reflect.Pointer {
		C.fw_unref(unsafe.Pointer(gray))
		return errors.New("this version of govips is not supported")
	}
	ref := wrap(unsafe.Pointer(gray))
	defer ref.Close()
	if ref.Width() != 2 || ref.Height() != 1 || pointer(ref) != unsafe.Pointer(gray) {
		return errors.New("this version of govips is not supported")
	}
	return nil
})

func vipsVersion() string {
	return fmt.Sprintf("%d.%d.%d", vips.MajorVersion, vips.MinorVersion, vips.MicroVersion)
}

// hasOperation reports whether libvips has an operation. The operation may still
// fail, for lack of a plug-in.
func hasOperation(name string) bool {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.fw_has(c) != 0
}

var plugging sync.Mutex

// plug loads the plug-in of an operation, if it exists and libvips was started
// without it (see [Lean]).
func plug(operation string) {
	plugging.Lock()
	defer plugging.Unlock()
	home := C.fw_home()
	if home == nil || hasOperation(operation) {
		return
	}
	dir := filepath.Join(filepath.Dir(C.GoString(home)), fmt.Sprintf("vips-modules-%d.%d", vips.MajorVersion, vips.MinorVersion))
	for _, name := range []string{"heif", "jxl"} {
		if strings.HasPrefix(operation, name) {
			path := C.CString(filepath.Join(dir, "vips-"+name+".so"))
			C.fw_plug(path)
			C.free(unsafe.Pointer(path))
			C.fw_guard() // for loaders in the plug-in
		}
	}
}

// imageField returns the address of the libvips image in ref. govips exports no
// access; startVips checks that this one works.
func imageField(ref *vips.ImageRef) *unsafe.Pointer {
	return (*unsafe.Pointer)(reflect.ValueOf(ref).Elem().FieldByName("image").Addr().UnsafePointer())
}

// wrap returns a govips image that takes over image.
func wrap(image unsafe.Pointer) *vips.ImageRef {
	ref := new(vips.ImageRef)
	*imageField(ref) = image
	return ref
}

// pointer returns the libvips image of ref. ref keeps ownership.
func pointer(ref *vips.ImageRef) unsafe.Pointer { return *imageField(ref) }

// replace replaces the image of ref.
func replace(ref *vips.ImageRef, image unsafe.Pointer) {
	p := imageField(ref)
	C.fw_unref(*p)
	*p = image
}

// A picture is an image whose pixels libvips reads on demand.
type picture struct {
	*vips.ImageRef
	resolution resolution // of the source; libvips always reports a number

	file unsafe.Pointer // the loaded image, or nil
	pin  runtime.Pinner // pins the encoded data

	// single is for a loader that reports damage once and then returns black. With
	// two threads libvips 8.14 may lose that report. OpenJPEG still decodes with
	// several threads.
	single bool
}

func (p *picture) close() {
	p.Close()
	if p.file != nil {
		C.fw_unref(p.file)
		p.file = nil
	}
	p.pin.Unpin()
}

// load opens encoded data with one loader. It reads only the header.
func load(operation string, data []byte, options string) (*picture, error) {
	if len(data) == 0 {
		return nil, errors.New("no data")
	}
	plug(operation)
	name, opts := C.CString(operation), C.CString(options)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(opts))
	p := new(picture)
	p.pin.Pin(&data[0])
	var out *C.VipsImage
	if C.fw_load(name, unsafe.Pointer(&data[0]), C.size_t(len(data)), opts, &out) != 0 {
		p.pin.Unpin()
		return nil, vipsError()
	}
	p.file = unsafe.Pointer(out)
	p.single = operation == loaders[format.JP2]
	C.fw_ref(p.file)
	p.ImageRef = wrap(p.file)
	return p, nil
}

// fromSamples makes a picture from a copy of 8-bit interleaved samples: 1
// component is gray, 3 are RGB, 4 are CMYK.
func fromSamples(m raster.Samples) (*picture, error) {
	im := C.fw_samples(unsafe.Pointer(&m.Pix[0]), C.size_t(len(m.Pix)), C.int(m.Width), C.int(m.Height), C.int(m.Components))
	if im == nil {
		return nil, vipsError()
	}
	return &picture{ImageRef: wrap(unsafe.Pointer(im))}, nil
}

// compute calls fn, which makes libvips compute the pixels of p. It cancels the
// computation when ctx is done.
func (p *picture) compute(ctx context.Context, fn func(image unsafe.Pointer) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	image, file := pointer(p.ImageRef), p.file
	if p.single {
		C.fw_one_thread(image)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		C.fw_kill(image)
		if file != nil {
			C.fw_kill(file)
		}
	})
	err := fn(image)
	if !stop() {
		<-done
	}
	runtime.KeepAlive(p)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// save encodes p with one saver.
func (p *picture) save(ctx context.Context, operation, options string) (b []byte, err error) {
	plug(operation)
	name, opts := C.CString(operation), C.CString(options)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(opts))
	err = p.compute(ctx, func(image unsafe.Pointer) error {
		var data unsafe.Pointer
		var size C.size_t
		if C.fw_save(name, image, opts, &data, &size) != 0 {
			return vipsError()
		}
		b = take(data, size)
		return nil
	})
	return b, err
}

// bytes returns the pixels of p, which must have 8 bits.
func (p *picture) bytes(ctx context.Context) (b []byte, err error) {
	err = p.compute(ctx, func(image unsafe.Pointer) error {
		var size C.size_t
		data := C.fw_pixels(image, &size)
		if data == nil {
			return vipsError()
		}
		b = take(data, size)
		return nil
	})
	return b, err
}

// copyTo computes the pixels of p, which must have 8 bits, and writes them to w from top
// to bottom, some rows at a time.
func (p *picture) copyTo(ctx context.Context, w io.Writer) error {
	sink := &rowSink{w: w, row: p.Width() * p.Bands()}
	h := cgo.NewHandle(sink)
	defer h.Delete()
	return p.compute(ctx, func(image unsafe.Pointer) error {
		if C.fw_rows(image, C.uintptr_t(h)) != 0 {
			return cmp.Or(sink.err, vipsError())
		}
		return nil
	})
}

// blank returns a black picture with the metadata of p.
func (p *picture) blank(width, height int) (*picture, error) {
	defer runtime.KeepAlive(p)
	im := C.fw_blank(pointer(p.ImageRef), C.int(width), C.int(height))
	if im == nil {
		return nil, vipsError()
	}
	return &picture{ImageRef: wrap(unsafe.Pointer(im))}, nil
}

// take copies memory that libvips allocated, and frees it.
func take(data unsafe.Pointer, size C.size_t) []byte {
	b := make([]byte, int(size))
	copy(b, unsafe.Slice((*byte)(data), int(size)))
	C.g_free(C.gpointer(data))
	return b
}

// toSRGB converts from the profile of p, or from CMYK, to sRGB with 8 or 16
// bits. The result has an sRGB profile.
func (p *picture) toSRGB(depth int) error {
	var out *C.VipsImage
	if C.fw_srgb(pointer(p.ImageRef), C.int(depth), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// unsigned takes signed 8-bit samples as unsigned ones.
func (p *picture) unsigned() error {
	var out *C.VipsImage
	if C.fw_unsigned(pointer(p.ImageRef), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// toLuma converts 8-bit gray or RGB to luminance.
func (p *picture) toLuma() error {
	var out *C.VipsImage
	if C.fw_luma(pointer(p.ImageRef), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// flatten lays p, which must have transparency, on a colour.
func (p *picture) flatten(c color.NRGBA) error {
	var out *C.VipsImage
	if C.fw_flatten(pointer(p.ImageRef), C.int(c.R), C.int(c.G), C.int(c.B), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// embed puts p, a single page, on a canvas of one colour.
func (p *picture) embed(l layout, c color.NRGBA) error {
	var out *C.VipsImage
	if C.fw_embed(pointer(p.ImageRef), C.int(l.padX), C.int(l.padY), C.int(l.outW), C.int(l.outH),
		C.int(c.R), C.int(c.G), C.int(c.B), C.int(c.A), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return p.SetPageHeight(p.Height())
}

// reshape picks, crops, rotates and flips the frames of p as a plan says.
func (p *picture) reshape(t plan) error {
	tall := p.PageHeight()
	part, err := t.crop.of(p.Width(), tall)
	if err != nil {
		return err
	}
	frames := t.frames
	if !t.all || len(frames) == 0 {
		frames = nil
		for i := range max(1, p.Height()/max(1, tall)) {
			frames = append(frames, i)
		}
	}
	numbers := make([]C.int, len(frames))
	for i, f := range frames {
		if numbers[i] = C.int(f); (f+1)*tall > p.Height() {
			return errors.New("a frame is missing")
		}
	}
	across, down := C.int(0), C.int(0)
	switch t.flip {
	case flipHorizontal:
		across = 1
	case flipVertical:
		down = 1
	}
	var delays []int
	if len(t.frames) > 0 {
		delays, err = p.PageDelay()
		if err != nil {
			delays = nil // the pages of a TIFF have none
		}
	}
	var out *C.VipsImage
	if C.fw_reshape(pointer(p.ImageRef), C.int(tall), &numbers[0], C.int(len(numbers)), C.int(part.Min.X), C.int(part.Min.Y),
		C.int(part.Dx()), C.int(part.Dy()), C.int(t.turn), across, down, &out) != 0 {
		return vipsError()
	}
	many := p.Height() > tall
	replace(p.ImageRef, unsafe.Pointer(out))
	if !many {
		return p.SetPageHeight(p.Height())
	}
	if err := errors.Join(p.SetPages(len(frames)), p.SetPageHeight(p.Height()/len(frames))); err != nil || len(delays) == 0 {
		return err
	}
	var kept []int
	for _, f := range frames {
		if f < len(delays) {
			kept = append(kept, delays[f])
		}
	}
	return p.SetPageDelay(kept)
}

// draw draws a mark over each frame of p, which has one to four bands of 8 or 16 bits.
func (c *vipsCodec) draw(p *picture, m *mark) error {
	w, h := p.Width(), p.PageHeight()
	alpha := C.int(0)
	if p.HasAlpha() {
		alpha = 1
	}
	if m.picture.data != nil {
		return c.drawPicture(p, m, alpha)
	}
	mask, err := textMask(m, w, h)
	if err != nil {
		return err
	}
	defer mask.Close()
	size := mask.Height()
	if err := m.spread(mask, p); err != nil {
		return err
	}
	shift := max(1, size/40)
	var shadow *C.VipsImage
	if C.fw_place(pointer(mask), C.int(shift), C.int(shift), C.int(mask.Width()), C.int(mask.Height()), &shadow) != 0 {
		return vipsError()
	}
	defer C.fw_unref(unsafe.Pointer(shadow))
	const black, white = 0, 255
	for _, ink := range []struct {
		mask unsafe.Pointer
		gray C.double
	}{{unsafe.Pointer(shadow), black}, {pointer(mask), white}} {
		var out *C.VipsImage
		if C.fw_ink_over(pointer(p.ImageRef), ink.mask, C.double(m.opacity), ink.gray, alpha, &out) != 0 {
			return vipsError()
		}
		replace(p.ImageRef, unsafe.Pointer(out))
	}
	return nil
}

// drawPicture draws a mark with a picture.
func (c *vipsCodec) drawPicture(p *picture, m *mark, alpha C.int) error {
	stamp, err := c.fitted(m, p.Width(), p.PageHeight())
	if err != nil {
		return err
	}
	defer stamp.close()
	part := func(first, n int) (*vips.ImageRef, error) {
		var out *C.VipsImage
		if C.fw_bands(pointer(stamp.ImageRef), C.int(first), C.int(n), &out) != 0 {
			return nil, vipsError()
		}
		return wrap(unsafe.Pointer(out)), nil
	}
	colours, err := part(0, stamp.Bands()-1)
	if err != nil {
		return err
	}
	defer colours.Close()
	mask, err := part(stamp.Bands()-1, 1)
	if err != nil {
		return err
	}
	defer mask.Close()
	var adapted *C.VipsImage
	if C.fw_adapt(pointer(colours), pointer(p.ImageRef), &adapted) != 0 {
		return vipsError()
	}
	replace(colours, unsafe.Pointer(adapted))
	if err := errors.Join(m.spread(mask, p), m.spread(colours, p)); err != nil {
		return err
	}
	var out *C.VipsImage
	if C.fw_picture_over(pointer(p.ImageRef), pointer(colours), pointer(mask), C.double(m.opacity), alpha, &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// fitted returns the picture of a mark, upright, with transparency, and as large as it is
// drawn on a picture of w × h pixels.
func (c *vipsCodec) fitted(m *mark, w, h int) (*picture, error) {
	angle := 0.0
	if m.position == "diagonal" {
		angle = math.Atan2(float64(h), float64(w))
	}
	sin, cos := math.Sincos(angle)
	header, err := c.open(m.picture, 0, false, false, 1)
	if err != nil {
		return nil, err
	}
	pw, ph := float64(header.Width()), float64(header.PageHeight())
	if header.Orientation() >= 5 {
		pw, ph = ph, pw
	}
	header.close()
	across, down := pw*cos+ph*sin, pw*sin+ph*cos // of the box around the turned picture
	k := min(m.scale*float64(w)/across, 0.9*float64(h)/down)
	side := func(x float64) int { return max(1, int(math.Round(x*k))) }
	p, err := c.prepare(m.picture, plan{width: side(pw), height: side(ph), fit: fitFill, enlarge: true, meta: keepProfile})
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error {
			if p.Bands() > 2 {
				return nil
			}
			return p.ToColorSpace(vips.InterpretationSRGB)
		},
		func() error {
			if p.HasAlpha() {
				return nil
			}
			return p.AddAlpha()
		},
		func() error { // it is repeated, and read from several places
			var out *C.VipsImage
			if C.fw_memory(pointer(p.ImageRef), &out) != 0 {
				return vipsError()
			}
			replace(p.ImageRef, unsafe.Pointer(out))
			return nil
		},
		func() error {
			if angle == 0 {
				return nil
			}
			var out *C.VipsImage
			if C.fw_turn(pointer(p.ImageRef), C.double(-angle*180/math.Pi), &out) != 0 {
				return vipsError()
			}
			replace(p.ImageRef, unsafe.Pointer(out))
			return nil
		},
	} {
		if err := step(); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// spread puts a mark where m says on each frame of p, on black.
func (m *mark) spread(mark *vips.ImageRef, p *picture) (err error) {
	w, h := p.Width(), p.PageHeight()
	mw, mh := mark.Width(), mark.Height()
	across, down, cw, ch := 1, 1, w, h
	x, y := m.place(mw, mh, w, h)
	if m.position == "tile" {
		x, y = mw/4, mh
		cw, ch = mw+mw/2, 3*mh
		if m.picture.data != nil {
			y, ch = mh/4, mh+mh/2
		}
		across, down = (w+cw-1)/cw, (h+ch-1)/ch
	}
	for _, fn := range []func(in unsafe.Pointer, out **C.VipsImage) C.int{
		func(in unsafe.Pointer, out **C.VipsImage) C.int {
			return C.fw_place(in, C.int(x), C.int(y), C.int(cw), C.int(ch), out)
		},
		func(in unsafe.Pointer, out **C.VipsImage) C.int {
			return C.fw_repeat(in, C.int(across), C.int(down), C.int(w), C.int(h), C.int(max(1, p.Height()/h)), out)
		},
	} {
		var out *C.VipsImage
		if fn(pointer(mark), &out) != 0 {
			return vipsError()
		}
		replace(mark, unsafe.Pointer(out))
	}
	return nil
}

// textMask returns the text of m as a mask that fits into w × h pixels.
func textMask(m *mark, w, h int) (*vips.ImageRef, error) {
	const least = 8 // pixels of a side
	if min(w, h) < least {
		return nil, &fileops.ParamError{Param: "text", Reason: fmt.Sprintf("does not fit into a picture of %d × %d pixels", w, h)}
	}
	text := C.CString(html.EscapeString(m.text))
	defer C.free(unsafe.Pointer(text))
	at := func(dpi int) (*vips.ImageRef, error) {
		var out *C.VipsImage
		if C.fw_text(text, C.int(dpi), &out) != 0 {
			_ = vipsError() // clears it
			return nil, &fileops.ParamError{Param: "text", Reason: "has no visible characters"}
		}
		ref := wrap(unsafe.Pointer(out))
		if angle := math.Atan2(float64(h), float64(w)) * -180 / math.Pi; m.position == "diagonal" {
			var turned *C.VipsImage
			if C.fw_turn_mask(pointer(ref), C.double(angle), &turned) != 0 {
				ref.Close()
				return nil, vipsError()
			}
			replace(ref, unsafe.Pointer(turned))
		}
		return ref, nil
	}
	dpi, target := 72, m.scale*float64(w)
	for range 4 { // the size grows almost, but not exactly, with the resolution
		mask, err := at(dpi)
		if err != nil {
			return nil, err
		}
		fit := min(target/float64(mask.Width()), 0.9*float64(h)/float64(mask.Height()))
		if dpi == 1 || mask.Width() <= w && mask.Height() <= h && fit > 0.97 && fit < 1.03 {
			if mask.Width() <= w && mask.Height() <= h {
				return mask, nil
			}
			mask.Close()
			return nil, &fileops.ParamError{Param: "text", Reason: "is too long for this picture"}
		}
		mask.Close()
		next := max(1, int(math.Round(float64(dpi)*fit)))
		if next == dpi {
			next = max(1, dpi-1)
		}
		dpi = next
	}
	mask, err := at(dpi)
	if err == nil && (mask.Width() > w || mask.Height() > h) {
		mask.Close()
		return nil, &fileops.ParamError{Param: "text", Reason: "is too long for this picture"}
	}
	return mask, err
}

// marksText implements marker.
func (c *vipsCodec) marksText() bool { return hasOperation("text") }

// resize scales samples without regard to their meaning.
func (p *picture) resize(width, height int) error {
	var out *C.VipsImage
	if C.fw_shrink(pointer(p.ImageRef), C.int(width), C.int(height), &out) != 0 {
		return vipsError()
	}
	replace(p.ImageRef, unsafe.Pointer(out))
	return nil
}

// setProfile sets the ICC profile of p; libvips copies it.
// [vips.ImageRef.SetBlob] cannot do this: govips 2.18 passes the address of the
// slice header to C.
func (p *picture) setProfile(profile []byte) {
	if len(profile) == 0 {
		return
	}
	C.fw_set_profile(pointer(p.ImageRef), unsafe.Pointer(&profile[0]), C.size_t(len(profile)))
	runtime.KeepAlive(p)
}

// profileSpace returns the colour space of the ICC profile ("RGB ", "GRAY",
// "CMYK"; ICC.1:2022, 7.2.6). It returns "" without a profile, and "?" for a
// broken one.
func (p *picture) profileSpace() string {
	var space [4]C.char
	defer runtime.KeepAlive(p)
	switch C.fw_icc_space(pointer(p.ImageRef), &space[0]) {
	case 0:
		return ""
	case 1:
		return C.GoStringN(&space[0], 4)
	}
	return "?"
}

// vipsError returns and clears libvips' error text. Use it only in logs: all
// threads share one buffer, so it may contain messages of others.
func vipsError() error {
	s := C.GoString(C.vips_error_buffer())
	C.vips_error_clear()
	return errors.New("libvips: " + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; "))
}

// cause removes the call stack that govips adds to its errors.
func cause(err error) error {
	if err == nil {
		return nil
	}
	text, _, found := strings.Cut(err.Error(), "\nStack:")
	if !found {
		return err
	}
	return errors.New("libvips: " + strings.TrimSpace(text))
}
