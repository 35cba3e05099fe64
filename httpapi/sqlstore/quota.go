package sqlstore

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/upload"
)

// A counter is a sum over several rows. The transaction that creates a counted object
// also adds to the counter, so the two cannot differ. If the owner has a limit, all
// transactions use the row of part 0 and so wait for each other before they read the
// sum. Otherwise they spread over all parts.
type counter struct {
	what   string
	add    string // adds $3 to the owner $1, in part 0 if there is a limit, else in part $2, and returns the limit
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

// count adds n for an owner, whatever the limit, and stores the limit in limit when the
// next synchronous statement or the commit is sent. id is the ID of the counted object.
func (c counter) count(ctx context.Context, t tx, owner, id string, n int64, at time.Time, limit *int64) error {
	args := []any{owner, part(id), n}
	if c.perDay {
		args = append(args, dayOf(at))
	}
	return t.later(ctx, func(row scanner) error { return row.Scan(limit) }, c.add, args...)
}

// check fails with an *account.QuotaError if the use, which includes the n just added,
// exceeds the limit.
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

// part returns the part of a counter that an object with this ID adds to.
func part(id string) int64 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int64(h.Sum32() % usageParts)
}

// held returns the number of bytes that a file counts for: its stored or declared size.
func held(f *upload.File) int64 {
	if f == nil || f.State == upload.Expired {
		return 0
	}
	return f.Size
}

// pending reports whether a file is an upload in progress.
func pending(f *upload.File) bool { return f != nil && f.State == upload.Open && f.Task == "" }

// received reports whether a file is an upload that arrived complete, without a session.
func received(f *upload.File) bool {
	return f != nil && f.State == upload.Ready && f.Task == "" && f.UploadID != ""
}

// takeFile counts a file that t changes from before to after; nil means that it does
// not exist. It refuses new uploads beyond a limit. An upload that ends without
// completion no longer counts for its day.
func takeFile(ctx context.Context, t tx, before, after *upload.File) error {
	switch {
	case before == nil && (pending(after) || received(after)):
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
		fresh.State, fresh.UploadID = upload.Ready, "" // bytes that are stored already are not refused
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
