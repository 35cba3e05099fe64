// Package text writes pages as plain text in reading order.
package text

import (
	"bufio"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Write writes a page and reports whether it has text. out keeps errors.
func Write(out *bufio.Writer, l *model.Leaf) bool {
	any := false
	for _, b := range l.Bands {
		for _, c := range b.Columns {
			for _, bl := range c.Blocks {
				if any && bl.Before > 0.3*bl.Lines[0].Size || any && bl == c.Blocks[0] {
					out.WriteByte('\n')
				}
				for _, ln := range bl.Lines {
					any = true
					out.WriteString(ln.Text())
					out.WriteByte('\n')
				}
			}
		}
	}
	return any
}
