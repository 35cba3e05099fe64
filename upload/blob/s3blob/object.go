package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/upload/blob"
)

// Parameters of reading objects.
const (
	headSize    = 64 << 10  // read by Open
	firstWindow = 256 << 10 // of a range that does not continue another
	maxWindow   = 64 << 20
	maxStreams  = 4 // idle streams of one object
	readTries   = 5 // for a range whose body breaks off
)

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, key string) (blob.Object, error) {
	name, err := s.name(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := &object{s: s, ctx: ctx, name: name}
	if err := o.openRepeatedly(key, headSize); err != nil {
		return nil, err
	}
	return o, nil
}

// Stat implements blob.Remote. It reads the first byte, because the response to a HEAD
// request does not distinguish a missing object from a missing bucket.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	name, err := s.name(key)
	if err != nil {
		return blob.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return blob.Info{}, err
	}
	o := &object{s: s, ctx: ctx, name: name}
	err = o.openRepeatedly(key, 1)
	return o.info, err
}

// openRepeatedly opens the object and retries where that may help.
func (o *object) openRepeatedly(key string, head int64) error {
	call := countSilences(o.ctx)
	for try := 1; ; try++ {
		err := o.open(call, key, head)
		if err == nil {
			return nil
		}
		if try == readTries || !isBroken(err) || silent(call, nil) {
			return fail("open", err)
		}
		if err := pause(o.ctx, try); err != nil {
			return err
		}
	}
}

// An object is an open object, which is read in ranges.
type object struct {
	s    *Store
	ctx  context.Context
	name string
	etag string
	info blob.Info
	head []byte // its first bytes

	mu     sync.Mutex
	idle   []*stream // where reading may continue; the most recently used is the last
	closed bool
}

// open reads the first n bytes.
func (o *object) open(ctx context.Context, key string, n int64) error {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(0, n-1); err != nil {
		return err
	}
	body, stat, h, err := o.s.c.GetObject(ctx, o.s.bucket, o.name, opts)
	if hasCode(err, "InvalidRange") { // an empty object has no first byte
		stat, err = o.s.c.StatObject(ctx, o.s.bucket, o.name, minio.StatObjectOptions{})
		if err == nil && stat.Size != 0 {
			err = errBroken // replaced in the meantime
		}
		o.info = blob.Info{Key: key, ModTime: stat.LastModified}
		return err
	}
	if err != nil {
		return err
	}
	defer body.Close()
	size := stat.Size
	if r := h.Get("Content-Range"); r != "" {
		if size, err = totalSize(r); err != nil {
			return err
		}
	}
	head := make([]byte, min(n, size))
	if _, err := io.ReadFull(body, head); err != nil {
		return broken(ctx, err)
	}
	o.info = blob.Info{Key: key, Size: size, ModTime: stat.LastModified}
	o.etag, o.head = stat.ETag, head
	return nil
}

// totalSize returns the total size in a Content-Range header, such as 100 in "bytes
// 0-9/100".
func totalSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil || n < 0 {
		return 0, &failure{"s3: the server answers with a malformed Content-Range", nil}
	}
	return n, nil
}

// errBroken reports that the body of a response broke off: another request may return
// the rest.
var errBroken = fmt.Errorf("the connection to the store was interrupted: %w", blob.ErrUnavailable)

func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	silent(ctx, err)
	return &failure{"s3: " + network(err), errBroken}
}

// isBroken reports whether another request may help where the client library does not
// retry, because it has received the start of a response.
func isBroken(err error) bool {
	return errors.Is(err, errBroken) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// pause waits before a retry.
func pause(ctx context.Context, try int) error {
	select {
	case <-time.After(50 * time.Millisecond << try):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Info implements blob.Object.
func (o *object) Info() blob.Info { return o.info }

// Close implements blob.Object.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, st := range o.idle {
		st.close()
	}
	o.idle, o.closed = nil, true
	return nil
}

// ReadAt implements blob.Object.
func (o *object) ReadAt(p []byte, off int64) (n int, err error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fmt.Errorf("s3: negative offset: %w", fs.ErrInvalid)
	}
	if off >= o.info.Size {
		return 0, io.EOF
	}
	var end error
	if left := o.info.Size - off; int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	if off < int64(len(o.head)) {
		n = copy(p, o.head[off:])
	}
	call := countSilences(o.ctx)
	for try := 1; n < len(p); try++ {
		k, err := o.read(call, p[n:], off+int64(n))
		n += k
		if k > 0 {
			try = 0
		}
		if err == nil {
			continue
		}
		if !isBroken(err) || try == readTries || silent(call, nil) {
			return n, fail("read", err)
		}
		if err := pause(o.ctx, try); err != nil {
			return n, err
		}
	}
	return n, end
}

// A stream is a range that is being read, or that has been read; then it has no body.
type stream struct {
	body     io.ReadCloser
	pos, end int64
	window   int64 // size of its range
}

func (st *stream) close() {
	if st.body != nil {
		st.body.Close()
		st.body = nil
	}
}

// read reads from the object, at most to the end of one range.
func (o *object) read(ctx context.Context, p []byte, off int64) (int, error) {
	st, err := o.take(off)
	if err != nil {
		return 0, err
	}
	if st == nil {
		st = &stream{pos: off, end: off, window: firstWindow}
	}
	if st.pos == st.end {
		st.close()
		if err := o.request(ctx, st, int64(len(p))); err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(st.body, p[:min(int64(len(p)), st.end-st.pos)])
	st.pos += int64(n)
	if err != nil {
		st.close()
		return n, broken(ctx, err)
	}
	if st.pos == st.end {
		// Reading to the end of the response lets the connection be reused.
		io.Copy(io.Discard, io.LimitReader(st.body, 512))
		st.close()
	}
	o.put(st)
	return n, nil
}

// request requests the next range, of at least n bytes.
func (o *object) request(ctx context.Context, st *stream, n int64) error {
	size := min(max(st.window, n), o.info.Size-st.pos)
	var opts minio.GetObjectOptions
	if err := opts.SetRange(st.pos, st.pos+size-1); err != nil {
		return err
	}
	if err := opts.SetMatchETag(o.etag); err != nil {
		return err
	}
	body, stat, h, err := o.s.c.GetObject(ctx, o.s.bucket, o.name, opts)
	if err != nil {
		var resp minio.ErrorResponse
		if errors.As(err, &resp) && (resp.StatusCode == http.StatusPreconditionFailed || resp.Code == minio.PreconditionFailed || resp.Code == "InvalidRange") {
			return &failure{"s3: read: the object has been replaced", nil}
		}
		return err
	}
	if h.Get("Content-Range") == "" || stat.Size != size {
		body.Close()
		return &failure{"s3: read: the server does not answer with the range that it was asked for", nil}
	}
	st.body, st.end = body, st.pos+size
	st.window = min(st.window*4, maxWindow)
	return nil
}

// take returns the stream that continues at off, or nil.
func (o *object) take(off int64) (*stream, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, &failure{"s3: read: the object is closed", fs.ErrClosed}
	}
	for i, st := range slices.Backward(o.idle) {
		if st.pos == off {
			o.idle = slices.Delete(o.idle, i, i+1)
			return st, nil
		}
	}
	return nil, nil
}

func (o *object) put(st *stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		st.close()
		return
	}
	if len(o.idle) == maxStreams {
		o.idle[0].close()
		o.idle = slices.Delete(o.idle, 0, 1)
	}
	o.idle = append(o.idle, st)
}
