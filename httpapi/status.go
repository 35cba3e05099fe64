package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/filewright/filewright/status"
)

// operationStatus answers GET /status/<main_task_id>. With ?wait=30s it is a long poll.
func (s *Service) operationStatus(w http.ResponseWriter, r *http.Request) {
	op, err := s.wait(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	resp, err := s.describe(r.Context(), op)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, resp[0])
}

// wait returns the operation of a request once it is final or the request's wait time is over.
func (s *Service) wait(r *http.Request) (*status.Operation, error) {
	owner, id := principal(r).Account, r.PathValue("main_task_id")
	text := r.URL.Query().Get("wait")
	if text == "" {
		return s.tracker.Get(r.Context(), owner, id)
	}
	d, err := ParseWait(text)
	if err != nil {
		return nil, err
	}
	return s.Wait(r.Context(), owner, id, min(d, s.cfg.Limits.LongPoll))
}

// ParseWait parses the request parameter wait: a duration such as "30s", or a number of seconds.
func ParseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if sec, aerr := strconv.Atoi(text); aerr == nil {
		d, err = time.Duration(sec)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, invalid("wait", "wait must be a duration such as 30s")
	}
	return d, nil
}

// Wait returns an operation of owner when it is final, or its current state after d or when the
// service is about to stop.
func (s *Service) Wait(ctx context.Context, owner, id string, d time.Duration) (*status.Operation, error) {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	op, err := s.tracker.Wait(limited, owner, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return s.tracker.Get(ctx, owner, id) // the wait time was over before the first look
	}
	return op, err
}

// fileStatus answers GET /status/<main_task_id>/<file_key> for the key of an input or a result. The
// router cannot mix a fixed segment with a variable one, so it also gets the requests for events.
func (s *Service) fileStatus(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("file_key")
	if key == "events" {
		s.events(w, r)
		return
	}
	op, err := s.wait(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	described, err := s.describe(r.Context(), op)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	resp := described[0]
	all := resp.FilesData
	resp.FilesData = []FileStatus{}
	for _, fd := range all {
		match := fd.FileKey == key || fd.InputFileKey == key
		for _, in := range fd.InputFileKeys {
			match = match || in == key
		}
		if match {
			resp.FilesData = append(resp.FilesData, fd)
		}
	}
	if len(resp.FilesData) == 0 {
		s.fail(w, r, problem(http.StatusNotFound, "not_found", "the operation has no file with this number"))
		return
	}
	s.reply(w, resp)
}

// events answers GET /status/<main_task_id>/events with server-sent events: the status after every
// change, last the final status.
func (s *Service) events(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	started := false
	for op, err := range s.tracker.Watch(ctx, principal(r).Account, r.PathValue("main_task_id")) {
		if err != nil {
			if !started {
				s.fail(w, r, err)
			}
			return
		}
		if !started {
			started = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Accel-Buffering", "no") // prevents buffering by nginx
			w.WriteHeader(http.StatusOK)
		}
		resp, err := s.describe(ctx, op)
		if err != nil {
			return
		}
		b, err := s.encode(resp[0])
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "event: status\ndata: %s\n\n", b); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		w.(*recorder).idle() // the next event may take long
	}
}

