package sqlstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// An outbox wakes this process's sender when there are new deliveries.
type outbox struct {
	wake chan struct{} // holds a token if there may be new deliveries
}

func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// listening is the number of endpoints of an item's owner, as a column of a statement
// that reads the item. So it needs no statement of its own.
const listening = `(SELECT count(*) FROM webhook_endpoints w WHERE w.account = items.owner AND w.disabled_ms IS NULL)`

// An eventData is the copy of an operation from which the body of a delivery is made
// later. The operation may have been deleted by then.
type eventData struct {
	ID        string            `json:"id"`
	Owner     string            `json:"owner"`
	Action    string            `json:"action"`
	Notes     map[string]string `json:"notes,omitempty"`
	State     status.State      `json:"state"`
	Cancelled bool              `json:"cancelled,omitempty"`
	Created   time.Time         `json:"created"`
	Finished  time.Time         `json:"finished,omitzero"`
	Items     []itemData        `json:"items"`
}

type itemData struct {
	Queue      string           `json:"queue"`
	Inputs     []status.File    `json:"inputs,omitempty"`
	Results    []status.File    `json:"results,omitempty"`
	State      status.State     `json:"state"`
	Attempt    int              `json:"attempt"`
	Restarts   int              `json:"restarts,omitempty"`
	Suspicions int              `json:"suspicions,omitempty"`
	Claims     int              `json:"claims,omitempty"`
	Clean      int              `json:"-"`
	Progress   float64          `json:"progress"`
	Waiting    *status.Waiting  `json:"-"` // a final item has none
	Warnings   []status.Warning `json:"warnings,omitempty"`
	Error      *status.Error    `json:"error,omitempty"`
	Attempts   []status.Attempt `json:"-"`
	Started    time.Time        `json:"started,omitzero"`
	Finished   time.Time        `json:"finished,omitzero"`
}

// encodeEvent encodes op with the given items as an eventData.
func encodeEvent(op *status.Operation, items ...status.Item) (string, error) {
	d := eventData{
		ID: op.ID, Owner: op.Owner, Action: op.Action, Notes: op.Notes, State: op.State, Cancelled: op.Cancelled,
		Created: op.Created, Finished: op.Finished, Items: make([]itemData, len(items)),
	}
	for i, it := range items {
		d.Items[i] = itemData(it)
	}
	b, err := json.Marshal(d)
	return string(b), err
}

func decodeEvent(text string) (*status.Operation, error) {
	var d eventData
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, err
	}
	op := &status.Operation{
		ID: d.ID, Owner: d.Owner, Action: d.Action, Notes: d.Notes, State: d.State, Cancelled: d.Cancelled,
		Created: d.Created, Finished: d.Finished, Items: make([]status.Item, len(d.Items)),
	}
	for i, it := range d.Items {
		op.Items[i] = status.Item(it)
	}
	return op, nil
}

// enqueueDeliveries writes the events of t for the endpoints of op's owner. There is
// one event for each result of the finished items and for each finished item without
// results. If op is final, there is one for op, which must have all its items. Events of
// an operation of several steps have items as its owner sees them, see
// status.Operation.Shown. It reports whether it wrote any delivery.
func enqueueDeliveries(ctx context.Context, t tx, op *status.Operation, ended []status.Item, now time.Time) (any bool, err error) {
	type endpoint struct{ id, events string }
	var endpoints []endpoint
	if err := t.each(ctx, func(row scanner) error {
		var e endpoint
		err := row.Scan(&e.id, &e.events)
		endpoints = append(endpoints, e)
		return err
	}, `SELECT id, events FROM webhook_endpoints WHERE account = $1 AND disabled_ms IS NULL ORDER BY created_ms, id`, op.Owner); err != nil {
		return false, err
	}
	rows := newDeliveries(op, now)
	send := func(kind string, items ...status.Item) error {
		data := ""
		for _, e := range endpoints {
			if !wants(e.events, kind) {
				continue
			}
			if data == "" {
				if data, err = encodeEvent(op, items...); err != nil {
					return err
				}
			}
			if err := rows.add(ctx, t, e.id, kind, data); err != nil {
				return err
			}
		}
		return nil
	}
	for _, it := range ended {
		kind := webhook.FileTaskFailed
		if it.State == status.Completed {
			kind = webhook.FileTaskCompleted
		}
		for one := range results(it) {
			if err := send(kind, one); err != nil {
				return false, err
			}
		}
	}
	if op.State.Final() {
		kind := webhook.OperationFailed
		if op.State == status.Completed {
			kind = webhook.OperationCompleted
		}
		if err := send(kind, op.Shown().Items...); err != nil {
			return false, err
		}
	}
	return rows.n > 0, rows.flush(ctx, t)
}

// results yields an item once for each of its results, with only that result, or once
// unchanged if it has none.
func results(it status.Item) iter.Seq[status.Item] {
	return func(yield func(status.Item) bool) {
		if len(it.Results) < 2 {
			yield(it)
			return
		}
		for i := range it.Results {
			one := it
			one.Results = it.Results[i : i+1]
			if !yield(one) {
				return
			}
		}
	}
}

// wants reports whether a list of events, all if it is empty, contains the given one.
func wants(events, kind string) bool {
	return events == "" || strings.Contains(" "+events+" ", " "+kind+" ")
}

// deliveries collects rows so that a few statements write them all.
type deliveries struct {
	operation, account string
	trace              any
	now                int64
	args               []any
	n                  int
}

func newDeliveries(op *status.Operation, now time.Time) *deliveries {
	return &deliveries{operation: op.ID, account: op.Owner, trace: textOrNull(op.Origin.Trace), now: millis(now)}
}

const deliveryColumns, deliveryValues = `id, endpoint, account, type, operation, created_ms, state, attempts, step, token, claimed, manual, due_ms, event, trace`, 15

func (d *deliveries) add(ctx context.Context, t tx, endpoint, kind, data string) error {
	d.args = append(d.args, newDeliveryID(), endpoint, d.account, kind, d.operation, d.now, webhook.Pending, 0, 0, 0, 0, 0, d.now, data, d.trace)
	d.n++
	if len(d.args) >= 50*deliveryValues {
		return d.flush(ctx, t)
	}
	return nil
}

func (d *deliveries) flush(ctx context.Context, t tx) error {
	if len(d.args) == 0 {
		return nil
	}
	_, err := t.exec(ctx, `INSERT INTO webhook_deliveries (`+deliveryColumns+`) VALUES `+
		values(len(d.args)/deliveryValues, deliveryValues), d.args...)
	d.args = nil
	return err
}

func newDeliveryID() string { return "msg_" + rand.Text() }
