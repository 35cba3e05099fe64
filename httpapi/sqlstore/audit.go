package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

// Audit is an [account.AuditStore]. All stores of the database also store the entries of
// [account.WithAudit], in the transaction of the change.
type Audit struct{ db *DB }

// Audit returns the audit log of the database.
func (db *DB) Audit() *Audit { return &Audit{db} }

const auditColumns = `id, at_ms, account, login, key_id, actor, address, action, object, name, detail, refused`

func addAudit(ctx context.Context, t tx, e *account.AuditEntry) error {
	e.ID = strings.ToLower(rand.Text())
	who := e.Actor
	args := []any{
		e.ID, millis(e.Time), e.Account, who.Login, who.Key, who.Name, who.Address, e.Action, e.Object, e.Name, e.Detail, number(e.Refused),
		strings.ToLower(strings.Join([]string{who.Name, who.Login, who.Key, who.Address}, "\n")),
	}
	_, err := t.exec(ctx, `INSERT INTO audit (`+auditColumns+`, search) VALUES `+values(1, len(args)), args...)
	return err
}

func scanAudit(row scanner) (e account.AuditEntry, err error) {
	var at int64
	err = row.Scan(&e.ID, &at, &e.Account, &e.Actor.Login, &e.Actor.Key, &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Object, &e.Name, &e.Detail, (*flag)(&e.Refused))
	e.Time = timeOf(at)
	return e, err
}

// audited returns f, which also stores the entry of its context; done records that it was committed.
func audited(ctx context.Context, f func(context.Context, tx) error) (with func(context.Context, tx) error, done func()) {
	p := account.AuditOf(ctx)
	if p == nil {
		return f, func() {}
	}
	return func(ctx context.Context, t tx) error {
		if err := f(ctx, t); err != nil {
			return err
		}
		return addAudit(ctx, t, p.Entry)
	}, p.Done
}

// Record implements [account.AuditStore].
func (s *Audit) Record(ctx context.Context, e *account.AuditEntry) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error { return addAudit(ctx, t, e) })
}

// auditCursor returns the cursor of the entries after e.
func auditCursor(e account.AuditEntry) string { return fmt.Sprintf("%d.%s", millis(e.Time), e.ID) }

// Entries implements [account.AuditStore]. It walks an index, and looks through at most 10,000
// entries.
func (s *Audit) Entries(ctx context.Context, q account.AuditQuery) (page account.AuditPage, err error) {
	limit := cmp.Or(q.Limit, 50)
	var where, filters []string
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	if q.Account != "" {
		where = append(where, "account = "+arg(q.Account))
	}
	if !q.From.IsZero() {
		where = append(where, "at_ms >= "+arg(millis(q.From)))
	}
	if !q.To.IsZero() {
		where = append(where, "at_ms < "+arg(millis(q.To)))
	}
	if q.After != "" {
		ms, id, ok := strings.Cut(q.After, ".")
		at, err := strconv.ParseInt(ms, 10, 64)
		if !ok || err != nil {
			return page, missing("audit entry", q.After)
		}
		where = append(where, "(at_ms, id) < ("+arg(at)+", "+arg(id)+")")
	}
	from := "FROM audit"
	if len(where) > 0 {
		from += " WHERE " + strings.Join(where, " AND ")
	}
	from += " ORDER BY at_ms DESC, id DESC"
	scanned := len(args)
	if q.Action != "" {
		filters = append(filters, "action = "+arg(q.Action))
	}
	if q.System {
		filters = append(filters, "login = '' AND key_id = '' AND address = ''")
	}
	if q.Who != "" {
		filters = append(filters, "search LIKE "+arg("%"+likeEscaper.Replace(strings.ToLower(q.Who))+"%")+` ESCAPE '\'`)
	}
	text := fmt.Sprintf(`SELECT %s %s LIMIT %d`, auditColumns, from, limit+1)
	if len(filters) > 0 {
		text = fmt.Sprintf(`SELECT %s FROM (SELECT * %s LIMIT %d) found WHERE %s ORDER BY at_ms DESC, id DESC LIMIT %d`, auditColumns, from, maxScanned, strings.Join(filters, " AND "), limit+1)
	}
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		page = account.AuditPage{}
		if err := t.each(ctx, func(row scanner) error {
			e, err := scanAudit(row)
			page.Entries = append(page.Entries, e)
			return err
		}, text, args...); err != nil {
			return err
		}
		if len(page.Entries) > limit {
			page.Entries = page.Entries[:limit]
			page.Next = auditCursor(page.Entries[limit-1])
			return nil
		}
		if len(filters) == 0 {
			return nil
		}
		// The scan ended at its limit if it has a row there.
		last, err := scanAudit(t.row(ctx, fmt.Sprintf(`SELECT %s %s LIMIT 1 OFFSET %d`, auditColumns, from, maxScanned-1), args[:scanned]...))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		page.Next, page.Scanned = auditCursor(last), true
		return err
	})
	return page, err
}

// DeleteBefore implements [account.AuditStore].
func (s *Audit) DeleteBefore(ctx context.Context, at time.Time, limit int) (n int, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		last := millis(at) - 1
		err := t.row(ctx, fmt.Sprintf(`SELECT at_ms FROM audit WHERE at_ms <= $1 ORDER BY at_ms, id LIMIT 1 OFFSET %d`, limit-1), last).Scan(&last)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		rows, err := t.exec(ctx, `DELETE FROM audit WHERE at_ms <= $1`, last)
		n = int(rows)
		return err
	})
	return n, err
}

var _ account.AuditStore = (*Audit)(nil)
