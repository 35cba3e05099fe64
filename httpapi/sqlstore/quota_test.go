package sqlstore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A store is a database that the test can also query directly.
type store struct {
	*sqlstore.DB
	again func() *sqlstore.DB // opens the database once more, like another process
	ask   func(text string) int64
}

// eachStore runs a test on both databases.
func eachStore(t *testing.T, f func(t *testing.T, s store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		f(t, store{openPath(t, path), func() *sqlstore.DB { return openPath(t, path) }, func(text string) int64 { return askSQLite(t, path, text) }})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.New(t)
		db := openURL(t, url)
		f(t, store{db, func() *sqlstore.DB { return openURL(t, url) }, func(text string) (n int64) {
			t.Helper()
			systest.NoError(t, db.Pool().QueryRow(t.Context(), text).Scan(&n))
			return n
		}})
	})
}

func askSQLite(t testing.TB, path, text string) (n int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	systest.NoError(t, err)
	defer db.Close()
	systest.NoError(t, db.QueryRow(text).Scan(&n))
	return n
}

// Sums according to the counters and to the records.
const (
	countedBytes       = `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM stored`
	recordedBytes      = `SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM files WHERE state <> 'expired'`
	countedDayBytes    = `SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM days`
	countedOperations  = `SELECT CAST(coalesce(sum(operations), 0) AS bigint) FROM days`
	recordedOperations = `SELECT count(*) FROM operations`
)

func (s store) account(t *testing.T, id string, l account.Limits) {
	t.Helper()
	systest.NoError(t, s.Accounts().Create(t.Context(), &account.Account{ID: id, Created: time.Now(), Limits: l}))
}

func quotaOperation(owner string, n int64) *status.Operation {
	return &status.Operation{ID: fmt.Sprintf("%s-%d", owner, n), Owner: owner, Action: "convert", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}
}

func quotaFile(owner string, n, size int64) *upload.File {
	return &upload.File{Key: fmt.Sprintf("%s-%d", owner, n), Owner: owner, Size: size, State: upload.Open, Created: time.Now(), Expires: time.Now().Add(time.Hour)}
}

