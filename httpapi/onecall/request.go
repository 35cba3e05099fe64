package onecall

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/upload"
)

// Names of the members of a request that are not parameters of the action. No action has a
// parameter with such a name.
const (
	memberFile     = "file"      // a file of a form
	memberFileName = "file_name" // the name of the file in a raw body
	memberWait     = "wait"
	memberKeep     = "keep"
	memberNotes    = "notes"
)

// A call is one request.
type call struct {
	*api
	r     *http.Request
	owner string

	keys       []string // of the received files
	more       []string // of the received files that parameters name
	parameters map[string]any
	notes      map[string]string
	wait       time.Duration
	keep       bool
}

// receive reads the request and stores its files. If it fails, keys are the files that are stored.
func (c *call) receive() error {
	c.parameters, c.wait = make(map[string]any), c.cfg.Wait
	action := c.r.PathValue("action")
	if err := c.svc.Check(action, "", nil); err != nil {
		return err
	}
	if c.r.Header.Get("Content-Encoding") != "" {
		return httpapi.NewProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Encoding is not supported; send the files unencoded")
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_request", "the query of the URL is malformed")
	}
	name := query.Get(memberFileName)
	for member, values := range query {
		switch {
		case len(values) > 1:
			return httpapi.Invalid(member, "%s occurs twice in the query", member)
		case member == memberFileName:
		case member == memberFile:
			return httpapi.Invalid(member, "a file cannot be in the query; send it as the body, with its name in file_name, or as the field file of a form")
		default:
			if err := c.set(member, values[0]); err != nil {
				return err
			}
		}
	}
	mt, form, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if mt == "multipart/form-data" {
		if err != nil || form["boundary"] == "" {
			return httpapi.NewProblem(http.StatusBadRequest, "invalid_request", "the header Content-Type of a form must have a boundary")
		}
		return c.receiveForm(action)
	}
	if name == "" {
		return httpapi.Invalid(memberFile, `send the file as the field "file" of a form (multipart/form-data), or as the body with its name in the query: ?file_name=report.docx`)
	}
	if err := c.svc.Check(action, name, c.parameters); err != nil {
		return err
	}
	return c.store(name, c.r.Header.Get("Content-Type"), c.r.Body, c.r.ContentLength)
}

// receiveForm reads a form.
func (c *call) receiveForm(action string) error {
	limits := c.svc.Limits()
	if most := limits.BodyBytes + int64(limits.Files)*min(limits.FileSize, 1<<62/int64(limits.Files)); c.r.ContentLength > most {
		return httpapi.NewProblem(http.StatusRequestEntityTooLarge, "too_large", "the body has %d bytes; the limit is %d", c.r.ContentLength, most)
	}
	parts, err := c.r.MultipartReader()
	if err != nil {
		return malformed(err)
	}
	left := min(limits.BodyBytes, maxFieldBytes)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return malformed(err)
		}
		if err := c.receivePart(action, part, &left); err != nil {
			return err
		}
	}
	// The server notices that the client goes away only after the end of the body.
	if n, err := io.CopyN(io.Discard, c.r.Body, maxEpilogue); err == nil && n == maxEpilogue {
		return malformed(errors.New("the body continues after the form"))
	} else if err != nil && !errors.Is(err, io.EOF) {
		return malformed(err)
	}
	if len(c.keys) == 0 {
		return httpapi.Invalid(memberFile, `the form has no file; send it as the field "file"`)
	}
	return nil
}

// maxEpilogue bounds what may follow the last part of a form.
const maxEpilogue = 64 << 10

