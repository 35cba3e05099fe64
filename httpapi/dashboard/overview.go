package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

// shownActive is the number of operations shown for each state that is not final.
const shownActive = 12

type overview struct {
	Used   *used
	Active []*operationRow
	Latest []*operationRow
	Fresh  bool // the account never had an operation
	Server *serverCard
	Week   *troubles
}

// An operationRow is an operation in a list, as its owner sees it.
type operationRow struct {
	*status.Operation
	percent int
	State   status.Condition // hides that of the operation
	Foreign bool             // of another account: no names are shown
	Done    int              // final items
	Failed  int
}

// Percent returns the progress over all steps in percent.
func (r *operationRow) Percent() int { return r.percent }

func row(op *status.Operation) *operationRow {
	r := &operationRow{Operation: op.Shown(), percent: op.Percent(), State: op.Condition()}
	if len(op.Steps) > 0 {
		var actions []string
		for _, step := range op.Steps {
			actions = append(actions, step.Action)
		}
		r.Action = strings.Join(actions, ", ") // Shown made a copy
	}
	for _, it := range r.Items {
		if it.State.Final() {
			r.Done++
		}
		if it.State == status.Failed {
			r.Failed++
		}
	}
	return r
}

// Files returns the number of input files.
func (r *operationRow) Files() (n int) {
	for _, it := range r.Items {
		n += len(it.Inputs)
	}
	return n
}

// Name returns the file name that represents the operation.
func (r *operationRow) Name() string {
	for _, it := range r.Items {
		for _, f := range it.Inputs {
			return f.Name
		}
	}
	return ""
}

// Took returns the duration of the operation, until now if it is not final.
func (r *operationRow) Took() time.Duration {
	if r.Finished.IsZero() {
		return time.Since(r.Created)
	}
	return r.Finished.Sub(r.Created)
}

// A serverCard shows administrators the state of the server.
type serverCard struct {
	Queues    []status.QueueStats
	Running   int
	Queued    int
	Engines   []httpapi.Engine
	Available int
	Sandbox   *httpapi.Sandbox
}

func (d *Dashboard) overview(v *visit) error {
	ctx := v.r.Context()
	b := overview{}
	var err error
	if b.Used, err = d.used(ctx, v.who); err != nil {
		return err
	}
	if b.Active, err = d.active(ctx, v.owner()); err != nil {
		return err
	}
	for op, err := range d.cfg.Service.Operations().List(ctx, status.Query{Owner: v.owner(), Limit: 30}) {
		if err != nil {
			return err
		}
		if op.State.Final() && len(b.Latest) < 8 {
			b.Latest = append(b.Latest, row(op))
		}
	}
	if b.Week, err = d.troubles(ctx, v.owner()); err != nil {
		return err
	}
	b.Fresh = len(b.Active) == 0 && len(b.Latest) == 0
	if v.who.Administrator {
		if b.Server, err = d.server(ctx); err != nil {
			return err
		}
	}
	return d.render(v, http.StatusOK, page{Template: "overview", Title: "Overview", Nav: "", Body: b})
}

// active returns the operations of an account that are not final, running operations first.
func (d *Dashboard) active(ctx context.Context, owner string) (all []*operationRow, err error) {
	for _, state := range []status.State{status.Running, status.Queued} {
		for op, err := range d.cfg.Service.Operations().List(ctx, status.Query{Owner: owner, State: state, Limit: shownActive}) {
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(all, func(r *operationRow) bool { return r.ID == op.ID }) { // it may have started between the two queries
				all = append(all, row(op))
			}
		}
	}
	return all, nil
}

func (d *Dashboard) server(ctx context.Context) (*serverCard, error) {
	c := &serverCard{Engines: d.cfg.Service.Engines(), Sandbox: d.cfg.Service.Sandbox()}
	queues, err := d.cfg.Service.Operations().Stats(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		c.Running += q.Running
		c.Queued += q.Queued
	}
	c.Queues = queues
	for _, e := range c.Engines {
		if e.Err == nil {
			c.Available++
		}
	}
	return c, nil
}

// used is the current use of an account with its limits.
type used struct {
	account.Used
	Limits account.Limits
	Today  account.Usage // all actions
}

