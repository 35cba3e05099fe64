package imageops

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/report"
)

// A developer turns the raw photos of cameras into pictures with LibRaw (Debian package
// libraw-bin). Its programs exit with 0 even if they fail, so their messages and results
// decide.
type developer struct {
	Path    string `json:"path"` // of dcraw_emu; "" if there is none
	Version string `json:"version"`
}

// Programs of LibRaw, which are in the same directory. The first one, called without
// arguments, reports the version.
const (
	versionProgram  = "simple_dcraw"
	developProgram  = "dcraw_emu"
	identifyProgram = "raw-identify"
)

// libraw describes LibRaw without any probed data.
func libraw() fileops.Dependency {
	return fileops.Dependency{Name: "libraw", Purpose: "raw photos of cameras (cr2, cr3, nef, arw, dng, raf, orf, rw2 and others)", Packages: []string{"libraw-bin"}}
}

// findRaw looks for LibRaw.
func findRaw(ctx context.Context, o Options) (developer, error) {
	name := cmp.Or(o.LibRaw, versionProgram)
	p, err := o.Sandbox.Find(ctx, nil, name)
	if err != nil {
		return developer{}, err
	}
	d := developer{Path: filepath.Join(filepath.Dir(p.Path), developProgram), Version: p.Version}
	for _, path := range []string{d.Path, filepath.Join(filepath.Dir(p.Path), identifyProgram)} {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return developer{}, fmt.Errorf("%s has no %s beside it: %w", versionProgram, filepath.Base(path), os.ErrNotExist)
		}
	}
	return d, nil
}

// A finding is the result of [Engine.Probed].
type finding struct {
	Codec  string    `json:"codec"`
	Raw    developer `json:"raw"`
	Turner turner    `json:"turner"`
}

// run runs a program of LibRaw on the input of a job. It returns the messages.
func (e *Engine) run(ctx context.Context, job *fileops.Job, program string, stdout *strings.Builder, args ...string) (messages string, err error) {
	in, err := job.Path(job.Input())
	if err != nil {
		return "", err
	}
	inputs, err := job.InputDir()
	if err != nil {
		return "", err
	}
	dir, err := job.Dir()
	if err != nil {
		return "", err
	}
	p := engine.Program{Name: program, Path: filepath.Join(filepath.Dir(e.raw.Path), program), Version: e.raw.Version, Sandbox: e.opts.Sandbox}
	var b strings.Builder
	cmd := engine.Cmd{
		Args: append(args, in), Dir: dir,
		Env:    []string{"OMP_NUM_THREADS=1"}, // other files use the other cores
		Access: engine.Access{Read: []string{inputs}},
		OnLine: func(line string) {
			if b.Len() < 16<<10 {
				b.WriteString(line + "\n")
			}
		},
		Limits: e.opts.Run.Or(engine.Limits{CPU: 5 * time.Minute, Memory: 4 << 30, FileSize: 3*e.opts.MaxPixels + 1<<20}),
	}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	err = p.Run(ctx, cmd)
	var exit *engine.ExitError
	switch {
	case !errors.As(err, &exit):
		return b.String(), err
	case exit.Limit():
		return "", fileops.Fail(fileops.ErrLimit, err, "the photo takes more %s than is allowed; make it smaller first", exit.Which())
	case exit.Signal != 0:
		return "", fileops.Fail(fileops.ErrEngine, err, "the photo could not be developed")
	}
	return b.String(), nil // the caller looks at the messages
}

// develop turns the input of a job, a raw photo, into a TIFF with 8 bits for each sample,
// upright, with the white balance of the camera, in sRGB. With a box it has half of the
// width and height, if that fills a box, and takes a fraction of the time.
func (e *Engine) develop(ctx context.Context, job *fileops.Job, boxWidth, boxHeight int) ([]byte, error) {
	about, err := e.identify(ctx, job)
	if err != nil {
		return nil, err
	}
	if n := int64(about.width) * int64(about.height); n > e.opts.MaxPixels {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %s; make it smaller first",
			about.width, about.height, millions(e.opts.MaxPixels))
	}
	if strings.Contains(strings.ToUpper(about.meta["camera"]), "COOLSCAN") {
		// LibRaw takes the samples of these scanners for those of a camera: the picture becomes white.
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file is a scan of film in the raw format of a camera, which cannot be developed")
	}
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "developed.tiff")
	args := []string{"-w", "-o", "1", "-g", "2.4", "12.92", "-T", "-Z", out} // the curve of sRGB
	if boxWidth > 0 && about.halfFills(boxWidth, boxHeight) {
		args = append(args, "-h")
	}
	messages, err := e.run(ctx, job, developProgram, nil, args...)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// It goes on after damage, with black pixels.
	if err != nil || damagedRaw(messages) {
		return nil, unreadableRaw(messages)
	}
	plainTIFF(b)
	return b, os.Remove(out)
}

