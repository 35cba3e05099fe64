//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/fileops"
)

//go:embed pictures.js
var picturesJS []byte

//go:embed office.py
var officePy []byte

// An environment provides what tasks need.
type environment struct {
	inputs *inputs.Set
	tools  string // where sharp is installed
	self   string // this program
	lean   string // the program with only package archiveops, see internal/lean
	server string // the reference server
	full   bool
	sample string // the directory of the repository's sample files

	gotenberg string // the program; "": it is not compared with
}

// A task is work that this module and its rivals can do.
type task struct {
	name   string
	about  string // the input and the differences between contenders, for people
	inputs func(ctx context.Context, e *environment) ([]string, error)

	action string
	args   fileops.Args
	lean   bool // needs only archives
	copies int
	ours   func(e *environment, in []string) (contender, error) // nil runs action

	rivals []rival
	goals  []goal
	rounds int // maximum; 0: limited only by time

	// quality compares a result with the input, from 0 to 1; nil: not compared.
	quality func(ctx context.Context, in, dir string) (float64, error)
}

// A rival is another program for the task.
type rival struct {
	name  string
	start func(e *environment, in []string) (contender, error)
}

// A metric is a measured quantity.
type metric string

const (
	byTime   metric = "time"
	byCPU    metric = "CPU"
	bySize   metric = "size"
	byMemory metric = "memory"
)

// A goal is the expected result: our metric is at most max times that of a rival or, if rival is
// "", at most max. With within, the metric may instead differ from the rival's by at most this
// fraction. With other, the rival is whichever of the two measures more.
type goal struct {
	metric metric
	rival  string
	other  string
	max    float64
	within float64
}

// worker starts a process of this module.
func (e *environment) worker(r map[string]any) (*server, error) {
	return newServer(r, e.self, "-worker")
}

func (t *task) start(e *environment, in []string) (contender, error) {
	if t.ours != nil {
		return t.ours(e, in)
	}
	r := map[string]any{
		"op": "run", "action": t.action, "args": t.args, "inputs": in, "copies": t.copies, "cache": filepath.Join(e.inputs.Dir, "cache"),
	}
	if t.lean {
		return newServer(r, e.lean)
	}
	return e.worker(r)
}

// tool returns a rival that is started for each run.
func tool(name string, argv ...string) rival {
	return rival{name, func(_ *environment, in []string) (contender, error) { return newCommand(in, argv...) }}
}

// script writes an embedded script to a file.
func (e *environment) script(name string, text []byte) (string, error) {
	path := filepath.Join(e.inputs.Dir, name)
	return path, os.WriteFile(path, text, 0o600)
}

// python returns a Python that can import LibreOffice's modules.
func python() (string, error) {
	for _, p := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(p, "-c", "import uno").Run() == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("python3-uno: %w", errMissing)
}

const warmOffice = "LibreOffice, kept warm, bare"

// bareOffice is a warm LibreOffice without this module.
func bareOffice(copies int) rival {
	return rival{warmOffice, func(e *environment, in []string) (contender, error) {
		p, err := python()
		if err != nil {
			return nil, err
		}
		if _, err := exec.LookPath("soffice"); err != nil {
			return nil, fmt.Errorf("soffice: %w", errMissing)
		}
		path, err := e.script("office.py", officePy)
		if err != nil {
			return nil, err
		}
		return newServer(map[string]any{"op": "run", "input": in[0], "copies": max(1, copies)}, p, "-I", path)
	}}
}

var coldOffice = rival{"soffice --convert-to", func(e *environment, in []string) (contender, error) {
	return newCommand(in, "soffice", "-env:UserInstallation=file://"+filepath.Join(e.inputs.Dir, "cold"), "--headless", "--norestore",
		"--convert-to", "pdf", "--outdir", "@dir", "@1")
}}

func (e *environment) sharp() (module, script string, err error) {
	module = filepath.Join(e.tools, "node_modules", "sharp")
	if _, err := os.Stat(module); err != nil {
		return "", "", fmt.Errorf("sharp: %w", errMissing)
	}
	if _, err := exec.LookPath("node"); err != nil {
		return "", "", fmt.Errorf("node: %w", errMissing)
	}
	script, err = e.script("pictures.js", picturesJS)
	return module, script, err
}

