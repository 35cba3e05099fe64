package standard_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
)

// A file that is valid in several formats is treated as the format that its content
// shows, or refused. No action reads its other half, under whatever name.
func TestPolyglots(t *testing.T) {
	t.Parallel()
	reg := registry(t, set)
	// In these formats the part that is hidden from other readers is ordinary content.
	open := map[format.Format]bool{format.HTML: true, format.TXT: true, format.SVG: true, format.XML: true, format.ZIP: true, format.TAR: true, format.GZ: true}
	for _, p := range hostile.Polyglots() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			names := append([]format.Format{p.Is}, p.Also...)
			for _, named := range names {
				for _, action := range []string{"convert", "compress", "merge", "lock", "unlock"} {
					targets := []string{""}
					if action == "convert" {
						targets = []string{"pdf", "txt", "html", "png", "mp3", "zip"}
					}
					for _, to := range targets {
						args := fileops.Args{}
						if to != "" {
							args["convert_to"] = to
						}
						if action == "lock" || action == "unlock" {
							args["password"] = "pw"
						}
						f := fileops.Bytes("a."+string(named), p.Content)
						inputs := []*fileops.File{f}
						a, params, err := reg.Resolve(action, []format.Format{f.Format()}, args)
						if err != nil {
							continue
						}
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
						r := fileops.Runner{TempDir: t.TempDir()}
						err = r.Do(ctx, a, params, fileops.SinkFunc(func(_ context.Context, out *fileops.File) error {
							b, err := io.ReadAll(out.Reader())
							if err != nil {
								return err
							}
							if named == p.Is && (bytes.Contains(b, p.Content[:min(len(p.Content), 512)]) || action == "lock") {
								return nil // it is the file itself
							}
							if !open[p.Is] && strings.Contains(text(t, out), hostile.Hidden) {
								t.Errorf("named .%s, %s to %q has what is hidden", named, action, to)
							}
							return nil
						}), inputs...)
						cancel()
						if named != p.Is && !errors.Is(err, fileops.ErrFormatMismatch) && !errors.Is(err, fileops.ErrCorruptInput) {
							t.Errorf("named .%s, %s to %q: %v, want a mismatch", named, action, to, err)
						}
						if code := fileops.Code(err); err != nil && (code == "internal_error" || code == "timeout") {
							t.Errorf("named .%s, %s to %q: %v", named, action, to, err)
						}
					}
				}
			}
		})
	}
}

// text returns the parts of a result that could come from another file.
func text(t *testing.T, f *fileops.File) string {
	b, err := io.ReadAll(f.Reader())
	systest.NoError(t, err)
	out := string(b)
	if f.Format() == format.PDF {
		c := exec.Command("pdftotext", "-upw", "pw", "-", "-")
		c.Stdin = bytes.NewReader(b)
		said, err := c.Output()
		if err != nil {
			t.Errorf("pdftotext: %v", err)
		}
		out += string(said)
	}
	if z, err := zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, e := range z.File {
			if r, err := e.Open(); err == nil {
				part, _ := io.ReadAll(io.LimitReader(r, 1<<20))
				out += string(part)
			}
		}
	}
	return out
}
