package ooxml

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"
)

// AddFile adds a picture; it is compressed already.
func AddFile(z *zip.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// Escape returns s as XML text or attribute, without characters that XML does
// not allow.
func Escape(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)))
	return b.String()
}

// What begins every XML part, and namespaces that all packages use.
const (
	Header         = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	RelationshipNS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	PackageNS      = "http://schemas.openxmlformats.org/package/2006/"
)