const warmSharp = "sharp, kept warm"

// sharp converts images in a running Node.js.
func sharp(format string, width int, options map[string]any) rival {
	return rival{warmSharp, func(e *environment, in []string) (contender, error) {
		module, script, err := e.sharp()
		if err != nil {
			return nil, err
		}
		return newServer(map[string]any{"op": "run", "input": in[0], "format": format, "width": width, "options": options}, "node", script, module)
	}}
}

// coldSharp starts a Node.js for each image.
func coldSharp(format string) rival {
	return rival{"node with sharp", func(e *environment, in []string) (contender, error) {
		module, _, err := e.sharp()
		if err != nil {
			return nil, err
		}
		return newCommand(in, "node", "-e", fmt.Sprintf("require(%q)(process.argv[1]).%s().toFile(process.argv[2]+'/out.%s')", module, format, format), "@1", "@dir")
	}}
}

// one turns a function for one input into a task's inputs.
func one(f func(s *inputs.Set, ctx context.Context) (string, error)) func(context.Context, *environment) ([]string, error) {
	return func(ctx context.Context, e *environment) ([]string, error) {
		p, err := f(e.inputs, ctx)
		return []string{p}, err
	}
}

func photo(width, height int) func(context.Context, *environment) ([]string, error) {
	return one(func(s *inputs.Set, ctx context.Context) (string, error) { return s.Photo(ctx, width, height) })
}

func sampleFile(name string) func(context.Context, *environment) ([]string, error) {
	return func(_ context.Context, e *environment) ([]string, error) {
		p := filepath.Join(e.sample, name)
		_, err := os.Stat(p)
		return []string{p}, err
	}
}

