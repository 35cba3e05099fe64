package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/upload/blob"
)

// A source is an object that becomes a part of another.
type source struct {
	key, name string
	etag      string
	size      int64
}

// A segment is a range of a source.
type segment struct {
	source
	off, n int64
}

// A piece becomes one part of the new object: a range of one source that the server
// copies, or several ranges that are too small to copy and are read and written
// instead.
type piece struct {
	segments []segment
	size     int64
	copied   bool
}

// Compose implements blob.Composer. The server copies large ranges; small ones pass
// through this process, without being held in memory.
func (s *Store) Compose(ctx context.Context, key string, from []string) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = countSilences(ctx)
	sources, err := s.sources(ctx, from)
	if err != nil {
		return err
	}
	var size int64
	for _, src := range sources {
		size += src.size
	}
	if size <= partSize {
		err = s.composeSmall(ctx, name, sources, size)
	} else {
		err = s.putLarge(ctx, name, size, func(u *multipart) error {
			for _, p := range plan(sources, size, s.maxCopy) {
				if p.copied {
					u.copy(p.segments[0].name, p.segments[0].off, p.size)
					continue
				}
				r := &segmentReader{ctx: u.ctx, s: s, all: p.segments}
				u.send(p.size, r, r.result)
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	s.remove(ctx, sources)
	return nil
}

func (s *Store) composeSmall(ctx context.Context, name string, sources []source, size int64) error {
	r := &segmentReader{ctx: ctx, s: s}
	for _, src := range sources {
		r.all = append(r.all, segment{src, 0, src.size})
	}
	r.rest = r.all
	return r.result(s.put(ctx, name, r, size))
}

// sources returns the names and sizes of objects. There may be thousands of them,
// mostly in the same directory, which can be listed a thousand at a time.
func (s *Store) sources(ctx context.Context, keys []string) ([]source, error) {
	found := make(map[string]source, len(keys))
	if dir := commonDir(keys); dir != "" && len(keys) > 1 {
		for i, err := range s.list(ctx, dir) {
			if err != nil {
				return nil, err
			}
			found[i.Key] = source{key: i.Key, etag: i.etag, size: i.Size}
		}
	}
	all := make([]source, len(keys))
	for i, k := range keys {
		name, err := s.name(k)
		if err != nil {
			return nil, err
		}
		src, ok := found[k]
		if !ok {
			// Not listed: query the object, because a list gives no reason.
			stat, err := s.c.StatObject(countSilences(ctx), s.bucket, name, minio.StatObjectOptions{})
			if hasCode(err, minio.NoSuchKey) {
				// The response to HEAD has no body that distinguishes a missing
				// object from a missing bucket.
				_, err = s.Stat(ctx, k)
			}
			if err != nil {
				return nil, fail("stat", err)
			}
			src = source{key: k, etag: stat.ETag, size: stat.Size}
		}
		src.name = name
		all[i] = src
	}
	return all, nil
}

// commonDir returns the directory of all keys with a slash, or "".
func commonDir(keys []string) string {
	dir := ""
	for i, k := range keys {
		d := path.Dir(k)
		if i > 0 && d != dir || d == "." {
			return ""
		}
		dir = d
	}
	if dir == "" {
		return ""
	}
	return dir + "/"
}

// maxCopy is the size of most copied pieces. Copies may have up to MaxPart and cost us
// nothing, but several concurrent ones are faster.
const maxCopy = 512 << 20

// plan divides sources into pieces that S3 accepts as parts; copied pieces have at most
// maxCopy bytes.
func plan(sources []source, size, maxCopy int64) []piece {
	read := partSizeFor(size) // pieces of this size are few enough
	// A copy is shortened if the rest would be too small, and must not become too small
	// itself.
	maxPart := min(max(maxCopy, 2*read), MaxPart)
	var all []piece
	var open piece // being collected, to be read and written
	flush := func() {
		if open.size > 0 {
			all = append(all, open)
		}
		open = piece{}
	}
	for _, src := range sources {
		off := int64(0)
		for left := src.size; left > 0; left = src.size - off {
			if open.size == 0 && left >= read {
				n := min(left, maxPart)
				if rest := left - n; rest > 0 && rest < read {
					n = left - read // so that the rest can be copied too
				}
				all = append(all, piece{[]segment{{src, off, n}}, n, true})
				off += n
				continue
			}
			n := min(left, read-open.size)
			open.segments = append(open.segments, segment{src, off, n})
			open.size += n
			off += n
			if open.size == read {
				flush()
			}
		}
	}
	flush()
	return all
}

// A segmentReader reads segments one after the other. It can seek to its start, so
// requests that send it can be repeated.
type segmentReader struct {
	ctx context.Context
	s   *Store
	all []segment

	rest []segment // nil before the first Seek or Read
	open blob.Object
	r    *io.SectionReader
	err  error
}

// Seek implements the part of io.Seeker that is needed.
func (r *segmentReader) Seek(off int64, whence int) (int64, error) {
	if off != 0 || whence != io.SeekStart {
		return 0, fmt.Errorf("seek in segments: %w", errors.ErrUnsupported)
	}
	r.close()
	r.rest, r.err = slices.Clone(r.all), nil
	return 0, nil
}

func (r *segmentReader) Read(p []byte) (int, error) {
	for {
		if r.r != nil {
			n, err := r.r.Read(p)
			if n > 0 || !errors.Is(err, io.EOF) {
				return n, r.failed(err)
			}
			r.close()
		}
		if len(r.rest) == 0 {
			return 0, io.EOF
		}
		seg := r.rest[0]
		r.rest = r.rest[1:]
		o, err := r.s.Open(r.ctx, seg.key)
		if err != nil {
			return 0, r.failed(err)
		}
		r.open = o
		if etag := o.(*object).etag; seg.etag != "" && etag != "" && etag != seg.etag || o.Info().Size != seg.size {
			return 0, r.failed(&failure{"s3: compose: an object has been replaced", nil})
		}
		r.r = io.NewSectionReader(o, seg.off, seg.n)
	}
}

func (r *segmentReader) failed(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return err
}

func (r *segmentReader) close() {
	if r.open != nil {
		r.open.Close()
	}
	r.open, r.r = nil, nil
}

// result returns the error that counts, given the request's.
func (r *segmentReader) result(err error) error {
	r.close()
	r.rest = nil // open nothing more
	if r.err != nil && err != nil {
		return r.err
	}
	return err
}

// remove tries to delete objects. A sweep for content without a record finds those that
// remain.
func (s *Store) remove(ctx context.Context, sources []source) {
	keys := make([]string, len(sources))
	for i, src := range sources {
		keys[i] = src.key
	}
	if len(keys) > 0 {
		s.DeleteAll(ctx, keys)
	}
}
