package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// This file keeps pdfcpu away from its global state. pdfcpu's default
// configuration reads an unguarded global variable and may create a directory in
// the user's home. An embedding program may use pdfcpu too, and change that
// variable at any time. So each read gets its own configuration, with only the
// fields that reading uses.

func newConfiguration(password string) *model.Configuration {
	conf := &model.Configuration{
		Reader15:       true,
		ValidationMode: model.ValidationRelaxed,
		Offline:        true,           // no network access
		Cmd:            model.LISTINFO, // needs no permission
		UserPW:         password,
		Limits:         model.DefaultResourceLimits(),
	}
	conf.Limits.MaxStreamBytes = MaxFile
	conf.Limits.MaxDecodeBytes = MaxDecoded
	conf.Limits.MaxObjectCount = maxObjects
	conf.Limits.MaxXRefEntries = maxObjects
	return conf
}

// Limits of a file that is read into memory.
const (
	MaxFile    = 512 << 20 // bytes of the file
	MaxDecoded = 256 << 20 // bytes of a decoded stream
	maxObjects = 8388607   // indirect objects (ISO 19005-1, 6.1.12)

	maxAttachments = 10_000 // of 8 MiB or more
)

// Errors of [Parse].
var (
	ErrEncrypted = errors.New("the file is encrypted and needs a password")
	ErrProtected = errors.New("the file is encrypted and needs no password")
	ErrSecurity  = errors.New("the encryption of the file is damaged")
	errTooLarge  = errors.New("the file has an object number that is too large")
)

// hasHugeNumber reports whether an object number or a table size in the file
// exceeds maxObjects. pdfcpu fills the gap below such a number, which takes
// minutes and cannot be interrupted.
func (s source) hasHugeNumber() bool {
	data := s.data
	for _, key := range []string{" obj", "\nobj", "\robj"} {
		for at := 0; ; {
			i := s.index(at, key)
			if i < 0 {
				break
			}
			// Search backwards, over the generation, to the number.
			head := bytes.TrimRight(data[max(at, i-40):i], " \t\r\n")
			head = bytes.TrimRight(head, "0123456789")
			if tooLarge(lastDigits(bytes.TrimRight(head, " \t\r\n"))) {
				return true
			}
			at = i + len(key)
		}
	}
	attachments := 0
	for _, key := range []string{"/Size", "xref"} {
		for at := 0; ; {
			from := s.index(at, key)
			if from < 0 {
				break
			}
			at = from + len(key)
			if key == "xref" && bytes.HasSuffix(data[:from], []byte("start")) {
				continue
			}
			if !tooLarge(firstDigits(bytes.TrimLeft(data[at:min(len(data), at+40)], " \t\r\n"))) {
				continue
			}
			// Each backward search takes time.
			if attachments++; key == "xref" || attachments > maxAttachments || !nested(data[:from]) {
				return true
			}
		}
	}
	return false
}

// nested reports whether data ends within a dictionary that is not a trailer.
// This can be the /Params of an embedded file, whose /Size is in bytes (ISO
// 32000-2, 7.11.4.2), or a direct part of an object. pdfcpu itself checks the
// /Size of a cross-reference stream.
func nested(data []byte) bool {
	const window = 4 << 10
	data = data[max(0, len(data)-window):]
	from := max(bytes.LastIndex(data, []byte("/Params"))+len("/Params"), bytes.LastIndex(data, []byte("obj"))+len("obj"))
	line := bytes.LastIndexAny(data[:from], "\r\n") + 1
	if from < len("/Params") || bytes.IndexByte(data[line:from], '%') >= 0 { // missing, or in a comment
		return false
	}
	l := Lexer{b: data[from:]}
	depth := 0
	for {
		k := l.Next()
		switch {
		case k.Kind == TokenEnd:
			return depth > 0
		case k.Kind == TokenOperator && k.Text != "R" && k.Text != "true" && k.Text != "false" && k.Text != "null":
			return false
		case k.Kind != TokenOther:
			continue
		}
		switch pair := string(l.b[l.pos-1 : min(len(l.b), l.pos+1)]); {
		case pair == "<<":
			depth++
			l.pos++
		case pair == ">>":
			depth--
			l.pos++
		case pair[0] == '[' || pair[0] == ']':
		default:
			return false // within a string or comment
		}
		if depth <= 0 {
			return false
		}
	}
}

