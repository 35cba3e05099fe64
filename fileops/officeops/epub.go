package officeops

import (
	"encoding/xml"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops/engine"
)

const (
	containerName = "META-INF/container.xml"
	rootPackage   = "package-at-the-root.opf"

	maxPackage = 8 << 20 // bytes of a package document
)

var (
	href   = regexp.MustCompile(`(\shref\s*=\s*)("[^"]*"|'[^']*')`)
	upward = regexp.MustCompile(`\shref\s*=\s*["'](?:[^"']*/)?\.\./`)
)

// atRoot returns the path of a book for pandoc, which looks for the files of a package
// document literally: it does not find ../text/a.xhtml. Such a book is copied to dir, with its
// package document at the root of the archive. Others stay as they are, also damaged ones.
func atRoot(in, dir string) (string, error) {
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
		return in, nil //nolint:nilerr // pandoc reports it
	}
	text, folder := packageOf(z)
	if !upward.Match(text) {
		return in, nil
	}
	text = href.ReplaceAllFunc(text, func(attribute []byte) []byte {
		m := href.FindSubmatch(attribute)
		quote, ref := m[2][:1], string(m[2][1:len(m[2])-1])
		if strings.Contains(ref, ":") || strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "#") {
			return attribute
		}
		return []byte(string(m[1]) + string(quote) + path.Join(folder, ref) + string(quote))
	})
	out := filepath.Join(dir, "in.epub")
	return out, create(out, func(w io.Writer) error {
		made := zip.NewWriter(w)
		for _, e := range z.File {
			if e.Name == containerName || e.Name == rootPackage {
				continue
			}
			if err := made.Copy(e); err != nil {
				return err
			}
		}
		for name, text := range map[string]string{
			rootPackage:   string(text),
			containerName: `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="` + rootPackage + `" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		} {
			p, err := made.Create(name)
			if err == nil {
				_, err = io.WriteString(p, text)
			}
			if err != nil {
				return err
			}
		}
		return made.Close()
	})
}

// packageOf returns the package document of a book and its folder in the archive, or nothing
// if there is none.
func packageOf(z *zip.Reader) (text []byte, folder string) {
	file := func(name string) []byte {
		f, err := z.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxPackage+1))
		if err != nil || len(b) > maxPackage {
			return nil
		}
		return b
	}
	var c struct {
		Roots []struct {
			Path string `xml:"full-path,attr"`
		} `xml:"rootfiles>rootfile"`
	}
	if err := xml.Unmarshal(file(containerName), &c); err != nil || len(c.Roots) == 0 {
		return nil, ""
	}
	return file(c.Roots[0].Path), path.Dir(c.Roots[0].Path)
}
