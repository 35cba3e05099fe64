package imageops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// kinds of metadata that the parameter remove takes beside fields.
var kinds = []string{"all", "exif", "xmp", "iptc", "comments"}

// Metadata returns the action "metadata" for jpg, png and webp. It changes metadata
// without decoding: the pixels, the colour profile and the orientation stay.
//
//   - set: an object with title, description, author, copyright, software and keywords.
//     Each value is a string; author and keywords may also be lists. They are written as
//     XMP, as EXIF except title and keywords, and as text of PNG except keywords. An IPTC
//     block in a JPEG is then removed, because it might contradict.
//   - remove: names of fields, "exif", "xmp", "iptc", "comments" (of JPEG, and text of PNG)
//     or "all". Removal comes first.
func (e *Engine) Metadata() fileops.Action {
	spec := fileops.Spec{
		MaxBytes: e.opts.MaxBytes,
		Name:     "metadata", Engine: e.Name(), Family: "image",
		Summary: "Changes the metadata of pictures and keeps the pixels.",
	}
	formats := slices.DeleteFunc(e.Reads(), func(f format.Format) bool { return !editable(f) })
	if len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Changes: []string{"set", "remove"}, Params: fileops.Schema{
			{Name: "set", Type: fileops.Object, Min: 1, Max: 20, Doc: "Values by field: " + strings.Join(imagefile.MetadataFields(), ", ") + "."},
			{Name: "remove", Type: fileops.List, Min: 1, Max: 20, Doc: "Fields to remove, or exif, xmp, iptc, comments or all."},
		}}}
	}
	return fileops.Func(spec, e.metadata)
}

func (e *Engine) metadata(ctx context.Context, job *fileops.Job) error {
	edit, err := editOf(job.Params)
	if err != nil {
		return err
	}
	src, h, err := e.load(ctx, job)
	if err != nil {
		return err
	}
	return e.rewrite(ctx, job, src, h, edit)
}

// everything removes all metadata.
var everything = imagefile.Edit{EXIF: true, XMP: true, IPTC: true, Comments: true}

// editable reports whether metadata of a format can be changed without decoding.
func editable(f format.Format) bool { return f == format.JPG || f == format.PNG || f == format.WebP }

// rewrite changes the metadata of a picture.
func (e *Engine) rewrite(ctx context.Context, job *fileops.Job, src source, h header, edit imagefile.Edit) error {
	if _, err := e.preview(ctx, src); err != nil { // a damaged picture must not be reported as changed
		return e.blame(ctx, src, plan{to: src.format}, err)
	}
	b, err := edited(edit, src, h)
	if errors.Is(err, imagefile.ErrMetadata) {
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the metadata of the file cannot be changed; remove exif first, or set less text")
	}
	if err != nil {
		return err
	}
	if edit.XMP { // it says how the gain map is applied, and where the video is
		if hasGainMap(src) {
			warnHDR(job, src, h)
		}
		warnMotion(job, src)
	}
	after, err := e.stat(source{b, src.format})
	if err != nil || after.width != h.width || after.height != h.height || after.pages != h.pages || after.profile != h.profile {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("%+v became %+v: %w", h, after, err), "the metadata could not be changed")
	}
	return job.WriteBytes(job.Input().Name(), b)
}

// edited returns a file with changed metadata.
func edited(edit imagefile.Edit, src source, h header) ([]byte, error) {
	switch src.format {
	case format.JPG:
		return edit.JPEG(src.data)
	case format.PNG:
		return edit.PNG(src.data)
	default:
		return edit.WebP(src.data, h.width, h.height)
	}
}

// editOf reads the parameters of the action metadata.
func editOf(params fileops.Params) (imagefile.Edit, error) {
	edit := imagefile.Edit{Set: make(map[string][]string)}
	known := imagefile.MetadataFields()
	for _, name := range params.List("remove") {
		switch name = strings.ToLower(name); {
		case name == "all":
			edit.EXIF, edit.XMP, edit.IPTC, edit.Comments = everything.EXIF, everything.XMP, everything.IPTC, everything.Comments
		case name == "exif":
			edit.EXIF = true
		case name == "xmp":
			edit.XMP = true
		case name == "iptc":
			edit.IPTC = true
		case name == "comments":
			edit.Comments = true
		case slices.Contains(known, name):
			edit.Set[name] = nil
		default:
			return edit, &fileops.ParamError{Param: "remove", Reason: fmt.Sprintf("has %q, which is neither a field nor a kind of metadata", name), Allowed: slices.Concat(kinds, known)}
		}
	}
	const longest = 10_000 // bytes of a field
	for name, v := range params.Object("set") {
		bad := func(reason string) (imagefile.Edit, error) {
			return edit, &fileops.ParamError{Param: "set", Reason: fmt.Sprintf("has %q, which %s", name, reason), Allowed: known}
		}
		field := strings.ToLower(name)
		if !slices.Contains(known, field) {
			return bad("is not a field of pictures")
		}
		var values []string
		switch v := v.(type) {
		case string:
			values = []string{v}
			if field == "keywords" {
				values = strings.Split(v, ",")
			}
		case []any:
			for _, x := range v {
				s, ok := x.(string)
				if !ok || field != "keywords" && field != "author" {
					return bad("must be a string")
				}
				values = append(values, s)
			}
		default:
			return bad("must be a string")
		}
		total := 0
		for i, s := range values {
			values[i] = strings.TrimSpace(s)
			if total += len(s); total > longest || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) {
				return bad(fmt.Sprintf("must have at most %d bytes and no control characters", longest))
			}
		}
		edit.Set[field] = slices.DeleteFunc(values, func(s string) bool { return s == "" })
	}
	return edit, nil
}
