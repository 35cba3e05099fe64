package gotenberg

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/upload"
)

// A form is a received form.
type form struct {
	values map[string][]string
	files  []file // names are unique, except among the files of extraFields
}

// A file is a file of a form.
type file struct {
	field, name string
	key         string // of the upload
	size        int64
}

// extraFields are the form fields whose files are not inputs. All other files are, whatever the name
// of their field.
var extraFields = []string{"embeds", "watermark", "stamp", "facturxXml"}

// Limits of the fields that are not files.
const (
	maxFields     = 500
	maxFieldBytes = 1 << 20
)

// receive reads the form of a request and stores its files.
func (c *call) receive() error {
	mt, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if mt != "multipart/form-data" {
		return refuse(http.StatusUnsupportedMediaType, "Invalid 'Content-Type' header value: want 'multipart/form-data', got '%s'", c.r.Header.Get("Content-Type"))
	}
	if err != nil || params["boundary"] == "" {
		return refuse(http.StatusBadRequest, "Invalid 'Content-Type' header value: no boundary")
	}
	parts, err := c.r.MultipartReader()
	if err != nil {
		return malformed(err)
	}
	c.form.values = make(map[string][]string)
	left, fields := int64(maxFieldBytes), 0
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return malformed(err)
		}
		name := part.FormName()
		if part.FileName() != "" {
			if err := c.receiveFile(name, part); err != nil {
				return err
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, left+1))
		if err != nil {
			return malformed(err)
		}
		left -= int64(len(value) + len(name))
		if fields++; left < 0 || fields > maxFields {
			return refuse(http.StatusRequestEntityTooLarge, "The form fields have more than %d bytes, or there are more than %d", maxFieldBytes, maxFields)
		}
		c.form.values[name] = append(c.form.values[name], string(value))
	}
	// The server notices that the client goes away only after the end of the body.
	if _, err := io.CopyN(io.Discard, c.r.Body, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return malformed(err)
	}
	return nil
}

// receiveFile stores a file of the form. A file replaces an earlier one of the same name.
func (c *call) receiveFile(field string, part *multipart.Part) error {
	if most := c.svc.Limits().Files; len(c.form.files) >= most {
		return refuse(http.StatusBadRequest, "Invalid form data: a request can have at most %d files", most)
	}
	name := cleanName(part.FileName())
	f, err := c.store(name, part.Header.Get("Content-Type"), part, -1)
	if err != nil {
		return err
	}
	c.add(file{field, name, f.Key, f.Size})
	return nil
}

// add adds a file to the form.
func (c *call) add(f file) {
	if !slices.Contains(extraFields, f.field) {
		c.form.files = slices.DeleteFunc(c.form.files, func(old file) bool {
			return old.name == f.name && !slices.Contains(extraFields, old.field)
		})
	}
	c.form.files = append(c.form.files, f)
}

// maxName is the longest name of a stored file in bytes. Longer names have their place only in the
// response.
const maxName = 120

// store stores a file. size is -1 if it is unknown.
func (c *call) store(name, contentType string, body io.Reader, size int64) (*upload.File, error) {
	if name == "" || len(name) > maxName {
		name = "file" + strings.ToLower(path.Ext(name))
	}
	f, err := c.svc.Uploads().Receive(c.ctx, upload.Request{Owner: c.owner, Name: name, ContentType: contentType, Size: size}, body)
	if err != nil {
		return nil, err
	}
	c.keys = append(c.keys, f.Key)
	c.later.note(c.keys)
	return f, nil
}

// cleanName returns the name of a file without its directories and control characters.
func cleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, name)
	return norm.NFC.String(name)
}

func malformed(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "%s", http.StatusText(http.StatusRequestEntityTooLarge))
	}
	return &upload.Error{Kind: upload.ErrInvalid, Cause: err, Message: "Invalid form data: the body ends early, or is not multipart/form-data with the boundary of the header Content-Type"}
}

// of returns the files of a field.
func (f *form) of(field string) (files []file) {
	for _, one := range f.files {
		if one.field == field {
			files = append(files, one)
		}
	}
	return files
}

// input returns the input with a name.
func (f *form) input(name string) (file, bool) {
	for _, one := range f.files {
		if one.name == name && !slices.Contains(extraFields, one.field) {
			return one, true
		}
	}
	return file{}, false
}

