package officeops

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"html"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// When LibreOffice loads a workbook, it recomputes some functions even if the workbook
// stores their values. CELL and INFO describe the computer and the path of the file;
// other functions fetch data. On a server these results are wrong, and would reveal
// details of the host. So formulas with such functions are replaced by their stored
// values if the result shows values. Volatile functions such as NOW and RAND are
// recomputed, as in other programs.

// neutralURL returns the address that LibreOffice sees for a document called name at
// path. Fields that show the path of the file contain it. No such file exists; the
// content comes from a stream.
func neutralURL(name, path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + format.Base(name) + filepath.Ext(path)}).String()
}

// environmentFunctions matches a call of a function whose value depends on the host. The
// names are those of OOXML and OpenDocument.
var environmentFunctions = regexp.MustCompile(`(?i)(?:^|[^\p{L}\d_.])(?:_xlfn\.|com\.microsoft\.)?(CELL|INFO|WEBSERVICE|DDE|RTD)\s*\(\s*("[a-z]*")?`)

// cellFacts are the arguments of CELL for which the result depends only on the cell.
var cellFacts = []string{
	`"address"`, `"col"`, `"color"`, `"contents"`, `"coord"`, `"format"`, `"parentheses"`, `"prefix"`, `"protect"`, `"row"`, `"sheet"`, `"type"`, `"width"`,
}

// A freezer replaces formulas with their stored values.
type freezer struct {
	names map[string]bool // named expressions that stand for such formulas, in lower case
}

// depends reports whether the value of a formula depends on the host.
func (z *freezer) depends(formula string) bool {
	for _, m := range environmentFunctions.FindAllStringSubmatch(formula, -1) {
		if !strings.EqualFold(m[1], "CELL") || !slices.Contains(cellFacts, strings.ToLower(m[2])) {
			return true
		}
	}
	if len(z.names) > 0 {
		for _, word := range word.FindAllString(formula, -1) {
			if z.names[strings.ToLower(word)] {
				return true
			}
		}
	}
	return false
}

var word = regexp.MustCompile(`[\p{L}_\\][\p{L}\p{N}_.\\]*`)

// Limits of the data kept in memory.
const (
	longestPiece  = 256 << 10 // a tag, or a formula
	mostNames     = 10_000
	mostNameBytes = 4 << 20
)

// errPiece reports a tag that is too long. Office programs write no such tags.
var errPiece = errors.New("officeops: tag too long")

// freeze writes the workbook at in to out, with values in place of the formulas that
// depend on the host. It reports whether there were any; if not, out does not exist.
func freeze(ctx context.Context, from format.Format, in, out string) (frozen bool, err error) {
	src, err := os.Open(in)
	if err != nil {
		return false, err
	}
	defer src.Close()
	var parts func(each func(name string, r io.Reader) error) error
	var rewrite func(w io.Writer, z *freezer) error
	switch from {
	case format.FODS:
		parts = func(each func(string, io.Reader) error) error {
			_, err := src.Seek(0, io.SeekStart)
			return errors.Join(err, each("content.xml", fileops.ContextReader(ctx, src)))
		}
		rewrite = func(w io.Writer, z *freezer) error {
			return parts(func(_ string, r io.Reader) error { return z.copy(w, r, from) })
		}
	case format.XLSX, format.ODS:
		st, err := src.Stat()
		if err != nil {
			return false, err
		}
		archive, err := zip.NewReader(src, st.Size())
		if err != nil {
			return false, damaged(err)
		}
		parts = func(each func(string, io.Reader) error) error {
			for _, e := range archive.File {
				if !hasFormulas(from, e.Name) {
					continue
				}
				if err := readEntry(ctx, e, func(r io.Reader) error { return each(e.Name, r) }); err != nil {
					return err
				}
			}
			return nil
		}
		rewrite = func(w io.Writer, z *freezer) error {
			packed := zip.NewWriter(w)
			for _, e := range archive.File {
				if !hasFormulas(from, e.Name) {
					if err := packed.Copy(e); err != nil {
						return err
					}
					continue
				}
				part, err := packed.Create(e.Name)
				if err != nil {
					return err
				}
				if err := readEntry(ctx, e, func(r io.Reader) error { return z.copy(part, r, from) }); err != nil {
					return err
				}
			}
			return packed.Close()
		}
	default:
		return false, nil
	}
	z := new(freezer)
	found, err := z.scan(parts, from)
	if err != nil || !found {
		if errors.Is(err, errPiece) { // LibreOffice may be able to read it
			err = nil
		}
		return false, err
	}
	dst, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	buffered := bufio.NewWriterSize(dst, 64<<10)
	if err := errors.Join(rewrite(buffered, z), buffered.Flush(), dst.Close()); err != nil {
		return false, errors.Join(err, os.Remove(out))
	}
	return true, nil
}

