package pdfops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// FromPostScript returns the action "convert" from PostScript and EPS to PDF. Ghostscript runs the
// program that such a file is, without access to files other than its fonts. The pages of an EPS file
// have the size of its bounding box. It returns nil without Ghostscript.
func (t Tools) FromPostScript() fileops.Action {
	if t.Ghostscript == nil {
		return nil
	}
	spec := fileops.Spec{
		Name: "convert", Engine: strings.TrimSpace("Ghostscript " + t.Ghostscript.Version), Family: "pdf", Summary: "Converts PostScript to PDF.", MaxBytes: pdf.MaxFile,
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PS}, Params: fileops.Schema{fileops.Enum("convert_to", "Extension of the result.", "pdf")}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		if cut, err := cutShort(job.Input()); cut || err != nil {
			return errors.Join(err, fileops.Fail(fileops.ErrCorruptInput, nil, "the file ends early"))
		}
		in, err := job.Path(job.Input())
		if err != nil {
			return err
		}
		out, err := t.ghostscript(ctx, job, in, "-dEPSCrop", "-dCompatibilityLevel=1.7")
		if err != nil {
			return err
		}
		defer os.Remove(out)
		data, err := readResult(out)
		if err != nil {
			return err
		}
		d, err := pdf.ParseComplete(ctx, data, t.Limits.pages())
		if err == nil {
			_, err = d.Pages(t.Limits.pages())
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, pdf.ErrManyPages):
			return manyPages(t, err, "the file")
		case err != nil:
			return fileops.Fail(fileops.ErrCorruptInput, err, "the file shows no page; it may be damaged or a program that draws nothing")
		}
		return job.Write(fileops.ResultName(job.Input(), format.PDF), func(w io.Writer) error { _, err := w.Write(data); return err })
	})
}

// cutShort reports whether a PostScript file that has the structure comments of Adobe (PLRM, appendix G)
// ends without any of the words that end such a file. Ghostscript would draw the part that is there.
func cutShort(f *fileops.File) (bool, error) {
	const near = 4 << 10
	r := f.Reader()
	head := make([]byte, min(near, f.Size()))
	if _, err := io.ReadFull(r, head); err != nil {
		return false, err
	}
	if !bytes.HasPrefix(head, []byte("%!PS-Adobe")) || !bytes.Contains(head, []byte("%%EndComments")) {
		return false, nil
	}
	if _, err := r.Seek(-int64(len(head)), io.SeekEnd); err != nil {
		return false, err
	}
	tail := head
	if _, err := io.ReadFull(r, tail); err != nil {
		return false, err
	}
	for _, word := range []string{"%%EOF", "%%Trailer", "showpage", "grestore", "restore", "\nend"} {
		if bytes.Contains(tail, []byte(word)) {
			return false, nil
		}
	}
	return true, nil
}

// redrawn makes Ghostscript write the pages of a document again, for a part of PDF/A.
func (t Tools) redrawn(ctx context.Context, job *fileops.Job, d *pdf.Document, part int) (*pdf.Document, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	in, err := os.CreateTemp(dir, "pages-*.pdf")
	if err != nil {
		return nil, err
	}
	defer os.Remove(in.Name())
	// Ghostscript refuses some values of the information dictionary, which it does not need.
	info, metadata, catalog := d.Info, d.Catalog()["Metadata"], d.Catalog()
	d.Info = 0
	delete(catalog, "Metadata")
	err = errors.Join(d.Write(in, false, nil), in.Close())
	d.Info = info
	if metadata != nil {
		catalog["Metadata"] = metadata
	}
	if err != nil {
		return nil, err
	}
	out, err := t.ghostscript(ctx, job, in.Name(), fmt.Sprintf("-dPDFA=%d", part), "-dPDFACompatibilityPolicy=1", "-sColorConversionStrategy=RGB")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out)
	data, err := readResult(out)
	if err != nil {
		return nil, err
	}
	made, err := pdf.ParseComplete(ctx, data, t.Limits.pages())
	if err != nil {
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
	}
	return made, nil
}

func readResult(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file shows no page; it may be damaged or a program that draws nothing")
	}
	if st.Size() > pdf.MaxFile {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the result has more than %d bytes", int64(pdf.MaxFile))
	}
	return os.ReadFile(path)
}

// ghostscript makes Ghostscript write a PDF file of the file in. It returns the path of the result,
// which the caller must remove. Pictures are not encoded again with losses.
func (t Tools) ghostscript(ctx context.Context, job *fileops.Job, in string, args ...string) (string, error) {
	work, err := job.TempDir("ghostscript-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(work, "out.pdf")
	var said bytes.Buffer
	cmd := engine.Cmd{
		Access: engine.Access{Read: []string{filepath.Dir(in)}},
		Args: append([]string{
			"-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-dAutoRotatePages=/None", "-dEmbedAllFonts=true",
			"-dAutoFilterColorImages=false", "-dAutoFilterGrayImages=false", "-sColorImageFilter=FlateEncode", "-sGrayImageFilter=FlateEncode",
			"-dDownsampleColorImages=false", "-dDownsampleGrayImages=false", "-dDownsampleMonoImages=false", "-dPassThroughJPEGImages=true",
			"-dPDFSTOPONERROR=false", "-sOutputFile=" + out,
		}, append(args, "-f", in)...),
		Dir:    work,
		Stdout: &limited{b: &said, left: 16 << 10},
		Limits: t.Run.Or(engine.Limits{CPU: 5 * time.Minute, Memory: 4 << 30, FileSize: cmp.Or(job.MaxOutput(), pdf.MaxFile) + 1, Processes: 1}),
	}
	if err := t.Ghostscript.Run(ctx, cmd); err != nil {
		var exit *engine.ExitError
		if errors.As(err, &exit) && !exit.Limit() && exit.Signal == 0 {
			err = fileops.Fail(fileops.ErrCorruptInput, fmt.Errorf("%w: %s", err, said.String()), "the file is damaged: Ghostscript cannot draw it")
			return "", errors.Join(err, os.RemoveAll(work))
		}
		return "", errors.Join(failed(err), os.RemoveAll(work))
	}
	return out, nil
}

// A limited writer keeps the first bytes of what is written to it.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.b.Write(p[:n])
	return len(p), nil
}