func (d *Dashboard) used(ctx context.Context, who *account.Account) (*used, error) {
	now, err := d.cfg.Accounts.Used(ctx, who.Owner())
	if err != nil {
		return nil, err
	}
	u := &used{Used: now, Limits: who.Limits}
	today := time.Now()
	days, err := d.cfg.Accounts.Usage(ctx, who.Owner(), today, today)
	for _, one := range days {
		u.Today.Items += one.Items
		u.Today.Failed += one.Failed
		u.Today.BytesIn += one.BytesIn
		u.Today.BytesOut += one.BytesOut
		u.Today.Work += one.Work
	}
	return u, err
}

// A quota shows one kind of use.
type quota struct {
	Label, Value, Sub string
	Limit             int64
	Percent           int
}

func share(n, limit int64) int {
	if limit <= 0 {
		return 0
	}
	return int(min(100*float64(n)/float64(limit), 100))
}

// Quotas returns the kinds of use that can have a limit.
func (u *used) Quotas() []quota {
	bytesOf := func(label string, n, limit int64, without string) quota {
		q := quota{label, bytesText(n), without, limit, share(n, limit)}
		if limit > 0 {
			q.Sub = "of " + bytesText(limit)
		}
		return q
	}
	q := []quota{
		bytesOf("Storage", u.StoredBytes, u.Limits.StoredBytes, "files and results"),
		bytesOf("Uploaded today", u.BytesToday, u.Limits.BytesPerDay, "since midnight UTC"),
		{"Operations today", countText(u.OperationsToday), "since midnight UTC", u.Limits.OperationsPerDay, share(u.OperationsToday, u.Limits.OperationsPerDay)},
		{"Processing now", countText(u.Running), "files", int64(u.Limits.Parallel), share(int64(u.Running), int64(u.Limits.Parallel))},
	}
	if n := u.Limits.OperationsPerDay; n > 0 {
		q[2].Sub = "of " + countText(n)
	}
	if n := u.Limits.Parallel; n > 0 {
		q[3].Sub = "files, of " + countText(n) + " at once"
	}
	return q
}

// streamPause is the least time between two live updates. streamBeat is the interval of heartbeats,
// at which the session is checked again.
const (
	streamPause = time.Second
	streamBeat  = 20 * time.Second
)

// events answers GET …/events with the operations that are not final, after every change, as
// server-sent events. Pages without it poll.
func (d *Dashboard) events(v *visit) error {
	if !d.beginStream(v.owner()) {
		http.Error(v.w, "too many live updates", http.StatusServiceUnavailable)
		return nil
	}
	defer d.endStream(v.owner())
	type activity struct {
		ID       string           `json:"id"`
		State    status.Condition `json:"state"`
		Progress int              `json:"progress"`
	}
	ctx, cancel := context.WithCancel(v.r.Context())
	defer cancel()
	defer context.AfterFunc(d.closing, cancel)()
	rc := http.NewResponseController(v.w)
	defer rc.SetWriteDeadline(time.Time{})
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // prevents buffering by nginx
	send := func(text string) bool {
		rc.SetWriteDeadline(time.Now().Add(streamBeat)) // a server without deadlines for each write keeps its own
		_, err := fmt.Fprint(v.w, text)
		return err == nil && rc.Flush() == nil
	}
	var last []byte
	beat := time.Now()
	pause := time.NewTicker(streamPause)
	defer pause.Stop()
	for {
		ops, err := d.active(ctx, v.owner())
		if err != nil {
			return nil // the page reconnects
		}
		now := []activity{}
		for _, op := range ops {
			now = append(now, activity{op.ID, op.State, op.Percent()})
		}
		b, err := json.Marshal(now)
		if err != nil {
			return err
		}
		switch {
		case !bytes.Equal(b, last):
			if !send("data: " + string(b) + "\n\n") {
				return nil
			}
			last = b
		case time.Since(beat) > streamBeat:
			beat = time.Now()
			if _, err := d.cfg.Accounts.Session(ctx, v.token); err != nil || !send(": still here\n\n") {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

func (d *Dashboard) beginStream(owner string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[""] >= maxStreams || d.streams[owner] >= maxOwnStreams {
		return false
	}
	d.streams[""]++
	d.streams[owner]++
	return true
}

func (d *Dashboard) endStream(owner string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[""]--
	if d.streams[owner]--; d.streams[owner] == 0 {
		delete(d.streams, owner)
	}
}
