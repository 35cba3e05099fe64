package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// sqlite runs a statement on a database file without using the package.
func sqlite(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	systest.NoError(t, err)
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("path of all kinds", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "new dir", "a b%20?#&ü.db")
		db := openPath(t, path)
		systest.Check(t, db.Ping(t.Context()))
		info, err := os.Stat(path)
		systest.NoError(t, err)
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
			t.Errorf("file may be used with mode %v, want 0600", mode)
		}
	})
	t.Run("no path", func(t *testing.T) {
		t.Parallel()
		if _, err := sqlstore.Open(t.Context(), sqlstore.Options{}); err == nil {
			t.Error("opened")
		}
	})
	t.Run("not a database", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x")
		systest.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600))
		if _, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path}); err == nil {
			t.Error("opened")
		}
	})
	t.Run("newer schema", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x.db")
		systest.NoError(t, openPath(t, path).Close())
		sqlite(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
		_, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
		if !errors.Is(err, sqlstore.ErrNewer) || !strings.Contains(err.Error(), "99999") {
			t.Errorf("error is %v, want ErrNewer", err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x.db")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if _, err := db.SetSettingOnce(t.Context(), fmt.Sprint(i), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		db := open(t)
		systest.NoError(t, db.Close())
		if err := db.Ping(t.Context()); err == nil {
			t.Error("a closed database answers")
		}
	})
}

// A lock that the child of a killed server still holds for a moment does not keep the
// next server from starting.
func TestLockWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := sqlstore.LockFile(t.Context(), path)
	systest.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		second, err := sqlstore.LockFile(t.Context(), path)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the lock is held twice: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	first.Close()
	systest.Check(t, <-got)
}

func TestExclusive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	first, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path, Exclusive: true})
	systest.NoError(t, err)
	if _, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path, Exclusive: true}); !errors.Is(err, sqlstore.ErrLocked) {
		t.Errorf("error is %v, want ErrLocked", err)
	}

	// A command can write while the server runs, and the server sees it.
	second := openPath(t, path)
	systest.Check(t, second.Keys().Create(t.Context(), &account.Key{ID: "k", Hash: [32]byte{1}, Created: time.Now()}))
	if _, err := byHash(t, first.Keys(), [32]byte{1}); err != nil {
		t.Error(err)
	}
	systest.NoError(t, first.Close())
	third, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path, Exclusive: true})
	systest.NoError(t, err)
	systest.Check(t, third.Close())
}

func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openPath(t, path)
	op := benchOperation()
	if _, err := db.Operations().Create(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, db.Close())
	got, err := openPath(t, path).Operations().Get(t.Context(), op.ID)
	systest.NoError(t, err)
	if !bytes.Equal(got.Args, op.Args) || len(got.Items) != len(op.Items) {
		t.Errorf("operation is %+v, want %+v", got, op)
	}
}

