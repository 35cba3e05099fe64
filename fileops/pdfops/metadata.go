package pdfops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/xmp"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// An infoField is a field of a document: a key of its information dictionary (ISO 32000-2, 14.3.3)
// and the property of its XMP packet that must agree.
type infoField struct {
	key               string
	space, name, list string
}

var infoFields = map[string]infoField{
	"title":    {"Title", xmp.DublinCore, "title", "Alt"},
	"author":   {"Author", xmp.DublinCore, "creator", "Seq"},
	"subject":  {"Subject", xmp.DublinCore, "description", "Alt"},
	"keywords": {"Keywords", xmp.PDF, "Keywords", ""},
	"creator":  {"Creator", xmp.Basic, "CreatorTool", ""},
	"producer": {"Producer", xmp.PDF, "Producer", ""},
}

// infoAliases are the names of these fields in other families of files.
var infoAliases = map[string]string{"description": "subject", "software": "creator", "program": "creator"}

// removeAll is the value of the parameter remove that removes all metadata.
const removeAll = "all"

// Metadata returns the action "metadata" for PDF files. The content stays.
//
//   - set: an object with title, author, subject, keywords, creator (the program of the original)
//     or producer. Each value is a string; author and keywords may also be lists. description and
//     software stand for subject and creator.
//   - remove: names of fields, or "all" for these, dates, fields of programs, and all XMP packets,
//     also those of pictures and fonts. Removal comes first.
//
// The information dictionary and the XMP packet of the document agree afterwards. A file that loses
// its packet no longer claims to conform to PDF/A; a warning says so. The result is not encrypted.
func (t Tools) Metadata() fileops.Action {
	names := slices.Sorted(maps.Keys(infoFields))
	spec := t.pageSpec("metadata", "Changes the metadata of PDF files and keeps the content.",
		fileops.Param{Name: "set", Type: fileops.Object, Min: 1, Max: 20, Doc: "Values by field: " + strings.Join(names, ", ") + "."},
		fileops.Param{Name: "remove", Type: fileops.List, Min: 1, Max: 20, Doc: "Fields to remove, or all."},
	)
	for i := range spec.Accepts {
		spec.Accepts[i].Changes = []string{"set", "remove"}
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		edit, all, err := infoEditOf(job.Params)
		if err != nil {
			return err
		}
		d, _, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		if all {
			if d.Claims("pdfaid:part") {
				job.Warn(fileops.WarnMetadataDropped, "The file claims to conform to PDF/A, which requires XMP metadata; the result does not conform to it.")
			}
			d.Info = 0
			d.Each(func(v types.Dict) {
				delete(v, "Metadata")
				delete(v, "PieceInfo")
			})
		}
		edit.apply(d)
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

// An infoEdit maps names of fields to their new values. A field without values is removed.
type infoEdit map[string][]string

// infoEditOf reads the parameters of the action metadata. all reports whether all metadata is removed
// first.
func infoEditOf(params fileops.Params) (edit infoEdit, all bool, err error) {
	edit = make(infoEdit)
	known := slices.Sorted(maps.Keys(infoFields))
	field := func(name string) (string, bool) {
		name = strings.ToLower(name)
		if alias, ok := infoAliases[name]; ok {
			name = alias
		}
		return name, infoFields[name].key != ""
	}
	for _, given := range params.List("remove") {
		name, ok := field(given)
		switch {
		case name == removeAll:
			all = true
		case ok:
			edit[name] = nil
		default:
			allowed := append([]string{removeAll}, known...)
			return nil, false, &fileops.ParamError{Param: "remove", Reason: fmt.Sprintf("has %q, which is no field; known are: %s", given, strings.Join(allowed, ", ")), Allowed: allowed}
		}
	}
	for given, v := range params.Object("set") {
		bad := func(reason string) error {
			return &fileops.ParamError{Param: "set", Reason: fmt.Sprintf("has %q, which %s", given, reason), Allowed: known}
		}
		name, ok := field(given)
		if !ok {
			return nil, false, bad("is no field of PDF files; known are: " + strings.Join(known, ", "))
		}
		var values []string
		switch v := v.(type) {
		case string:
			values = []string{v}
		case []any:
			for _, x := range v {
				s, ok := x.(string)
				if !ok || name != "author" && name != "keywords" {
					return nil, false, bad("must be a string")
				}
				values = append(values, s)
			}
		default:
			return nil, false, bad("must be a string")
		}
		const longest = 10_000 // bytes of a field
		size := 0
		for i, s := range values {
			values[i] = strings.TrimSpace(s)
			size += len(values[i])
			if values[i] == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
				return nil, false, bad("must have text without control characters")
			}
		}
		if size == 0 || size > longest {
			return nil, false, bad(fmt.Sprintf("must have 1 to %d bytes", longest))
		}
		edit[name] = values
	}
	return edit, all, nil
}

// apply changes the information dictionary of a document, and its XMP packet if it has one.
func (e infoEdit) apply(d *pdf.Document) {
	info := d.Dict(pdf.Ref(d.Info))
	if info == nil {
		info = types.Dict{}
	}
	var properties []xmp.Property
	for _, name := range slices.Sorted(maps.Keys(e)) {
		f, values := infoFields[name], e[name]
		if len(values) == 0 {
			delete(info, f.key)
		} else {
			info[f.key] = pdf.TextString(strings.Join(values, ", "))
		}
		properties = append(properties, xmp.Property{Space: f.space, Name: f.name, List: f.list, Values: values})
	}
	if d.Info == 0 && len(info) > 0 {
		d.Info = d.Add(info).ObjectNumber.Value()
	}
	s := d.Stream(d.Catalog()["Metadata"])
	if s == nil {
		return
	}
	// A packet that cannot be read is replaced.
	packet, _ := pdf.Decode(s)
	pdf.SetContent(s, xmp.Edit(packet, properties)) // not compressed, so that other programs find it
}
