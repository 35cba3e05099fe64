package fidelity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/filewright/filewright/internal/likeness"
)

// Draw draws at most n pages of a PDF with pdftoppm, cut to the crop box as in a viewer. It draws no
// page of a file that poppler cannot read.
func Draw(ctx context.Context, pdf string, n int) ([]*likeness.Page, error) {
	out, err := output(ctx, "pdftoppm", "-cropbox", "-r", strconv.Itoa(DPI), "-l", strconv.Itoa(n), pdf)
	if err != nil {
		return nil, err
	}
	var pages []*likeness.Page
	for len(out) > 0 {
		p, rest, err := ParsePPM(out)
		if err != nil {
			return pages, err
		}
		pages, out = append(pages, p), rest
	}
	return pages, nil
}

var errPPM = errors.New("the picture is no complete PPM file with 8 bits per channel")

// ParsePPM reads one binary portable pixmap (netpbm, ppm(5)) and returns the bytes after it.
func ParsePPM(b []byte) (*likeness.Page, []byte, error) {
	p, depth := new(likeness.Page), 0
	r := bytes.NewReader(b)
	if _, err := fmt.Fscanf(r, "P6\n%d %d\n%d\n", &p.W, &p.H, &depth); err != nil || depth != 255 || p.W < 1 || p.H < 1 {
		return nil, nil, errPPM
	}
	rest := b[len(b)-r.Len():]
	if len(rest)/3/p.W < p.H {
		return nil, nil, errPPM
	}
	n := 3 * p.W * p.H
	p.RGB = rest[:n:n]
	return p, rest[n:], nil
}