// tasks returns all comparisons.
func tasks(full bool) []task {
	zipSize, uploadSize := int64(128<<20), int64(512<<20)
	if full {
		zipSize, uploadSize = 1<<30, 5<<30
	}
	convert := func(to string, more ...any) fileops.Args {
		a := fileops.Args{"convert_to": to}
		for i := 0; i+1 < len(more); i += 2 {
			a[more[i].(string)] = more[i+1]
		}
		return a
	}
	office := []goal{{metric: byTime, rival: warmOffice, max: 1.3}}
	faster := func(rival string, most float64) []goal { return []goal{{metric: byTime, rival: rival, max: most}} }
	image := []goal{{metric: byTime, rival: warmSharp, max: 1.1}, {metric: bySize, rival: warmSharp, max: 1.02}}
	return []task{
		{name: "docx → pdf, small", about: "one page with a picture, 47 KB", action: "convert", args: convert("pdf"), inputs: sampleFile("report.docx"),
			rivals: []rival{bareOffice(1), coldOffice}, goals: office},
		{name: "docx → pdf, large", about: "ten pages with two pictures", action: "convert", args: convert("pdf"), inputs: one((*inputs.Set).DOCX),
			rivals: []rival{bareOffice(1), coldOffice}, goals: office},
		{name: "docx → pdf, eight at once", about: "the small one; the bare one takes them in turn", action: "convert", args: convert("pdf"), copies: 8,
			inputs: sampleFile("report.docx"), rivals: []rival{bareOffice(8)}},
		{name: "pptx → pdf", about: "twelve slides", action: "convert", args: convert("pdf"), inputs: one((*inputs.Set).PPTX),
			rivals: []rival{bareOffice(1), coldOffice}, goals: office},
		{name: "xlsx → pdf", about: "400 rows", action: "convert", args: convert("pdf"), inputs: one((*inputs.Set).XLSX),
			rivals: []rival{bareOffice(1), coldOffice}, goals: office},
		{name: "md → docx", about: "5400 words", action: "convert", args: convert("docx"),
			inputs: one(func(s *inputs.Set, _ context.Context) (string, error) { return s.Markdown() }),
			rivals: []rival{tool("pandoc", "pandoc", "-o", "@dir/out.docx", "@1")}},

		{name: "jpg → png", about: "2 MP; sharp with its defaults", action: "convert", args: convert("png"), inputs: photo(1600, 1250),
			rivals: []rival{sharp("png", 0, nil), coldSharp("png"), tool("vips copy", "vips", "copy", "@1", "@dir/out.png")}, goals: image, quality: imageQuality},
		{name: "jpg → webp", about: "2 MP, quality 85", action: "convert", args: convert("webp"), inputs: photo(1600, 1250),
			rivals: []rival{sharp("webp", 0, map[string]any{"quality": 85})}, goals: image, quality: imageQuality},
		{name: "jpg → avif", about: "2 MP, quality 63, effort 2", action: "convert", args: convert("avif"), inputs: photo(1600, 1250),
			rivals: []rival{sharp("avif", 0, map[string]any{"quality": 63, "effort": 2})}, goals: image, quality: imageQuality},
		{name: "png → jpg", about: "2 MP, quality 90, progressive", action: "convert", args: convert("jpg"), inputs: photoPNG,
			rivals: []rival{sharp("jpeg", 0, map[string]any{"quality": 90, "progressive": true, "chromaSubsampling": "4:4:4"})}, goals: image, quality: imageQuality},
		{name: "jpg → webp, 800 pixels wide", about: "12 MP, quality 85", action: "convert", args: convert("webp", "width", 800), inputs: photo(4000, 3000),
			rivals: []rival{sharp("webp", 800, map[string]any{"quality": 85})}, goals: image},
		{name: "jpg → png, 800 pixels wide", about: "12 MP; sharp with its defaults", action: "convert", args: convert("png", "width", 800), inputs: photo(4000, 3000),
			rivals: []rival{sharp("png", 800, nil)}, goals: faster(warmSharp, 1.2)},
		{name: "jpg → webp, 24 MP", about: "quality 85", action: "convert", args: convert("webp"), inputs: photo(6000, 4000),
			rivals: []rival{sharp("webp", 0, map[string]any{"quality": 85})}, goals: faster(warmSharp, 0.9)},
		{name: "jpg → webp, 50 MP", about: "quality 85", action: "convert", args: convert("webp"), inputs: photo(8660, 5774),
			rivals: []rival{sharp("webp", 0, map[string]any{"quality": 85})}, goals: faster(warmSharp, 0.9)},
		{name: "jpg → png, 50 MP", about: "sharp with its defaults", action: "convert", args: convert("png"), inputs: photo(8660, 5774),
			rivals: []rival{sharp("png", 0, nil)}, goals: faster(warmSharp, 0.8)},
		compressJPEG(fileops.LessCompression, 90),
		compressJPEG(fileops.RecommendedCompression, 75),

		{name: "merge 100 PDFs", about: "one to three pages each", action: "merge",
			inputs: func(ctx context.Context, e *environment) ([]string, error) { return e.inputs.PDFs(ctx, 100) },
			rivals: []rival{qpdfMerge, unite, mutoolMerge},
			goals:  []goal{{metric: byTime, rival: "qpdf", max: 0.6}, {metric: byTime, rival: "mutool merge", max: 1}}},
		{name: "merge 10 PDFs", about: "one to three pages each", action: "merge",
			inputs: func(ctx context.Context, e *environment) ([]string, error) { return e.inputs.PDFs(ctx, 10) },
			rivals: []rival{qpdfMerge, mutoolMerge}, goals: faster("mutool merge", 1)},
		{name: "lock a PDF", about: "350 pages, AES-256", action: "lock", args: fileops.Args{"password": "secret"}, inputs: one((*inputs.Set).Book),
			rivals: []rival{tool("qpdf", "qpdf", "--encrypt", "secret", "secret", "256", "--", "@1", "@dir/out.pdf"),
				tool("mutool clean", "mutool", "clean", "-E", "aes-256", "-U", "secret", "-O", "secret", "@1", "@dir/out.pdf")},
			goals: faster("qpdf", 0.8)},
		{name: "unlock a PDF", about: "350 pages, AES-256", action: "unlock", args: fileops.Args{"password": "secret"}, inputs: one((*inputs.Set).LockedBook),
			rivals: []rival{tool("qpdf", "qpdf", "--password=secret", "--decrypt", "@1", "@dir/out.pdf"),
				tool("mutool clean", "mutool", "clean", "-D", "-p", "secret", "@1", "@dir/out.pdf")},
			goals: faster("qpdf", 0.8)},
		{name: "reset the password of a PDF", about: "350 pages, AES-256", action: "reset_password", args: fileops.Args{"old_password": "secret", "new_password": "other"},
			inputs: one((*inputs.Set).LockedBook),
			rivals: []rival{tool("qpdf", "qpdf", "--password=secret", "--encrypt", "other", "other", "256", "--", "@1", "@dir/out.pdf")},
			goals:  faster("qpdf", 0.8)},
		{name: "pdf → txt", about: "350 pages", action: "convert", args: convert("txt"), inputs: one((*inputs.Set).Book),
			rivals: []rival{pdftotext, tool("mutool draw", "mutool", "draw", "-q", "-F", "txt", "-o", "@dir/out.txt", "@1")}, goals: faster("pdftotext -layout", 1)},
		{name: "pdf → txt, one page", about: "a short text", action: "convert", args: convert("txt"), inputs: sampleFile("one.pdf"),
			rivals: []rival{pdftotext}, goals: []goal{{metric: byTime, max: 40e-3}}},
		{name: "compress pdf", about: "two pages scanned at 300 dpi", action: "compress", inputs: one((*inputs.Set).Scan),
			rivals: []rival{tool("gs /ebook", "gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pdfwrite", "-dPDFSETTINGS=/ebook", "-sOutputFile=@dir/out.pdf", "@1")}, quality: pdfQuality},
		{name: "pdf → png", about: "ten pages at 150 dpi", action: "convert", args: convert("png", "dpi", 150), inputs: one((*inputs.Set).PDF),
			rivals: []rival{tool("pdftoppm -png", "pdftoppm", "-r", "150", "-png", "@1", "@dir/out"),
				tool("mutool draw", "mutool", "draw", "-q", "-r", "150", "-o", "@dir/out-%d.png", "@1")},
			goals: []goal{{metric: byTime, rival: "pdftoppm -png", max: 0.2}, {metric: byTime, rival: "mutool draw", max: 0.6}}},
		{name: "pdf → jpg", about: "ten pages at 150 dpi", action: "convert", args: convert("jpg", "dpi", 150), inputs: one((*inputs.Set).PDF),
			rivals: []rival{tool("pdftoppm -jpeg", "pdftoppm", "-r", "150", "-jpeg", "@1", "@dir/out")}, goals: faster("pdftoppm -jpeg", 0.8)},
		{name: "html → pdf", about: "a page of text with a table; Chromium starts for each, and its result is packed without losses", action: "convert", args: convert("pdf"),
			inputs: one((*inputs.Set).HTML), rivals: []rival{chromium},
			goals: []goal{{metric: byTime, rival: chromium.name, max: 0.3}, {metric: bySize, rival: chromium.name, max: 1.1}}},

		{name: "zip, " + amount(zipSize), about: "mixed files, half of them compressed already", action: "zip", lean: true, rounds: 3,
			inputs: func(_ context.Context, e *environment) ([]string, error) { return e.inputs.Mixed(zipSize) },
			rivals: []rival{tool("zip -6", "zip", "-q", "-6", "-j", "@dir/out.zip", "@in")},
			goals: []goal{{metric: byTime, rival: "zip -6", max: 1.0 / 6}, {metric: bySize, rival: "zip -6", within: 0.01},
				{metric: byMemory, max: 64 << 20}}},
		{name: "zip, " + amount(64<<20), about: "mixed files, half of them compressed already", action: "zip", lean: true, rounds: 2,
			inputs: func(_ context.Context, e *environment) ([]string, error) { return e.inputs.Mixed(64 << 20) },
			rivals: []rival{tool("7z -tzip", "7z", "a", "-tzip", "-bso0", "-bsp0", "@dir/out.zip", "@in")}},

		{name: "mp4 → mp3", about: "60 seconds, variable bit rate, -q:a 2", action: "convert", args: convert("mp3"), inputs: one((*inputs.Set).Clip),
			rivals: []rival{tool("ffmpeg", "ffmpeg", "-nostdin", "-v", "error", "-i", "@1", "-vn", "-q:a", "2", "@dir/out.mp3")},
			goals:  []goal{{metric: byTime, rival: "ffmpeg", max: 1.05}}},

		{name: "upload, " + amount(uploadSize), about: "one PUT to the service; the other is the MD5 of it, on one core", rounds: rounds(full, 1, 5),
			ours:   func(e *environment, _ []string) (contender, error) { return newUploader(e, uploadSize) },
			rivals: []rival{md5Sum(uploadSize), disk(uploadSize)},
			goals: []goal{{metric: byTime, rival: "MD5", max: 1 / 0.8}, {metric: byTime, rival: "MD5", other: "write and fsync", max: 1.25},
				{metric: byMemory, max: 96 << 20}}},
		{name: "upload, " + amount(64<<20), about: "the same, to see that memory does not grow with size",
			ours:   func(e *environment, _ []string) (contender, error) { return newUploader(e, 64<<20) },
			rivals: []rival{md5Sum(64 << 20), disk(64 << 20)}, goals: []goal{{metric: byMemory, max: 96 << 20}}},
	}
}

