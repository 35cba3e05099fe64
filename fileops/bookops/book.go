package bookops

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

const (
	// packagePath is the place of the package document in the EPUB files of mobitool.
	packagePath = "OEBPS/content.opf"

	// maxPage limits a page in bytes. A book of the old format has only one.
	maxPage = 32 << 20

	maxPackage = 4 << 20 // of the package document and of the table of contents

	pageType = "application/xhtml+xml"
	tocType  = "application/x-dtbncx+xml"
)

// A manifest is a package document (Open Packaging Format 2.0.1).
type manifest struct {
	Metadata struct {
		Title       []string `xml:"title"`
		Creator     []string `xml:"creator"`
		Contributor []string `xml:"contributor"`
		Language    []string `xml:"language"`
		Publisher   []string `xml:"publisher"`
		Identifier  []string `xml:"identifier"`
		Date        []string `xml:"date"`
		Subject     []string `xml:"subject"`
		Description []string `xml:"description"`
		Rights      []string `xml:"rights"`
		Meta        []struct {
			Name    string `xml:"name,attr"`
			Content string `xml:"content,attr"`
		} `xml:"meta"`
	} `xml:"metadata"`
	Items []item `xml:"manifest>item"`
	Spine []struct {
		ID string `xml:"idref,attr"`
	} `xml:"spine>itemref"`
}

// An item is a file of a book.
type item struct {
	ID   string `xml:"id,attr"`
	Href string `xml:"href,attr"`
	Type string `xml:"media-type,attr"`

	file *zip.File
	page []byte // well-formed content; nil if the file is copied
}

// A book is what mobitool unpacked.
type book struct {
	manifest
	toc     string // id of the table of contents; "" if there is none
	dropped int    // scripts
}

// readBook reads and repairs a book. Its files must stay readable until [book.write].
func readBook(ctx context.Context, r io.ReaderAt, size int64) (*book, error) {
	l := limits()
	z, err := l.Open(r, size)
	if err == nil {
		err = l.Check(z.File, size, nil)
	}
	if errors.Is(err, fileops.ErrLimit) {
		return nil, err
	}
	if err != nil {
		return nil, broken(err)
	}
	files := make(map[string]*zip.File)
	for _, f := range z.File {
		files[f.Name] = f
	}
	b := new(book)
	text, err := content(files[packagePath], maxPackage)
	if err != nil {
		return nil, err
	}
	if err := xml.Unmarshal(text, &b.manifest); err != nil {
		return nil, broken(err)
	}
	letters := false
	b.Items = slices.DeleteFunc(b.Items, func(i item) bool { return files[path.Join(path.Dir(packagePath), i.Href)] == nil || i.ID == "" })
	for n := range b.Items {
		i := &b.Items[n]
		i.file = files[path.Join(path.Dir(packagePath), i.Href)]
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case i.Type == pageType:
			text, err := content(i.file, maxPage)
			if err != nil {
				return nil, err
			}
			p, err := tidy(text, i.Href)
			if err != nil {
				return nil, damaged(err)
			}
			i.page = p.text
			letters = letters || p.shows
			b.dropped += p.scripts
		case i.Type == tocType:
			text, err := content(i.file, maxPackage)
			if err != nil {
				return nil, err
			}
			if wellFormed(text) {
				i.page, b.toc = text, i.ID
			}
		}
	}
	b.Items = slices.DeleteFunc(b.Items, func(i item) bool { return i.Type == tocType && i.ID != b.toc })
	if !letters {
		return nil, fileops.Fail(fileops.ErrCorruptInput, nil, "the book has neither text nor pictures; it may be damaged")
	}
	return b, nil
}

// broken returns the error for a file of mobitool that is not an EPUB file.
func broken(err error) error {
	return fileops.Fail(fileops.ErrEngine, fmt.Errorf("mobitool: %w", err), "")
}

