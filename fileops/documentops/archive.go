package documentops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/safezip"
)

// Limits bound the ZIP archives of documents. Zero fields mean the defaults.
type Limits struct {
	Entries  int   // parts of a document; 0 means 10,000
	Unpacked int64 // total size of all parts in bytes; 0 means 2 GiB
	Ratio    int64 // of a part of more than 10 MiB to its compressed data; 0 means 500
}

// orDefault returns l with defaults for zero fields. l may be nil.
func (l *Limits) orDefault() safezip.Limits {
	if l == nil {
		l = new(Limits)
	}
	return safezip.Limits(*l).OrDefault(2 << 30)
}

// Fixed limits.
const (
	maxPart    = 128 << 20 // bytes of an XML part that is parsed
	maxPicture = 128 << 20 // bytes of a picture that is encoded again
	maxIndex   = 16 << 20  // bytes of a part that lists other parts
)

// An archive is the ZIP archive of a document.
type archive struct {
	entries []*entry
	byName  map[string]*entry // by lower case name, because OPC ignores case (ISO/IEC 29500-2, 6.2.2.3)
}

// An entry is a file in the archive, with its changes.
type entry struct {
	*zip.File
	name string // in the result
	drop bool   // not in the result
	data []byte // new content; nil means that of File
	path string // of a file with the new content; "" means data or File
}

// openArchive reads the directory of a document. It rejects archive bombs, which are
// built to harm readers.
func openArchive(f *fileops.File, l safezip.Limits) (*archive, error) {
	return openPackage(f.Reader(), f.Size(), l)
}

// openPackage is openArchive for the size bytes in r.
func openPackage(r io.ReaderAt, size int64, l safezip.Limits) (*archive, error) {
	zr, err := l.Open(r, size)
	if err == nil {
		err = l.Check(zr.File, size, nil)
	}
	if errors.Is(err, fileops.ErrLimit) {
		return nil, err
	}
	if err != nil {
		return nil, damaged(err)
	}
	a := &archive{byName: make(map[string]*entry)}
	for _, z := range zr.File {
		if z.Flags&1 != 0 {
			return nil, errProtected()
		}
		if !validName(z.Name) {
			return nil, damaged(errors.New("the name of a part points outside the document"))
		}
		e := &entry{File: z, name: z.Name}
		key := strings.ToLower(z.Name)
		if a.byName[key] != nil { // readers do not agree on which of them to use
			return nil, damaged(errors.New("two parts have the same name"))
		}
		a.byName[key] = e
		a.entries = append(a.entries, e)
	}
	return a, nil
}

// validName reports whether a name stays inside the archive.
func validName(name string) bool {
	if name == "" || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return false
		}
	}
	return true
}

func damaged(cause error) error {
	return fileops.Fail(fileops.ErrCorruptInput, cause, "the document is damaged")
}

func errProtected() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the document is protected by a password; unlock it first")
}

func errSigned() error {
	return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the document is digitally signed, and a change would invalidate the signature; remove the signature first")
}

// find returns the entry with a name, or nil.
func (a *archive) find(name string) *entry { return a.byName[strings.ToLower(name)] }

// has reports whether the name of any entry starts with prefix.
func (a *archive) has(prefix string) bool {
	for _, e := range a.entries {
		if len(e.Name) >= len(prefix) && strings.EqualFold(e.Name[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// read returns the content of an entry after its checksum is verified.
func (e *entry) read(ctx context.Context, limit int64) ([]byte, error) {
	if e.data != nil {
		return e.data, nil
	}
	if e.UncompressedSize64 > uint64(limit) {
		return nil, errTooLarge
	}
	r, err := e.Open()
	if err != nil {
		return nil, damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	defer r.Close()
	var b bytes.Buffer
	b.Grow(int(e.UncompressedSize64))
	if _, err := io.Copy(&b, fileops.ContextReader(ctx, r)); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	return b.Bytes(), nil
}

// errTooLarge reports that a part is too large to parse. Such a part stays unchanged.
var errTooLarge = errors.New("documentops: the part is too large")

// text returns the content of an XML part. ok is false if the part must stay
// unchanged, because it is too large or not UTF-8.
func (e *entry) text(ctx context.Context, limit int64) (b []byte, ok bool, err error) {
	b, err = e.read(ctx, limit)
	if errors.Is(err, errTooLarge) {
		return nil, false, nil
	}
	if err != nil || !utf8.Valid(b) {
		return nil, false, err
	}
	return b, true, nil
}

// check reads an entry and verifies its size and checksum. It accepts entries
// with an unknown compression method.
func (e *entry) check(ctx context.Context) error {
	r, err := e.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil
	}
	if err != nil {
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, fileops.ContextReader(ctx, r)); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return damaged(fmt.Errorf("%s: %w", e.Name, err))
	}
	return nil
}

// unused returns an unused name derived from name, with the extension ext.
func (a *archive) unused(name, ext string) string {
	base := strings.TrimSuffix(name, path.Ext(name))
	for i := 0; ; i++ {
		try := base + ext
		if i > 0 {
			try = fmt.Sprintf("%s-%d%s", base, i, ext)
		}
		if a.find(try) == nil {
			return try
		}
	}
}
