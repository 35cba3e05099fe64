package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/objectfile"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// An attempt is what one attempt at an item has come to.
type attempt struct {
	claim    *status.Claim
	log      *slog.Logger
	start    time.Time
	clean    int // up to this claim, no result that the item does not have remains
	engine   string
	results  []status.File // registered
	warnings []status.Warning
	said     lines
}

// handle makes one attempt at an item.
func (w *Worker) handle(ctx context.Context, c *status.Claim, progress func(float64)) status.Outcome {
	a := &attempt{claim: c, log: w.logOf(c), start: time.Now(), clean: c.Item.Clean}
	if w.forget(ctx, c, a.clean+1, c.Token-1, a.log) {
		a.clean = c.Token - 1
	}
	if w.space.low() {
		o := w.postpone(a.log, status.WaitDisk, errScratchFull)
		o.Clean = a.clean
		return o
	}
	defer w.space.watch()()
	unsure, err := w.run(ctx, a, progress)
	if err == nil {
		return w.completed(ctx, a)
	}
	if !errors.Is(err, syscall.ENOSPC) && ctx.Err() == nil && w.space.lowSince(a.start) {
		err = errNoSpace{err} // whatever error the engine reports
	}
	if w.withdraw(ctx, a) && !unsure && a.clean == c.Token-1 {
		a.clean = c.Token
	}
	if ctx.Err() != nil && !timedOut(ctx) {
		return status.Outcome{Release: true, Clean: a.clean} // the tracker knows why
	}
	reason, suspect := w.lacked(ctx, a, err)
	if reason != "" {
		o := w.postpone(a.log, reason, err)
		o.Suspect, o.Clean, o.Engine, o.Log = suspect, a.clean, a.engine, a.said.taken()
		return o
	}
	return w.failed(ctx, a, err, suspect)
}