// content unpacks a file of at most so many bytes.
func content(f *zip.File, most int64) ([]byte, error) {
	if f == nil {
		return nil, broken(errors.New("a file is missing"))
	}
	if f.UncompressedSize64 > uint64(most) {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "a page of the book has more than the limit of %d MiB", most>>20)
	}
	r, err := f.Open()
	if err != nil {
		return nil, broken(err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, broken(err)
	}
	return b, nil
}

// wellFormed reports whether b is well-formed XML.
func wellFormed(b []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// write writes an EPUB 2 file.
func (b *book) write(w io.Writer) error {
	z := zip.NewWriter(w)
	add := func(name string, method uint16, text []byte) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = f.Write(text)
		}
		return err
	}
	if err := errors.Join(
		add("mimetype", zip.Store, []byte(format.EPUB.MIME())),
		add("META-INF/container.xml", zip.Deflate, []byte(`<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="`+packagePath+`" media-type="application/oebps-package+xml"/></rootfiles></container>`)),
		add(packagePath, zip.Deflate, b.opf()),
	); err != nil {
		return err
	}
	for _, i := range b.Items {
		name := path.Join(path.Dir(packagePath), i.Href)
		if i.page != nil {
			if err := add(name, zip.Deflate, i.page); err != nil {
				return err
			}
			continue
		}
		r, err := i.file.Open()
		if err != nil {
			return broken(err)
		}
		method := zip.Store
		if strings.HasPrefix(i.Type, "text/") {
			method = zip.Deflate
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.Copy(f, r)
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// opf returns the package document.
func (b *book) opf() []byte {
	var o bytes.Buffer
	text := func(s string) string {
		var e bytes.Buffer
		_ = xml.EscapeText(&e, []byte(s)) // a buffer takes everything
		return e.String()
	}
	o.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:opf="http://www.idpf.org/2007/opf">`)
	m := &b.Metadata
	for _, d := range []struct {
		name   string
		values []string
		needed string // if there is none
	}{
		{"title", m.Title, "Untitled"}, {"language", m.Language, "und"}, {"creator", m.Creator, ""}, {"contributor", m.Contributor, ""}, {"publisher", m.Publisher, ""},
		{"date", m.Date, ""}, {"subject", m.Subject, ""}, {"description", m.Description, ""}, {"rights", m.Rights, ""},
	} {
		values := slices.DeleteFunc(slices.Clone(d.values), func(s string) bool { return strings.TrimSpace(s) == "" })
		if len(values) == 0 && d.needed != "" {
			values = []string{d.needed}
		}
		for _, v := range values {
			fmt.Fprintf(&o, "<dc:%s>%s</dc:%s>", d.name, text(v), d.name)
		}
	}
	id := "book"
	if len(m.Identifier) > 0 && m.Identifier[0] != "" {
		id = m.Identifier[0]
	}
	fmt.Fprintf(&o, `<dc:identifier id="id">%s</dc:identifier>`, text(id))
	for _, v := range m.Meta {
		if v.Name == "cover" && slices.ContainsFunc(b.Items, func(i item) bool { return i.ID == v.Content }) {
			fmt.Fprintf(&o, `<meta name="cover" content="%s"/>`, text(v.Content))
		}
	}
	o.WriteString("</metadata><manifest>")
	for _, i := range b.Items {
		fmt.Fprintf(&o, `<item id="%s" href="%s" media-type="%s"/>`, text(i.ID), text(i.Href), text(i.Type))
	}
	o.WriteString("</manifest><spine")
	if b.toc != "" {
		fmt.Fprintf(&o, ` toc="%s"`, text(b.toc))
	}
	o.WriteString(">")
	for _, s := range b.Spine {
		if slices.ContainsFunc(b.Items, func(i item) bool { return i.ID == s.ID }) {
			fmt.Fprintf(&o, `<itemref idref="%s"/>`, text(s.ID))
		}
	}
	o.WriteString("</spine></package>")
	return o.Bytes()
}
