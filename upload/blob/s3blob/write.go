package s3blob

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/upload/blob"
)

// Parameters of writing objects.
const (
	partSize   = 8 << 20 // of our multipart uploads, if that is enough
	freeBody   = 64 << 10
	parallel   = 4 // concurrent requests for one object
	abortAfter = 30 * time.Second
	abortTries = 4
)

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("s3: size is %d: %w", size, fs.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.put(countSilences(ctx), name, r, size)
}

// put creates an object from the next size bytes of r.
func (s *Store) put(ctx context.Context, name string, r io.Reader, size int64) error {
	if size <= partSize {
		body, err := s.body(ctx, r, size)
		if err != nil {
			return err
		}
		if whole, ok := body.Reader.(io.ReadSeeker); ok {
			defer body.release()
			return s.putObject(ctx, name, whole, size)
		}
		// The body may break off because the sender has died.
	}
	return s.putLarge(ctx, name, size, func(u *multipart) error { return u.stream(r) })
}

// PutFile implements blob.Composer. It does not remove the file.
func (s *Store) PutFile(ctx context.Context, key, path string) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = countSilences(ctx)
	f, err := blob.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	if size > partSize {
		return s.putLarge(ctx, name, size, func(u *multipart) error {
			for off := int64(0); off < size; off += u.part {
				n := min(u.part, size-off)
				u.send(n, io.NewSectionReader(f, off, n), func(err error) error { return err })
			}
			return nil
		})
	}
	return s.putObject(ctx, name, io.NewSectionReader(f, 0, size), size)
}