// timedOut reports whether an attempt ended because its time was over.
func timedOut(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// completed returns the outcome of an attempt without an error.
func (w *Worker) completed(ctx context.Context, a *attempt) status.Outcome {
	action := a.claim.Op.ActionOf(a.claim.Index)
	w.metrics.attempt(ctx, action, a.engine, "", time.Since(a.start))
	attrs := []slog.Attr{slog.String("engine", a.engine), slog.Int("results", len(a.results)), slog.Duration("duration", time.Since(a.start))}
	if len(a.warnings) > 0 {
		codes := make([]string, len(a.warnings))
		for i, one := range a.warnings {
			codes[i] = one.Code
			w.metrics.warnings.WithLabelValues(action, one.Code).Inc()
		}
		attrs = append(attrs, slog.Any("warnings", codes))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "item completed", attrs...)
	return status.Outcome{Results: a.results, Warnings: a.warnings, Engine: a.engine, Log: a.said.taken()}
}

// withdraw removes the results that were registered before the attempt failed, and reports whether
// none remains.
func (w *Worker) withdraw(ctx context.Context, a *attempt) bool {
	all := true
	for _, f := range a.results {
		if err := w.uploads.Delete(context.WithoutCancel(ctx), a.claim.Op.Owner, f.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = false
		}
	}
	return all
}

// lacked returns the resource that an attempt that failed with err lacked, or "", and whether the
// item may be the cause of the failure of more than itself.
func (w *Worker) lacked(ctx context.Context, a *attempt, err error) (reason string, suspect bool) {
	suspect = crashed(err)
	if ctx.Err() == nil {
		reason = waitReason(err)
	}
	if reason == status.WaitDisk && !w.space.low() && !w.full(ctx) && !errors.Is(err, blob.ErrUnavailable) {
		// There is space again now that the attempt's files are removed, so the item
		// may have taken it all. If it ran alone, it did. A full bucket is not the
		// item's fault: nothing of the attempt is in it.
		suspect = true
		if a.claim.Alone {
			reason = ""
		}
	}
	return reason, suspect
}

// failed returns the outcome of an attempt that failed because of the input, the engine or this program.
func (w *Worker) failed(ctx context.Context, a *attempt, err error, suspect bool) status.Outcome {
	code := Code(err)
	if timedOut(ctx) {
		code = status.CodeTimeout
	}
	w.metrics.attempt(ctx, a.claim.Op.ActionOf(a.claim.Index), a.engine, code, time.Since(a.start))
	if ctx.Err() == nil { // else the attempt timed out
		a.logFailure(ctx, code, err)
	}
	o := status.Outcome{
		Error:   &status.Error{Code: code, Message: fileops.Message(err)},
		Retry:   (suspect || fileops.Retryable(err)) && ctx.Err() == nil && !errors.Is(err, ErrInputGone) && !errors.Is(err, upload.ErrContentLost) && !errors.Is(err, ErrSealed),
		Suspect: suspect,
		Clean:   a.clean,
		Engine:  a.engine,
		Log:     a.said.taken(),
	}
	if errors.Is(err, syscall.ENOSPC) {
		o.Error.Message = "the server has no space left to process this file"
	}
	if o.Retry {
		w.metrics.charged(suspect)
	}
	return o
}

func (a *attempt) logFailure(ctx context.Context, code string, err error) {
	level := slog.LevelInfo // the input caused the failure
	switch code {
	case "internal_error", "engine_failed", "engine_unavailable", "content_lost":
		if !errors.Is(err, errOvertaken) {
			level = slog.LevelError
		}
	}
	attrs := []slog.Attr{slog.String("engine", a.engine), slog.String("code", code), slog.Any("err", err)}
	var exit interface{ StderrTail() string }
	if errors.As(err, &exit) {
		attrs = append(attrs, slog.String("stderr", exit.StderrTail()))
		if len(a.said.taken()) == 0 { // else the engine has logged it
			a.said.output(exit.StderrTail())
		}
	}
	a.log.LogAttrs(ctx, level, "item failed", attrs...)
}

// postpone returns the outcome of an item that waits for a resource.
func (w *Worker) postpone(log *slog.Logger, reason string, err error) status.Outcome {
	w.metrics.postponed.WithLabelValues(reason).Inc()
	log.Warn("item postponed", "reason", reason, "err", err)
	return status.Outcome{Release: true, Waiting: reason}
}

var errScratchFull = errors.New("no space left to process the item")

// waitReason returns the resource that an attempt that failed with err lacked, or "" if
// the input, the engine or this program is at fault. No other code decides this.
func waitReason(err error) string {
	for _, d := range waits {
		if errors.Is(err, d.err) {
			return d.reason
		}
	}
	// Any other code describes the file: the engine ran and read it.
	switch fileops.Code(err) {
	case "internal_error", "engine_failed", "engine_unavailable":
	default:
		return ""
	}
	var start *fs.PathError
	var end interface{ Stopped() bool }
	switch {
	case errors.Is(err, fileops.ErrUnavailable),
		errors.As(err, &start) && start.Op == "fork/exec",
		errors.As(err, &end) && end.Stopped():
		return status.WaitEngine
	}
	for _, errno := range exhausted {
		if errors.Is(err, errno) {
			return status.WaitEngine
		}
	}
	return ""
}

// waits lists the errors that are never the fault of a file, whatever an engine says.
// It is constant.
var waits = []struct {
	err    error
	reason string
}{
	{syscall.ENOSPC, status.WaitDisk},
	{syscall.EDQUOT, status.WaitDisk},
	{blob.ErrUnavailable, status.WaitStorage},
	{status.ErrUnavailable, status.WaitDatabase},
	// A failing disk or network file system.
	{syscall.EIO, status.WaitStorage},
	{syscall.EROFS, status.WaitStorage},
	{syscall.ESTALE, status.WaitStorage},
	{syscall.ETIMEDOUT, status.WaitStorage},
}

// exhausted lists the errors of a host that cannot start another process. It is constant.
var exhausted = []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// crashed reports whether the process of an engine died while it read a file.
func crashed(err error) bool {
	var end interface{ Crashed() bool }
	return fileops.Code(err) == "engine_failed" && errors.As(err, &end) && end.Crashed()
}

// forgetMost is how many earlier claims of an item an attempt looks at.
const forgetMost = 2000

// forget removes results that earlier attempts at an item registered but did not
// record, because their process died. first and last are the claims of those attempts.
// It reports whether nothing is left.
//
// It also bars the key of the next result. A process that lives, but lost its claim
// without knowing, then registers no more: results are registered one after the other.
//
// Keys depend on the claim and not on the attempt number. The next attempt at a
// released item has the same number, and the process that released it may clean up
// late.
func (w *Worker) forget(ctx context.Context, c *status.Claim, first, last int, log *slog.Logger) (clean bool) {
	clean = true
	for token := max(first, last-forgetMost); token <= last; token++ {
		for n := 0; ; n++ {
			there, err := w.uploads.Tombstone(ctx, c.Op.Owner, w.results.of(c, token, n))
			if err != nil {
				clean = false
				log.Warn("cannot remove unrecorded result yet", "err", err)
			}
			if !there {
				break
			}
			log.Info("unrecorded result removed", "claim", token)
		}
	}
	return clean
}

// ended is called when an operation has become final. An item that was cancelled, or
// restarted too often, has no further attempt that could remove unrecorded results.
func (w *Worker) ended(ctx context.Context, op *status.Operation) {
	for i, it := range op.Items {
		if it.Error != nil && (it.Error.Code == status.CodeCancelled || it.Error.Code == status.CodeInternal) {
			c := &status.Claim{Ref: status.Ref{Operation: op.ID, Index: i}, Item: it, Op: op}
			w.forget(ctx, c, it.Clean+1, it.Claims, w.logOf(c))
		}
	}
	w.removeIntermediate(ctx, op)
	if w.cfg.Operations.OnFinal != nil {
		w.cfg.Operations.OnFinal(ctx, op)
	}
}

// full reports whether the store has no space for results.
func (w *Worker) full(ctx context.Context) bool {
	free, err := w.uploads.FreeSpace(ctx)
	return err == nil && free < lowSpace
}

// errOvertaken ends an attempt that has lost its claim, see forget.
var errOvertaken = errors.New("another attempt at the item has started")

// ErrInputGone is matched by the failure of an attempt whose input has expired or was
// deleted.
var ErrInputGone = errors.New("an input file has expired or was deleted")

// Code returns the code of an item that failed with err.
func Code(err error) string {
	if errors.Is(err, ErrInputGone) {
		return "input_expired"
	}
	if errors.Is(err, upload.ErrContentLost) {
		return "content_lost"
	}
	if errors.Is(err, syscall.ENOSPC) {
		return "internal_error"
	}
	return fileops.Code(err)
}

// run fetches the inputs and runs the action. It adds to a the engine, and the results that it
// registered; unsure means that there may be another one.
func (w *Worker) run(ctx context.Context, a *attempt, progress func(float64)) (unsure bool, err error) {
	c := a.claim
	step, err := w.stepOf(c.Op, c.Index)
	if err != nil {
		return false, err
	}
	from := &source{w: w, owner: c.Op.Owner, dir: spoolDir{parent: w.cfg.TempDir}}
	defer from.close()
	action, params, inputs, err := w.prepare(ctx, c, step, from)
	if err != nil {
		return false, err
	}
	a.engine = action.Spec().Engine
	a.said.hide(params.Secrets())
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) (err error) {
		path, _ := f.Path()
		ctx, span := trace.Start(ctx, "store put", trace.Client)
		span.Int("filewright.bytes", f.Size())
		defer func() { span.End(codeOf(err)) }()
		rec, err := w.uploads.Add(ctx, upload.File{
			Key: w.results.of(c, c.Token, len(a.results)), Owner: c.Op.Owner, Name: f.Name(), ContentType: f.Format().MIME(), Size: f.Size(), Task: c.Operation,
		}, f.Reader(), path)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errors.Join(errOvertaken, err)
		case err == nil:
			a.results = append(a.results, FileOf(rec))
		default:
			unsure = true
		}
		return err
	})
	r := fileops.Runner{
		TempDir: w.cfg.TempDir, Log: a.said.logger(a.log), MaxOutput: w.cfg.MaxOutput, Progress: progress,
		Warn: func(one fileops.Warning) { a.warnings = append(a.warnings, status.Warning(one)) },
	}
	if c.Token == 1 { // an item that was interrupted is processed on its own
		r.Owner = c.Op.Owner
	}
	err = r.Do(ctx, action, params, sink, inputs...)
	return unsure, err
}

