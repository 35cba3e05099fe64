package pdfops

import (
	"context"
	"crypto/md5"
	"io"
	"path"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// maxAttachment is the size of the largest file that is attached, in bytes. It is in memory.
const maxAttachment = 256 << 20

// Attach returns the action "attach". It adds the file "file_key" to the attachments of a PDF file, and
// replaces an attachment of the same name. "relationship" says what the file is to the document (ISO
// 32000-2, 14.13); PDF/A-3 requires it. The result is not encrypted. A file that claims to conform to
// PDF/A-1 or PDF/A-2, which allow no such attachments, loses the claim.
//
// "facturx" makes an electronic invoice instead: the result conforms to PDF/A-3, as far as
// [Tools.ConvertArchival] checks, the XML has the name and relationship of its profile, and the metadata
// names the profile.
func (t Tools) Attach() fileops.Action {
	params := append([]fileops.Param{{
		Name: "file_key", Type: fileops.Upload, Formats: []format.Format{format.Any}, Required: true,
		Doc: "File to attach: the file_key of an upload.",
	}, {
		Name: "name", Doc: "Name of the attachment; if absent, that of the file.", Min: 1, Max: 255,
	}, {
		Name: "media_type", Doc: "Media type of the attachment, such as text/xml; if absent, that of its extension.", Min: 3, Max: 127,
		Pattern: `[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*`,
	}, {
		Name: "relationship", Doc: "What the attachment is to the document.", Default: unspecified,
		Enum: []string{unspecified, "source", "data", "alternative", "supplement"},
	}}, invoiceParams()...)
	spec := t.pageSpec("attach", "Attaches a file to a PDF file.", params...)
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		f := job.Extra["file_key"]
		content, err := f.ReadAll(maxAttachment)
		if err != nil {
			return err
		}
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		if job.Params.Has("facturx") {
			return t.attachInvoice(ctx, job, d, pages, content)
		}
		if d.Claims(anyPDFA) && !d.Claims(`pdfaid:part="3"`, "pdfaid:part>3", `pdfaid:part='3'`) {
			d.DropPDFA()
			job.Warn(fileops.WarnMetadataDropped, "The file claims to conform to a part of PDF/A that allows no attachments; the result does not conform to it.")
		}
		name := job.Params.Get("name")
		if name == "" {
			name = f.Name()
		}
		media := job.Params.Get("media_type")
		if media == "" {
			media, _, _ = strings.Cut(format.Parse(name).MIME(), ";")
		}
		attach(d, name, media, relationships[job.Params.Get("relationship")], content)
		if err := warnSigned(job); err != nil {
			return err
		}
		return job.Write(job.Input().Name(), func(w io.Writer) error { return d.Write(w, d.IsPDFA1(), nil) })
	})
}

const unspecified = "unspecified"

// relationships are the names of relationships in files.
var relationships = map[string]types.Name{
	unspecified: "Unspecified", "source": "Source", "data": "Data", "alternative": "Alternative", "supplement": "Supplement",
}

// attach adds an attachment to a document (ISO 32000-2, 7.11.4).
func attach(d *pdf.Document, name, media string, relationship types.Name, content []byte) {
	now := types.StringLiteral(time.Now().UTC().Format("D:20060102150405Z"))
	sum := md5.Sum(content)
	stream := d.AddStream(types.Dict{
		"Type": types.Name("EmbeddedFile"), "Subtype": types.Name(media),
		"Params": types.Dict{"Size": types.Integer(len(content)), "ModDate": now, "CheckSum": types.NewHexLiteral(sum[:])},
	}, nil)
	pdf.SetContent(d.Stream(stream), pdf.Deflate(content), types.PDFFilter{Name: "FlateDecode"})
	spec := d.Add(types.Dict{
		"Type": types.Name("Filespec"), "F": pdf.TextString(path.Base(name)), "UF": pdf.TextString(path.Base(name)),
		"AFRelationship": relationship, "EF": types.Dict{"F": stream, "UF": stream},
	})
	catalog := d.Catalog()
	names := d.Dict(catalog["Names"])
	if names == nil {
		names = types.Dict{}
		catalog["Names"] = names
	}
	entries := make(map[string]types.Object)
	var replaced types.IndirectRef
	d.TreeLeaves(names["EmbeddedFiles"], "Names", func(key, value types.Object) {
		k := string(d.Text(key))
		if pdf.Unicode([]byte(k)) == name {
			replaced, _ = value.(types.IndirectRef)
			return
		}
		entries[k] = value
	})
	entries[string(d.Text(pdf.TextString(name)))] = spec
	names["EmbeddedFiles"] = d.AddNameTree(entries)
	kept := types.Array{}
	for _, o := range d.Array(catalog["AF"]) {
		if ref, ok := o.(types.IndirectRef); !ok || ref != replaced {
			kept = append(kept, o)
		}
	}
	catalog["AF"] = append(kept, spec)
}
