package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/filewright/filewright/status"
)

// Summaries returns operations of all owners, newest first. If the operation Before
// does not exist, the error matches fs.ErrNotExist.
func (db *DB) Summaries(ctx context.Context, q status.SummaryQuery) (list []status.Summary, err error) {
	before := int64(1) << 62
	where, args := "", []any{before, q.Before, cmp.Or(q.Limit, 50)}
	if q.Owner != "" { // a separate text, so that the index is used
		where, args = " AND owner = $4", append(args, q.Owner)
	}
	in, order, args := inState(q.Owner, q.State, args)
	last := "(" + order + ", id) < ($1, $2)"
	if db.pg == nil && q.Owner == "" && q.State == "" {
		// SQLite keeps rows in insertion order, and needs no index for that.
		order, last = "rowid", "rowid < $1 AND $2 = $2"
	}
	err = db.view(ctx, func(ctx context.Context, t tx) error {
		if q.Before != "" {
			err := t.row(ctx, `SELECT `+order+` FROM operations WHERE id = $1`, q.Before).Scan(&before)
			if errors.Is(err, sql.ErrNoRows) {
				return missing("operation", q.Before)
			}
			if err != nil {
				return err
			}
		}
		args[0] = before
		if err := t.each(ctx, func(row scanner) error {
			var s status.Summary
			var created int64
			var finished sql.NullInt64
			err := row.Scan(&s.ID, &s.Owner, &s.Action, &s.State, &created, &finished)
			s.Created, s.Finished = timeOf(created), timeOrZero(finished)
			list = append(list, s)
			return err
		}, `SELECT id, owner, action, state, created_ms, finished_ms FROM operations
			WHERE `+last+where+in+`
			ORDER BY `+order+` DESC, id DESC LIMIT $3`, args...); err != nil {
			return err
		}
		for i := range list {
			s := &list[i]
			if err := t.each(ctx, func(row scanner) error {
				it, err := scanItem(row)
				s.Items++
				switch it.State {
				case status.Completed:
					s.Completed++
				case status.Failed:
					s.Failed++
				}
				if it.Error != nil && !slices.Contains(s.Codes, it.Error.Code) {
					s.Codes = append(s.Codes, it.Error.Code)
				}
				return err
			}, selectItems, s.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// maxFailures is the maximum number of items that Failures reads.
const maxFailures = 10000

// Failures counts the error codes of items that failed since the given time, most
// frequent first. It reads at most the 10000 latest failures.
func (db *DB) Failures(ctx context.Context, since time.Time) (list []status.FailureCount, err error) {
	counts := make(map[status.FailureCount]int)
	err = db.each(ctx, func(row scanner) error {
		var f status.FailureCount
		var text sql.NullString
		if err := row.Scan(&f.Action, &text); err != nil {
			return err
		}
		var e status.Error
		if err := fromJSON(text, &e); err != nil {
			return err
		}
		f.Code = e.Code
		counts[f]++
		return nil
	}, `SELECT o.action, i.error FROM items i CROSS JOIN operations o
		WHERE i.state = 'failed' AND i.finished_ms >= $1 AND o.id = i.operation
		ORDER BY i.finished_ms DESC LIMIT $2`, millis(since), maxFailures)
	for f, n := range counts {
		f.Items = n
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b status.FailureCount) int {
		return cmp.Or(b.Items-a.Items, cmp.Compare(a.Action, b.Action), cmp.Compare(a.Code, b.Code))
	})
	return list, err
}
