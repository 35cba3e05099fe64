package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/filewright/filewright/status"
)

// maxScanned is the number of operations that one call of History looks through.
const maxScanned = 10_000

// likeEscaper escapes the special characters of LIKE.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// A historyScan is the statement of History: the operations in order of an index, and the
// conditions on each.
type historyScan struct {
	order, direction string
	from             string   // FROM and WHERE of the scan
	filters          []string // of its rows
	args             []any
	scanned          int // number of args of from; the others are those of filters
}

func (h *historyScan) arg(v any) string {
	h.args = append(h.args, v)
	return fmt.Sprintf("$%d", len(h.args))
}

func (db *DB) historyScan(q *status.HistoryQuery) *historyScan {
	h := &historyScan{direction: "DESC"}
	var where []string
	if q.Owner != "" {
		where = append(where, "owner = "+h.arg(q.Owner))
	}
	if q.Order != status.ByTime {
		return db.sortedScan(q, h, where)
	}
	in, order, args := inState(q.Owner, q.Condition.State(), h.args)
	if q.Condition == "" || q.Condition == status.Held { // waiting operations are queued or running
		in, order, args = "", "created_ms", h.args
	}
	h.args = args
	if in != "" {
		where = append(where, strings.TrimPrefix(in, " AND "))
	}
	h.order = order
	if q.Condition == status.Held {
		where = append(where, "finished_ms IS NULL")
		h.filters = append(h.filters, isHeld)
	}
	if db.pg == nil && q.Owner == "" && (q.Condition == "") {
		h.order = "rowid" // SQLite keeps rows in insertion order, and needs no index for that
	}
	times := h.order
	if h.order == "rowid" {
		times = "created_ms"
	}
	if !q.From.IsZero() {
		where = append(where, times+" >= "+h.arg(millis(q.From)))
	}
	if !q.To.IsZero() {
		where = append(where, times+" < "+h.arg(millis(q.To)))
	}
	compare := "<"
	if q.Oldest {
		h.direction, compare = "ASC", ">"
	}
	if q.After != "" {
		// A missing operation is an error before this.
		at := "(SELECT " + h.order + " FROM operations WHERE id = " + h.arg(q.After) + ")"
		if h.order == "rowid" {
			where = append(where, "rowid "+compare+" "+at)
		} else {
			where = append(where, "("+h.order+", id) "+compare+" ("+at+", "+h.arg(q.After)+")")
		}
	}
	h.from = "FROM operations"
	if len(where) > 0 {
		h.from += " WHERE " + strings.Join(where, " AND ")
	}
	h.from += " ORDER BY " + h.order + " " + h.direction
	if h.order != "rowid" {
		h.from += ", id " + h.direction
	}
	h.filter(q)
	return h
}

// sortedScan completes h for an order other than by time: it walks the index of that order, which
// contains all operations of an owner.
func (db *DB) sortedScan(q *status.HistoryQuery, h *historyScan, where []string) *historyScan {
	compare := "<"
	if q.Oldest {
		h.direction, compare = "ASC", ">"
	}
	h.order = map[status.Order]string{status.BySize: "bytes", status.ByName: "name", status.ByDuration: durationColumn}[q.Order]
	if q.After != "" {
		at, id := "", q.After
		if c, err := status.ParseCursor(q.After); q.Order == status.ByDuration && err == nil { // History has checked it
			at, id = h.arg(c.Duration), c.ID
		} else {
			at = "(SELECT " + h.order + " FROM operations WHERE id = " + h.arg(id) + ")"
		}
		where = append(where, "("+h.order+", id) "+compare+" ("+at+", "+h.arg(id)+")")
	}
	h.from = "FROM operations WHERE " + strings.Join(where, " AND ") + " ORDER BY " + h.order + " " + h.direction + ", id " + h.direction
	h.scanned = len(h.args)
	if !q.From.IsZero() {
		h.filters = append(h.filters, "found.created_ms >= "+h.arg(millis(q.From)))
	}
	if !q.To.IsZero() {
		h.filters = append(h.filters, "found.created_ms < "+h.arg(millis(q.To)))
	}
	switch q.Condition {
	case "":
	case status.Held:
		h.filters = append(h.filters, "found.finished_ms IS NULL", isHeld)
	default:
		h.filters = append(h.filters, "found.state = "+h.arg(string(q.Condition.State())))
	}
	h.filter(q)
	return h
}

// durationColumn is the duration of an operation, as its index has it.
const durationColumn = "coalesce(finished_ms - created_ms, 9007199254740991)"

// isHeld is the condition that an operation waits for a resource.
const isHeld = `EXISTS (SELECT 1 FROM items WHERE operation = found.id AND state = 'queued' AND waiting_reason IS NOT NULL)
	AND NOT EXISTS (SELECT 1 FROM items WHERE operation = found.id AND state = 'running')`

