package officeops

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zip"
	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
)

const (
	containerName = "META-INF/container.xml"
	rootPackage   = "package-at-the-root.opf"

	maxPackage = 8 << 20 // bytes of a package document, or of a page
)

var (
	href   = regexp.MustCompile(`(\shref\s*=\s*)("[^"]*"|'[^']*')`)
	upward = regexp.MustCompile(`\shref\s*=\s*["'](?:[^"']*/)?\.\./`)
)

// forPandoc returns the path of a book that pandoc reads completely. It copies a book to dir, with
// changes, if
//
//   - its package document refers to files above its folder, such as ../text/a.xhtml, which pandoc looks
//     for literally: the copy has the package document at the root of the archive, or
//   - pages show pictures in drawings, as most covers do: pandoc does not find these pictures, so the
//     copy shows them without the drawing.
//
// Others stay as they are, also damaged ones.
func forPandoc(in, dir string) (string, error) {
	f, err := engine.Open(filepath.Dir(in), filepath.Base(in))
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		return in, nil // pandoc reports it
	}
	changed := make(map[string][]byte)
	if text, folder := packageOf(z); upward.Match(text) {
		changed[rootPackage] = rebased(text, folder)
		changed[containerName] = []byte(`<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="` + rootPackage + `" media-type="application/oebps-package+xml"/></rootfiles></container>`)
	}
	for _, e := range z.File {
		if format.Parse(e.Name) != format.HTML {
			continue
		}
		if plain := withoutFrames(read(z, e.Name)); plain != nil {
			changed[e.Name] = plain
		}
	}
	if len(changed) == 0 {
		return in, nil
	}
	out := filepath.Join(dir, "in.epub")
	return out, create(out, func(w io.Writer) error {
		made := zip.NewWriter(w)
		for _, e := range z.File {
			if changed[e.Name] == nil && e.Name != rootPackage {
				if err := made.Copy(e); err != nil {
					return err
				}
			}
		}
		for name, text := range changed {
			p, err := made.Create(name)
			if err == nil {
				_, err = p.Write(text)
			}
			if err != nil {
				return err
			}
		}
		return made.Close()
	})
}

// rebased returns a package document whose references are to files below the root of the archive, and
// not below folder.
func rebased(text []byte, folder string) []byte {
	return href.ReplaceAllFunc(text, func(attribute []byte) []byte {
		m := href.FindSubmatch(attribute)
		quote, ref := m[2][:1], string(m[2][1:len(m[2])-1])
		if strings.Contains(ref, ":") || strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "#") {
			return attribute
		}
		return []byte(string(m[1]) + string(quote) + path.Join(folder, ref) + string(quote))
	})
}

var drawing = regexp.MustCompile(`(?s)<(svg|svg:svg)[\s>].*?</(svg|svg:svg)\s*>`)

// withoutFrames replaces the drawings of a page that only show a picture by the picture. It returns nil
// if there are none.
func withoutFrames(page []byte) []byte {
	found := false
	out := drawing.ReplaceAllFunc(page, func(svg []byte) []byte {
		if picture := onlyPicture(svg); picture != nil {
			found = true
			return picture
		}
		return svg
	})
	if !found {
		return nil
	}
	return out
}

// onlyPicture returns a drawing that only shows a picture as an element img, or nil for others. The
// title of the drawing becomes the description.
func onlyPicture(svg []byte) []byte {
	z := html.NewTokenizer(bytes.NewReader(svg))
	z.SetMaxBuf(maxToken)
	var picture, title string
	drawings, inTitle := 0, false
	for {
		switch z.Next() {
		case html.ErrorToken:
			if picture == "" || !errors.Is(z.Err(), io.EOF) {
				return nil
			}
			return []byte(`<img src="` + html.EscapeString(picture) + `" alt="` + html.EscapeString(strings.Join(strings.Fields(title), " ")) + `"/>`)
		case html.TextToken:
			if inTitle {
				title += z.Token().Data
			}
		case html.EndTagToken:
			inTitle = false
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			switch strings.TrimPrefix(t.Data, "svg:") {
			case "svg":
				if drawings++; drawings > 1 { // the end of the outer one does not belong to svg
					return nil
				}
			case "g", "a", "desc":
			case "title":
				inTitle = t.Type == html.StartTagToken
			case "image":
				if picture != "" {
					return nil
				}
				for _, a := range t.Attr {
					if a.Key == "href" || strings.HasSuffix(a.Key, ":href") {
						picture = a.Val
					}
				}
			default:
				return nil
			}
		}
	}
}

// packageOf returns the package document of a book and its folder in the archive, or nothing
// if there is none.
func packageOf(z *zip.Reader) (text []byte, folder string) {
	var c struct {
		Roots []struct {
			Path string `xml:"full-path,attr"`
		} `xml:"rootfiles>rootfile"`
	}
	if err := xml.Unmarshal(read(z, containerName), &c); err != nil || len(c.Roots) == 0 {
		return nil, ""
	}
	return read(z, c.Roots[0].Path), path.Dir(c.Roots[0].Path)
}

// read returns a file of a book, or nil if it is missing, damaged or too large.
func read(z *zip.Reader, name string) []byte {
	f, err := z.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := readLimited(f, maxPackage)
	if err != nil {
		return nil
	}
	return b
}
