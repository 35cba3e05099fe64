// Package mailops reads email messages: EML files (RFC 5322 and MIME) and messages of
// Outlook ([MS-OXMSG]).
//
// Convert makes a web page or a text of a message, with its main header fields, its body
// and a list of its attachments. A message of Outlook can also become EML, which keeps
// everything that other programs read. Extract returns the attachments, and Inspect
// describes a message.
//
// The body of a message is untrusted. A page of this package has no scripts, no forms and
// no references to other files: pictures of the message are in the page, and pictures on
// servers are left out, because loading them would tell the sender who reads.
//
// [MS-OXMSG]: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxmsg
package mailops

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// Options configure [New]. The zero value is usable.
type Options struct{ Limits Limits }

// Limits restrict messages. Zero fields mean the defaults.
type Limits struct {
	Size  int64 // bytes of a message, which is read into memory; 0 means 64 MiB
	Parts int   // of a message, including those of attached messages; 0 means 1000
}

// maxDepth is the number of parts inside each other.
const maxDepth = 30

// An Engine reads messages. It is safe for concurrent use.
type Engine struct{ limits Limits }

// New returns an engine. It never fails.
func New(_ context.Context, o Options) (*Engine, error) {
	l := o.Limits
	return &Engine{Limits{Size: cmp.Or(max(l.Size, 0), 64<<20), Parts: cmp.Or(max(l.Parts, 0), 1000)}}, nil
}

// Dependencies implements [fileops.Engine]. This engine has no dependencies.
func (*Engine) Dependencies() []fileops.Dependency { return nil }

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	return []fileops.Action{e.Convert(), e.Extract(), e.Inspect()}
}

const (
	engineName = "mailops"
	family     = "document"
)

// Convert returns the action "convert" for messages.
func (e *Engine) Convert() fileops.Action {
	to := func(formats ...string) fileops.Schema {
		p := fileops.Enum("convert_to", "Format of the result.", formats...)
		p.Aliases = make(map[string]string)
		for _, f := range formats {
			for _, a := range format.Format(f).Aliases() {
				p.Aliases[string(a)] = f
			}
		}
		return fileops.Schema{p}
	}
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: engineName, Family: family, Summary: "Makes pages and texts of email messages.",
		Accepts: []fileops.Accept{
			{Formats: []format.Format{format.EML}, Params: to("html", "txt")},
			{Formats: []format.Format{format.MSG}, Params: to("html", "txt", "eml")},
		},
	}, e.convert)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	m, err := e.read(ctx, job)
	if err != nil {
		return err
	}
	to := format.Format(job.Params.Get("convert_to"))
	name := fileops.ResultName(job.Input(), to)
	switch to {
	case format.EML:
		return job.WriteBytes(name, m.eml())
	case format.TXT:
		m.warnAttachments(job, nil)
		return job.WriteBytes(name, []byte(m.plain()))
	}
	page, lost := m.page(format.Base(job.Input().Name()))
	lost.warn(job)
	m.warnAttachments(job, lost.used)
	return job.WriteBytes(name, page)
}

// warnAttachments warns about the attachments that a result only lists.
func (m *message) warnAttachments(job *fileops.Job, used map[*attachment]bool) {
	n := 0
	for i := range m.attachments {
		if !used[&m.attachments[i]] {
			n++
		}
	}
	if n == 1 {
		job.Warn(fileops.WarnContentDropped, "1 attachment is only listed in the result; extract returns it.")
	} else if n > 1 {
		job.Warn(fileops.WarnContentDropped, "%d attachments are only listed in the result; extract returns them.", n)
	}
}

// Extract returns the action "extract" for messages: each attachment becomes a result,
// unchanged. Pictures that the body shows count as attachments. An attached message
// becomes an EML file. A message without attachments fails with
// [fileops.ErrUnsupportedInput].
func (e *Engine) Extract() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "extract", Engine: engineName, Family: family, Verbatim: true, Summary: "Extracts the attachments of an email message.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.EML, format.MSG}}},
	}, func(ctx context.Context, job *fileops.Job) error {
		m, err := e.read(ctx, job)
		if err != nil {
			return err
		}
		if len(m.attachments) == 0 {
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the message has no attachments")
		}
		taken := make(map[string]bool)
		for i, a := range m.attachments {
			if err := job.WriteBytes(unique(taken, a.fileName(i)), a.data); err != nil {
				return err
			}
			job.Progress(float64(i+1) / float64(len(m.attachments)))
		}
		return nil
	})
}

