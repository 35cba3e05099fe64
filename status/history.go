package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Condition is the state of an operation as people want to know it. It says more than
// a [State].
type Condition string

// The conditions of an operation. Those from Succeeded on are final.
const (
	Enqueued  Condition = "queued"
	Active    Condition = "running"
	Held      Condition = "waiting"   // a resource is missing; see Item.Waiting
	Succeeded Condition = "completed" // nothing was lost
	Warned    Condition = "warnings"  // completed, but some result has a warning
	Partial   Condition = "partial"   // completed, but some item failed
	Broken    Condition = "failed"
	Stopped   Condition = "cancelled"
)

// Conditions returns all conditions.
func Conditions() []Condition {
	return []Condition{Enqueued, Active, Held, Succeeded, Warned, Partial, Broken, Stopped}
}

// Final reports whether an operation in this condition never changes.
func (c Condition) Final() bool { return c != Enqueued && c != Active && c != Held }

// State returns the state of the operations in a condition: Running for Held, although
// an operation of which no item has run is Queued.
func (c Condition) State() State {
	switch c {
	case Enqueued:
		return Queued
	case Active, Held:
		return Running
	case Broken, Stopped:
		return Failed
	}
	return Completed
}

// Condition returns the condition of op, from its state and its items.
func (op *Operation) Condition() Condition {
	has := func(f func(Item) bool) bool { return slices.ContainsFunc(op.Items, f) }
	switch {
	case !op.State.Final():
		waits := has(func(it Item) bool { return it.State == Queued && it.Waiting != nil })
		if waits && !has(func(it Item) bool { return it.State == Running }) {
			return Held
		}
		return Condition(op.State)
	case op.State == Failed && op.Cancelled:
		return Stopped
	case op.State == Failed:
		return Broken
	case has(func(it Item) bool { return it.State == Failed }):
		return Partial
	case has(func(it Item) bool { return len(it.Warnings) > 0 }):
		return Warned
	}
	return Succeeded
}

// An Asked is what a request asked for, for people. It has no secrets.
type Asked struct {
	Parameters map[string]any `json:"parameters,omitempty"`
	Secret     []string       `json:"secret,omitempty"` // names of the parameters that are left out
}

// An Attempt is a finished run of an item.
type Attempt struct {
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Node    string    `json:"node,omitempty"`   // process that ran it
	Engine  string    `json:"engine,omitempty"` // program or library, with its version if known
	Code    string    `json:"code,omitempty"`   // of its error, or why it was postponed; "": success
	Log     []LogLine `json:"log,omitempty"`
}

// A LogLine is a line of the log of an [Attempt]. It has neither secrets nor paths.
type LogLine struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"` // "info", "warn" or "error"
	Text  string    `json:"text"`
}

// maxRecorded is the number of attempts that an item keeps: the latest.
const maxRecorded = 10

// record returns the attempts of an item after another one.
func (o Outcome) record(it Item, code string, now time.Time) []Attempt {
	a := Attempt{Started: it.Started, Ended: now, Node: o.Node, Engine: o.Engine, Code: code, Log: o.Log}
	list := append(slices.Clone(it.Attempts), a)
	list = list[max(0, len(list)-maxRecorded):]
	left := maxLogBytes
	for i := range slices.Backward(list) {
		list[i].Log, left = shorten(list[i].Log, left)
	}
	return list
}

// maxLogBytes bounds the texts of the log lines of an item.
const maxLogBytes = 2 << 10

// shorten returns the first lines that have at most left bytes of text together, and how
// many bytes are left then. If lines are missing, nothing is left.
func shorten(lines []LogLine, left int) ([]LogLine, int) {
	for i, l := range lines {
		if left -= len(l.Text); left < 0 {
			return slices.Clone(lines[:i]), 0
		}
	}
	return slices.Clone(lines), left
}

// An Order is an order of operations. Equal ones are in the order of their IDs.
type Order string