// cancel answers DELETE /status/<main_task_id>.
func (s *Service) cancel(w http.ResponseWriter, r *http.Request) {
	op, err := s.tracker.Cancel(r.Context(), principal(r).Account, r.PathValue("main_task_id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.changed(r, "operation.cancel", op.ID)
	resp, err := s.describe(r.Context(), op)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, resp[0])
}

// listOperations answers GET /operations.
func (s *Service) listOperations(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	query := status.Query{Owner: principal(r).Account, State: status.State(q.Get("status")), Before: q.Get("cursor"), Limit: 50}
	switch query.State {
	case "", status.Queued, status.Running, status.Completed, status.Failed:
	default:
		p := invalid("status", "status must be queued, running, completed or failed")
		p.Allowed = []string{"queued", "running", "completed", "failed"}
		s.fail(w, r, p)
		return
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 200 {
			s.fail(w, r, invalid("limit", "limit must be from 1 to 200"))
			return
		}
		query.Limit = n
	}
	limit := query.Limit
	query.Limit++ // one more, to detect a next page
	var resp listResponse
	var ops []*status.Operation
	for op, err := range s.tracker.List(r.Context(), query) {
		if errors.Is(err, fs.ErrNotExist) && query.Before != "" {
			err = InvalidCursor()
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if len(ops) == limit {
			resp.NextCursor = ops[limit-1].ID
			break
		}
		ops = append(ops, op)
	}
	var err error
	if resp.Operations, err = s.describe(r.Context(), ops...); err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, resp)
}

// InvalidCursor returns the [Problem] of a query parameter cursor that no previous response had.
func InvalidCursor() *Problem {
	return invalid("cursor", "cursor must be the next_cursor of a previous response; its operation may have been deleted since, so start again without it")
}

// Describe returns the state of an operation as its owner sees it, without the response envelope.
func (s *Service) Describe(op *status.Operation) OperationStatus {
	resp := OperationStatus{
		OperationStatus: string(op.State), MainTaskID: op.ID, Action: op.Action, Notes: op.Notes,
		Progress: op.Percent(), CreatedAt: stamp(op.Created), FinishedAt: stamp(op.Finished), FilesData: []FileStatus{},
	}
	resp.Steps = s.describeSteps(op)
	op = op.Shown()
	for _, it := range op.Items {
		resp.FilesData = append(resp.FilesData, s.describeItem(it)...)
	}
	if op.State.Final() && slices.ContainsFunc(op.Items, func(it status.Item) bool { return len(it.Results) > 0 }) {
		resp.DownloadURL = s.link("/api/v1/operations/" + op.ID + "/download")
	}
	return resp
}

// describeItem returns one element for each result, or one element if there are no results.
func (s *Service) describeItem(it status.Item) []FileStatus {
	fd := FileStatus{Status: string(it.State), Progress: int(100 * it.Progress)}
	if len(it.Inputs) > 0 {
		fd.InputFileKey = it.Inputs[0].Key
	}
	if len(it.Inputs) > 1 {
		for _, in := range it.Inputs {
			fd.InputFileKeys = append(fd.InputFileKeys, in.Key)
		}
	}
	if it.State == status.Completed && len(it.Results) > 0 {
		fd.Warnings = it.Warnings
		var all []FileStatus
		for _, res := range it.Results {
			one := fd
			one.Progress = 100
			one.describeFile(res)
			one.DownloadLink = s.downloadLink(res.Key)
			all = append(all, one)
		}
		return all
	}
	if len(it.Inputs) > 0 {
		fd.describeFile(it.Inputs[0])
	}
	if it.State == status.Queued && it.Waiting != nil {
		fd.Waiting = &WaitingStatus{it.Waiting.Reason, stamp(it.Waiting.Since)}
	}
	if it.State == status.Failed && it.Error != nil {
		fd.ErrorCode, fd.ErrorMessage = it.Error.Code, it.Error.Message
	}
	return []FileStatus{fd}
}

func (fd *FileStatus) describeFile(f status.File) {
	fd.FileKey, fd.FileName, fd.MimeType, fd.Size = f.Key, f.Name, f.ContentType, &f.Size
	fd.ExpiresAt = stamp(f.Expires)
}

func (s *Service) downloadLink(key string) string { return s.link("/v1/download/" + key) }

// link returns a path of the service as responses show it.
func (s *Service) link(path string) string {
	if s.cfg.AbsoluteLinks {
		return s.cfg.BaseURL.JoinPath(path).String()
	}
	return path
}

// stamp rounds t as responses show it: UTC, whole milliseconds.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}