// receivePart reads one file or field of a form. left is how many more bytes the fields may have.
func (c *call) receivePart(action string, part *multipart.Part, left *int64) error {
	name := part.FormName()
	switch {
	case name == "":
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_request", "a part of the form has no name")
	case name == memberFile:
		limits := c.svc.Limits()
		if len(c.keys) == limits.Files {
			return httpapi.Invalid(memberFile, "an operation can have at most %d files", limits.Files)
		}
		fileName := part.FileName()
		if fileName == "" {
			return httpapi.Invalid(memberFile, "the file has no name; its part needs a file name such as report.docx, as in curl -F file=@report.docx")
		}
		if err := c.svc.Check(action, fileName, nil); err != nil {
			return err
		}
		return c.store(fileName, part.Header.Get("Content-Type"), part, -1)
	case part.FileName() != "" && !c.takesFile(action, name):
		return httpapi.Invalid(name, `the file is in the field %q; files must be in fields with the name "file"`, name)
	}
	if _, twice := c.parameters[name]; twice {
		return httpapi.Invalid(name, "%s occurs twice", name)
	}
	if part.FileName() != "" {
		f, err := c.receiveFile(part.FileName(), part.Header.Get("Content-Type"), part, -1)
		if err != nil {
			return err
		}
		c.more = append(c.more, f.Key)
		return c.set(name, f.Key)
	}
	value, err := io.ReadAll(io.LimitReader(part, *left+1))
	if err != nil {
		return malformed(err)
	}
	if *left -= int64(len(value) + len(name)); *left < 0 {
		return httpapi.NewProblem(http.StatusRequestEntityTooLarge, "too_large", "the fields of the form have more than %d bytes beside the files", min(c.svc.Limits().BodyBytes, maxFieldBytes))
	}
	return c.set(name, string(value))
}

// Limits of the parameters. They are in memory while the files arrive, and any number of clients may
// send some at once; larger parameters need the JSON body of POST /do.
const (
	maxFields     = 200
	maxFieldBytes = 64 << 10
)

// set records a parameter or another member of the request.
func (c *call) set(name, value string) (err error) {
	switch name {
	case memberWait:
		c.wait, err = httpapi.ParseWait(value)
		c.wait = min(c.wait, c.cfg.Timeout)
	case memberKeep:
		if c.keep, err = strconv.ParseBool(value); err != nil {
			err = httpapi.Invalid(name, "keep must be true or false")
		}
	case memberNotes:
		if json.Unmarshal([]byte(value), &c.notes) != nil {
			err = httpapi.Invalid(name, "notes must be a JSON object of texts")
		}
	case memberFileName:
		err = httpapi.Invalid(name, "file_name is only for a file as the body; the part of a file in a form has a file name of its own")
	default:
		if len(c.parameters) == maxFields {
			return httpapi.NewProblem(http.StatusBadRequest, "invalid_request", "the request has more than %d parameters", maxFields)
		}
		c.parameters[name] = fileops.Text(value)
	}
	return err
}

// takesFile reports whether a parameter of an action is a second file, such as the picture of a
// watermark.
func (c *call) takesFile(action, name string) bool {
	m := c.svc.Capabilities()
	for e := range m.Entries() {
		if e.Action != m.Canonical(action) {
			continue
		}
		if slices.ContainsFunc(e.Params, func(p fileops.Param) bool { return p.Name == name && p.Type == fileops.Upload }) {
			return true
		}
	}
	return false
}

// store stores an input of size bytes, or of unknown size if size is -1.
func (c *call) store(name, contentType string, body io.Reader, size int64) error {
	f, err := c.receiveFile(name, contentType, body, size)
	if err != nil {
		return err
	}
	c.keys = append(c.keys, f.Key)
	return nil
}

func (c *call) receiveFile(name, contentType string, body io.Reader, size int64) (*upload.File, error) {
	return c.svc.Uploads().Receive(c.r.Context(), upload.Request{Owner: c.owner, Name: name, ContentType: contentType, Size: size}, body)
}

// malformed returns the error for a form that cannot be read.
func malformed(err error) error {
	return &upload.Error{Kind: upload.ErrInvalid, Cause: err, Message: "cannot read the form: the body ends early, or is not multipart/form-data with the boundary of the header Content-Type"}
}