// However many requests two processes make at the same time, exactly as many succeed as
// the limit permits. Refused requests leave nothing behind.
func TestLimits(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store) {
		ctx := t.Context()
		s.account(t, "ada", account.Limits{StoredBytes: 1000, BytesPerDay: 1500, OperationsPerDay: 30})
		s.account(t, "bob", account.Limits{})
		other := s.again()
		var ops, files, refusedOps, refusedFiles atomic.Int64
		var wg sync.WaitGroup
		for i := range int64(50) {
			db := []*sqlstore.DB{s.DB, other}[i%2]
			wg.Go(func() {
				for _, owner := range []string{"ada", "bob"} {
					_, err := db.Operations().Create(ctx, quotaOperation(owner, i))
					switch quota := (*account.QuotaError)(nil); {
					case err == nil && owner == "ada":
						ops.Add(1)
					case errors.As(err, &quota) && owner == "ada" && quota.What == "operations_per_day" && quota.Limit == 30 && quota.Used == 30 && time.Until(quota.Reset) <= 24*time.Hour:
						refusedOps.Add(1)
					case err != nil:
						t.Errorf("operation of %s: %v", owner, err)
					}
					_, err = db.Files().Create(ctx, quotaFile(owner, i, 30))
					switch quota := (*account.QuotaError)(nil); {
					case err == nil && owner == "ada":
						files.Add(1)
					case errors.As(err, &quota) && owner == "ada" && quota.What == "stored_bytes" && quota.Limit == 1000 && quota.Used == 990 && quota.Reset.IsZero():
						refusedFiles.Add(1)
					case err != nil:
						t.Errorf("file of %s: %v", owner, err)
					}
				}
			})
		}
		wg.Wait()
		if ops.Load() != 30 || refusedOps.Load() != 20 || files.Load() != 33 || refusedFiles.Load() != 17 {
			t.Errorf("%d operations, %d refused; %d files, %d refused", ops.Load(), refusedOps.Load(), files.Load(), refusedFiles.Load())
		}
		if counted, recorded := s.ask(countedOperations), s.ask(recordedOperations); counted != 80 || recorded != 80 {
			t.Errorf("%d operations are counted, %d are there", counted, recorded)
		}
		if counted, recorded := s.ask(countedBytes), s.ask(recordedBytes); counted != 83*30 || recorded != counted {
			t.Errorf("%d bytes are counted, %d are there", counted, recorded)
		}
		used, err := other.Used(ctx, "ada")
		if err != nil || used.StoredBytes != 990 || used.BytesToday != 990 || used.OperationsToday != 30 || used.Running != 0 || used.Reset.IsZero() {
			t.Errorf("used %+v, %v", used, err)
		}

		// Results count but are never refused; nor are empty files.
		result := quotaFile("ada", 1000, 500)
		result.State, result.Task = upload.Ready, "task"
		if _, err := s.Files().Create(ctx, result); err != nil {
			t.Errorf("a result: %v", err)
		}
		if _, err := s.Files().Create(ctx, quotaFile("ada", 1001, 0)); err != nil {
			t.Errorf("an empty file: %v", err)
		}
		if used, err := s.Used(ctx, "ada"); err != nil || used.StoredBytes != 1490 || used.BytesToday != 990 {
			t.Errorf("used %+v, %v", used, err)
		}
		systest.NoError(t, s.Files().Delete(ctx, result.Key))

		// A higher limit takes effect at once; then the daily limit is reached.
		if _, err := s.Accounts().Update(ctx, "ada", func(a *account.Account) error { a.Limits.StoredBytes = 1e6; return nil }); err != nil {
			t.Fatal(err)
		}
		var quota *account.QuotaError
		if _, err := other.Files().Create(ctx, quotaFile("ada", 2000, 511)); !errors.As(err, &quota) || quota.What != "bytes_per_day" || quota.Used != 990 || quota.Reset.IsZero() {
			t.Errorf("more than a day's bytes: %v", err)
		}
		if _, err := other.Files().Create(ctx, quotaFile("ada", 2001, 510)); err != nil {
			t.Errorf("the rest of the day: %v", err)
		}
		if got := s.ask(countedBytes); got != s.ask(recordedBytes) {
			t.Errorf("%d bytes are counted, %d are there", got, s.ask(recordedBytes))
		}

		// A repeated request does not count again.
		op := quotaOperation("bob", 500)
		op.IdempotencyKey = "again"
		for range 2 {
			if _, err := s.Operations().Create(ctx, op); err != nil {
				t.Fatal(err)
			}
		}
		f := quotaFile("bob", 500, 7)
		f.IdempotencyKey = "again"
		for range 2 {
			if _, err := s.Files().Create(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		if used, err := s.Used(ctx, "bob"); err != nil || used.OperationsToday != 51 || used.StoredBytes != 50*30+7 {
			t.Errorf("used %+v, %v", used, err)
		}
		days, err := s.Days(ctx, "bob", time.Now(), time.Now())
		if err != nil || len(days) != 1 || days[0].Bytes != 50*30+7 || days[0].Operations != 51 {
			t.Errorf("days %+v, %v", days, err)
		}
	})
}