// The orders of operations.
const (
	ByTime     Order = ""         // Created
	BySize     Order = "size"     // Operation.InputBytes
	ByDuration Order = "duration" // until Finished; operations that are not final count as the longest
	ByName     Order = "name"     // SortName
)

// InputBytes returns the size of all input files.
func (op *Operation) InputBytes() (n int64) {
	items, _ := op.ItemsOf(0)
	for _, it := range items {
		for _, f := range it.Inputs {
			n += f.Size
		}
	}
	return n
}

// SortName returns the name of the first input file for [ByName]: in lower case, and at
// most 100 bytes long.
func SortName(op *Operation) string {
	const longest = 100
	for _, it := range op.Items {
		for _, f := range it.Inputs {
			name := strings.ToLower(f.Name)
			return strings.ToValidUTF8(strings.ReplaceAll(name[:min(len(name), longest)], "\x00", " "), "")
		}
	}
	return ""
}

// longest is the duration in milliseconds of operations that are not final, for ByDuration. It is
// exact as a floating-point number.
const longest = 1<<53 - 1

// duration returns the duration of op for ByDuration, in milliseconds.
func (op *Operation) duration() int64 {
	if op.Finished.IsZero() {
		return longest
	}
	return op.Finished.UnixMilli() - op.Created.UnixMilli()
}

// A Cursor is a position in the order ByDuration: that of an operation when it was listed, because
// a running operation has another position later.
type Cursor struct {
	Duration int64
	ID       string
}

// String returns the cursor as HistoryPage.Next.
func (c Cursor) String() string { return fmt.Sprintf("%d.%s", c.Duration, c.ID) }

// ParseCursor parses a HistoryPage.Next. Its error matches fs.ErrNotExist.
func ParseCursor(text string) (c Cursor, err error) {
	number, id, _ := strings.Cut(text, ".")
	if c.Duration, err = strconv.ParseInt(number, 10, 64); err != nil || id == "" {
		return c, fmt.Errorf("position %q: %w", text, fs.ErrNotExist)
	}
	c.ID = id
	return c, nil
}

// A HistoryQuery selects operations. Empty fields select all.
type HistoryQuery struct {
	Owner     string
	Text      string // part of the ID, of a file name or of a note, without regard to case
	Action    string
	Key       string // Origin.Key
	Condition Condition
	From, To  time.Time // Created, From included

	Order  Order  // needs Owner; without it, the order is ByTime
	Oldest bool   // ascending: oldest, smallest, shortest or first name first
	After  string // HistoryPage.Next of the page before
	Limit  int    // 0: 50
}

// Position returns the position of op in an order, as HistoryPage.Next.
func (op *Operation) Position(o Order) string {
	if o == ByDuration {
		return Cursor{op.duration(), op.ID}.String()
	}
	return op.ID
}

// A HistoryPage is a part of the operations that a [HistoryQuery] selects.
type HistoryPage struct {
	Operations []*Operation

	// Next continues the list; "": there is no more. If Scanned, the store has looked
	// through as many operations as one call may, and there may be fewer than Limit.
	Next    string
	Scanned bool
}

// ErrNotFinal reports that an operation is still queued or running.
var ErrNotFinal = errors.New("the operation is not finished")

// A History is a [Store] that can search and forget operations. Package statustest tests
// it if a store implements it.
type History interface {
	// History returns operations in the order of q, descending unless q.Oldest is set: newest first.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)

	// Delete removes a final operation and returns it. It fails with ErrNotFinal, or an
	// error that matches fs.ErrNotExist if owner has no such operation.
	Delete(ctx context.Context, owner, id string) (*Operation, error)
}

// SearchText returns the text in which a [HistoryQuery] looks for its Text: lower-case,
// and at most 4 KiB long.
func SearchText(op *Operation) string {
	var b strings.Builder
	b.WriteString(op.ID)
	for _, it := range op.Items {
		for _, f := range it.Inputs {
			b.WriteString("\n" + f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(op.Notes)) {
		b.WriteString("\n" + name + " " + op.Notes[name])
	}
	const most = 4096
	text := strings.ToLower(b.String())
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), most)], "\x00", " "), "")
}

