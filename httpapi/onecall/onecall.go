// Package onecall is the whole service in one call: POST /api/v1/run/{action} takes files, runs an
// operation on them and answers with the result. It is an extension of the service.
//
//	svc, err := httpapi.New(httpapi.Config{
//		Actions:    actions,
//		Auth:       httpapi.StaticKeys(key),
//		Extensions: []func(*httpapi.Service) httpapi.Extension{onecall.New(onecall.Config{})},
//	})
//
//	curl -F file=@report.docx -F convert_to=pdf -H "Authorization: Bearer $KEY" \
//		$API/api/v1/run/convert -o report.pdf
//
// The files are uploads and the work is an operation like any other: the same quotas, limits and
// fairness apply, and both survive a crash. Once the result is delivered, the files and the results
// are deleted. The record of the operation remains for httpapi.Retention.Operations.
package onecall

import (
	"cmp"
	_ "embed"
	"net/http"
	"slices"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/status"
)

// Config configures the endpoint. The zero value is usable.
type Config struct {
	// Timeout is the longest time that a client may wait for a result, and Wait the time without
	// the parameter wait. A client that has waited as long as it may gets the ID of the operation
	// instead. 0: 10 minutes and 1 minute.
	Timeout, Wait time.Duration
}

//go:embed openapi.yaml
var document []byte

// New returns the extension for httpapi.Config.Extensions.
func New(c Config) func(*httpapi.Service) httpapi.Extension {
	c.Timeout = cmp.Or(max(c.Timeout, 0), 10*time.Minute)
	c.Wait = cmp.Or(max(c.Wait, 0), time.Minute)
	c.Wait = min(c.Wait, c.Timeout)
	return func(svc *httpapi.Service) httpapi.Extension {
		a := &api{c, svc}
		return httpapi.Extension{OpenAPI: document, Routes: []httpapi.Route{{
			Method: http.MethodPost, Path: "/api/v1/run/{action}", Handler: a.run,
			Scope: httpapi.ScopeUpload | httpapi.ScopeOperate | httpapi.ScopeRead,
		}}}
	}
}

type api struct {
	cfg Config
	svc *httpapi.Service
}

// An accepted is the body of the response to a client that has waited as long as it may.
type accepted struct {
	MainTaskID string `json:"main_task_id"`
}

// run answers POST /run/<action>.
func (a *api) run(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // the deadlines of the transfer replace it
	who, _ := httpapi.PrincipalOf(r.Context())
	c := &call{api: a, r: r, owner: who.Account}
	err := c.receive()
	if err != nil {
		// The rest of the body is not worth reading.
		w.Header().Set("Connection", "close")
	}
	var op *status.Operation
	if err == nil {
		op, err = a.svc.Submit(r, httpapi.Submission{Action: r.PathValue("action"), FileKeys: c.keys, Parameters: c.parameters, Notes: c.notes})
	}
	if err != nil {
		c.remove(nil)
		a.svc.Fail(w, r, err)
		return
	}
	id := op.ID
	op, err = a.svc.Wait(r.Context(), who.Account, id, c.wait)
	switch {
	case r.Context().Err() != nil: // the client has gone
		c.abandon(id)
		return
	case err != nil:
		c.abandon(id)
		a.svc.Fail(w, r, err)
		return
	case !op.State.Final():
		w.Header().Set("Location", a.svc.Link("/api/v1/status/"+id))
		w.Header().Set("X-Main-Task-Id", id)
		a.svc.ReplyStatus(w, http.StatusAccepted, accepted{id})
		return
	}
	if !c.keep {
		defer c.remove(op)
	}
	// The response is that of a POST, so it is always whole.
	for _, name := range []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		r.Header.Del(name)
	}
	if err := a.svc.ServeResults(w, r, op); err != nil {
		a.svc.Fail(w, r, err)
	}
	_ = rc.Flush() // the client need not wait for the deletion
}

// abandon stops an operation and deletes its files.
func (c *call) abandon(id string) { c.remove(c.svc.Abandon(c.r, c.owner, id)) }

// remove deletes the files of the call, and the results of its operation unless that is nil.
func (c *call) remove(op *status.Operation) {
	keys := slices.Concat(c.keys, c.more)
	if op != nil {
		for _, it := range op.Items {
			for _, res := range it.Results {
				keys = append(keys, res.Key)
			}
		}
	}
	c.svc.Discard(c.r, c.owner, keys)
}