// TestErased searches the database files for the parameters of a final operation.
func TestErased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openPath(t, filepath.Join(dir, "x.db"))
	s := db.Operations()
	var kept []byte
	for _, size := range []int{1, 100, 1000} { // within a page, over several, over many
		op := benchOperation()
		op.Items = op.Items[:1]
		op.Args = bytes.Repeat([]byte(fmt.Sprintf("secret-%d.", size)), size)
		if _, err := s.Create(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		kept = op.Args
		op.ID += "-kept"
		op.Args = bytes.ReplaceAll(op.Args, []byte("secret"), []byte("public"))
		if _, err := s.Create(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(t.Context(), status.Ref{Operation: strings.TrimSuffix(op.ID, "-kept")}, "w", time.Minute)
		systest.NoError(t, err)
		if !bytes.Equal(c.Op.Args, kept) {
			t.Fatalf("the claim has %d bytes of parameters, want %d", len(c.Op.Args), len(kept))
		}
		if _, err := s.Finish(t.Context(), c, status.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DeleteFinished(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	var all []byte
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	systest.NoError(t, err)
	for _, f := range files {
		b := systest.ReadFile(t, f)
		all = append(all, b...)
	}
	if !bytes.Contains(all, []byte("public-1000.")) {
		t.Error("what was not erased is not there either")
	}
	if n := bytes.Count(all, []byte("secret-")); n > 0 {
		t.Errorf("erased parameters are in the files %d times", n)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := db.Operations()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	first := benchOperation()
	if _, err := s.Create(ctx, first); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Create(t.Context(), benchOperation()); err != nil {
				t.Error(err)
			}
		}
	})
	path := filepath.Join(t.TempDir(), "copy of it.db")
	systest.Check(t, db.Backup(t.Context(), path))
	cancel()
	wg.Wait()
	if err := db.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error is %v, want one that matches fs.ErrExist", err)
	}
	if _, err := openPath(t, path).Operations().Get(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	testSettings(t, open(t))
}

// testSettings tests the settings of a new database.
func testSettings(t *testing.T, db *sqlstore.DB) {
	if _, err := db.Setting(t.Context(), "secret"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
	}
	winners := make([]string, 16)
	var wg sync.WaitGroup
	for i := range winners {
		wg.Go(func() {
			v, err := db.SetSettingOnce(t.Context(), "secret", []byte{0, byte(i)})
			systest.Check(t, err)
			winners[i] = string(v)
		})
	}
	wg.Wait()
	v, err := db.Setting(t.Context(), "secret")
	systest.NoError(t, err)
	for _, w := range winners {
		if w != string(v) {
			t.Errorf("a caller got %q, stored is %q", w, v)
		}
	}
	if v, err := db.SetSettingOnce(t.Context(), "empty", nil); err != nil || len(v) != 0 {
		t.Errorf("empty setting is %q, error %v", v, err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	testKeys(t, open(t))
}

// testKeys tests the API keys of a new database.
func testKeys(t *testing.T, db *sqlstore.DB) {
	keys := db.Keys()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var want []*account.Key
	for i := range 4 {
		k := &account.Key{
			ID: fmt.Sprint("id", i), Name: "name", Prefix: "fw_", Account: []string{"alice", "bob"}[i%2],
			Hash: [32]byte{byte(i + 1), 31: 0xff}, Created: now.Add(time.Duration(i) * time.Second),
		}
		if i == 3 {
			k.Expires, k.Addresses = now.Add(time.Hour), "192.0.2.0/24 2001:db8::1"
		}
		systest.NoError(t, keys.Create(t.Context(), k))
		want = append(want, k)
	}
	for name, k := range map[string]*account.Key{
		"same ID": {ID: "id0", Hash: [32]byte{9}}, "same hash": {ID: "new", Hash: want[0].Hash},
	} {
		if err := keys.Create(t.Context(), k); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: error is %v, want one that matches fs.ErrExist", name, err)
		}
	}
	if err := keys.Create(t.Context(), &account.Key{ID: "new"}); err == nil {
		t.Error("a key without hash was created")
	}
	equal := func(a, b *account.Key) bool { return *a == *b }
	if got, err := keys.List(t.Context(), ""); err != nil || !slices.EqualFunc(got, want, equal) {
		t.Errorf("all keys are %+v, error %v", got, err)
	}
	if got, err := keys.List(t.Context(), "bob"); err != nil || !slices.EqualFunc(got, []*account.Key{want[1], want[3]}, equal) {
		t.Errorf("bob's keys are %+v, error %v", got, err)
	}
	got, err := byHash(t, keys, want[3].Hash)
	if err != nil || *got != *want[3] {
		t.Errorf("key is %+v, want %+v, error %v", got, want[3], err)
	}
	if !got.Valid(now) || got.Valid(got.Expires) {
		t.Error("key is not valid until it expires")
	}
	if _, err := byHash(t, keys, [32]byte{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
	}

	systest.Check(t, keys.Touch(t.Context(), "id0"))
	used := func() time.Time {
		k, err := byHash(t, keys, want[0].Hash)
		systest.NoError(t, err)
		return k.LastUsed
	}
	first := used()
	if first.Before(now) {
		t.Errorf("key was used last at %v, want not before %v", first, now)
	}
	later(t, first)
	if err := keys.Touch(t.Context(), "id0"); err != nil || !used().Equal(first) {
		t.Errorf("second use within a minute was written, error %v", err)
	}
	for range 2 {
		if err := keys.Touch(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
		}
	}

	systest.NoError(t, keys.Revoke(t.Context(), "id0"))
	k, err := byHash(t, keys, want[0].Hash)
	if err != nil || k.Revoked.IsZero() || k.Valid(now) {
		t.Errorf("revoked key is %+v, error %v", k, err)
	}
	later(t, k.Revoked)
	systest.NoError(t, keys.Revoke(t.Context(), "id0"))
	if again, err := byHash(t, keys, want[0].Hash); err != nil || !again.Revoked.Equal(k.Revoked) {
		t.Errorf("key revoked twice is %+v, error %v", again, err)
	}
	if err := keys.Revoke(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
	}
}

// TestBatch runs transactions in batches in which some fail, panic or are cancelled:
// that must not affect the others.
func TestBatch(t *testing.T) {
	t.Parallel()
	files := open(t).Files()
	const n = 60
	errFailed := errors.New("failed")
	update := func(ctx context.Context, i int) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		_, err = files.Update(ctx, fmt.Sprint(i), func(f *upload.File) error {
			f.Size++
			switch i % 4 {
			case 1:
				return errFailed
			case 2:
				panic("ouch")
			}
			return nil
		})
		return err
	}
	for i := range n {
		if _, err := files.Create(t.Context(), &upload.File{Key: fmt.Sprint(i), Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	counts := make([]int64, n) // number of successes; each by one goroutine
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%4 == 3 {
					go cancel() // before, during or after the call
				}
				err := update(ctx, i)
				cancel()
				switch {
				case err == nil:
					counts[i]++
				case i%4 == 1 && errors.Is(err, errFailed):
				case i%4 == 2 && strings.Contains(err.Error(), "panic: ouch"):
				case i%4 == 3 && errors.Is(err, context.Canceled):
				default:
					t.Errorf("update %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		f, err := files.Get(t.Context(), fmt.Sprint(i))
		systest.NoError(t, err)
		if f.Size != counts[i] {
			t.Errorf("file %d was changed %d times, of which %d were acknowledged", i, f.Size, counts[i])
		}
		if i%4 == 0 && counts[i] != 20 {
			t.Errorf("file %d was changed %d times, want 20", i, counts[i])
		}
	}
}

// TestPlans checks that frequent queries do not read whole tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openPath(t, path)
	ops := make([]*status.Operation, 300)
	for i := range ops {
		ops[i] = benchOperation()
		ops[i].Owner = fmt.Sprint("owner", i%3)
		if _, err := db.Operations().Create(t.Context(), ops[i]); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := sql.Open("sqlite", path)
	systest.NoError(t, err)
	defer raw.Close()
	for name, query := range map[string]string{
		"pending of an owner": `SELECT idx FROM items i WHERE i.finished_ms IS NULL AND i.queue = 'a' AND i.owner = 'b'
			AND (i.created_ms, i.operation, i.idx) > (1, 'x', 2) AND i.state IN ('queued', 'running') AND i.due_ms <= 5
			ORDER BY i.created_ms, i.operation, i.idx LIMIT 5`,
		"pending of all": `SELECT i.idx FROM operations o CROSS JOIN items i WHERE o.finished_ms IS NULL AND i.operation = o.id
			AND (o.created_ms, o.id) >= (1, 'x') AND (o.created_ms > 1 OR o.id > 'x' OR i.idx > 2)
			AND i.state IN ('queued', 'running') AND i.due_ms <= 5 ORDER BY o.created_ms, o.id, i.idx LIMIT 5`,
		"list": `SELECT id FROM operations WHERE owner = 'a' AND (created_ms, id) < (1, 'x') AND ('' = '' OR state = '')
			ORDER BY created_ms DESC, id DESC LIMIT 5`,
		"beat":   `UPDATE items SET due_ms = 2 WHERE worker = 'w' AND state = 'running' AND due_ms > 1`,
		"delete": `DELETE FROM operations WHERE id IN (SELECT id FROM operations WHERE finished_ms IS NOT NULL AND finished_ms < 1 LIMIT 5)`,
		"expired": `SELECT file_key FROM files WHERE expires_ms IS NOT NULL AND expires_ms < 9 AND (expires_ms, file_key) > (1, 'x')
			ORDER BY expires_ms, file_key LIMIT 5`,
		"webhook to claim of": `SELECT CASE WHEN EXISTS (SELECT 1 FROM accounts a WHERE a.id = w.account AND a.disabled_ms IS NOT NULL) THEN 1 ELSE 0 END
			FROM webhook_endpoints w WHERE id = 'x'`,
		"webhooks that are due": `WITH RECURSIVE e(id) AS (
				SELECT min(endpoint) FROM webhook_deliveries WHERE finished_ms IS NULL
				UNION ALL
				SELECT (SELECT min(d.endpoint) FROM webhook_deliveries d WHERE d.finished_ms IS NULL AND d.endpoint > e.id) FROM e WHERE e.id IS NOT NULL)
			SELECT (SELECT min(d.due_ms) FROM webhook_deliveries d WHERE d.finished_ms IS NULL AND d.endpoint = e.id)
			FROM e LEFT JOIN webhook_endpoints w ON w.id = e.id
			WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = w.account AND a.disabled_ms IS NOT NULL)`,
	} {
		rows, err := raw.Query("EXPLAIN QUERY PLAN " + query)
		systest.NoError(t, err)
		for rows.Next() {
			var id, parent, unused int
			var detail string
			systest.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			// Sorting the items of one operation does no harm, and e is not a table.
			if strings.HasPrefix(detail, "SCAN") && detail != "SCAN e" ||
				strings.Contains(detail, "TEMP B-TREE") && !strings.Contains(detail, "FOR LAST TERM") {
				t.Errorf("%s: %s", name, detail)
			}
		}
		systest.NoError(t, errors.Join(rows.Err(), rows.Close()))
	}
}

// TestLog checks that there is a write-ahead log and that Close merges it.
func TestLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db := openPath(t, path)
	systest.NoError(t, db.Close())
	b := systest.ReadFile(t, path)
	// Bytes 18 and 19 are 2 for a write-ahead log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
	if v := binary.BigEndian.Uint16(b[18:]); v != 0x0202 {
		t.Errorf("file format versions are %#x, want a write-ahead log", v)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there after Close, error %v", err)
	}
}

// byHash returns the key with a hash.
func byHash(t *testing.T, keys *sqlstore.Keys, hash [32]byte) (*account.Key, error) {
	grants, err := keys.Grants(t.Context(), hash)
	if err == nil && len(grants) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return &grants[0].Key, nil
}

// later waits until the clock differs from a stored time, which has milliseconds.
func later(t *testing.T, stored time.Time) {
	t.Helper()
	systest.Until(t, "the next millisecond", func() bool { return time.Since(stored) >= time.Millisecond })
}

// A copy names the objects that its unfinished operations read, which a server may delete.
func TestUnfinishedObjects(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, key := range []string{"input", "second", "step", "other", "result"} {
		_, err := db.Files().Create(t.Context(), &upload.File{Key: key, Object: "files/" + key, Owner: "a", State: upload.Ready, Created: time.Now(), Expires: time.Now().Add(time.Hour)})
		systest.NoError(t, err)
	}
	item := func(key string) status.Item { return status.Item{Queue: "pdf", Inputs: []status.File{{Key: key}}} }
	for id, items := range map[string][]status.Item{"running": {item("input"), item("second")}, "ended": {item("other")}} {
		_, err := db.Operations().Create(t.Context(), &status.Operation{ID: id, Owner: "a", Created: time.Now(), Items: items})
		systest.NoError(t, err)
		claim, err := db.Operations().Claim(t.Context(), status.Ref{Operation: id}, "w", time.Hour)
		systest.NoError(t, err)
		result := map[string]string{"running": "step", "ended": "result"}[id]
		_, err = db.Operations().Finish(t.Context(), claim, status.Outcome{Results: []status.File{{Key: result}}})
		systest.NoError(t, err)
	}
	path := filepath.Join(t.TempDir(), "copy of it.db")
	systest.NoError(t, db.Backup(t.Context(), path))
	got, err := sqlstore.UnfinishedObjects(t.Context(), path)
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{"files/input", "files/second", "files/step"}) {
		t.Errorf("%v, %v", got, err)
	}
}