func firstDigits(b []byte) []byte { return b[:len(b)-len(bytes.TrimLeft(b, "0123456789"))] }

func lastDigits(b []byte) []byte { return b[len(bytes.TrimRight(b, "0123456789")):] }

func tooLarge(digits []byte) bool {
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		return false
	}
	n, err := strconv.Atoi(string(digits))
	return err != nil || n > maxObjects
}

// withKnownVersion returns data with a header that pdfcpu accepts. Some programs
// write a version that never existed, such as 1.8, and viewers ignore it.
func withKnownVersion(data []byte) []byte {
	const mark = "%PDF-"
	at := bytes.Index(data[:min(len(data), 1024)], []byte(mark)) + len(mark)
	if at < len(mark) || at+3 > len(data) {
		return data
	}
	if v := string(data[at : at+3]); v == "2.0" || "1.0" <= v && v <= "1.7" {
		return data
	}
	data = bytes.Clone(data)
	copy(data[at:], "1.7")
	return data
}

// Parse reads a document into memory. It decrypts a file that opens with the
// empty password. If the file needs another password, Parse fails with
// ErrEncrypted. Other errors of an encrypted file also match ErrProtected or
// ErrSecurity.
//
// Streams of the document may be parts of data, which must not change. pdfcpu checks ctx between objects. The limits above bound the work on one
// object, such as inflating an object stream, but it cannot be interrupted.
func Parse(ctx context.Context, data []byte) (*Document, error) {
	if d := ParseSound(ctx, data); d != nil {
		return d, nil
	}
	if (source{data: data}).hasHugeNumber() {
		return nil, errTooLarge
	}
	sec, err := FindSecurity(ctx, data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, errors.Join(ErrSecurity, err)
	case sec == nil:
		return read(ctx, data, "")
	}
	secret, ok := sec.Open(nil)
	if !ok {
		return nil, ErrEncrypted
	}
	d, err := sec.read(ctx, data, secret)
	if err != nil && ctx.Err() == nil {
		return nil, errors.Join(ErrProtected, errors.New(err.Error())) // not ErrEncrypted, regardless of pdfcpu's error
	}
	return d, err
}

// Decrypt reads an encrypted document. secret is the result of [Security.Open].
func (s *Security) Decrypt(ctx context.Context, data, secret []byte) (*Document, error) {
	if (source{data: data}).hasHugeNumber() {
		return nil, errTooLarge
	}
	return s.read(ctx, data, secret)
}

func (s *Security) read(ctx context.Context, data, secret []byte) (*Document, error) {
	if d := s.DecryptSound(ctx, data, secret); d != nil {
		return d, nil
	}
	return s.patiently(ctx, data, secret)
}

// patiently makes pdfcpu read an encrypted file.
func (s *Security) patiently(ctx context.Context, data, secret []byte) (*Document, error) {
	update, password, err := s.forPDFCPU(data, secret)
	if err != nil {
		return nil, err
	}
	d, err := read(ctx, update, password)
	if err == nil {
		d.markCut(update)
	}
	return d, err
}

// ErrIncomplete reports that some objects of a document are missing.
var ErrIncomplete = errors.New("some objects could not be parsed")

// ParseComplete reads a document like [Parse], and its page tree. With
// ErrIncomplete, and with no other error, it also returns a document.
func ParseComplete(ctx context.Context, data []byte, mostPages int) (*Document, error) {
	d, err := Parse(ctx, data)
	if err != nil {
		return nil, err
	}
	if !d.Encrypted {
		d.markCut(data)
	}
	return d.complete(mostPages)
}

// complete reads the page tree of a document. For its results, see [ParseComplete].
func (d *Document) complete(mostPages int) (_ *Document, err error) {
	if _, err = d.Pages(mostPages); err != nil {
		d, err = nil, errors.Join(err, d.protected())
	} else if d.Incomplete() {
		err = errors.Join(ErrIncomplete, d.protected())
	}
	return d, err
}

