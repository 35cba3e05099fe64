package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/filewright/filewright/upload"
)

// Files is an [upload.Store] in a database.
type Files struct{ db *DB }

// Files returns the file records of the database.
func (db *DB) Files() *Files { return &Files{db} }

const fileColumns = `file_key, owner, name, content_type, size, state, object, upload_id, parts, etag, task,
	idempotency_key, fingerprint, created_ms, expires_ms`

func fileArgs(f *upload.File) []any {
	return []any{
		f.Key, f.Owner, f.Name, f.ContentType, f.Size, string(f.State), f.Object, f.UploadID, f.Parts, f.ETag, f.Task,
		textOrNull(f.IdempotencyKey), f.Fingerprint, millis(f.Created), millisOrNull(f.Expires),
	}
}

func scanFile(row scanner) (*upload.File, error) {
	var f upload.File
	var key sql.NullString
	var created int64
	var expires sql.NullInt64
	if err := row.Scan(&f.Key, &f.Owner, &f.Name, &f.ContentType, &f.Size, &f.State, &f.Object, &f.UploadID,
		&f.Parts, &f.ETag, &f.Task, &key, &f.Fingerprint, &created, &expires); err != nil {
		return nil, err
	}
	f.IdempotencyKey, f.Created, f.Expires = key.String, timeOf(created), timeOrZero(expires)
	return &f, nil
}

const selectFile = `SELECT ` + fileColumns + ` FROM files WHERE file_key = $1`

// getFile reads a file. lock is the locking clause of the query, or "".
func getFile(ctx context.Context, t tx, key, lock string) (*upload.File, error) {
	f, err := scanFile(t.row(ctx, selectFile+lock, key))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing("file", key)
	}
	return f, err
}

// Create implements [upload.Store].
func (s *Files) Create(ctx context.Context, f *upload.File) (*upload.File, error) {
	if f.Key == "" {
		return nil, errors.New("file without key")
	}
	write := s.db.tx
	if f.State == upload.Open && !f.Direct() || f.State == upload.Ready && f.Task != "" {
		write = s.db.soft // the first part, or the end of the item, makes it durable
	}
	var created *upload.File
	err := write(ctx, func(ctx context.Context, t tx) (err error) {
		if created, err = fileHolder(ctx, t, f); err != nil || created != nil {
			return err
		}
		args := fileArgs(f)
		n, err := t.exec(ctx, `INSERT INTO files (`+fileColumns+`) VALUES `+values(1, len(args))+`
			ON CONFLICT DO NOTHING`, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			// Another transaction may have used the idempotency key in the meantime.
			if created, err = fileHolder(ctx, t, f); err != nil || created != nil {
				return err
			}
			return fmt.Errorf("file %q: %w", f.Key, fs.ErrExist)
		}
		fresh := *f
		created = &fresh
		return takeFile(ctx, t, nil, f)
	})
	if err != nil {
		return nil, err
	}
	return created, nil
}

// fileHolder returns the file that holds the idempotency key of f, or nil.
func fileHolder(ctx context.Context, t tx, f *upload.File) (*upload.File, error) {
	if f.IdempotencyKey == "" {
		return nil, nil
	}
	if _, err := t.exec(ctx, `UPDATE files SET idempotency_key = NULL
		WHERE owner = $1 AND idempotency_key = $2 AND created_ms <= $3`,
		f.Owner, f.IdempotencyKey, millis(f.Created.Add(-idempotencyTTL))); err != nil {
		return nil, err
	}
	old, err := scanFile(t.row(ctx, `SELECT `+fileColumns+` FROM files
		WHERE owner = $1 AND idempotency_key = $2`, f.Owner, f.IdempotencyKey))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return old, err
}

// Get implements [upload.Store].
func (s *Files) Get(ctx context.Context, key string) (f *upload.File, err error) {
	err = s.db.one(ctx, func(row scanner) (err error) {
		f, err = scanFile(row)
		return err
	}, selectFile, key)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("file", key)
	}
	return f, err
}

// maxKeys is the largest number of keys in one statement.
const maxKeys = 1024

// inKeys returns the right side of "file_key IN" and its arguments, for at most maxKeys
// keys. It repeats some keys, so that there are few different statements to prepare.
func inKeys(keys []string) (list string, args []any) {
	n := 1
	for n < len(keys) {
		n *= 2
	}
	for i := range n {
		args = append(args, keys[min(i, len(keys)-1)])
	}
	return values(1, n), args
}