// Inspect returns the action "inspect" for messages.
func (e *Engine) Inspect() fileops.Action {
	spec := report.Spec(engineName, family, "Describes an email message as JSON.", []format.Format{format.EML, format.MSG})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		m, err := e.read(ctx, job)
		if err != nil {
			return err
		}
		r := report.New(job)
		r.Set("title", m.subject)
		r.Set("author", m.from)
		if !m.date.IsZero() {
			r.Set("created", m.date.UTC().Format(time.RFC3339))
		}
		r.Message = &report.Message{From: m.from, To: m.to, CC: m.cc, HTML: m.html != "", Attachments: []report.Attachment{}}
		for i, a := range m.attachments {
			r.Message.Attachments = append(r.Message.Attachments, report.Attachment{Name: a.fileName(i), MediaType: a.mediaType, Bytes: int64(len(a.data))})
		}
		return r.Write(job)
	})
}

// read reads the input of a job.
func (e *Engine) read(ctx context.Context, job *fileops.Job) (*message, error) {
	in := job.Input()
	if in.Size() > e.limits.Size {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the message has %d bytes, more than the limit of %d bytes", in.Size(), e.limits.Size)
	}
	p := &parser{ctx: ctx, parts: e.limits.Parts, bytes: 2 * e.limits.Size}
	var m *message
	var err error
	if in.Format() == format.MSG {
		m, err = p.outlook(in)
	} else {
		var b []byte
		if b, err = io.ReadAll(fileops.ContextReader(ctx, in.Reader())); err != nil {
			return nil, err
		}
		m, err = p.mime(b, 0)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	m.tidy()
	if p.guessed {
		job.Warn(fileops.WarnEncodingGuessed, "The message does not say how a text is encoded; the encoding was guessed.")
	}
	if p.cutOff {
		job.Warn(fileops.WarnContentDropped, "The message is truncated. The result contains only the part that could be read.")
	}
	return m, nil
}

// A parser reads one message and those that are attached to it.
type parser struct {
	ctx   context.Context
	parts int   // that may still be read
	bytes int64 // of decoded content that may still be kept

	guessed bool // an encoding was guessed
	cutOff  bool // the end of the message is missing
}

// part counts a part at a depth of nesting.
func (p *parser) part(depth int) error {
	if p.parts--; p.parts < 0 || depth > maxDepth {
		return fileops.Fail(fileops.ErrLimit, nil, "the message has too many parts")
	}
	return context.Cause(p.ctx)
}

// keep counts decoded bytes.
func (p *parser) keep(n int) error {
	if p.bytes -= int64(n); p.bytes < 0 {
		return fileops.Fail(fileops.ErrLimit, nil, "the content of the message is larger than the limit")
	}
	return nil
}

func damaged(cause error) error {
	return fileops.Fail(fileops.ErrCorruptInput, cause, "the message is damaged")
}

// A message is what a reader sees.
type message struct {
	from, subject string
	to, cc        []string
	date          time.Time // zero if unknown
	id            string

	text, html  string // the body; either may be empty
	attachments []attachment
}

// tidy removes the control characters that texts never have.
func (m *message) tidy() {
	clean := func(s string) string {
		return strings.Map(func(c rune) rune {
			if unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' {
				return -1
			}
			return c
		}, s)
	}
	for _, s := range []*string{&m.from, &m.subject, &m.id, &m.text, &m.html} {
		*s = clean(*s)
	}
	for _, list := range [][]string{m.to, m.cc} {
		for i := range list {
			list[i] = clean(list[i])
		}
	}
	for i := range m.attachments {
		a := &m.attachments[i]
		a.name, a.id, a.mediaType = clean(a.name), clean(a.id), clean(a.mediaType)
	}
}

// An attachment is a file in a message.
type attachment struct {
	name      string // "" if it has none
	mediaType string
	id        string // by which the page refers to it; "" if it has none
	data      []byte
}

// fileName returns a safe name for the attachment with number i.
func (a attachment) fileName(i int) string {
	name := a.name
	if k := strings.LastIndexAny(name, `/\`); k >= 0 {
		name = name[k+1:]
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || strings.ContainsRune(`<>:"|?*`, c) || unicode.Is(unicode.Bidi_Control, c) {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(name, "_"))
	const longest = 180 // bytes
	if ext := "." + string(format.Parse(name)); len(name) > longest && len(ext) < 20 {
		name = strings.ToValidUTF8(name[:longest-len(ext)], "") + ext
	}
	if name = strings.Trim(name, " ."); name == "" {
		return fmt.Sprintf("attachment-%d%s", i+1, extension(a.mediaType))
	}
	return name
}

// extension returns an extension for a media type, with its dot, or "".
func extension(mediaType string) string {
	for f := range format.Known() {
		if f.MIME() == mediaType {
			return "." + string(f)
		}
	}
	return ""
}

// unique returns name, with a number if it is taken. Case does not count.
func unique(taken map[string]bool, name string) string {
	try := name
	for i := 2; taken[strings.ToLower(try)]; i++ {
		base := format.Base(name)
		try = fmt.Sprintf("%s-%d%s", base, i, name[len(base):])
	}
	taken[strings.ToLower(try)] = true
	return try
}