// protected returns ErrProtected if d was read from an encrypted file, or nil.
func (d *Document) protected() error {
	if d.Encrypted {
		return ErrProtected
	}
	return nil
}

// read makes pdfcpu read a file.
func read(ctx context.Context, data []byte, password string) (*Document, error) {
	return readFrom(ctx, bytes.NewReader(withKnownVersion(data)), password, func(*types.StreamDict) error { return nil })
}

// readView makes pdfcpu read a mapped file.
func readView(ctx context.Context, view *patched) (*Document, error) {
	return readFrom(ctx, view, "", view.restore)
}

// readFrom makes pdfcpu read a file, and calls restore for each stream.
func readFrom(ctx context.Context, from io.ReadSeeker, password string, restore func(*types.StreamDict) error) (d *Document, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, err = nil, fmt.Errorf("pdfcpu: panic: %v", p)
		}
	}()
	c, err := pdfcpu.ReadWithContext(ctx, from, newConfiguration(password))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, pdfcpu.ErrWrongPassword) {
		return nil, errors.Join(ErrEncrypted, err)
	}
	if err != nil {
		return nil, err
	}
	d, err = fromPDFCPU(ctx, c, restore)
	if err == nil {
		d.Encrypted = c.Encrypt != nil
	}
	return d, err
}

// fromPDFCPU converts the objects that pdfcpu read. Streams become pointers, so
// that they can be changed in place.
func fromPDFCPU(ctx context.Context, c *model.Context, restore func(*types.StreamDict) error) (*Document, error) {
	if c.Root == nil {
		return nil, errors.New("no document catalog")
	}
	d := &Document{
		Objects: make(map[int]types.Object, len(c.Table)),
		Root:    c.Root.ObjectNumber.Value(),
		Version: c.VersionString(),
		skipped: make(map[int]bool),
	}
	if c.Info != nil {
		d.Info = c.Info.ObjectNumber.Value()
	}
	if len(c.ID) > 0 {
		d.ID = d.Text(c.ID[0])
	}
	for nr, e := range c.Table {
		if e == nil || e.Free || c.Encrypt != nil && nr == c.Encrypt.ObjectNumber.Value() {
			continue
		}
		o := e.Object
		if lazy, ok := o.(types.LazyObjectStreamObject); ok {
			var err error
			if o, err = lazy.DecodedObject(ctx); err != nil {
				o = nil
				d.skipped[nr] = true
			}
		}
		switch v := o.(type) {
		case nil:
			// Null, or an object that could not be parsed.
			if e.Offset != nil && *e.Offset > 0 && !isNull(c.Read.RS, *e.Offset) {
				d.skipped[nr] = true
			}
			continue
		case types.ObjectStreamDict, types.XRefStreamDict:
			continue
		case types.StreamDict:
			if v.HasSoleFilterNamed("Crypt") {
				delete(v.Dict, "Filter")
				delete(v.Dict, "DecodeParms")
				v.FilterPipeline = nil
			}
			if err := restore(&v); err != nil {
				return nil, err
			}
			o = &v
		}
		d.Objects[nr] = o
		d.Last = max(d.Last, nr)
	}
	if d.Dict(types.IndirectRef{ObjectNumber: types.Integer(d.Root)}) == nil {
		return nil, errors.New("no document catalog")
	}
	return d, nil
}

var nullObject = regexp.MustCompile(`^\s*\d+\s+\d+\s+obj\s*(null\s*)?endobj`)

func isNull(rs io.ReadSeeker, offset int64) bool {
	head := make([]byte, 64)
	if _, err := rs.Seek(offset, io.SeekStart); err != nil {
		return false
	}
	n, _ := io.ReadFull(rs, head)
	return nullObject.Match(head[:n])
}

// parseObject parses one direct object at the start of s.
func parseObject(ctx context.Context, s string) (o types.Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			o, err = nil, fmt.Errorf("pdfcpu: panic: %v", p)
		}
	}()
	return model.ParseObjectContext(ctx, &s, 0)
}