// GetAll implements [upload.Store].
func (s *Files) GetAll(ctx context.Context, keys []string) (map[string]*upload.File, error) {
	files := make(map[string]*upload.File)
	for some := range slices.Chunk(keys, maxKeys) {
		list, args := inKeys(some)
		if err := s.db.each(ctx, func(row scanner) error {
			f, err := scanFile(row)
			if err == nil {
				files[f.Key] = f
			}
			return err
		}, `SELECT `+fileColumns+` FROM files WHERE file_key IN `+list, args...); err != nil {
			return nil, err
		}
	}
	return files, ctx.Err()
}

// Update implements [upload.Store].
func (s *Files) Update(ctx context.Context, key string, fn func(*upload.File) error) (f *upload.File, err error) {
	err = s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if f, err = getFile(ctx, t, key, t.locking()); err != nil {
			return err
		}
		old := *f
		if err := fn(f); err != nil {
			return err
		}
		f.Key = key
		if err := t.later(ctx, nil, `UPDATE files SET owner = $2, name = $3, content_type = $4, size = $5, state = $6,
				object = $7, upload_id = $8, parts = $9, etag = $10, task = $11, idempotency_key = $12,
				fingerprint = $13, created_ms = $14, expires_ms = $15
			WHERE file_key = $1`, fileArgs(f)...); err != nil {
			return err
		}
		return takeFile(ctx, t, &old, f)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Expire implements [upload.Store].
func (s *Files) Expire(ctx context.Context, keys []string, at, until time.Time) (ended []*upload.File, err error) {
	for some := range slices.Chunk(keys, maxKeys) {
		var these []*upload.File
		if err := s.db.tx(ctx, func(ctx context.Context, t tx) (err error) {
			these, err = expireFiles(ctx, t, some, at, until)
			return err
		}); err != nil {
			return ended, err
		}
		ended = append(ended, these...)
	}
	return ended, nil
}

func expireFiles(ctx context.Context, t tx, keys []string, at, until time.Time) (ended []*upload.File, err error) {
	list, args := inKeys(keys)
	n := len(args)
	var end, remove []string
	// All transactions lock them in this order.
	if err := t.each(ctx, func(row scanner) error {
		f, err := scanFile(row)
		switch {
		case err != nil:
			return err
		case f.State == upload.Ready && !until.IsZero():
			end = append(end, f.Key)
		default:
			remove = append(remove, f.Key)
		}
		if f.State == upload.Ready {
			ended = append(ended, f)
		}
		return nil
	}, fmt.Sprintf(`SELECT `+fileColumns+` FROM files WHERE file_key IN %s AND expires_ms <= $%d AND state <> 'open'
		ORDER BY file_key`+t.locking(), list, n+1), append(args, millis(at))...); err != nil {
		return nil, err
	}
	if len(end) > 0 {
		list, args := inKeys(end)
		if err := t.later(ctx, nil, fmt.Sprintf(`UPDATE files SET state = 'expired', expires_ms = $%d WHERE file_key IN %s`, len(args)+1, list), append(args, millis(until))...); err != nil {
			return nil, err
		}
	}
	if len(remove) > 0 {
		list, args := inKeys(remove)
		if err := t.later(ctx, nil, `DELETE FROM files WHERE file_key IN `+list, args...); err != nil {
			return nil, err
		}
	}
	return ended, releaseFiles(ctx, t, ended)
}

// releaseFiles subtracts files that expire in t from their owners' stored bytes.
func releaseFiles(ctx context.Context, t tx, files []*upload.File) error {
	held := make(map[string]int64)
	for _, f := range files {
		held[f.Owner] += f.Size
	}
	for _, owner := range slices.Sorted(maps.Keys(held)) {
		if held[owner] == 0 {
			continue
		}
		// This counter does not depend on the time, and any row can take the change.
		if err := storedBytes.count(ctx, t, owner, owner, -held[owner], time.Time{}, new(int64)); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [upload.Store].
func (s *Files) Delete(ctx context.Context, key string) error {
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		f, err := scanFile(t.row(ctx, `DELETE FROM files WHERE file_key = $1 RETURNING `+fileColumns, key))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return takeFile(ctx, t, f, nil)
	})
}

// AddPart implements [upload.Store].
func (s *Files) AddPart(ctx context.Context, key string, p upload.Part) error {
	staged := 0
	if p.Staged {
		staged = 1
	}
	return s.db.tx(ctx, func(ctx context.Context, t tx) error {
		// Selecting from files inserts nothing if no open file has the key. WHERE also tells
		// SQLite where ON CONFLICT belongs.
		return t.change(ctx, missing("open file", key), `INSERT INTO parts (file_key, number, etag, size, staged, revision)
			SELECT file_key, $2, $3, $4, $5, $6 FROM files WHERE file_key = $1 AND state = 'open'
			ON CONFLICT (file_key, number) DO UPDATE SET etag = excluded.etag, size = excluded.size, staged = excluded.staged, revision = excluded.revision`,
			key, p.Number, p.ETag, p.Size, staged, p.Revision)
	})
}

// Parts implements [upload.Store].
func (s *Files) Parts(ctx context.Context, key string) (f *upload.File, parts []upload.Part, err error) {
	err = s.db.view(ctx, func(ctx context.Context, t tx) error {
		if err := t.later(ctx, func(row scanner) (err error) {
			f, err = scanFile(row)
			return err
		}, selectFile, key); err != nil {
			return err
		}
		return t.later(ctx, func(row scanner) error {
			var p upload.Part
			err := row.Scan(&p.Number, &p.ETag, &p.Size, (*flag)(&p.Staged), &p.Revision)
			parts = append(parts, p)
			return err
		}, `SELECT number, etag, size, staged, revision FROM parts WHERE file_key = $1 ORDER BY number`, key)
	})
	if err == nil && f == nil {
		err = missing("file", key)
	}
	if err != nil {
		return nil, nil, err
	}
	return f, parts, nil
}

// ExpiredBefore implements [upload.Store].
func (s *Files) ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) {
		const n = 1000
		expires, key := int64(-1<<62), ""
		for {
			page, err := s.expired(ctx, t, expires, key, n)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, f := range page {
				if !yield(f, nil) {
					return
				}
				expires, key = millis(f.Expires), f.Key
			}
			if len(page) < n {
				return
			}
		}
	}
}

