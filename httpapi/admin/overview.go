package admin

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/status"
)

// failuresOf is the period of the failures in the overview.
const failuresOf = 24 * time.Hour

// overview answers GET /overview.
func (a *api) overview(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	all, err := a.cfg.Accounts.List(r.Context())
	if err != nil {
		return nil, err
	}
	body := overviewBody{Accounts: len(all), Queues: []queueBody{}, Failures: []failureBody{}, Engines: []engineBody{}, Sandbox: a.svc.Sandbox()}
	stats, err := a.svc.Operations().Stats(r.Context())
	if err != nil {
		return nil, err
	}
	for _, q := range stats {
		body.Queues = append(body.Queues, queueBody{q.Queue, q.Queued, q.Running, q.Oldest.Seconds()})
	}
	failures, err := a.cfg.Operations.Failures(r.Context(), time.Now().Add(-failuresOf))
	if err != nil {
		return nil, err
	}
	for _, f := range failures {
		body.Failures = append(body.Failures, failureBody{f.Action, f.Code, f.Items})
	}
	for _, e := range a.svc.Engines() {
		b := engineBody{Name: e.Name, Version: e.Version, Available: e.Err == nil}
		if e.Err != nil {
			b.Problem = "not usable on this host"
			if e.Hint != "" {
				b.Problem = e.Hint
			}
		}
		body.Engines = append(body.Engines, b)
	}
	return body, nil
}

// listOperations answers GET /operations.
func (a *api) listOperations(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	query := status.SummaryQuery{Owner: q.Get("account"), State: status.State(q.Get("status")), Before: q.Get("cursor")}
	switch query.State {
	case "", status.Queued, status.Running, status.Completed, status.Failed:
	default:
		p := httpapi.Invalid("status", "status must be queued, running, completed or failed")
		p.Allowed = []string{"queued", "running", "completed", "failed"}
		return nil, p
	}
	limit, err := pageLimit(q)
	if err != nil {
		return nil, err
	}
	query.Limit = limit + 1 // one more, to detect a next page
	list, err := a.cfg.Operations.Summaries(r.Context(), query)
	if errors.Is(err, fs.ErrNotExist) && query.Before != "" {
		return nil, httpapi.InvalidCursor()
	}
	if err != nil {
		return nil, err
	}
	body := operationList{Operations: []operationBody{}}
	for _, s := range list {
		if len(body.Operations) == limit {
			body.NextCursor = body.Operations[limit-1].MainTaskID
			break
		}
		body.Operations = append(body.Operations, operationBody{
			MainTaskID: s.ID, Account: s.Owner, Action: s.Action, OperationStatus: string(s.State), Items: itemCount{s.Items, s.Completed, s.Failed},
			ErrorCodes: s.Codes, CreatedAt: stamp(s.Created), FinishedAt: stamp(s.Finished),
		})
	}
	return body, nil
}

// pageLimit returns the number of entries in a page of a list: the parameter limit, by default 50.
func pageLimit(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 50, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 200 {
		return 0, httpapi.Invalid("limit", "limit must be from 1 to 200")
	}
	return n, nil
}