// matches reports whether q selects an operation, without regard to Owner.
func (q *HistoryQuery) matches(op *Operation) bool {
	return (q.Action == "" || op.Action == q.Action) && (q.Key == "" || op.Origin.Key == q.Key) &&
		(q.From.IsZero() || !op.Created.Before(q.From)) && (q.To.IsZero() || op.Created.Before(q.To)) &&
		(q.Condition == "" || op.Condition() == q.Condition) &&
		(q.Text == "" || strings.Contains(SearchText(op), strings.ToLower(q.Text)))
}

// History implements [History].
func (s *MemStore) History(_ context.Context, q HistoryQuery) (page HistoryPage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*memOp
	for _, m := range s.ops {
		if (q.Owner == "" || m.op.Owner == q.Owner) && q.matches(&m.op) {
			all = append(all, m)
		}
	}
	sign := -1
	if q.Oldest {
		sign = 1
	}
	if q.Owner == "" {
		q.Order = ByTime
	}
	compare := func(x, y *memOp) (c int) {
		switch q.Order {
		case BySize:
			c = cmp.Compare(x.op.InputBytes(), y.op.InputBytes())
		case ByDuration:
			c = cmp.Compare(x.op.duration(), y.op.duration())
		case ByName:
			c = cmp.Compare(SortName(&x.op), SortName(&y.op))
		default:
			c = x.op.Created.Compare(y.op.Created)
		}
		return sign * cmp.Or(c, cmp.Compare(x.op.ID, y.op.ID))
	}
	slices.SortFunc(all, compare)
	if q.After != "" && q.Order == ByDuration {
		c, err := ParseCursor(q.After)
		if err != nil {
			return page, err
		}
		all = slices.DeleteFunc(all, func(m *memOp) bool {
			return sign*cmp.Or(cmp.Compare(m.op.duration(), c.Duration), cmp.Compare(m.op.ID, c.ID)) <= 0
		})
	} else if q.After != "" {
		at := s.ops[q.After]
		if at == nil {
			return page, missing(q.After)
		}
		all = slices.DeleteFunc(all, func(m *memOp) bool { return compare(m, at) <= 0 })
	}
	for _, m := range all {
		if len(page.Operations) == cmp.Or(q.Limit, 50) {
			page.Next = page.Operations[len(page.Operations)-1].Position(q.Order)
			break
		}
		page.Operations = append(page.Operations, m.op.Clone())
	}
	return page, nil
}

// Delete implements [History].
func (s *MemStore) Delete(_ context.Context, owner, id string) (*Operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.ops[id]
	if m == nil || m.op.Owner != owner {
		return nil, missing(id)
	}
	if !m.op.State.Final() {
		return nil, fmt.Errorf("operation %q: %w", id, ErrNotFinal)
	}
	s.remove(m)
	return m.op.Clone(), nil
}

// History returns operations of the store, which must implement [History]; otherwise the
// error matches errors.ErrUnsupported.
func (t *Tracker) History(ctx context.Context, q HistoryQuery) (HistoryPage, error) {
	h, ok := t.cfg.Store.(History)
	if !ok {
		return HistoryPage{}, fmt.Errorf("the store cannot search operations: %w", errors.ErrUnsupported)
	}
	page, err := h.History(ctx, q)
	for _, op := range page.Operations {
		raise(op, t.progress(op.ID))
	}
	return page, err
}

// Delete removes a final operation; see [History].
func (t *Tracker) Delete(ctx context.Context, owner, id string) (*Operation, error) {
	h, ok := t.cfg.Store.(History)
	if !ok {
		return nil, fmt.Errorf("the store cannot delete operations: %w", errors.ErrUnsupported)
	}
	return h.Delete(ctx, owner, id)
}

var _ interface {
	Store
	History
} = (*MemStore)(nil)