// An upload counts from its start, and a completed file keeps counting. A file that
// expires or is deleted no longer counts; an unfinished session no longer counts for
// its day either.
func TestLimitsAreGivenBack(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store) {
		ctx := t.Context()
		s.account(t, "ada", account.Limits{StoredBytes: 100, BytesPerDay: 200})
		manager := func(session, file time.Duration) *upload.Manager {
			m, err := upload.NewManager(memblob.New(), &upload.Options{Store: s.Files(), SessionTTL: session, FileTTL: file, KeepExpired: time.Millisecond})
			systest.NoError(t, err)
			return m
		}
		expect := func(stored, today int64) {
			t.Helper()
			used, err := s.Used(ctx, "ada")
			if err != nil || used.StoredBytes != stored || used.BytesToday != today {
				t.Errorf("used %+v, %v; want %d and %d", used, err, stored, today)
			}
			if got := s.ask(countedBytes); got != s.ask(recordedBytes) {
				t.Errorf("%d bytes are counted, %d are there", got, s.ask(recordedBytes))
			}
		}
		begin := func(m *upload.Manager, size int64) *upload.File {
			t.Helper()
			f, _, err := m.Start(ctx, upload.Request{Owner: "ada", Name: "a.txt", ContentType: "text/plain", Size: size})
			systest.NoError(t, err)
			return f
		}
		long := manager(time.Hour, time.Hour)
		deleted := begin(long, 60)
		expect(60, 60)
		var quota *account.QuotaError
		if _, _, err := long.Start(ctx, upload.Request{Owner: "ada", Name: "b.txt", Size: 41}); !errors.As(err, &quota) {
			t.Errorf("more than is left: %v", err)
		}
		expect(60, 60)
		systest.NoError(t, long.Delete(ctx, "ada", deleted.Key))
		expect(0, 0)

		short := manager(time.Millisecond, time.Millisecond)
		begin(short, 70)
		expect(70, 70)
		sweepUntil(t, short, func() bool { return s.ask(recordedBytes) == 0 })
		expect(0, 0)
		sweepUntil(t, short, func() bool { return s.ask(`SELECT count(*) FROM files`) == 0 })
		expect(0, 0)

		// A file that was completed has used its day.
		added, err := long.Add(ctx, upload.File{Owner: "ada", Name: "c.txt", Size: 5}, strings.NewReader("hello"), "")
		systest.NoError(t, err)
		expect(5, 0)
		f := begin(long, 40)
		if _, err := s.Files().Update(ctx, f.Key, func(f *upload.File) error { f.State, f.ETag = upload.Ready, "x"; return nil }); err != nil {
			t.Fatal(err)
		}
		expect(45, 40)
		systest.NoError(t, long.Delete(ctx, "ada", f.Key))
		expect(5, 40)
		for range 2 {
			if _, err := s.Files().Update(ctx, added.Key, func(f *upload.File) error { f.State = upload.Expired; return nil }); err != nil {
				t.Fatal(err)
			}
			expect(0, 40)
		}
		systest.NoError(t, s.Files().Delete(ctx, added.Key))
		expect(0, 40)

		// So has a file that arrived without a session. It is refused beyond a limit.
		whole := func(n int) (*upload.File, error) {
			return long.Receive(ctx, upload.Request{Owner: "ada", Name: "d.txt", Size: -1}, bytes.NewReader(make([]byte, n)))
		}
		got, err := whole(50)
		systest.NoError(t, err)
		expect(50, 90)
		if _, err := whole(51); !errors.As(err, &quota) || quota.What != "stored_bytes" || quota.Used != 50 {
			t.Errorf("more than is left: %v", err)
		}
		expect(50, 90)
		systest.NoError(t, long.Delete(ctx, "ada", got.Key))
		expect(0, 90)
		if got, err = whole(100); err != nil {
			t.Fatal(err)
		}
		systest.NoError(t, long.Delete(ctx, "ada", got.Key))
		if _, err := whole(11); !errors.As(err, &quota) || quota.What != "bytes_per_day" || quota.Used != 190 {
			t.Errorf("more than is left of the day: %v", err)
		}
		expect(0, 190)
		// The rest of the test has its own day.
		if _, err := s.Accounts().Update(ctx, "ada", func(a *account.Account) error { a.Limits.BytesPerDay = 1000; return nil }); err != nil {
			t.Fatal(err)
		}

		// Files that change owners count for the new owner.
		f = begin(long, 30)
		if _, err := s.Files().Update(ctx, f.Key, func(f *upload.File) error { f.Owner, f.State = "bob", upload.Ready; return nil }); err != nil {
			t.Fatal(err)
		}
		if used, err := s.Used(ctx, "bob"); err != nil || used.StoredBytes != 30 {
			t.Errorf("used %+v, %v", used, err)
		}
		// Failed changes do not count.
		if _, err := s.Files().Update(ctx, f.Key, func(f *upload.File) error { f.Size = 1000; return errors.New("no") }); err == nil {
			t.Error("it was changed")
		}
		if got := s.ask(countedBytes); got != 30 || s.ask(recordedBytes) != 30 {
			t.Errorf("%d bytes are counted", got)
		}
		// Many files of several owners expire at the same time.
		keys := []string{f.Key}
		for i := range int64(20) {
			f := quotaFile([]string{"ada", "bob", "eve"}[i%3], i, 10+i)
			f.State = upload.Ready
			if _, err := s.Files().Create(ctx, f); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, f.Key)
		}
		for i, until := range []time.Time{time.Now().Add(3 * time.Hour), {}} { // some records are kept, some removed
			if ended, err := s.Files().Expire(ctx, keys[i*10:][:10+i], time.Now().Add(2*time.Hour), until); err != nil || len(ended) != 10+i {
				t.Errorf("Expire = %d files, %v", len(ended), err)
			}
			if counted, recorded := s.ask(countedBytes), s.ask(recordedBytes); counted != recorded || (i == 1) != (counted == 0) {
				t.Errorf("%d bytes are counted, %d recorded", counted, recorded)
			}
		}
		for _, owner := range []string{"ada", "bob", "eve"} {
			if used, err := s.Used(ctx, owner); err != nil || used.StoredBytes != 0 {
				t.Errorf("%s uses %+v, %v", owner, used, err)
			}
		}
	})
}

