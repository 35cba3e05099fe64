package gotenberg

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/internal/zipstream"
	"github.com/filewright/filewright/status"
)

// A handler runs the steps of a route for a form that was received. It returns the results. Without
// results, the response is c.body.
type handler func(c *call) ([]doc, error)

// A doc is a stored file with the name that it has for the client.
type doc struct{ key, name string }

// stem returns the name without its extension.
func (d doc) stem() string { return strings.TrimSuffix(d.name, path.Ext(d.name)) }

// A call is one request.
type call struct {
	*Routes
	r     *http.Request
	ctx   context.Context
	owner string
	trace string
	form  form
	keys  []string // of all files, to be deleted
	body  any      // the response in JSON of a route without results

	output string   // the name that the client wants for the result, or ""
	later  *running // nil: the client waits for the response
}

// serve returns the handler of a route.
func (g *Routes) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// The deadlines of the transfer replace that of the server.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(r.Context(), g.cfg.Timeout)
		defer cancel()
		who, _ := httpapi.PrincipalOf(ctx)
		c := &call{Routes: g, r: r, ctx: ctx, owner: who.Account, trace: traceOf(r), output: cleanName(unescape(r.Header.Get(outputHeader)))}
		w.Header().Set(traceHeader, c.trace)
		remove := c.remove
		defer func() { remove() }()
		to, err := c.hook()
		if err == nil {
			err = c.receive()
		}
		if err != nil {
			w.Header().Set("Connection", "close") // the rest of the body is not worth reading
		}
		if err == nil {
			err = c.fetchFiles()
		}
		if err == nil && to != nil {
			if err = c.accept(to, w.Header().Get("X-Request-Id")); err == nil {
				remove = func() {}
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		var docs []doc
		if err == nil {
			docs, err = h(c)
		}
		switch {
		case err != nil:
			c.refused(w, err)
		case len(docs) == 0:
			w.Header().Set("Content-Type", "application/json")
			writeJSON(w, http.StatusOK, c.body)
		default:
			if err := c.send(w, docs); err != nil {
				c.refused(w, err)
			}
		}
		_ = http.NewResponseController(w).Flush() // the client need not wait for the deletion
	}
}

// refused answers with an error.
func (c *call) refused(w http.ResponseWriter, err error) {
	a := c.answerOf(err)
	c.svc.Log(c.r).Debug("request refused", "trace", c.trace, "err", err)
	if a.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retry))
	}
	plain(w, a.status, a.text)
}

// answerOf returns the response for an error.
func (c *call) answerOf(err error) *answer {
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return &answer{status: http.StatusServiceUnavailable, text: "The request exceeded the time limit. Reduce the workload."}
	}
	a := answerOf(err)
	if a.status >= 500 && c.ctx.Err() == nil {
		c.svc.Log(c.r).Error("request failed", "trace", c.trace, "err", err)
	}
	return a
}

