package sqlstore

import (
	"context"
	"fmt"
	"path"
	"strings"
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
	if err := countGroups(ctx, t, op, it, failed, in, out, work); err != nil {
		return err
	}
	return t.later(ctx, nil, `INSERT INTO usage (owner, day, action, part, items, failed, bytes_in, bytes_out, work_ms)
		VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8)
		ON CONFLICT (owner, day, action, part) DO UPDATE SET items = usage.items + 1, failed = usage.failed + excluded.failed,
			bytes_in = usage.bytes_in + excluded.bytes_in, bytes_out = usage.bytes_out + excluded.bytes_out, work_ms = usage.work_ms + excluded.work_ms`,
		op.Owner, dayOf(it.Finished), op.ActionOf(index), part(op.ID), failed, in, out, work)
}

// countGroups is count for the groups of an item.
func countGroups(ctx context.Context, t tx, op *status.Operation, it status.Item, failed, in, out, work int64) error {
	groups := [][2]any{{string(account.UsageByKey), op.Origin.Key}, {string(account.UsageByFormat), inputFormat(it)}}
	if failed > 0 && it.Error != nil {
		groups = append(groups, [2]any{string(account.UsageByError), it.Error.Code})
	}
	args := []any{op.Owner, dayOf(it.Finished), part(op.ID), failed, in, out, work}
	var rows []string
	for _, g := range groups {
		args = append(args, g[0], g[1])
		rows = append(rows, fmt.Sprintf("($1, $%d, $2, $%d, $3, 1, $4, $5, $6, $7)", len(args)-1, len(args)))
	}
	return t.later(ctx, nil, `INSERT INTO usage_groups (owner, kind, day, value, part, items, failed, bytes_in, bytes_out, work_ms)
		VALUES `+strings.Join(rows, ", ")+`
		ON CONFLICT (owner, kind, day, value, part) DO UPDATE SET items = usage_groups.items + 1, failed = usage_groups.failed + excluded.failed,
			bytes_in = usage_groups.bytes_in + excluded.bytes_in, bytes_out = usage_groups.bytes_out + excluded.bytes_out, work_ms = usage_groups.work_ms + excluded.work_ms`, args...)
}

// maxFormat is the length of the longest extension that is a group of its own.
const maxFormat = 8

// inputFormat returns the extension of an item's first input, or "" if it has none that formats use.
// Clients choose the names of files, and must not create groups without end.
func inputFormat(it status.Item) string {
	if len(it.Inputs) == 0 {
		return ""
	}
	e := strings.ToLower(strings.TrimPrefix(path.Ext(it.Inputs[0].Name), "."))
	if len(e) > maxFormat || strings.ContainsFunc(e, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return ""
	}
	return e
}

// UsageBy implements [account.UsageStore].
func (db *DB) UsageBy(ctx context.Context, owner string, kind account.UsageKind, from, to time.Time) (list []account.Usage, err error) {
	err = db.each(ctx, func(row scanner) error {
		var u account.Usage
		var d, work int64
		err := row.Scan(&d, &u.Group, &u.Items, &u.Failed, &u.BytesIn, &u.BytesOut, &work)
		u.Day, u.Work = time.Unix(d*int64(day/time.Second), 0).UTC(), time.Duration(work)*time.Millisecond
		list = append(list, u)
		return err
	}, `SELECT day, value, CAST(sum(items) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(bytes_in) AS bigint), CAST(sum(bytes_out) AS bigint), CAST(sum(work_ms) AS bigint)
		FROM usage_groups WHERE owner = $1 AND kind = $2 AND day BETWEEN $3 AND $4 GROUP BY day, value ORDER BY day, value`, owner, string(kind), dayOf(from), dayOf(to))
	return list, err
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
