package documentops

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/safezip"
)

// plainFormats are the formats of which templates and macro-enabled documents exist.
var plainFormats = []format.Format{
	format.DOCX, format.XLSX, format.PPTX, format.ODT, format.ODS, format.ODP, format.DOC, format.XLS, format.PPT,
}

// plainTypes are the content types of the main parts of plain documents (ISO/IEC
// 29500-1, 11.3.10, 12.3.23 and 13.3.6).
var plainTypes = map[format.Format]string{
	format.DOCX: "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
	format.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
	format.PPTX: "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
}

// Convert returns the action "convert" for templates, slide shows and macro-enabled
// documents. The result is an ordinary document of the same kind, such as DOCX for DOTM.
// All parts but the mark of the kind stay as they are.
//
// A plain document of Office Open XML cannot have macros: they are dropped, with the
// warning [fileops.WarnMacrosDropped]. The older formats and OpenDocument keep them.
// Nothing runs them. A signed document, and a workbook with the macro sheets of Excel 4,
// fail with [fileops.ErrUnsupportedInput]. l may be nil.
func Convert(l *Limits) fileops.Action {
	limits := l.orDefault()
	spec := fileops.Spec{
		Name: "convert", Engine: "documentops", Family: "office",
		Summary: "Makes ordinary documents of templates and documents with macros.",
	}
	for _, plain := range plainFormats {
		target := fileops.Enum("convert_to", "Format of the result.", string(plain))
		target.Aliases = make(map[string]string)
		for _, a := range plain.Aliases() {
			target.Aliases[string(a)] = string(plain)
		}
		spec.Accepts = append(spec.Accepts, fileops.Accept{Formats: format.WithVariants(plain)[1:], Params: fileops.Schema{target}})
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error { return toPlain(ctx, job, limits) })
}

func toPlain(ctx context.Context, job *fileops.Job, l safezip.Limits) error {
	in := job.Input()
	to := in.Format().Plain()
	name := fileops.ResultName(in, to)
	switch to {
	case format.DOC, format.XLS, format.PPT:
		return plainCompound(job, in, to, name)
	}
	if encrypted(in) {
		return errProtected()
	}
	a, err := openArchive(in, l)
	if err != nil {
		return err
	}
	if plainTypes[to] != "" {
		err = plainOPC(ctx, job, a, to)
	} else {
		err = plainODF(ctx, a, to)
	}
	if err != nil {
		return err
	}
	return job.WriteFile(name, func(path string) error { return a.write(ctx, job, path) })
}

// plainOPC changes the type of the main part, and drops the code.
func plainOPC(ctx context.Context, job *fileops.Job, a *archive, to format.Format) error {
	p, err := openOPC(ctx, a)
	if err != nil {
		return err
	}
	main := p.main()
	if main == nil {
		return damaged(errXML)
	}
	code := false
	for _, s := range p.sources {
		for _, l := range s.links {
			switch {
			case l.to == nil:
			case strings.EqualFold(l.kind, "vbaProject"):
				l.to.drop, code = true, true
			case l.kind == "xlMacrosheet", l.kind == "xlIntlMacrosheet":
				return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the workbook has macro sheets of Excel 4, which an ordinary workbook cannot have; convert it to pdf or ods instead")
			}
		}
	}
	// What belongs to the code: its data in a Word document, its signatures, and toolbars
	// that only start macros ([MS-OFFMACRO2] 2.2.1).
	for _, s := range p.sources {
		owner := p.find(s.part)
		for _, l := range s.links {
			if l.to != nil && (owner != nil && owner.drop || l.kind == "attachedToolbars") {
				l.to.drop = true
			}
		}
		if owner != nil && owner.drop {
			s.rels.drop = true
		}
	}
	if code {
		job.Warn(fileops.WarnMacrosDropped, "The macros of the document were left out, because files of this format cannot have any.")
	}
	list := p.find(contentTypes)
	if list.data, err = list.read(ctx, maxIndex); err != nil {
		return err
	}
	if err := p.finish(ctx, nil); err != nil {
		return err
	}
	return p.setType(main, plainTypes[to])
}

// setType sets the content type of a part.
func (p *opc) setType(part *entry, mime string) error {
	list := p.find(contentTypes)
	head := -1
	for t, err := range tags(list.data) {
		switch {
		case err != nil:
			return err
		case t.closing:
		case t.name() == "Types":
			head = t.end
		case t.name() == "Override":
			if name, _ := t.attr("PartName"); strings.EqualFold(strings.TrimPrefix(name, "/"), part.Name) {
				for a := range t.attrs() {
					if a.name == "ContentType" {
						list.data = apply(list.data, []edit{setAttr(a, mime)})
						return nil
					}
				}
			}
		}
	}
	if head < 0 {
		return damaged(errXML)
	}
	list.data = apply(list.data, []edit{{head, head, `<Override PartName="/` + escaper.Replace(part.Name) + `" ContentType="` + mime + `"/>`}})
	return nil
}

// plainODF changes the media type of a package, which the manifest repeats.
func plainODF(ctx context.Context, a *archive, to format.Format) error {
	d, err := openODF(ctx, a)
	if err != nil {
		return err
	}
	if m := d.find("mimetype"); m != nil {
		m.data = []byte(to.MIME())
	}
	for t, err := range tags(d.manifest) {
		if err != nil {
			return err
		}
		if name, _ := t.attr("full-path"); t.closing || t.name() != "file-entry" || name != "/" {
			continue
		}
		for a := range t.attrs() {
			if a.name == "media-type" {
				d.find(manifest).data = apply(d.manifest, []edit{setAttr(a, to.MIME())})
				return nil
			}
		}
	}
	return nil
}

// plainCompound copies a document of Office 97. Only in Word does the content say that
// it is a template ([MS-DOC] 2.5.2, fDot).
func plainCompound(job *fileops.Job, in *fileops.File, to format.Format, name string) error {
	f, err := compound.Open(in.Reader(), in.Size(), 0)
	if err != nil {
		return damaged(err)
	}
	if encryptedBinary(f) {
		return errProtected()
	}
	names := slices.Collect(f.Streams())
	switch {
	case to == format.DOC && !slices.Contains(names, "worddocument"),
		to == format.PPT && !slices.Contains(names, "powerpoint document"),
		to == format.XLS && !slices.Contains(names, "workbook") && !slices.Contains(names, "book"):
		return damaged(nil)
	}
	if to != format.DOC {
		return job.Keep(in.Named(name))
	}
	s, _, err := f.Stream("worddocument")
	if err != nil {
		return damaged(err)
	}
	const flags = 10 // offset in the file information block
	head := make([]byte, flags+2)
	if _, err := s.ReadAt(head, 0); err != nil {
		return damaged(err)
	}
	at, err := f.Offset("worddocument")
	if err != nil {
		return damaged(err)
	}
	return job.WriteFile(name, func(path string) error {
		out, err := os.OpenFile(filepath.Clean(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer out.Close()
		if _, err := io.Copy(out, in.Reader()); err != nil {
			return err
		}
		binary.LittleEndian.PutUint16(head[flags:], binary.LittleEndian.Uint16(head[flags:])&^1)
		if _, err := out.WriteAt(head, at); err != nil {
			return err
		}
		return out.Close()
	})
}