func rounds(full bool, a, b int) int {
	if full {
		return a
	}
	return b
}

// unite is pdfunite, which takes the output as its last argument.
var unite = rival{"pdfunite", func(_ *environment, in []string) (contender, error) {
	return newCommand(in, "pdfunite", "@in", "@dir/out.pdf")
}}

func md5Sum(size int64) rival {
	return rival{"MD5", func(e *environment, _ []string) (contender, error) {
		return e.worker(map[string]any{"op": "md5", "size": size})
	}}
}

// disk writes size bytes to the disk and waits for fsync.
func disk(size int64) rival {
	return rival{"write and fsync", func(e *environment, _ []string) (contender, error) {
		return e.worker(map[string]any{"op": "write", "size": size})
	}}
}

var (
	qpdfMerge   = tool("qpdf", "qpdf", "--empty", "--pages", "@in", "--", "@dir/out.pdf")
	mutoolMerge = tool("mutool merge", "mutool", "merge", "-o", "@dir/out.pdf", "@in")
	pdftotext   = tool("pdftotext -layout", "pdftotext", "-layout", "@1", "@dir/out.txt")
)

// chromium prints a page and packs the result with qpdf, which is the smallest form without losses.
var chromium = rival{"Chromium and qpdf", func(_ *environment, in []string) (contender, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		return newCommand(in, "sh", "-c", `"$1" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --user-data-dir="$3/profile" --print-to-pdf="$3/page.pdf" "file://$2" &&
			qpdf --object-streams=generate --recompress-flate --compression-level=9 "$3/page.pdf" "$3/out.pdf" && rm -r "$3/page.pdf" "$3/profile"`, "sh", name, "@1", "@dir")
	}
	return nil, fmt.Errorf("chromium: %w", errMissing)
}}

// compressJPEG is the compression of a photo at a level, beside mozjpeg at a quality.
func compressJPEG(level string, quality int) task {
	return task{name: fmt.Sprintf("compress jpg, %s", level), about: "2 MP; quality is the score of SSIMULACRA 2", action: "compress",
		args: fileops.Args{"compression_value": level}, inputs: photo(1600, 1250), quality: perceptualQuality,
		rivals: []rival{sharp("jpeg", 0, map[string]any{"quality": quality, "mozjpeg": true})},
		goals:  []goal{{metric: byTime, rival: warmSharp, max: 1}, {metric: bySize, rival: warmSharp, max: 1}}}
}

// dot returns a tiny picture.
func dot() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 64, 64))); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// photoPNG returns a photo as a PNG.
func photoPNG(ctx context.Context, e *environment) ([]string, error) {
	p, err := e.inputs.Photo(ctx, 1600, 1250)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(e.inputs.Dir, "photo.png")
	if b, err := exec.CommandContext(ctx, "vips", "copy", p, out).CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(b)))
	}
	return []string{out}, nil
}