// prepare opens the inputs of an item, and returns the action for them with its parameters.
func (w *Worker) prepare(ctx context.Context, c *status.Claim, step Step, from *source) (action fileops.Action, params fileops.Params, inputs []*fileops.File, err error) {
	name, args := c.Op.ActionOf(c.Index), fileops.Args(step.Parameters)
	var formats []format.Format
	for _, in := range c.Item.Inputs {
		f, err := from.open(ctx, in.Key, fmt.Sprintf("the input file %q", in.Name))
		if err != nil {
			return nil, params, nil, err
		}
		inputs = append(inputs, f)
		formats = append(formats, f.Format())
	}
	action, params, err = w.cfg.Actions.Resolve(name, formats, args)
	if err != nil && step.Guessed {
		return nil, params, nil, fileops.Fail(fileops.ErrUnsupportedInput, err, "%s", fileops.Message(err))
	}
	if err != nil {
		// It was possible when the operation was accepted, so an engine is gone.
		return nil, params, nil, fileops.Fail(fileops.ErrUnavailable, err, "the engine for this operation is not available any more")
	}
	uploads := maps.Collect(params.Uploads())
	for param, key := range uploads {
		if args[param], err = from.open(ctx, key, fmt.Sprintf("the file of the parameter %q", param)); err != nil {
			return nil, params, nil, err
		}
	}
	if len(uploads) > 0 {
		action, params, err = w.cfg.Actions.Resolve(name, formats, args)
	}
	return action, params, inputs, err
}