// inputs returns the inputs that have one of the extensions, in the order of their names: numbers
// count as numbers, so page_2 comes before page_10.
func (f *form) inputs(extensions ...string) (docs []doc) {
	for _, one := range f.files {
		if !slices.Contains(extraFields, one.field) && slices.Contains(extensions, strings.ToLower(path.Ext(one.name))) {
			docs = append(docs, doc{one.key, one.name})
		}
	}
	slices.SortStableFunc(docs, func(a, b doc) int { return compareNames(a.name, b.name) })
	return docs
}

// compareNames compares names with a number at the start or before the extension by that number.
func compareNames(a, b string) int {
	na, ra, fa := numbered(a)
	nb, rb, fb := numbered(b)
	switch {
	case na < 0 && nb < 0:
		return strings.Compare(a, b)
	case na < 0:
		return 1
	case nb < 0:
		return -1
	case fa && fb:
		return cmp.Or(cmp.Compare(na, nb), strings.Compare(ra, rb))
	case fa == fb:
		return cmp.Or(strings.Compare(ra, rb), cmp.Compare(na, nb), strings.Compare(a, b))
	}
	if c := strings.Compare(ra, rb); c != 0 {
		return c
	}
	if fa {
		return -1
	}
	return 1
}

// numbered returns the number in a name and the rest of the name. The number is -1 if there is none;
// first reports whether it is at the start.
func numbered(name string) (n int, rest string, first bool) {
	digit := func(r rune) bool { return r >= '0' && r <= '9' }
	if i := strings.IndexFunc(name, func(r rune) bool { return !digit(r) }); i > 0 {
		if n, err := strconv.Atoi(name[:i]); err == nil {
			return n, name[i:], true
		}
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	i := strings.LastIndexFunc(stem, func(r rune) bool { return !digit(r) }) + 1
	if n, err := strconv.Atoi(stem[i:]); err == nil {
		return n, stem[:i] + ext, false
	}
	return -1, name, false
}

// A reader reads the fields of a form. It collects all errors, in the order of the calls.
type reader struct {
	form *form
	errs []string
}

func (r *reader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}

// err returns the error of all calls.
func (r *reader) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "Invalid form data: %s", strings.Join(r.errs, "\n"))
}

// text returns the value of a field, or "".
func (r *reader) text(name string) string {
	if v := r.form.values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// custom calls read with a value that is not empty.
func (r *reader) custom(name string, read func(string) error) {
	v := r.text(name)
	if v == "" {
		return
	}
	if err := read(v); err != nil {
		r.fail("form field '%s' is invalid (got '%s', resulting to %v)", name, v, err)
	}
}

// require is custom for a field that must have a value.
func (r *reader) require(name string, read func(string) error) {
	if r.text(name) == "" {
		r.fail("form field '%s' is required", name)
		return
	}
	r.custom(name, read)
}

// flag returns the value of a boolean field.
func (r *reader) flag(name string, usual bool) bool {
	r.custom(name, func(v string) (err error) {
		b, err := strconv.ParseBool(v)
		if err == nil {
			usual = b
		}
		return err
	})
	return usual
}

// integer returns the value of a field with a number from least to most.
func (r *reader) integer(name string, usual, least, most int) int {
	r.custom(name, func(v string) error {
		n, err := strconv.Atoi(v)
		switch {
		case err != nil:
			return err
		case n < least:
			return fmt.Errorf("value is inferior to %d", least)
		case n > most:
			return fmt.Errorf("value is superior to %d", most)
		}
		usual = n
		return nil
	})
	return usual
}

// number returns the value of a field with a number.
func (r *reader) number(name string, usual float64) float64 {
	r.custom(name, func(v string) error {
		n, err := strconv.ParseFloat(v, 64)
		if err == nil {
			usual = n
		}
		return err
	})
	return usual
}

// points per unit of a length.
var units = map[string]float64{"pt": 1, "px": 72.0 / 96, "in": 72, "mm": 72 / 25.4, "cm": 72 / 2.54, "pc": 12}

// length returns a length in points. usual and values without a unit are in inches.
func (r *reader) length(name string, usual float64) float64 {
	out := usual * units["in"]
	r.custom(name, func(v string) error {
		unit := "in"
		if len(v) > 2 {
			if u := v[len(v)-2:]; units[u] != 0 {
				unit, v = u, v[:len(v)-2]
			}
		}
		n, err := strconv.ParseFloat(v, 64)
		if err == nil {
			out = n * units[unit]
		}
		return err
	})
	return out
}

// inputs returns the inputs with one of the extensions. There must be one.
func (r *reader) inputs(extensions ...string) []doc {
	docs := r.form.inputs(extensions...)
	if len(docs) == 0 {
		r.fail("no form file found for extensions: %v", extensions)
	}
	return docs
}