// hasFormulas reports whether a part of a package may contain cell formulas, or names
// for them.
func hasFormulas(f format.Format, part string) bool {
	part = strings.ToLower(part)
	if f == format.ODS {
		return part == "content.xml"
	}
	return strings.HasSuffix(part, ".xml") && (strings.Contains(part, "sheet") || strings.Contains(part, "workbook"))
}

func readEntry(ctx context.Context, e *zip.File, do func(io.Reader) error) error {
	r, err := e.Open()
	if err != nil {
		return damaged(err)
	}
	defer r.Close()
	return do(fileops.ContextReader(ctx, r))
}

// scan reports whether there is a formula to replace, and collects the names of such
// formulas.
func (z *freezer) scan(parts func(func(string, io.Reader) error) error, f format.Format) (found bool, err error) {
	type name struct{ name, formula string }
	var names []name
	size := 0
	err = parts(func(_ string, r io.Reader) error {
		return pieces(r, func(p []byte, src *bufio.Reader) error {
			if p[0] != '<' {
				return nil
			}
			var n name
			switch local(p) {
			case "f":
				if f != format.XLSX || selfClosing(p) {
					return nil
				}
				text, _, err := textUpTo(src)
				if err != nil {
					return err
				}
				found = found || z.depends(html.UnescapeString(string(text)))
				return nil
			case "table-cell":
				found = found || z.depends(attribute(p, "formula"))
				return nil
			case "definedName":
				n.name = attribute(p, "name")
				if !selfClosing(p) {
					text, _, err := textUpTo(src)
					if err != nil {
						return err
					}
					n.formula = html.UnescapeString(string(text))
				}
			case "named-expression":
				n = name{attribute(p, "name"), attribute(p, "expression")}
			}
			size += len(n.name) + len(n.formula)
			if n.name != "" && len(names) < mostNames && size < mostNameBytes {
				names = append(names, n)
			}
			return nil
		})
	})
	for more := err == nil; more; { // a name may stand for a formula with another name
		more = false
		for _, n := range names {
			if key := strings.ToLower(n.name); !z.names[key] && z.depends(n.formula) {
				if z.names == nil {
					z.names = make(map[string]bool)
				}
				z.names[key], found, more = true, true, true
			}
		}
	}
	return found, err
}

// copy copies a part and omits the formulas to replace that have a stored value.
func (z *freezer) copy(w io.Writer, r io.Reader, f format.Format) error {
	inCell := false
	shared := make(map[string]bool) // groups of shared formulas (ISO/IEC 29500-1, 18.3.1.40)
	return pieces(r, func(p []byte, src *bufio.Reader) error {
		switch tag := local(p); {
		case p[0] != '<':
		case f == format.XLSX && tag == "c":
			inCell = !selfClosing(p)
		case f == format.XLSX && tag == "/c":
			inCell = false
		case f == format.XLSX && tag == "f" && inCell:
			// The formula, its end tag, and the next tag, which is <v> if there is a
			// value.
			kept := bytes.Clone(p)
			formula := ""
			if !selfClosing(p) {
				text, end, err := textUpTo(src)
				if err != nil {
					return err
				}
				formula = html.UnescapeString(string(text))
				kept = append(append(kept, text...), end...)
			}
			group := attribute(p, "si")
			drop := z.depends(formula) || attribute(p, "t") == "shared" && shared[group]
			space, next, err := textUpTo(src)
			if err != nil {
				return err
			}
			if drop && local(next) == "v" && !selfClosing(next) {
				if attribute(p, "t") == "shared" {
					shared[group] = true
				}
				kept = nil
			}
			if local(next) == "/c" {
				inCell = false
			}
			_, err = w.Write(append(append(kept, space...), next...))
			return err
		case f != format.XLSX && tag == "table-cell" && attribute(p, "value-type") != "" && z.depends(attribute(p, "formula")):
			at := findAttribute(p, "formula")
			p = slices.Concat(p[:at[0]], p[at[1]:])
		}
		_, err := w.Write(p)
		return err
	})
}