// A source opens the files of an attempt, until it is closed.
type source struct {
	w       *Worker
	owner   string
	dir     spoolDir
	objects []blob.Object
}

// open opens a file; what names it for people.
func (s *source) open(ctx context.Context, key, what string) (*fileops.File, error) {
	_, span := trace.Start(ctx, "store open", trace.Client)
	rec, obj, err := s.w.uploads.Open(ctx, s.owner, key)
	span.End(codeOf(err))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, upload.ErrExpired):
		return nil, &fileops.Failure{Kind: ErrInputGone, Message: what + " has expired or was deleted", Err: err}
	case errors.Is(err, upload.ErrContentLost):
		return nil, &fileops.Failure{Kind: upload.ErrContentLost, Message: "the service has lost the content of " + what + "; upload it again, or ask the operator of the service to restore it", Err: err}
	case err != nil:
		return nil, err
	}
	s.objects = append(s.objects, obj)
	return objectfile.File(rec.Name, obj, s.dir.create)
}

func (s *source) close() {
	for _, o := range s.objects {
		o.Close()
	}
	s.dir.remove()
}

// discard removes the results of an attempt that lost its claim. No operation shows them.
func (w *Worker) discard(ctx context.Context, files []status.File) {
	for _, f := range files {
		if err := w.uploads.Delete(ctx, "", f.Key); err != nil {
			w.log.Warn("cannot delete dropped result", "err", err)
		}
	}
}

// A spoolDir has copies of objects that are neither local files nor in memory.
type spoolDir struct {
	parent, path string
	n            int
}

func (d *spoolDir) create() (*os.File, error) {
	if d.path == "" {
		p, err := os.MkdirTemp(d.parent, "spool-")
		if err != nil {
			return nil, err
		}
		d.path = p
	}
	d.n++
	return os.OpenFile(filepath.Join(d.path, fmt.Sprint(d.n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d *spoolDir) remove() {
	if d.path != "" {
		os.RemoveAll(d.path)
	}
}

// FileOf returns a file as operations show it.
func FileOf(f *upload.File) status.File {
	return status.File{Key: f.Key, Name: f.Name, ContentType: f.ContentType, Size: f.Size, Expires: f.Expires}
}

// logOf returns a logger for lines about an item. Files are named by their keys, as
// names may be private.
func (w *Worker) logOf(c *status.Claim) *slog.Logger {
	files := make([]string, len(c.Item.Inputs))
	for i, f := range c.Item.Inputs {
		files[i] = f.Key
	}
	log := w.log.With("request_id", c.Op.Origin.Request, "operation", c.Operation, "item", c.Index, "action", c.Op.ActionOf(c.Index),
		"account", c.Op.Owner, "key", c.Op.Origin.Key, "files", files)
	if id := trace.ID(c.Op.Origin.Trace); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}

// codeOf returns the error code of a span, "" for success.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if reason := waitReason(err); reason != "" {
		return reason
	}
	return Code(err)
}
