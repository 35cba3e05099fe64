package officeops

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/filewright/filewright/fileops"
)

// A cellCounter counts the non-empty cells of OpenDocument sheets. Cells and rows can
// have a repeat count (OpenDocument 1.3 part 3, 19.675 and 19.679), so a few hundred
// bytes can represent a billion cells.
//
// It is not an XML parser, because parsers are slow. It recognises tags, attributes,
// comments and character data, and tolerates XML that is not well-formed. It ignores the
// prefix of names.
type cellCounter struct {
	most  int64
	cells int64
	rows  int64 // repeat count of the current row
}

// errCells reports that there are more cells than the limit.
var errCells = errors.New("officeops: too many cells")

// check counts the cells of an XML stream up to its end.
func (c *cellCounter) check(ctx context.Context, r io.Reader) error {
	err := c.read(bufio.NewReaderSize(fileops.ContextReader(ctx, r), 64<<10))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errCells):
		return fileops.Fail(fileops.ErrLimit, nil, "the sheets have more than the limit of %d non-empty cells; split the workbook first", c.most)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// maxTag is the number of bytes of a tag that are examined.
const maxTag = 16 << 10

func (c *cellCounter) read(r *bufio.Reader) error {
	var tag []byte
	for {
		if err := skipTo(r, "<"); err != nil {
			return err
		}
		head, err := r.Peek(8)
		if len(head) == 0 {
			return err
		}
		switch {
		case bytes.HasPrefix(head, []byte("!--")):
			err = skipTo(r, "-->")
		case bytes.HasPrefix(head, []byte("![CDATA[")):
			err = skipTo(r, "]]>")
		default:
			if tag, err = readTag(r, tag[:0]); err == nil {
				err = c.tag(tag)
			}
		}
		if err != nil {
			return err
		}
	}
}

// skipTo reads up to the end of text, which has one or three bytes.
func skipTo(r *bufio.Reader, text string) error {
	if len(text) == 1 {
		for {
			if _, err := r.ReadSlice(text[0]); !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
		}
	}
	var last [3]byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if last = [3]byte{last[1], last[2], b}; string(last[:]) == text {
			return nil
		}
	}
}

// readTag reads up to the next > outside quotation marks. It truncates tags that are
// longer than maxTag.
func readTag(r *bufio.Reader, tag []byte) ([]byte, error) {
	quote := byte(0)
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return tag, err
		case quote == 0 && b == '>':
			return tag, nil
		case quote == 0 && (b == '"' || b == '\''):
			quote = b
		case b == quote:
			quote = 0
		}
		if len(tag) < maxTag {
			tag = append(tag, b)
		}
	}
}

// tag processes a tag without its angle brackets.
func (c *cellCounter) tag(tag []byte) error {
	end := bytes.IndexAny(tag, " \t\r\n/")
	if end < 0 {
		end = len(tag)
	}
	name := tag[:end]
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	switch string(name) {
	case "table-row":
		c.rows = repeated(tag, "number-rows-repeated")
	case "table-cell":
		empty := bytes.HasSuffix(tag, []byte("/")) && !bytes.Contains(tag, []byte("value")) && !bytes.Contains(tag, []byte("formula"))
		if empty {
			return nil
		}
		n := repeated(tag, "number-columns-repeated")
		rows := max(c.rows, 1)
		if n > c.most/rows {
			return errCells
		}
		if c.cells += n * rows; c.cells > c.most {
			return errCells
		}
	}
	return nil
}

// repeated returns the numeric value of an attribute, at least 1. An invalid number
// counts as a large one: LibreOffice may be able to read it.
func repeated(tag []byte, name string) int64 {
	most := int64(1)
	for {
		_, rest, found := bytes.Cut(tag, []byte(name))
		if !found {
			return most
		}
		tag = rest
		rest = bytes.TrimLeft(rest, " \t\r\n=\"'")
		digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
		n, err := strconv.ParseInt(string(digits), 10, 40)
		if err != nil {
			n = 1 << 40
		}
		most = max(most, n)
	}
}