func (s *Files) expired(ctx context.Context, t time.Time, expires int64, key string, n int) (page []*upload.File, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		f, err := scanFile(row)
		page = append(page, f)
		return err
	}, `SELECT `+fileColumns+` FROM files
		WHERE expires_ms IS NOT NULL AND expires_ms < $1 AND (expires_ms, file_key) > ($2, $3)
		ORDER BY expires_ms, file_key LIMIT $4`, millis(t), expires, key, n)
	return page, err
}

// OpenSessions implements [upload.Store].
func (s *Files) OpenSessions(ctx context.Context) iter.Seq2[*upload.File, error] {
	return s.byKey(ctx, `state = 'open' AND `)
}

// All implements [upload.Store].
func (s *Files) All(ctx context.Context) iter.Seq2[*upload.File, error] { return s.byKey(ctx, "") }

// byKey yields the files that satisfy a condition, ordered by key. It reads them in
// pages.
func (s *Files) byKey(ctx context.Context, condition string) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) {
		const n = 1000
		for key := ""; ; {
			var page []*upload.File
			err := s.db.each(ctx, func(row scanner) error {
				f, err := scanFile(row)
				page = append(page, f)
				return err
			}, `SELECT `+fileColumns+` FROM files WHERE `+condition+`file_key > $1 ORDER BY file_key LIMIT $2`, key, n)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, f := range page {
				if !yield(f, nil) {
					return
				}
				key = f.Key
			}
			if len(page) < n {
				return
			}
		}
	}
}

// NewestReady implements [upload.Store]. It reads all file records.
func (s *Files) NewestReady(ctx context.Context, n int) (files []*upload.File, err error) {
	err = s.db.each(ctx, func(row scanner) error {
		f, err := scanFile(row)
		files = append(files, f)
		return err
	}, `SELECT `+fileColumns+` FROM files WHERE state = 'ready' ORDER BY created_ms DESC LIMIT $1`, n)
	return files, err
}

// identitySetting is the setting that holds the identity of the file records.
const identitySetting = "identity"

// Identity implements [upload.Store].
func (s *Files) Identity(ctx context.Context) (string, error) {
	v, err := s.db.Setting(ctx, identitySetting)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(v), err
}

// ReplaceIdentity implements [upload.Store].
func (s *Files) ReplaceIdentity(ctx context.Context, old, by string) (string, error) {
	if old == "" {
		v, err := s.db.SetSettingOnce(ctx, identitySetting, []byte(by))
		return string(v), err
	}
	var now []byte
	err := s.db.tx(ctx, func(ctx context.Context, t tx) error {
		if _, err := t.exec(ctx, `UPDATE settings SET value = $1 WHERE name = $2 AND value = $3`, []byte(by), identitySetting, []byte(old)); err != nil {
			return err
		}
		return t.row(ctx, `SELECT value FROM settings WHERE name = $1`, identitySetting).Scan(&now)
	})
	return string(now), err
}

// Count returns the number of records.
func (s *Files) Count(ctx context.Context) (n int64, err error) {
	err = s.db.one(ctx, func(row scanner) error { return row.Scan(&n) }, `SELECT count(*) FROM files`)
	return n, err
}
