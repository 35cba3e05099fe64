package upload

import (
	"crypto/md5"
	"hash"
)

// digestChunk is the number of bytes passed to the goroutine at a time, and the size
// from which a digest is worth a goroutine.
const digestChunk = 256 << 10

// A digest computes an MD5 in its own goroutine, because hashing takes longer than
// receiving and storing the bytes together. close must be called.
type digest struct {
	md5        hash.Hash
	n          int64
	chunk      []byte
	full, free chan []byte // nil until there is a goroutine
	done       chan struct{}
	closed     bool
}

func newDigest() *digest { return &digest{md5: md5.New()} }

func (d *digest) write(p []byte) {
	d.n += int64(len(p))
	if d.full == nil && d.n <= digestChunk {
		d.md5.Write(p)
		return
	}
	if d.full == nil {
		d.start()
	}
	for len(p) > 0 {
		if d.chunk == nil {
			d.chunk = (<-d.free)[:0]
		}
		k := min(len(p), cap(d.chunk)-len(d.chunk))
		d.chunk = append(d.chunk, p[:k]...)
		p = p[k:]
		if len(d.chunk) == cap(d.chunk) {
			d.full <- d.chunk
			d.chunk = nil
		}
	}
}

func (d *digest) start() {
	const chunks = 3 // one is filled, one is queued, one is hashed
	d.full, d.free, d.done = make(chan []byte, chunks), make(chan []byte, chunks), make(chan struct{})
	for range chunks {
		d.free <- make([]byte, 0, digestChunk)
	}
	go func() {
		defer close(d.done)
		for c := range d.full {
			d.md5.Write(c)
			d.free <- c
		}
	}()
}

// close waits until everything is hashed. No write may follow it.
func (d *digest) close() {
	if d.full == nil || d.closed {
		return
	}
	d.closed = true
	if len(d.chunk) > 0 {
		d.full <- d.chunk
	}
	close(d.full)
	<-d.done
}

func (d *digest) sum() (sum [md5.Size]byte) {
	d.close()
	d.md5.Sum(sum[:0])
	return sum
}
