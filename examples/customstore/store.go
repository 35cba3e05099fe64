// Package customstore stores the service's files in a table of the backend's own database. It suits
// small files. Its test runs blobtest, which checks that a store is complete.
package customstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/upload/blob"
)

// MaxSize is the largest file in bytes. Put and Open hold the whole file in memory.
const MaxSize = 128 << 20

// A Store is a blob.Store in the table
//
//	CREATE TABLE files (key BLOB PRIMARY KEY, modified INTEGER NOT NULL, data BLOB NOT NULL)
type Store struct{ DB *sql.DB }

// Put implements blob.Store.
func (s Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if !blob.ValidKey(key) || size < 0 || size > MaxSize {
		return fs.ErrInvalid
	}
	data, err := io.ReadAll(fileops.ContextReader(ctx, io.LimitReader(r, size))) // the declared size may be wrong
	if int64(len(data)) < size {
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	_, err = s.DB.ExecContext(ctx, `INSERT OR REPLACE INTO files VALUES (?, ?, ?)`, []byte(key), time.Now().UnixNano(), data)
	return err
}

type object struct {
	*bytes.Reader
	ctx  context.Context // of Open
	info blob.Info
}

func (o object) ReadAt(p []byte, at int64) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.Reader.ReadAt(p, at)
}

func (o object) Info() blob.Info { return o.info }
func (o object) Close() error    { return nil }

// Open implements blob.Store.
func (s Store) Open(ctx context.Context, key string) (blob.Object, error) {
	if !blob.ValidKey(key) {
		return nil, fs.ErrInvalid
	}
	var data []byte
	var modified int64
	err := s.DB.QueryRowContext(ctx, `SELECT modified, data FROM files WHERE key = ?`, []byte(key)).Scan(&modified, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fs.ErrNotExist
	}
	return object{bytes.NewReader(data), ctx, blob.Info{Key: key, Size: int64(len(data)), ModTime: time.Unix(0, modified)}}, err
}

// Delete implements blob.Store.
func (s Store) Delete(ctx context.Context, key string) error {
	if !blob.ValidKey(key) {
		return fs.ErrInvalid
	}
	_, err := s.DB.ExecContext(ctx, `DELETE FROM files WHERE key = ?`, []byte(key))
	return err
}

// List implements blob.Store. It runs one query for each file, so that files may be deleted in the
// meantime.
func (s Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for after, key := []byte{}, []byte{}; ; after = key {
			var modified, size int64
			err := s.DB.QueryRowContext(ctx, `SELECT key, modified, length(data) FROM files WHERE key > ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT 1`,
				after, len(prefix), []byte(prefix)).Scan(&key, &modified, &size)
			if errors.Is(err, sql.ErrNoRows) || !yield(blob.Info{Key: string(key), Size: size, ModTime: time.Unix(0, modified)}, err) || err != nil {
				return
			}
		}
	}
}
