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

// AddFile adds a picture file without compression, because pictures are already
// compressed.
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

// Escape escapes s for XML text or attributes. It removes characters that XML
// forbids.
func Escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)))
	return b.String()
}

// The start of every XML part, and the namespaces that all packages use.
const (
	Header         = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	RelationshipNS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	PackageNS      = "http://schemas.openxmlformats.org/package/2006/"
)
