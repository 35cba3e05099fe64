package pdfium

import "bytes"

// A linearMemory is the memory of one instance. It lies outside the Go heap, so
// that hundreds of megabytes go back to the system at once when the instance is
// closed, and it never moves, so that another goroutine may overwrite it; see
// [Instance.Kill].
type linearMemory struct {
	b    []byte // all that is reserved; pages are allocated when they are touched
	size uint64
}

// newLinearMemory reserves limit bytes of address space.
func newLinearMemory(limit uint64) (*linearMemory, error) {
	b, err := reserve(int(limit))
	if err != nil {
		return nil, err
	}
	return &linearMemory{b: b}, nil
}

// Reallocate implements experimental.LinearMemory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.b)) {
		return nil
	}
	m.size = size
	return m.b[:size:size]
}

// Free implements experimental.LinearMemory. The module calls it when it is
// closed, which may be while its code still runs; the memory is released by
// release, when nothing uses it any more.
func (m *linearMemory) Free() {}

func (m *linearMemory) release() error {
	b := m.b
	m.b = nil
	if b == nil {
		return nil
	}
	return unreserve(b)
}

// poison overwrites the memory so that the code that works on it comes to
// grief: every pointer and every index it finds is out of bounds, which traps.
// Stack, globals and the start of the heap are at the low end.
func (m *linearMemory) poison() {
	spoiled := bytes.Repeat([]byte{0xff}, 1<<20)
	for i := 0; i < min(len(m.b), 64<<20); i += len(spoiled) {
		copy(m.b[i:], spoiled)
	}
}
