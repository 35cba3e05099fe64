package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
)

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 1024

// ValidKey reports whether key may name an object: it satisfies fs.ValidPath, is not
// ".", has no NUL and is at most [MaxKey] bytes long. A store rejects other keys with
// an error that matches fs.ErrInvalid.
func ValidKey(key string) bool {
	return fs.ValidPath(key) && key != "." && len(key) <= MaxKey && !strings.Contains(key, "\x00")
}

// Stat returns the Info of an object. Without a [Remote] it opens the object.
func Stat(ctx context.Context, s Store, key string) (Info, error) {
	if t, ok := As[Remote](s); ok {
		return t.Stat(ctx, key)
	}
	o, err := s.Open(ctx, key)
	if err != nil {
		return Info{}, err
	}
	defer o.Close()
	return o.Info(), nil
}

// NewReader returns a reader of the whole of o. Readers of the same object are
// independent of each other.
func NewReader(o Object) *io.SectionReader {
	return io.NewSectionReader(o, 0, o.Info().Size)
}

// Copy copies from r to w until r ends, but reads and writes at most n bytes. It checks
// ctx before each read and uses only the memory of buf, which must not be empty. It is
// the core of a backend's Put.
func Copy(ctx context.Context, w io.Writer, r io.Reader, n int64, buf []byte) (int64, error) {
	var done int64
	for done < n {
		// Network readers yield a few KiB at a time; filling the buffer
		// before it is written saves most of the write calls.
		k, rerr := fill(ctx, r, buf[:min(int64(len(buf)), n-done)])
		if k > 0 {
			if _, err := w.Write(buf[:k]); err != nil {
				return done, err
			}
			done += int64(k)
		}
		if errors.Is(rerr, io.EOF) {
			return done, nil
		}
		if rerr != nil {
			return done, rerr
		}
	}
	return done, nil
}

// fill reads until b is full or there is an error. Unlike io.ReadFull it does not
// replace the reader's error.
func fill(ctx context.Context, r io.Reader, b []byte) (n int, err error) {
	for empty := 0; n < len(b) && err == nil; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var k int
		k, err = r.Read(b[n:])
		n += k
		if empty++; k > 0 {
			empty = 0
		} else if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	if n == len(b) && err == io.EOF {
		err = nil // the caller reads again if it wants more
	}
	return n, err
}
