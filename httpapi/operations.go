package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
)

// Limits of the notes of an operation.
const (
	maxNotes     = 50
	maxNoteBytes = 16 << 10 // all keys and values together
)

// do answers POST /do.
func (s *Service) do(w http.ResponseWriter, r *http.Request) {
	var req doRequest
	body, err := s.decode(w, r, &req, false)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	idem, err := idempotencyKey(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	op, err := s.submit(r, &req, idem, body)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	markReplay(w, infoOf(r).replayed)
	s.reply(w, doResponse{MainTaskID: op.ID})
}

// A Submission requests an operation, as the body of POST /do.
type Submission struct {
	Action     string
	FileKeys   []string
	Parameters map[string]any
	Notes      map[string]string

	// Key makes the submission repeatable: with the key of an earlier one of the account, Submit returns
	// that operation. "": each submission is an operation.
	Key string
}

// Submit starts an operation for the caller of an [Extension]'s request, under the rules of POST
// /do. Pass its error to [Service.Fail].
func (s *Service) Submit(r *http.Request, sub Submission) (*status.Operation, error) {
	return s.submit(r, &doRequest{Action: sub.Action, FileKeys: sub.FileKeys, Parameters: sub.Parameters, Notes: sub.Notes}, sub.Key, nil)
}

// Check returns the error of POST /do for a file of this name, or nil. With nil parameters it only
// checks that the action accepts such a file with some parameters; with an empty name too, that the
// action exists. It is for requests that can be refused before a file has arrived.
func (s *Service) Check(action, fileName string, parameters map[string]any) error {
	offered, err := s.known()
	if err != nil {
		return err
	}
	action = offered.Canonical(action)
	f := format.Parse(fileName)
	switch {
	case fileName == "":
		for e := range offered.Entries() {
			if e.Action == action {
				return nil
			}
		}
		p := problem(http.StatusBadRequest, "unsupported_operation", "unknown action %q", action)
		p.Param, p.Allowed = "action", offered.Registry().Names()
		return p
	case parameters == nil:
		return offered.Query(capability.Query{Ext: string(f), Action: action}).Err
	}
	_, _, err = offered.Resolve(action, []format.Format{f}, parameters)
	return err
}

func (s *Service) submit(r *http.Request, req *doRequest, idem string, body []byte) (op *status.Operation, err error) {
	ctx, span := trace.Start(r.Context(), "submit", trace.Internal)
	if span != nil {
		r = r.WithContext(ctx)
		defer func() {
			if err == nil {
				span.String("filewright.operation", op.ID)
				span.String("filewright.action", op.Action)
				span.Int("filewright.items", int64(len(op.Items)))
			}
			span.End(spanCode(err))
		}()
	}
	who := principal(r)
	if idem != "" {
		// Check for a repeated request before looking up the files: they may have expired since.
		for op, err := range s.tracker.List(r.Context(), status.Query{Owner: who.Account, IdempotencyKey: idem, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			if time.Since(op.Created) < 24*time.Hour {
				return s.sameRequest(r, op, body)
			}
		}
	}
	if err := req.check(s.cfg.Limits.Files); err != nil {
		return nil, err
	}
	if err := checkSteps(req.Steps, req.Action, req.Parameters, s.cfg.Limits.Steps); err != nil {
		return nil, err
	}
	offered, err := s.known() // one snapshot for the whole request
	if err != nil {
		return nil, err
	}
	action := offered.Canonical(req.Action)
	files, err := s.uploads.ReadyAll(r.Context(), who.Account, req.FileKeys)
	if err != nil {
		p := asProblem(err)
		p.Param = fmt.Sprintf("file_keys[%d]", len(files))
		if p.Status == http.StatusNotFound {
			p.Detail = p.Param + " is not one of your files"
			if perr := s.pendingError(r.Context(), who.Account, req.FileKeys[len(files)]); perr != nil {
				param := p.Param
				p = asProblem(perr)
				p.Param = param
			}
		}
		return nil, p
	}
	formats := make([]format.Format, len(files))
	for i, f := range files {
		formats[i] = format.Parse(f.Name)
	}
	op = &status.Operation{
		ID: uuid.NewString(), Owner: who.Account, Action: action, Notes: req.Notes,
		IdempotencyKey: idem, Created: time.Now(), Origin: status.Origin{Request: requestID(r), Key: who.KeyID, Trace: span.Traceparent(), Client: clientName(r), Address: s.clientAddress(r)},
	}
	if idem != "" { // without a key nobody can repeat the request
		op.Fingerprint = s.fingerprints.of(canonical(body))
	}
	if req.Steps != nil {
		err = s.planSteps(r.Context(), op, offered, files, formats, req)
	} else {
		err = s.planAction(r.Context(), op, offered, files, formats, req.Parameters)
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkDelivery(op, req.Deliver); err != nil {
		return nil, err
	}
	use := Use{Account: who.Account, Operation: op.ID, Operations: 1}
	if s.cfg.Quota != nil {
		if err := s.cfg.Quota.Reserve(r.Context(), use); err != nil {
			return nil, err
		}
	}
	stored, err := s.submitDelivered(r.Context(), op, req.Deliver)
	if s.cfg.Quota != nil {
		as := Kept
		if err != nil || stored.ID != op.ID {
			as = Released
		}
		s.settle(r.Context(), use, as)
	}
	if err != nil {
		return nil, err
	}
	infoOf(r).started = stored.ID
	if stored.ID == op.ID {
		return stored, nil
	}
	return s.sameRequest(r, stored, body)
}

// planAction sets the items and the parameters of an operation of a single action.
func (s *Service) planAction(ctx context.Context, op *status.Operation, offered *capability.Matrix, files []*upload.File, formats []format.Format, args map[string]any) error {
	params, uploads, err := plan(op, offered, files, formats, args)
	if err != nil {
		return err
	}
	if err := s.checkUploads(ctx, op, offered, files, formats, args, uploads); err != nil {
		return err
	}
	args = typed(args, params)
	setAsked(op, offered, []stepRequest{{op.Action, args}})
	op.Args, err = s.worker.Seal(op.ID, args)
	return err
}

var errIdempotency = errors.New("idempotency key used twice")

// sameRequest returns an error if a request of another meaning created op under the same idempotency
// key.
func (s *Service) sameRequest(r *http.Request, op *status.Operation, body []byte) (*status.Operation, error) {
	if !s.fingerprints.match(op.Fingerprint, canonical(body)) {
		return nil, errIdempotency
	}
	infoOf(r).replayed = true
	return op, nil
}

// checkUploads checks the files that parameters name by their keys: they must be ready, belong to the
// account, and have a format that the parameter accepts. The worker opens them again by their keys.
func (s *Service) checkUploads(ctx context.Context, op *status.Operation, offered *capability.Matrix, files []*upload.File, formats []format.Format, args map[string]any, uploads map[string]string) error {
	if len(uploads) == 0 {
		return nil
	}
	args = maps.Clone(args)
	for name, key := range uploads {
		f, err := s.parameterFile(ctx, op.Owner, "parameters."+name, key)
		if err != nil {
			return err
		}
		args[name] = f
	}
	trial := *op
	_, _, err := plan(&trial, offered, files, formats, args)
	return err
}

// parameterFile returns the file that a member of a request names by its key, without its content:
// only its format matters before the operation runs.
func (s *Service) parameterFile(ctx context.Context, owner, param, key string) (*fileops.File, error) {
	recs, err := s.uploads.ReadyAll(ctx, owner, []string{key})
	if err != nil {
		p := asProblem(err)
		p.Param = param
		if p.Status == http.StatusNotFound {
			p.Detail = param + " is not one of your files"
		}
		return nil, p
	}
	return fileops.Bytes(recs[0].Name, nil), nil
}

// plan sets the items of an operation: one item for all files if the action is joint, else one item
// for each file. It returns the parameters of the last one, and the keys of the files that parameters
// name, by parameter. It returns an error for an impossible item, before anything is queued.
func plan(op *status.Operation, offered *capability.Matrix, files []*upload.File, formats []format.Format, args map[string]any) (params fileops.Params, uploads map[string]string, err error) {
	uploads = make(map[string]string)
	item := func(a fileops.Action, files ...*upload.File) status.Item {
		it := status.Item{Queue: a.Spec().Family, State: status.Queued}
		for _, f := range files {
			it.Inputs = append(it.Inputs, worker.FileOf(f))
		}
		return it
	}
	for i, f := range files {
		a, p, err := offered.Resolve(op.Action, formats[i:i+1], args)
		if err != nil {
			return params, nil, err
		}
		if err := checkSize(a, f); err != nil {
			return params, nil, err
		}
		params = p
		maps.Insert(uploads, params.Uploads())
		if !a.Spec().Joint {
			op.Items = append(op.Items, item(a, f))
			continue
		}
		if a, params, err = offered.Resolve(op.Action, formats, args); err != nil {
			return params, nil, err
		}
		for _, f := range files {
			if err := checkSize(a, f); err != nil {
				return params, nil, err
			}
		}
		maps.Insert(uploads, params.Uploads())
		op.Items = []status.Item{item(a, files...)}
		break
	}
	return params, uploads, nil
}

// typed returns args with each [fileops.Text] replaced by the value that params has.
func typed(args map[string]any, params fileops.Params) map[string]any {
	out := maps.Clone(args)
	values := params.Args()
	for name, v := range args {
		if _, ok := v.(fileops.Text); ok {
			out[name] = values[name]
		}
	}
	return out
}

// checkSize returns an error if a file is larger than the action reads.
func checkSize(a fileops.Action, f *upload.File) error {
	err := a.Spec().CheckSize(f.Size)
	if err == nil {
		return nil
	}
	p := problem(http.StatusRequestEntityTooLarge, "too_large", "%s: %s", f.Name, fileops.Message(err))
	p.Param, p.MaxBytes = "file_keys", a.Spec().MaxBytes
	return p
}

func (req *doRequest) check(maxFiles int) error {
	switch {
	case req.Steps != nil: // see checkSteps
	case strings.TrimSpace(req.Action) == "":
		return invalid("action", "action is required, such as convert")
	case len(req.FileKeys) == 0:
		return invalid("file_keys", "file_keys is required: the keys of one or more uploaded files")
	case len(req.FileKeys) > maxFiles:
		return invalid("file_keys", "an operation can have at most %d files", maxFiles)
	case len(req.Notes) > maxNotes:
		return invalid("notes", "notes can have at most %d entries", maxNotes)
	}
	n := 0
	for k, v := range req.Notes {
		n += len(k) + len(v)
	}
	if n > maxNoteBytes {
		return invalid("notes", "notes can have at most %d bytes in total", maxNoteBytes)
	}
	return nil
}

// clientName returns the User-Agent of a request, shortened, or "".
func clientName(r *http.Request) string {
	const longest = 300
	name := r.UserAgent()
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name[:min(len(name), longest)], ""))
}

// clientAddress returns the address of the client of a request, for IPv6 its network, or "" if the request did not come
// from the network.
func (s *Service) clientAddress(r *http.Request) string {
	addr, ok := ClientAddr(r, s.cfg.TrustProxy)
	if !ok {
		return ""
	}
	return networkOf(addr)
}
