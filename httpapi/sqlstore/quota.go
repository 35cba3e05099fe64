package sqlstore

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/upload"
)

// A counter is a sum in several rows. The transaction that makes what is counted
// adds to it, so that they cannot differ. Where there is a limit the row of part 0 is
// what everybody waits for before looking at the sum; else any part will do.
type counter struct {
	what   string
	add    string // adds $3 to a row for the owner $1, in part $2 or else 0, and returns the limit
	sum    string
	perDay bool
}

// The counters. Statements are the same for both databases; the conditions "WHERE
// true" tell SQLite where ON CONFLICT belongs.
var (
	storedBytes = counter{
		what: "stored_bytes",
		add: `INSERT INTO stored (owner, part, bytes)
			SELECT CAST($1 AS text), CASE WHEN (SELECT max_stored FROM accounts WHERE id = $1) > 0 THEN 0 ELSE CAST($2 AS bigint) END, CAST($3 AS bigint) WHERE true
			ON CONFLICT (owner, part) DO UPDATE SET bytes = stored.bytes + excluded.bytes
			RETURNING coalesce((SELECT max_stored FROM accounts WHERE id = $1), 0)`,
		sum: `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM stored WHERE owner = $1`,
	}
	bytesPerDay = counter{
		what: "bytes_per_day", perDay: true,
		add: `INSERT INTO days (owner, part, bytes, day, operations)
			SELECT CAST($1 AS text), CASE WHEN (SELECT max_bytes FROM accounts WHERE id = $1) > 0 THEN 0 ELSE CAST($2 AS bigint) END, CAST($3 AS bigint), CAST($4 AS bigint), 0 WHERE true
			ON CONFLICT (owner, day, part) DO UPDATE SET bytes = days.bytes + excluded.bytes
			RETURNING coalesce((SELECT max_bytes FROM accounts WHERE id = $1), 0)`,
		sum: `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM days WHERE owner = $1 AND day = $2`,
	}
	operationsPerDay = counter{
		what: "operations_per_day", perDay: true,
		add: `INSERT INTO days (owner, part, operations, day, bytes)
			SELECT CAST($1 AS text), CASE WHEN (SELECT max_operations FROM accounts WHERE id = $1) > 0 THEN 0 ELSE CAST($2 AS bigint) END, CAST($3 AS bigint), CAST($4 AS bigint), 0 WHERE true
			ON CONFLICT (owner, day, part) DO UPDATE SET operations = days.operations + excluded.operations
			RETURNING coalesce((SELECT max_operations FROM accounts WHERE id = $1), 0)`,
		sum: `SELECT CAST(coalesce(sum(operations), 0) AS bigint) FROM days WHERE owner = $1 AND day = $2`,
	}
)

// count adds n for an owner, whatever the limit is, and stores that in limit, with the
// next statement that is waited for, or the commit. id is that of what is counted.
func (c counter) count(ctx context.Context, t tx, owner, id string, n int64, at time.Time, limit *int64) error {
	args := []any{owner, part(id), n}
	if c.perDay {
		args = append(args, dayOf(at))
	}
	return t.later(ctx, func(row scanner) error { return row.Scan(limit) }, c.add, args...)
}

// check fails if more than a limit is used, of which n was added just now.
func (c counter) check(ctx context.Context, t tx, owner string, n int64, at time.Time, limit int64) error {
	if limit <= 0 {
		return nil
	}
	args := []any{owner}
	e := &account.QuotaError{What: c.what, Limit: limit}
	if c.perDay {
		args = append(args, dayOf(at))
		e.Reset = time.Unix((dayOf(at)+1)*int64(day/time.Second), 0).UTC()
	}
	var used int64
	if err := t.row(ctx, c.sum, args...).Scan(&used); err != nil {
		return err
	}
	if used > limit {
		e.Used = used - n
		return e
	}
	return nil
}

// part returns the row of a sum that something is counted in.
func part(id string) int64 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int64(h.Sum32() % usageParts)
}

// held returns how many bytes a file counts for: those that are there, or announced.
func held(f *upload.File) int64 {
	if f == nil || f.State == upload.Expired {
		return 0
	}
	return f.Size
}

// pending reports whether a file is an upload that has begun and not ended.
func pending(f *upload.File) bool { return f != nil && f.State == upload.Open && f.Task == "" }

// takeFile counts a file that changes in t from one state to another; nil is not
// there. Uploads that begin are refused if a limit does not permit them, and give back
// the bytes of their day if they end without having been completed.
func takeFile(ctx context.Context, t tx, before, after *upload.File) error {
	switch {
	case before == nil && pending(after):
		if after.Size == 0 {
			return nil
		}
		counters := []counter{storedBytes, bytesPerDay}
		limits := make([]int64, len(counters))
		for i, c := range counters {
			if err := c.count(ctx, t, after.Owner, after.Key, after.Size, after.Created, &limits[i]); err != nil {
				return err
			}
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		for i, c := range counters {
			if err := c.check(ctx, t, after.Owner, after.Size, after.Created, limits[i]); err != nil {
				return err
			}
		}
		return nil
	case before != nil && after != nil && before.Owner != after.Owner:
		if err := takeFile(ctx, t, before, nil); err != nil {
			return err
		}
		fresh := *after
		fresh.State = upload.Ready // what is there already is not refused
		return takeFile(ctx, t, nil, &fresh)
	}
	either := before
	if either == nil {
		either = after
	}
	if n := held(after) - held(before); n != 0 {
		if err := storedBytes.count(ctx, t, either.Owner, either.Key, n, either.Created, new(int64)); err != nil {
			return err
		}
	}
	if pending(before) && before.Size != 0 && held(after) == 0 {
		return bytesPerDay.count(ctx, t, before.Owner, before.Key, -before.Size, before.Created, new(int64))
	}
	return nil
}

// Used implements [account.UsageStore].
func (db *DB) Used(ctx context.Context, owner string) (u account.Used, err error) {
	today := dayOf(db.engine.now())
	u.Reset = time.Unix((today+1)*int64(day/time.Second), 0).UTC()
	err = db.each(ctx, func(row scanner) error {
		return row.Scan(&u.StoredBytes, &u.BytesToday, &u.OperationsToday, &u.Running)
	}, `SELECT (SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM stored WHERE owner = $1),
			(SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM days WHERE owner = $1 AND day = $2),
			(SELECT CAST(coalesce(sum(operations), 0) AS bigint) FROM days WHERE owner = $1 AND day = $2),
			(SELECT count(*) FROM items WHERE owner = $1 AND worker IS NOT NULL AND state = 'running')`, owner, today)
	return u, err
}

// Days implements [account.UsageStore].
func (db *DB) Days(ctx context.Context, owner string, from, to time.Time) (list []account.Day, err error) {
	err = db.each(ctx, func(row scanner) error {
		var d account.Day
		var n int64
		err := row.Scan(&n, &d.Bytes, &d.Operations)
		d.Day = time.Unix(n*int64(day/time.Second), 0).UTC()
		list = append(list, d)
		return err
	}, `SELECT day, CAST(sum(bytes) AS bigint), CAST(sum(operations) AS bigint) FROM days
		WHERE owner = $1 AND day BETWEEN $2 AND $3 GROUP BY day HAVING sum(bytes) > 0 OR sum(operations) > 0 ORDER BY day`, owner, dayOf(from), dayOf(to))
	return list, err
}
