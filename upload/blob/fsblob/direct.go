package fsblob

import (
	"context"
	"io"
	"os"
	"unsafe"

	"github.com/filewright/filewright/upload/blob"
)

// Large objects bypass the page cache. The cache costs another copy of each byte into
// newly allocated memory, which can take more processor time than its MD5. It evicts
// other data, and the final sync still waits for the disk. Smaller objects stay in the
// cache: they are likely to be read soon, and direct writes would be no faster.
const (
	directFrom  = 256 << 20 // minimum size of an object
	directRange = 4 << 20   // minimum size of a written range

	directBuf  = 1 << 20
	directBufs = 2 // one is filled, one is written

	// directAlign is the unit of addresses, offsets and sizes. It is the block size of
	// almost every disk; where it is too small, the kernel returns an error.
	directAlign = 4096
)

// aligned returns a buffer of directBuf bytes at an aligned address.
func aligned() []byte {
	b := make([]byte, directBuf+directAlign)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % directAlign
	return b[skip:][:directBuf:directBuf]
}

// receive writes at most n bytes of r to f at off. size is the final size of f.
func (s *Store) receive(ctx context.Context, f *os.File, size, off int64, r io.Reader, n int64) (int64, error) {
	if size < directFrom || n < directRange {
		return s.copy(ctx, &earlyWriter{f: f, off: off}, r, n)
	}
	head := -off & (directAlign - 1)
	k, err := s.copy(ctx, io.NewOffsetWriter(f, off), r, head)
	if err != nil || k < head {
		return k, err
	}
	if setDirect(f, true) != nil { // not supported by this file system
		k, err = s.copy(ctx, &earlyWriter{f: f, off: off + head}, r, n-head)
	} else {
		k, err = s.receiveDirect(ctx, f, off+head, r, n-head)
	}
	return head + k, err
}

// receiveDirect is receive for a file that is written directly, starting at an aligned
// offset. It reads while the disk writes.
func (s *Store) receiveDirect(ctx context.Context, f *os.File, off int64, r io.Reader, n int64) (done int64, err error) {
	w := s.newDirectWriter(f, off)
	defer func() { // r may panic
		if werr := w.close(); err == nil {
			err = werr
		}
	}()
	for done < n && err == nil {
		b := (<-w.free)[:directBuf]
		if w.failed() {
			w.free <- b
			break
		}
		want := min(n-done, directBuf)
		var k int64
		k, err = blob.Copy(ctx, io.Discard, r, want, b) // fills b once
		done += k
		w.full <- b[:k]
		if k < want {
			break
		}
	}
	return done, err
}

// A directWriter writes buffers to a file one after the other.
type directWriter struct {
	s          *Store
	f          *os.File
	off        int64
	direct     bool
	free, full chan []byte
	broken     chan struct{} // closed at the first error
	done       chan struct{}
	err        error // readable after broken or done is closed
}

func (s *Store) newDirectWriter(f *os.File, off int64) *directWriter {
	w := &directWriter{
		s: s, f: f, off: off, direct: true, free: make(chan []byte, directBufs), full: make(chan []byte, directBufs),
		broken: make(chan struct{}), done: make(chan struct{}),
	}
	for range directBufs {
		w.free <- *s.aligned.Get().(*[]byte)
	}
	go w.run()
	return w
}

func (w *directWriter) run() {
	defer close(w.done)
	for b := range w.full {
		if w.err == nil {
			if w.err = w.write(b); w.err != nil {
				close(w.broken)
			}
		}
		w.free <- b
	}
}

// write writes the next bytes. Only the last call may pass a length that is not a
// multiple of directAlign.
func (w *directWriter) write(b []byte) error {
	whole := len(b) &^ (directAlign - 1)
	if w.direct && whole > 0 {
		n, err := w.f.WriteAt(b[:whole], w.off)
		w.off += int64(n)
		if b = b[n:]; err != nil && !unfit(err) {
			return err
		}
	}
	if len(b) == 0 {
		return nil
	}
	if w.direct {
		if err := setDirect(w.f, false); err != nil {
			return err
		}
		w.direct = false
	}
	n, err := w.f.WriteAt(b, w.off)
	w.off += int64(n)
	return err
}

func (w *directWriter) failed() bool {
	select {
	case <-w.broken:
		return true
	default:
		return false
	}
}

// close waits until everything is written, and returns the first error.
func (w *directWriter) close() error {
	close(w.full)
	<-w.done
	for {
		select {
		case b := <-w.free:
			b = b[:directBuf]
			w.s.aligned.Put(&b)
		default:
			return w.err
		}
	}
}
