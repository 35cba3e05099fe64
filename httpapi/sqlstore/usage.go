package sqlstore

import (
	"context"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

const (
	usageParts = 8
	usageKept  = 400 // days
	day        = 24 * time.Hour
)

func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

// count adds an item that finishes in t, with the given index, to its owner's usage.
// Because one transaction finishes and counts it, each item is counted exactly once.
func count(ctx context.Context, t tx, op *status.Operation, index int, it status.Item) error {
	var failed, in, out, work int64
	if it.State == status.Failed {
		failed = 1
	}
	for _, f := range it.Inputs {
		in += f.Size
	}
	for _, f := range it.Results {
		out += f.Size
	}
	if !it.Started.IsZero() {
		work = max(0, it.Finished.Sub(it.Started).Milliseconds())
	}
	return t.later(ctx, nil, `INSERT INTO usage (owner, day, action, part, items, failed, bytes_in, bytes_out, work_ms)
		VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8)
		ON CONFLICT (owner, day, action, part) DO UPDATE SET items = usage.items + 1, failed = usage.failed + excluded.failed,
			bytes_in = usage.bytes_in + excluded.bytes_in, bytes_out = usage.bytes_out + excluded.bytes_out, work_ms = usage.work_ms + excluded.work_ms`,
		op.Owner, dayOf(it.Finished), op.ActionOf(index), part(op.ID), failed, in, out, work)
}

// Usage implements [account.UsageStore].
func (db *DB) Usage(ctx context.Context, owner string, from, to time.Time) (list []account.Usage, err error) {
	err = db.each(ctx, func(row scanner) error {
		var u account.Usage
		var d, work int64
		err := row.Scan(&d, &u.Action, &u.Items, &u.Failed, &u.BytesIn, &u.BytesOut, &work)
		u.Day, u.Work = time.Unix(d*int64(day/time.Second), 0).UTC(), time.Duration(work)*time.Millisecond
		list = append(list, u)
		return err
	}, `SELECT day, action, CAST(sum(items) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(bytes_in) AS bigint), CAST(sum(bytes_out) AS bigint), CAST(sum(work_ms) AS bigint)
		FROM usage WHERE owner = $1 AND day BETWEEN $2 AND $3 GROUP BY day, action ORDER BY day, action`, owner, dayOf(from), dayOf(to))
	return list, err
}