func sweepUntil(t *testing.T, m *upload.Manager, done func() bool) {
	t.Helper()
	systest.Until(t, "it expires", func() bool {
		if _, err := m.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return done()
	})
}

// Databases of the previous version with records in them get accounts and counters.
func TestAccountsOfOldDatabases(t *testing.T) {
	t.Parallel()
	today := time.Now().UnixMilli()
	fill := fmt.Sprintf(`
		INSERT INTO api_keys (id, name, prefix, account, hash, created_ms) VALUES
			('1', 'k', 'fw_', 'ada', HEX(%[2]s), 1000), ('2', 'k', 'fw_', 'ada', HEX(%[3]s), 2000), ('3', 'k', 'fw_', 'Bob', HEX(%[4]s), 3000);
		INSERT INTO operations (id, owner, action, state, cancelled, open_items, completed_items, fingerprint, created_ms) VALUES
			('1', 'ada', 'convert', 'queued', 0, 1, 0, '', %[1]d), ('2', 'ada', 'convert', 'queued', 0, 1, 0, '', %[1]d), ('3', 'ada', 'convert', 'failed', 0, 1, 0, '', 1000);
		INSERT INTO files (file_key, owner, name, content_type, size, state, object, upload_id, parts, etag, task, fingerprint, created_ms) VALUES
			('1', 'ada', 'a', '', 10, 'open', '', 'u', 1, '', '', '', %[1]d), ('2', 'ada', 'a', '', 20, 'ready', '', 'u', 1, 'e', '', '', %[1]d),
			('3', 'ada', 'a', '', 40, 'expired', '', 'u', 1, 'e', '', '', %[1]d), ('4', 'ada', 'a', '', 80, 'expired', '', 'u', 1, '', '', '', %[1]d),
			('5', 'Bob', 'a', '', 100, 'ready', '', '', 0, 'e', 'task', '', %[1]d), ('6', 'nobody', 'a', '', 5000000000, 'ready', '', '', 0, 'e', '', '', 1000);
		`, today, strings.Repeat("61", 32), strings.Repeat("62", 32), strings.Repeat("63", 32))
	check := func(t *testing.T, db *sqlstore.DB) {
		ctx := t.Context()
		all, err := db.Accounts().List(ctx)
		if err != nil || len(all) != 2 || all[0].ID != "ada" || all[1].ID != "Bob" || all[0].Created.UnixMilli() != 1000 {
			t.Fatalf("accounts %v, %v", all, err)
		}
		for _, a := range all {
			if a.Name != "" || a.Password != "" || a.Administrator || !a.Disabled.IsZero() || a.Limits != (account.Limits{}) {
				t.Errorf("account %+v", a)
			}
		}
		grants, err := db.Keys().Grants(ctx, [32]byte([]byte(strings.Repeat("a", 32))), [32]byte([]byte(strings.Repeat("c", 32))), [32]byte{9})
		if err != nil || len(grants) != 2 || grants[0].Scopes != "" || grants[0].Disabled || grants[0].Administrator || grants[0].Rate != 0 {
			t.Errorf("keys %+v, %v", grants, err)
		}
		for owner, want := range map[string]account.Used{
			"ada": {StoredBytes: 30, BytesToday: 70, OperationsToday: 2}, "Bob": {StoredBytes: 100}, "nobody": {StoredBytes: 5e9}, "other": {},
		} {
			u, err := db.Used(ctx, owner)
			want.Reset = u.Reset
			if err != nil || u != want {
				t.Errorf("%s uses %+v, %v; want %+v", owner, u, err, want)
			}
		}
		days, err := db.Days(ctx, "ada", time.UnixMilli(0), time.UnixMilli(today))
		if err != nil || len(days) != 2 || days[0].Operations != 1 || days[0].Bytes != 0 {
			t.Errorf("days %+v, %v", days, err)
		}
	}
	migrate := func(t *testing.T, dialect goose.Dialect, db *sql.DB) {
		t.Helper()
		defer db.Close()
		var exclude []string
		bytes := `'\x${1}'`
		if dialect == goose.DialectSQLite3 {
			exclude, bytes = []string{"00003_postgres.sql", "00070_client_postgres.sql"}, `x'${1}'`
		}
		if dialect == goose.DialectPostgres {
			exclude = []string{"00070_client_sqlite.sql"}
		}
		fill := regexp.MustCompile(`HEX\((\w+)\)`).ReplaceAllString(fill, bytes)
		p, err := goose.NewProvider(dialect, db, os.DirFS("migrations"), goose.WithExcludeNames(exclude), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
		systest.NoError(t, err)
		if _, err := p.UpTo(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "test.db")
		old, err := sql.Open("sqlite", path)
		systest.NoError(t, err)
		migrate(t, goose.DialectSQLite3, old)
		check(t, openPath(t, path))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.Empty(t)
		cfg, err := pgx.ParseConfig(url)
		systest.NoError(t, err)
		migrate(t, goose.DialectPostgres, stdlib.OpenDB(*cfg))
		check(t, openURL(t, url))
	})
}

// Of many requests for the same operation one counts, even if they arrive together.
func TestSameOperationCountsOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s store) {
		other := s.again()
		for round := range 10 {
			var wg sync.WaitGroup
			for i := range 16 {
				db := s.DB
				if i%2 == 1 {
					db = other
				}
				wg.Go(func() {
					if _, err := db.Operations().Create(t.Context(), &status.Operation{
						ID: fmt.Sprintf("%d-%d", round, i), Owner: "ada", Action: "zip", IdempotencyKey: fmt.Sprint(round), Created: time.Now(),
						Items: []status.Item{{Queue: "zip"}},
					}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if u, err := s.Used(t.Context(), "ada"); err != nil || u.OperationsToday != 10 {
			t.Errorf("%+v, %v; want 10 operations", u, err)
		}
	})
}