// filter adds the conditions that no index has.
func (h *historyScan) filter(q *status.HistoryQuery) {
	h.scanned = cmp.Or(h.scanned, len(h.args))
	if q.Action != "" {
		h.filters = append(h.filters, "found.action = "+h.arg(q.Action))
	}
	if q.Key != "" {
		h.filters = append(h.filters, "found.key_id = "+h.arg(q.Key))
	}
	if q.Condition.Final() && q.Condition != "" {
		h.filters = append(h.filters, "found.condition = "+h.arg(string(q.Condition)))
	} else if q.Condition != "" && q.Condition != status.Held {
		h.filters = append(h.filters, "NOT ("+isHeld+")")
	}
	if q.Text != "" {
		h.filters = append(h.filters, "found.search LIKE "+h.arg("%"+likeEscaper.Replace(strings.ToLower(q.Text))+"%")+" ESCAPE '\\'")
	}
}

// History implements [status.History]. It walks an index, and looks through at most 10,000
// operations.
func (s *Operations) History(ctx context.Context, q status.HistoryQuery) (page status.HistoryPage, err error) {
	limit := cmp.Or(q.Limit, 50)
	if q.Owner == "" {
		q.Order = status.ByTime
	}
	if q.Order == status.ByDuration && q.After != "" {
		if _, err := status.ParseCursor(q.After); err != nil {
			return page, err
		}
	}
	h := s.db.historyScan(&q)
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		page = status.HistoryPage{}
		if q.After != "" && q.Order != status.ByDuration {
			if err := t.row(ctx, `SELECT id FROM operations WHERE id = $1`, q.After).Scan(new(string)); errors.Is(err, sql.ErrNoRows) {
				return missing("operation", q.After)
			} else if err != nil {
				return err
			}
		}
		filter := ""
		if len(h.filters) > 0 {
			filter = " WHERE " + strings.Join(h.filters, " AND ")
		}
		text := fmt.Sprintf(`SELECT %s FROM (SELECT * %s LIMIT %d) found%s LIMIT %d`, operationColumns, h.from, maxScanned, filter, limit+1)
		if filter == "" { // the planner of PostgreSQL could prefer to sort so many
			text = fmt.Sprintf(`SELECT %s %s LIMIT %d`, operationColumns, h.from, limit+1)
		}
		if err := t.each(ctx, func(row scanner) error {
			op, err := scanOperation(row)
			page.Operations = append(page.Operations, op)
			return err
		}, text, h.args...); err != nil {
			return err
		}
		if len(page.Operations) > limit {
			page.Operations = page.Operations[:limit]
			page.Next = page.Operations[limit-1].Position(q.Order)
		} else if filter != "" {
			// The scan ended at its limit if it has a row there.
			last := new(status.Operation)
			var created int64
			var finished sql.NullInt64
			err := t.row(ctx, fmt.Sprintf(`SELECT id, created_ms, finished_ms %s LIMIT 1 OFFSET %d`, h.from, maxScanned-1), h.args[:h.scanned]...).Scan(&last.ID, &created, &finished)
			if page.Scanned = err == nil; err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if page.Scanned {
				last.Created, last.Finished = timeOf(created), timeOrZero(finished)
				page.Next = last.Position(q.Order)
			}
		}
		return itemsOf(ctx, t, page.Operations)
	})
	return page, err
}

// itemsOf reads the items of operations.
func itemsOf(ctx context.Context, t tx, ops []*status.Operation) error {
	byID := make(map[string]*status.Operation)
	for chunk := range slices.Chunk(ops, 100) {
		args := make([]any, len(chunk))
		marks := make([]string, len(chunk))
		for i, op := range chunk {
			byID[op.ID], args[i], marks[i] = op, op.ID, fmt.Sprintf("$%d", i+1)
		}
		var id string
		if err := t.each(ctx, func(row scanner) error {
			it, err := scanItem(after{row, &id})
			if err == nil {
				byID[id].Items = append(byID[id].Items, it)
			}
			return err
		}, `SELECT operation, `+itemColumns+` FROM items WHERE operation IN (`+strings.Join(marks, ", ")+`) ORDER BY operation, idx`, args...); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [status.History].
func (s *Operations) Delete(ctx context.Context, owner, id string) (op *status.Operation, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if op, err = get(ctx, t, id); err != nil {
			return err
		}
		switch {
		case op.Owner != owner:
			return missing("operation", id)
		case !op.State.Final():
			return fmt.Errorf("operation %q: %w", id, status.ErrNotFinal)
		}
		_, err = t.exec(ctx, `DELETE FROM operations WHERE id = $1`, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.db.cache.drop(id)
	s.db.changed(id, true)
	return op, nil
}

var _ status.History = (*Operations)(nil)