// putObject creates an object in one request. If the body breaks off, some servers
// (versitygw 1.8.0, see its issue 2414) store the partial object, even over TLS, unless
// they have a checksum to compare. Without a checksum, only a part of a multipart
// upload is safe, because it is invisible until the upload is complete.
func (s *Store) putObject(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	sum, err := sum(r)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err := s.c.PutObject(ctx, s.bucket, name, r, size, "", sum, minio.PutObjectOptions{DisableContentSha256: true})
		if try == putTries || !hasCode(err, existingDirectory) {
			return fail("put", err)
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// versitygw responds with existingDirectory if the last other object of a directory is
// deleted in the meantime. No object of ours has the name of a directory, so the error
// is wrong.
const (
	existingDirectory = "ExistingObjectIsDirectory"
	putTries          = 6
)

// sum returns the hex SHA-256 of a body, with which the server detects a changed or
// truncated body.
func sum(r io.ReadSeeker) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	_, err := r.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// partSum returns the sum of the body of a part. It is "" if TLS protects the body, or
// if the body can be read only once or comes from the server. The alternative, signed
// chunks, makes some servers lose track of the connection.
func (s *Store) partSum(r io.Reader) (string, error) {
	b, ok := r.(io.ReadSeeker)
	if _, far := r.(*segmentReader); !ok || far || s.secure {
		return "", nil
	}
	return sum(b)
}

// A budget is an amount of memory that may be used.
type budget struct {
	mu   sync.Mutex
	left int64 // bytes
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// A body is the body of a request.
type body struct {
	io.Reader
	release func()
	result  func(error) error // returns the error that counts, given the request's
}

// body returns a body with the next n bytes of r. If there is memory for them, it reads
// them now, and the request can be repeated. Otherwise they are read while they are
// sent: a slow sender must not hold memory that others need, nor wait for memory.
func (s *Store) body(ctx context.Context, r io.Reader, n int64) (*body, error) {
	free := n <= freeBody // hardly more than passing the bytes on takes
	if !free && !s.memory.take(n) {
		once := &onceReader{ctx: ctx, r: r, left: n}
		return &body{once, func() {}, once.result}, nil
	}
	release := sync.OnceFunc(func() {
		if !free {
			s.memory.give(n)
		}
	})
	var buf sliceWriter
	buf.b = make([]byte, 0, n)
	if n > 0 {
		k, err := blob.Copy(ctx, &buf, r, n, make([]byte, min(n, 64<<10)))
		if err == nil && k < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return &body{bytes.NewReader(buf.b), release, func(err error) error { return err }}, nil
}

type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// A onceReader reads a limited number of bytes of a reader. It keeps the reader's
// error, because the transport replaces it.
type onceReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
	err  error
}

func (o *onceReader) Read(p []byte) (int, error) {
	switch {
	case o.err != nil:
		return 0, o.err
	case o.ctx.Err() != nil:
		return 0, o.ctx.Err()
	case o.left == 0:
		return 0, io.EOF
	}
	n, err := o.r.Read(p[:min(int64(len(p)), o.left)])
	o.left -= int64(n)
	if err == io.EOF && o.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != io.EOF {
		o.err = err
	}
	return n, err
}

func (o *onceReader) result(err error) error {
	if o.err != nil {
		return o.err
	}
	return err
}

// A multipart is a multipart upload by this store.
type multipart struct {
	s    *Store
	ctx  context.Context // cancelled at the first error
	end  context.CancelCauseFunc
	name string
	id   string
	size int64 // of the object
	part int64 // size of all parts but the last

	wg     sync.WaitGroup
	slots  chan struct{}
	failed atomic.Bool

	mu    sync.Mutex
	sent  int
	parts []minio.CompletePart
	err   error // the first error
}

// putLarge creates an object by a multipart upload whose parts fill sends.
func (s *Store) putLarge(ctx context.Context, name string, size int64, fill func(*multipart) error) error {
	id, err := s.c.NewMultipartUpload(countSilences(ctx), s.bucket, name, minio.PutObjectOptions{})
	if err != nil {
		return fail("begin upload", err)
	}
	u := &multipart{s: s, name: name, id: id, size: size, part: partSizeFor(size), slots: make(chan struct{}, parallel)}
	u.ctx, u.end = context.WithCancelCause(ctx)
	defer u.end(nil)
	err = fill(u)
	u.wg.Wait()
	if u.err != nil {
		err = u.err // the error that made fill fail
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.complete(ctx, name, id, u.parts, size)
	}
	if err != nil {
		s.abort(ctx, name, id)
	}
	return err
}

func partSizeFor(size int64) int64 {
	const mib = 1 << 20
	least := (size + MaxParts - 1) / MaxParts
	return max(partSize, (least+mib-1)/mib*mib)
}

// stream sends all of r.
func (u *multipart) stream(r io.Reader) error {
	for off := int64(0); off < u.size && !u.failed.Load(); off += u.part {
		n := min(u.part, u.size-off)
		body, err := u.s.body(u.ctx, r, n)
		if err != nil {
			u.fail(err)
			return err
		}
		_, buffered := body.Reader.(io.Seeker)
		u.send(n, body, body.result)
		if !buffered {
			u.wg.Wait() // r cannot be read concurrently
		}
	}
	return nil
}

// send sends the next part, and returns when the next one may start.
func (u *multipart) send(n int64, r io.Reader, result func(error) error) {
	done := func() {}
	if b, ok := r.(*body); ok {
		done, r = b.release, b.Reader
	}
	u.do(done, func(number int) (string, error) {
		sum, err := u.s.partSum(r)
		if err != nil {
			return "", err
		}
		p, err := u.s.c.PutObjectPart(countSilences(u.ctx), u.s.bucket, u.name, u.id, number, r, n, minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
		return p.ETag, result(fail("put part", err))
	})
}

// copy copies n bytes of another object to the next part.
func (u *multipart) copy(from string, off, n int64) {
	u.do(func() {}, func(number int) (string, error) {
		p, err := u.s.c.CopyObjectPart(countSilences(u.ctx), u.s.bucket, from, u.s.bucket, u.name, u.id, number, off, n, nil)
		return p.ETag, fail("copy part", err)
	})
}

// do creates the next part, concurrently with others.
func (u *multipart) do(done func(), f func(number int) (etag string, err error)) {
	select {
	case u.slots <- struct{}{}:
	case <-u.ctx.Done():
		done()
		u.fail(context.Cause(u.ctx))
		return
	}
	u.sent++
	number := u.sent
	u.wg.Go(func() {
		defer func() { <-u.slots }()
		defer done()
		etag, err := f(number)
		if err != nil {
			u.fail(err)
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: etag})
	})
}

func (u *multipart) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
		u.failed.Store(true)
		u.end(err)
	}
}

// complete creates the object of an upload. It may be repeated: if the first response
// is lost, the second request fails because the upload no longer exists.
func (s *Store) complete(ctx context.Context, name, id string, parts []minio.CompletePart, size int64) error {
	slices.SortFunc(parts, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	_, err := s.c.CompleteMultipartUpload(countSilences(ctx), s.bucket, name, id, parts, minio.PutObjectOptions{})
	if hasCode(err, minio.NoSuchUpload) {
		stat, serr := s.c.StatObject(countSilences(ctx), s.bucket, name, minio.StatObjectOptions{})
		if serr == nil && stat.Size == size && strings.EqualFold(stat.ETag, etagOf(parts)) {
			return nil
		}
	}
	return fail("complete upload", err)
}

// etagOf returns the ETag that S3 gives to an object of several parts.
func etagOf(parts []minio.CompletePart) string {
	h := md5.New()
	for _, p := range parts {
		sum, err := hex.DecodeString(strings.Trim(p.ETag, `"`))
		if err != nil {
			return ""
		}
		h.Write(sum)
	}
	return fmt.Sprintf("%x-%d", h.Sum(nil), len(parts))
}

// abort aborts a failed upload. The server may still be busy with a part that we have
// given up, and store it afterwards; therefore abort repeats the request. ListDirect
// finds uploads for which that fails too.
func (s *Store) abort(ctx context.Context, name, id string) {
	ctx, cancel := context.WithTimeout(countSilences(context.WithoutCancel(ctx)), abortAfter)
	defer cancel()
	for try := 1; try <= abortTries; try++ {
		err := s.c.AbortMultipartUpload(ctx, s.bucket, name, id)
		if errors.Is(fail("abort", err), blob.ErrUnavailable) || pause(ctx, try) != nil {
			return
		}
		if _, err := s.c.ListObjectParts(ctx, s.bucket, name, id, 0, 1); hasCode(err, minio.NoSuchUpload) {
			return
		}
	}
}