// pieces calls each for the tags and texts of XML in order. Like [cellCounter], it is
// not a parser. A text may come in several pieces; comments and character data are
// texts. A piece is valid until the next one is read.
func pieces(r io.Reader, each func(p []byte, src *bufio.Reader) error) error {
	src := bufio.NewReaderSize(r, longestPiece)
	for {
		p, err := nextPiece(src)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(p, src)
		}
		if errors.Is(err, io.EOF) {
			return damaged(io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
	}
}

func nextPiece(src *bufio.Reader) ([]byte, error) {
	head, err := src.Peek(1)
	if err != nil {
		return nil, err
	}
	if head[0] != '<' {
		return textPiece(src, "<", 0)
	}
	head, _ = src.Peek(9)
	switch {
	case bytes.HasPrefix(head, []byte("<!--")):
		return textPiece(src, "-->", 3)
	case bytes.HasPrefix(head, []byte("<![CDATA[")):
		return textPiece(src, "]]>", 3)
	case len(head) > 1 && (head[1] == '!' || head[1] == '?'):
		return textPiece(src, ">", 1)
	}
	n := 1
	quote := byte(0)
	for {
		b, err := src.Peek(n + 1)
		if len(b) <= n {
			if errors.Is(err, bufio.ErrBufferFull) {
				return nil, errPiece
			}
			return nil, damaged(io.ErrUnexpectedEOF)
		}
		b, _ = src.Peek(src.Buffered())
		for ; n < len(b); n++ {
			switch c := b[n]; {
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '>':
				_, _ = src.Discard(n + 1) // it was peeked
				return b[:n+1], nil
			}
		}
	}
}

// textPiece returns the input up to and including the first take bytes of end. It may
// return a text before a tag in parts, but returns comments and the like as a whole.
func textPiece(src *bufio.Reader, end string, take int) ([]byte, error) {
	for n := 1; ; n++ {
		b, err := src.Peek(n)
		if len(b) < n {
			if errors.Is(err, bufio.ErrBufferFull) { // longer than any comment of an office program
				return nil, errPiece
			}
			return nil, damaged(io.ErrUnexpectedEOF)
		}
		b, _ = src.Peek(src.Buffered())
		if i := bytes.Index(b, []byte(end)); i >= 0 {
			_, _ = src.Discard(i + take) // it was peeked
			return b[:i+take], nil
		}
		if end == "<" {
			_, _ = src.Discard(len(b))
			return b, nil
		}
		n = len(b)
	}
}

// textUpTo returns the text before the next tag, and that tag.
func textUpTo(src *bufio.Reader) (text, tag []byte, err error) {
	for {
		p, err := nextPiece(src)
		if err != nil {
			return nil, nil, err
		}
		if local(p) != "" {
			return text, bytes.Clone(p), nil
		}
		if len(text)+len(p) > longestPiece {
			return nil, nil, errPiece
		}
		text = append(text, p...)
	}
}

// local returns the name of a tag without its prefix, "/c" for an end tag, and "" if p
// is not a tag.
func local(p []byte) string {
	if len(p) < 3 || p[0] != '<' || p[1] == '!' || p[1] == '?' {
		return ""
	}
	start := 1
	if p[1] == '/' {
		start = 2
	}
	name := p[start:]
	if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
		name = name[:i]
	}
	if i := bytes.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	if start == 2 {
		return "/" + string(name)
	}
	return string(name)
}

func selfClosing(p []byte) bool { return bytes.HasSuffix(p, []byte("/>")) }

// attributes matches the attributes of a tag, with the space before them.
var attributes = regexp.MustCompile(`\s+(?:[^\s=:/>]+:)?([^\s=:/>]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)

// findAttribute returns the start and end of an attribute in a tag, then those of its
// value. It returns nil if the tag does not have the attribute.
func findAttribute(p []byte, name string) []int {
	if !bytes.Contains(p, []byte(name)) {
		return nil
	}
	for _, m := range attributes.FindAllSubmatchIndex(p, -1) {
		if string(p[m[2]:m[3]]) == name {
			if m[4] < 0 {
				m[4], m[5] = m[6], m[7]
			}
			return []int{m[0], m[1], m[4], m[5]}
		}
	}
	return nil
}

// attribute returns the value of an attribute with any prefix, or "".
func attribute(p []byte, name string) string {
	at := findAttribute(p, name)
	if at == nil {
		return ""
	}
	return html.UnescapeString(string(p[at[2]:at[3]]))
}
