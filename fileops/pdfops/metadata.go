package pdfops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
	"created":  {"CreationDate", xmp.Basic, "CreateDate", ""},
	"modified": {"ModDate", xmp.Basic, "ModifyDate", ""},
	"trapped":  {"Trapped", xmp.PDF, "Trapped", ""},

	// These are in the packet only.
	"copyright": {"", xmp.DublinCore, "rights", "Alt"},
	"marked":    {"", xmp.Rights, "Marked", ""},
}

// fieldVersion is the field for the version of the format, which is in neither.
const fieldVersion = "pdf_version"

// versions are the values of fieldVersion.
var versions = []string{"1.4", "1.5", "1.6", "1.7", "2.0"}

// fieldNames returns the names of the fields that can be set.
func fieldNames() []string {
	names := append(slices.Collect(maps.Keys(infoFields)), fieldVersion)
	slices.Sort(names)
	return names
}

// infoAliases are the names of these fields in other families of files.
var infoAliases = map[string]string{"description": "subject", "software": "creator", "program": "creator"}

// removeAll is the value of the parameter remove that removes all metadata.
const removeAll = "all"

// Metadata returns the action "metadata" for PDF files. The content stays.
//
//   - set: an object with title, author, subject, keywords, creator (the program of the original)
//     or producer, created and modified (times as in RFC 3339), copyright, marked (whether rights are
//     claimed: true or false), trapped (true, false or unknown) and pdf_version, which is only raised.
//     Each value is a string; author and keywords may also be lists. description and software stand
//     for subject and creator.
//   - remove: names of fields, or "all" for these, dates, fields of programs, and all XMP packets,
//     also those of pictures and fonts. Removal comes first.
//
// The information dictionary and the XMP packet of the document agree afterwards. A file that loses
// its packet no longer claims to conform to PDF/A; a warning says so. The result is not encrypted.
func (t Tools) Metadata() fileops.Action {
	names := fieldNames()
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
	known := fieldNames()
	field := func(name string) (string, bool) {
		name = strings.ToLower(name)
		if alias, ok := infoAliases[name]; ok {
			name = alias
		}
		return name, slices.Contains(known, name)
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
		if values[0], err = fieldValue(name, values[0]); err != nil {
			return nil, false, bad(err.Error())
		}
		edit[name] = values
	}
	return edit, all, nil
}

// fieldValue returns the value of a field in the form that edits have: times as in RFC 3339, and the
// words of PDF.
func fieldValue(name, v string) (string, error) {
	word := func(allowed ...string) (string, error) {
		for _, w := range allowed {
			if strings.EqualFold(v, w) {
				return w, nil
			}
		}
		return "", errors.New("must be one of " + strings.Join(allowed, ", "))
	}
	switch name {
	case "created", "modified":
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02", "2006:01:02 15:04:05Z07:00", "2006:01:02 15:04:05"} { // the last two are those of EXIF
			if t, err := time.Parse(layout, v); err == nil && t.Year() > 0 {
				return t.Format(time.RFC3339), nil
			}
		}
		return "", errors.New("must be a time such as 2006-01-02T15:04:05Z")
	case "marked":
		return word("True", "False")
	case "trapped":
		return word("True", "False", "Unknown")
	case fieldVersion:
		return word(versions...)
	}
	return v, nil
}

// apply changes the information dictionary of a document, and its XMP packet. A document without a
// packet gets one if a field is only in packets.
func (e infoEdit) apply(d *pdf.Document) {
	info := d.Dict(pdf.Ref(d.Info))
	if info == nil {
		info = types.Dict{}
	}
	var properties []xmp.Property
	packetOnly := false
	for _, name := range slices.Sorted(maps.Keys(e)) {
		f, values := infoFields[name], e[name]
		switch {
		case name == fieldVersion:
			if len(values) > 0 {
				d.Version = max(d.Version, values[0])
			}
			continue
		case f.key == "":
			packetOnly = packetOnly || len(values) > 0
		case len(values) == 0:
			delete(info, f.key)
		case name == "created" || name == "modified":
			t, _ := time.Parse(time.RFC3339, values[0]) // checked before
			info[f.key] = types.StringLiteral(pdf.DateString(t))
		case name == "trapped":
			info[f.key] = types.Name(values[0])
		default:
			info[f.key] = pdf.TextString(strings.Join(values, ", "))
		}
		properties = append(properties, xmp.Property{Space: f.space, Name: f.name, List: f.list, Values: values})
	}
	if d.Info == 0 && len(info) > 0 {
		d.Info = d.Add(info).ObjectNumber.Value()
	}
	s := d.Stream(d.Catalog()["Metadata"])
	if s == nil {
		if !packetOnly {
			return
		}
		for name, f := range infoFields { // the packet must agree with what the dictionary has already
			if text := pdf.Unicode(d.Text(info[f.key])); e[name] == nil && text != "" && name != "created" && name != "modified" {
				properties = append(properties, xmp.Property{Space: f.space, Name: f.name, List: f.list, Values: []string{text}})
			}
		}
		ref := d.AddStream(types.Dict{"Type": types.Name("Metadata"), "Subtype": types.Name("XML")}, nil)
		d.Catalog()["Metadata"] = ref
		s = d.Stream(ref)
	}
	// A packet that cannot be read is replaced.
	packet, _ := pdf.Decode(s)
	pdf.SetContent(s, xmp.Edit(packet, properties)) // not compressed, so that other programs find it
}