// A failure is the error of an operation.
type failure struct {
	Code, Message string
	input         string // name of the file
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

// code returns the code of a failure, or "".
func code(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

// A step is an operation of a request.
type step struct {
	action string
	params map[string]any
	inputs []doc
}

// A product is what an operation made.
type product struct {
	docs     []doc
	warnings []status.Warning
}

// run runs steps at the same time.
func (c *call) run(steps ...step) ([]product, error) {
	ops := make([]*status.Operation, 0, len(steps))
	var err error
	for _, s := range steps {
		var op *status.Operation
		keys := make([]string, len(s.inputs))
		for i, d := range s.inputs {
			keys[i] = d.key
		}
		sub := httpapi.Submission{Action: s.action, FileKeys: keys, Parameters: s.params, Notes: map[string]string{"gotenberg_trace": c.trace}, Key: c.later.next()}
		if op, err = c.svc.Submit(c.r, sub); err != nil {
			break
		}
		ops = append(ops, op)
	}
	out := make([]product, len(steps))
	for i, op := range ops {
		if err == nil {
			out[i], err = c.wait(op, steps[i].inputs)
		}
		if err != nil && !c.continues(err) {
			c.abandon(op)
		}
	}
	return out, err
}

// wait waits until an operation is final.
func (c *call) wait(op *status.Operation, inputs []doc) (out product, err error) {
	for !op.State.Final() {
		start := time.Now()
		const most = time.Minute
		if op, err = c.svc.Wait(c.ctx, c.owner, op.ID, most); err != nil {
			return out, err
		}
		if !op.State.Final() && c.ctx.Err() == nil && time.Since(start) < most/2 {
			return out, errStopping
		}
	}
	for i, it := range op.Items {
		for _, res := range it.Results {
			c.keys = append(c.keys, res.Key)
			out.docs = append(out.docs, doc{res.Key, res.Name})
		}
		if it.Error != nil && err == nil {
			err = &failure{it.Error.Code, it.Error.Message, inputs[min(i, len(inputs)-1)].name}
		}
		out.warnings = append(out.warnings, it.Warnings...)
	}
	return out, err
}

// abandon stops an operation.
func (c *call) abandon(op *status.Operation) {
	op = c.svc.Abandon(c.r, c.owner, op.ID)
	if op == nil {
		return
	}
	for _, it := range op.Items {
		for _, res := range it.Results {
			c.keys = append(c.keys, res.Key)
		}
	}
}

// each runs an action on each document alone. The results keep the names of the documents. params
// that the action does not have for the format of a document are left out.
func (c *call) each(docs []doc, action string, params map[string]any) ([]doc, error) {
	steps := make([]step, len(docs))
	for i, d := range docs {
		steps[i] = step{action, params, []doc{d}}
	}
	products, err := c.run(steps...)
	if err != nil {
		return nil, err
	}
	out := make([]doc, len(docs))
	for i, p := range products {
		if len(p.docs) != 1 {
			return nil, refuse(http.StatusInternalServerError, "%s", http.StatusText(http.StatusInternalServerError))
		}
		out[i] = doc{p.docs[0].key, docs[i].name}
	}
	return out, nil
}

// known returns those of the parameters that an action has for files with an extension. If the action
// has the parameter convert_to, it must have the value to.
func (g *Routes) known(action, ext, to string, params map[string]any) map[string]any {
	f := format.Parse("file" + ext)
	out := map[string]any{}
	if to != "" {
		out["convert_to"] = to
	}
	for e := range g.svc.Capabilities().Entries() {
		if e.Action != action || e.Format != f {
			continue
		}
		fits := to == ""
		for _, p := range e.Params {
			fits = fits || p.Name == "convert_to" && slices.Contains(p.Enum, to)
		}
		if !fits {
			continue
		}
		for _, p := range e.Params {
			if v, ok := params[p.Name]; ok {
				out[p.Name] = v
			}
		}
	}
	return out
}

// read returns the content of a stored file of at most limit bytes.
func (c *call) read(key string, limit int64) ([]byte, error) {
	f, obj, err := c.svc.Uploads().Open(c.ctx, c.owner, key)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	if f.Size > limit {
		return nil, refuse(http.StatusRequestEntityTooLarge, "The file '%s' has %d bytes; the limit is %d", f.Name, f.Size, limit)
	}
	return io.ReadAll(io.NewSectionReader(obj, 0, f.Size))
}

// remove deletes all files of the request.
func (c *call) remove() { c.svc.Discard(c.r, c.owner, c.keys) }

// A body is the file of a response.
type body struct {
	io.Reader
	io.Closer
	name, contentType string
	size              int64
}

// open opens the file of the response: the only result, or an archive of all results.
func (c *call) open(docs []doc) (*body, error) {
	wanted := c.output
	if len(docs) == 1 {
		f, obj, err := c.svc.Uploads().Open(c.ctx, c.owner, docs[0].key)
		if err != nil {
			return nil, err
		}
		name, ext := docs[0].name, path.Ext(docs[0].name)
		if wanted != "" {
			name = wanted + ext
		}
		return &body{io.NewSectionReader(obj, 0, f.Size), obj, name, contentType(ext), f.Size}, nil
	}
	var names zipstream.Namer
	var list []zipstream.File
	for _, d := range docs {
		f, err := c.svc.Uploads().Ready(c.ctx, c.owner, d.key)
		if err != nil {
			return nil, err
		}
		list = append(list, zipstream.File{
			Name: names.Unique(d.name), Key: f.Key, Size: f.Size, Modified: f.Created,
			Open: func(ctx context.Context) (zipstream.Content, error) {
				return c.svc.Uploads().OpenFile(ctx, c.owner, f)
			},
		})
	}
	a, err := zipstream.New(c.ctx, list, new(zipstream.Sums))
	if err != nil {
		return nil, err
	}
	wanted = cmp.Or(wanted, c.trace)
	return &body{a, a, wanted + ".zip", "application/zip", a.Size()}, nil
}

// unescape returns a header value without percent encoding, which clients use for names that are not
// ASCII.
func unescape(v string) string {
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}

// contentType returns the media type of a result.
func contentType(ext string) string {
	switch strings.ToLower(ext) {
	case ".pdf":
		return "application/pdf"
	case ".png":
		return "image/png"
	case ".jpeg", ".jpg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	}
	return "application/octet-stream"
}

// send answers with the results.
func (c *call) send(w http.ResponseWriter, docs []doc) error {
	o, err := c.open(docs)
	if err != nil {
		return err
	}
	defer o.Close()
	h := w.Header()
	h.Set("Content-Type", o.contentType)
	h.Set("Content-Length", strconv.FormatInt(o.size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": o.name}))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	stall := c.svc.Limits().Stall
	buf := make([]byte, 256<<10)
	for {
		n, err := o.Read(buf)
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(stall))
			if _, err := w.Write(buf[:n]); err != nil {
				return nil // the client has gone
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			c.svc.Log(c.r).Error("cannot read a result", "trace", c.trace, "err", err)
			panic(http.ErrAbortHandler) // the client must not take this for a whole file
		}
	}
}
