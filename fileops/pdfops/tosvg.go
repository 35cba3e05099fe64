package pdfops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/pagelist"
)

// maxDrawing is the largest drawing of a page in bytes. Its pictures are text in it, which
// the check of the result reads as a whole.
const maxDrawing = 256 << 20

// ToSVG returns the action "convert" from PDF to SVG: a file for each page, drawn by
// pdftocairo. Lines and areas stay vectors. Text becomes outlines, so it looks the same
// everywhere, but cannot be searched; a warning says so. It returns nil without
// pdftocairo.
func (t Tools) ToSVG() fileops.Action {
	if t.PDFToCairo == nil {
		return nil
	}
	spec := t.pageSpec("convert", "Makes a drawing of each page.", fileops.Enum("convert_to", "Extension of the result.", "svg"), fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
		Doc: "Pages to convert, such as 1-3,5,-1 (negative: from the end); all by default.",
	})
	spec.Engine, spec.MaxBytes = strings.TrimSpace("pdftocairo "+t.PDFToCairo.Version), pdf.MaxFile
	return fileops.Func(spec, t.toSVG)
}

func (t Tools) toSVG(ctx context.Context, job *fileops.Job) error {
	d, pages, err := t.loadPages(ctx, job)
	if err != nil {
		return err
	}
	defer d.Close()
	chosen, err := pagelist.Parse(job.Params.Get("pages"), len(pages))
	if err != nil {
		return err
	}
	work, err := job.TempDir("drawings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// A copy without encryption and damage: a password would be an argument, which other
	// users can read.
	in := filepath.Join(work, "in.pdf")
	if err := writeTo(in, d); err != nil {
		return err
	}
	letters := false
	for i, n := range chosen {
		name := fileops.PageName(job.Input(), format.SVG, n+1, len(pages))
		if len(chosen) == 1 {
			name = fileops.ResultName(job.Input(), format.SVG)
		}
		err := job.WriteFile(name, func(path string) error {
			if err := t.drawPage(ctx, job, work, in, path, n+1); err != nil {
				return err
			}
			text, err := checkDrawing(path)
			letters = letters || text
			return err
		})
		if err != nil {
			return err
		}
		job.Progress(float64(i+1) / float64(len(chosen)))
	}
	if letters {
		job.Warn(fileops.WarnContentDropped, "Text became outlines: it looks as before, but cannot be searched or copied.")
	}
	return nil
}

// writeTo writes a document to a file.
func writeTo(path string, d *pdf.Document) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Write(f, false, nil), f.Close())
}

// drawPage makes pdftocairo draw one page of the file in.
func (t Tools) drawPage(ctx context.Context, job *fileops.Job, work, in, out string, page int) error {
	n := strconv.Itoa(page)
	err := t.PDFToCairo.Run(ctx, engine.Cmd{
		Args:   []string{"-svg", "-origpagesizes", "-q", "-f", n, "-l", n, in, out},
		Dir:    filepath.Dir(out),
		Access: engine.Access{Read: []string{work}},
		Limits: t.Run.Or(engine.Limits{CPU: time.Minute, Memory: 4 << 30, FileSize: min(cmp.Or(job.MaxOutput(), maxDrawing), maxDrawing) + 1, Processes: 1}),
	})
	var exit *engine.ExitError
	if errors.As(err, &exit) && !exit.Limit() && exit.Signal == 0 {
		return fileops.Fail(fileops.ErrCorruptInput, err, "page %d is damaged and cannot be drawn", page)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// checkDrawing fails if the file at path is not a complete drawing. It reports whether the
// drawing has outlines of letters.
func checkDrawing(path string) (letters bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, fileops.Fail(fileops.ErrEngine, errors.New("pdftocairo wrote nothing"), "")
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	x := xml.NewDecoder(f)
	root := true
	for {
		tok, err := x.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, fileops.Fail(fileops.ErrEngine, fmt.Errorf("pdftocairo: %w", err), "")
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "id" && strings.HasPrefix(a.Value, "glyph") {
				letters = true
			}
			if n, err := strconv.ParseFloat(strings.TrimSuffix(a.Value, "pt"), 64); root && (a.Name.Local == "width" || a.Name.Local == "height") && (err != nil || n <= 0 || math.IsInf(n, 0)) {
				return false, fileops.Fail(fileops.ErrEngine, fmt.Errorf("pdftocairo: %s is %q", a.Name.Local, a.Value), "")
			}
		}
		root = false
	}
	// The decoder does not compare the names of elements here.
	var tail [64]byte
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	n, _ := f.ReadAt(tail[:], max(0, st.Size()-int64(len(tail))))
	if !bytes.HasSuffix(bytes.TrimSpace(tail[:n]), []byte("</svg>")) {
		return false, fileops.Fail(fileops.ErrEngine, errors.New("pdftocairo: the drawing ends early"), "")
	}
	return letters, nil
}