// plainTIFF corrects a TIFF file that LibRaw has written. LibRaw always writes a resolution of
// 300 dots per inch, which says nothing about the photo; plainTIFF sets 72, the default. It
// also removes the colour profile, which only approximates sRGB.
func plainTIFF(b []byte) {
	order, at := tiffDirectory(b)
	if order == nil {
		return
	}
	const size, xResolution, yResolution, profile = 12, 282, 283, 34675
	e := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(e) < size {
			return
		}
		switch order.Uint16(e) {
		case xResolution, yResolution:
			if at := int64(order.Uint32(e[8:])); at+8 <= int64(len(b)) {
				order.PutUint32(b[at:], 72)
				order.PutUint32(b[at+4:], 1)
			}
		case profile:
			order.PutUint16(e, profile+1) // without a meaning
		}
		e = e[size:]
	}
}

// tiffDirectory returns the byte order and the offset of the first directory of a TIFF file,
// or nil.
func tiffDirectory(b []byte) (binary.ByteOrder, int64) {
	var order binary.ByteOrder = binary.LittleEndian
	if len(b) > 0 && b[0] == 'M' {
		order = binary.BigEndian
	}
	if len(b) < 8 {
		return nil, 0
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return nil, 0
	}
	return order, at
}

// damagedRaw reports whether messages of LibRaw are about a damaged file.
func damagedRaw(messages string) bool {
	return strings.Contains(messages, "Unexpected end of file") || strings.Contains(messages, "orrupt") || strings.Contains(messages, "Cannot ")
}

// unreadableRaw returns the failure for a file that LibRaw does not read.
func unreadableRaw(messages string) error {
	cause := errors.New(strings.TrimSpace(messages))
	if strings.Contains(messages, "Unsupported file format") {
		return fileops.Fail(fileops.ErrUnsupportedInput, cause, "the file is not a raw photo, or its camera is not known")
	}
	return fileops.Fail(fileops.ErrCorruptInput, cause, "the raw photo is damaged or incomplete")
}

// A photo is what LibRaw reports about a raw photo without developing it.
type photo struct {
	width, height int // upright
	meta          map[string]string
}

var (
	outputSize = regexp.MustCompile(`(?m)^Output size: +(\d{1,6}) x (\d{1,6})$`)
	rawFacts   = regexp.MustCompile(`(?m)^(Camera|Timestamp|Lens|ISO speed|Shutter|Aperture|Focal length|Owner|GPS): *(.*)$`)
)

// identify reads the headers of the input, a raw photo.
func (e *Engine) identify(ctx context.Context, job *fileops.Job) (p photo, err error) {
	var out strings.Builder
	messages, err := e.run(ctx, job, identifyProgram, &out, "-v")
	if err != nil {
		return p, err
	}
	m := outputSize.FindStringSubmatch(out.String())
	if m == nil {
		return p, unreadableRaw(messages)
	}
	p.width, _ = strconv.Atoi(m[1]) // digits
	p.height, _ = strconv.Atoi(m[2])
	p.meta = make(map[string]string)
	for _, f := range rawFacts.FindAllStringSubmatch(out.String(), -1) {
		name, value := f[1], strings.TrimSpace(f[2])
		camera, _, cut := strings.Cut(value, " ID: 0x")
		switch {
		case name == "Camera" && cut:
			p.meta["camera"] = camera
		case name == "Timestamp":
			if t, err := time.Parse("Mon Jan _2 15:04:05 2006", value); err == nil && t.Unix() > 0 {
				p.meta["created"] = t.Format(time.RFC3339)
			}
		case name == "Lens" && value != "":
			p.meta["lens"] = value
		case name == "ISO speed" && value != "0":
			p.meta["iso"] = value
		case name == "Shutter" && !strings.Contains(value, "negative"):
			p.meta["exposure_time"] = strings.TrimSuffix(value, " sec")
		case name == "Aperture" && value != "f/0.0":
			p.meta["aperture"] = value
		case name == "Focal length" && value != "0.0 mm":
			p.meta["focal_length"] = value
		}
	}
	return p, nil
}

// inspectRaw adds the facts about a raw photo to a report.
func (e *Engine) inspectRaw(ctx context.Context, job *fileops.Job, r *report.Report) error {
	p, err := e.identify(ctx, job)
	if err != nil {
		return err
	}
	r.Metadata = p.meta
	r.Picture = &report.Picture{Width: p.width, Height: p.height, Pages: 1, Bits: 16}
	return nil
}

// halfFills reports whether a photo of half the size needs no enlarging to fit a box.
func (p photo) halfFills(width, height int) bool {
	return p.width/2 >= width || p.height/2 >= height
}
