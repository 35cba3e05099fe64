package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// handle makes one attempt at an item.
func (w *Worker) handle(ctx context.Context, c *status.Claim, progress func(float64)) status.Outcome {
	start := time.Now()
	log := w.logOf(c)
	action := c.Op.ActionOf(c.Index)
	clean := c.Item.Clean
	if w.forget(ctx, c, clean+1, c.Token-1, log) {
		clean = c.Token - 1
	}
	if w.space.low() {
		o := w.postpone(log, status.WaitDisk, errScratchFull)
		o.Clean = clean
		return o
	}
	defer w.space.watch()()
	var warnings []status.Warning
	var said lines
	engine, results, unsure, err := w.run(ctx, c, log, &said, progress, func(one fileops.Warning) { warnings = append(warnings, status.Warning(one)) })
	if err != nil && !errors.Is(err, syscall.ENOSPC) && ctx.Err() == nil && w.space.lowSince(start) {
		err = errNoSpace{err} // whatever error the engine reports
	}
	if err == nil {
		w.metrics.attempt(ctx, action, engine, "", time.Since(start))
		attrs := []slog.Attr{slog.String("engine", engine), slog.Int("results", len(results)), slog.Duration("duration", time.Since(start))}
		if len(warnings) > 0 {
			codes := make([]string, len(warnings))
			for i, one := range warnings {
				codes[i] = one.Code
				w.metrics.warnings.WithLabelValues(action, one.Code).Inc()
			}
			attrs = append(attrs, slog.Any("warnings", codes))
		}
		log.LogAttrs(ctx, slog.LevelInfo, "item completed", attrs...)
		return status.Outcome{Results: results, Warnings: warnings, Engine: engine, Log: said.taken()}
	}
	for _, f := range results {
		// These results were registered before the attempt failed.
		if err := w.uploads.Delete(context.WithoutCancel(ctx), c.Op.Owner, f.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			unsure = true
		}
	}
	if clean == c.Token-1 && !unsure {
		clean = c.Token
	}
	timedOut := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if ctx.Err() != nil && !timedOut {
		return status.Outcome{Release: true, Clean: clean} // the tracker knows why
	}
	code := Code(err)
	if timedOut {
		code = status.CodeTimeout
	}
	reason, suspect := "", crashed(err)
	if ctx.Err() == nil {
		reason = waitReason(err)
	}
	if reason == status.WaitDisk && !w.space.low() && !w.full(ctx) && !errors.Is(err, blob.ErrUnavailable) {
		// There is space again now that the attempt's files are removed, so the item
		// may have taken it all. If it ran alone, it did. A full bucket is not the
		// item's fault: nothing of the attempt is in it.
		suspect = true
		if c.Alone {
			reason = ""
		}
	}
	if reason != "" {
		o := w.postpone(log, reason, err)
		o.Suspect, o.Clean, o.Engine, o.Log = suspect, clean, engine, said.taken()
		return o
	}
	w.metrics.attempt(ctx, action, engine, code, time.Since(start))
	level := slog.LevelInfo // the input caused the failure
	if (code == "internal_error" || code == "engine_failed" || code == "engine_unavailable" || code == "content_lost") && !errors.Is(err, errOvertaken) {
		level = slog.LevelError
	}
	if ctx.Err() == nil { // else the attempt timed out
		attrs := []slog.Attr{slog.String("engine", engine), slog.String("code", code), slog.Any("err", err)}
		var exit interface{ StderrTail() string }
		if errors.As(err, &exit) {
			attrs = append(attrs, slog.String("stderr", exit.StderrTail()))
			if len(said.taken()) == 0 { // else the engine has logged it
				said.output(exit.StderrTail())
			}
		}
		log.LogAttrs(ctx, level, "item failed", attrs...)
	}
	o := status.Outcome{
		Error:   &status.Error{Code: code, Message: fileops.Message(err)},
		Retry:   (suspect || fileops.Retryable(err)) && ctx.Err() == nil && !errors.Is(err, ErrInputGone) && !errors.Is(err, upload.ErrContentLost) && !errors.Is(err, ErrSealed),
		Suspect: suspect,
		Clean:   clean,
		Engine:  engine,
		Log:     said.taken(),
	}
	if errors.Is(err, syscall.ENOSPC) {
		o.Error.Message = "the server has no space left to process this file"
	}
	if o.Retry {
		w.metrics.charged(suspect)
	}
	return o
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

// run fetches the inputs and runs the action. It returns the results that it registered,
// and in unsure whether there may be another one.
func (w *Worker) run(ctx context.Context, c *status.Claim, log *slog.Logger, said *lines, progress func(float64), warn func(fileops.Warning)) (engine string, results []status.File, unsure bool, err error) {
	name := c.Op.ActionOf(c.Index)
	step, err := w.stepOf(c.Op, c.Index)
	if err != nil {
		return "", nil, false, err
	}
	args := fileops.Args(step.Parameters)
	var (
		objects []blob.Object
		inputs  []*fileops.File
		formats []format.Format
	)
	dir := &spoolDir{parent: w.cfg.TempDir}
	defer dir.remove()
	defer func() {
		for _, o := range objects {
			o.Close()
		}
	}()
	open := func(key, what string) (*fileops.File, error) {
		_, span := trace.Start(ctx, "store open", trace.Client)
		rec, obj, err := w.uploads.Open(ctx, c.Op.Owner, key)
		span.End(codeOf(err))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, upload.ErrExpired):
			return nil, &fileops.Failure{Kind: ErrInputGone, Message: what + " has expired or was deleted", Err: err}
		case errors.Is(err, upload.ErrContentLost):
			return nil, &fileops.Failure{Kind: upload.ErrContentLost, Message: "the service has lost the content of " + what + "; upload it again, or ask the operator of the service to restore it", Err: err}
		case err != nil:
			return nil, err
		}
		objects = append(objects, obj)
		return dir.file(rec.Name, obj)
	}
	for _, in := range c.Item.Inputs {
		f, err := open(in.Key, fmt.Sprintf("the input file %q", in.Name))
		if err != nil {
			return "", nil, false, err
		}
		inputs = append(inputs, f)
		formats = append(formats, f.Format())
	}
	action, params, err := w.cfg.Actions.Resolve(name, formats, args)
	if err != nil && step.Guessed {
		return "", nil, false, fileops.Fail(fileops.ErrUnsupportedInput, err, "%s", fileops.Message(err))
	}
	if err != nil {
		// It was possible when the operation was accepted, so an engine is gone.
		return "", nil, false, fileops.Fail(fileops.ErrUnavailable, err, "the engine for this operation is not available any more")
	}
	uploads := maps.Collect(params.Uploads())
	for param, key := range uploads {
		if args[param], err = open(key, fmt.Sprintf("the file of the parameter %q", param)); err != nil {
			return "", nil, false, err
		}
	}
	if len(uploads) > 0 {
		if action, params, err = w.cfg.Actions.Resolve(name, formats, args); err != nil {
			return "", nil, false, err
		}
	}
	engine = action.Spec().Engine
	said.hide(params.Secrets())
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) (err error) {
		path, _ := f.Path()
		ctx, span := trace.Start(ctx, "store put", trace.Client)
		span.Int("filewright.bytes", f.Size())
		defer func() { span.End(codeOf(err)) }()
		rec, err := w.uploads.Add(ctx, upload.File{
			Key: w.results.of(c, c.Token, len(results)), Owner: c.Op.Owner, Name: f.Name(), ContentType: f.Format().MIME(), Size: f.Size(), Task: c.Operation,
		}, f.Reader(), path)
		switch {
		case errors.Is(err, fs.ErrExist):
			return errors.Join(errOvertaken, err)
		case err == nil:
			results = append(results, FileOf(rec))
		default:
			unsure = true
		}
		return err
	})
	r := fileops.Runner{TempDir: w.cfg.TempDir, Log: said.logger(log), MaxOutput: w.cfg.MaxOutput, Progress: progress, Warn: warn}
	if c.Token == 1 { // an item that was interrupted is processed on its own
		r.Owner = c.Op.Owner
	}
	err = r.Do(ctx, action, params, sink, inputs...)
	return engine, results, unsure, err
}

// discard removes the results of an attempt that lost its claim. No operation shows them.
func (w *Worker) discard(ctx context.Context, files []status.File) {
	for _, f := range files {
		if err := w.uploads.Delete(ctx, "", f.Key); err != nil {
			w.log.Warn("cannot delete dropped result", "err", err)
		}
	}
}

// A spoolDir copies objects that are neither local files nor in memory to local files.
type spoolDir struct {
	parent, path string
	n            int
}

func (d *spoolDir) file(name string, obj blob.Object) (*fileops.File, error) {
	if l, ok := obj.(blob.LocalObject); ok {
		if path := l.LocalPath(); path != "" {
			return fileops.Path(path).Named(name), nil
		}
	}
	if m, ok := obj.(blob.MemoryObject); ok {
		return fileops.Bytes(name, m.Bytes()), nil
	}
	if d.path == "" {
		p, err := os.MkdirTemp(d.parent, "spool-")
		if err != nil {
			return nil, err
		}
		d.path = p
	}
	d.n++
	path := filepath.Join(d.path, fmt.Sprint(d.n))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, io.NewSectionReader(obj, 0, obj.Info().Size))
	return fileops.Path(path).Named(name), errors.Join(err, f.Close())
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
