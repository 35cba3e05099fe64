package pdfium

import "bytes"

// A linearMemory is the memory of one instance. It is outside the Go heap, so
// that hundreds of megabytes return to the system as soon as the instance is
// closed. It never moves, so another goroutine may overwrite it; see
// [Instance.Within].
type linearMemory struct {
	b    []byte // the reserved range; pages are allocated on first use
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

// Free implements experimental.LinearMemory and does nothing. The module calls
// it on close, possibly while its code still runs. release frees the memory when
// it is no longer used.
func (m *linearMemory) Free() {}

func (m *linearMemory) release() error {
	b := m.b
	m.b = nil
	if b == nil {
		return nil
	}
	return unreserve(b)
}

// poison overwrites the memory to make the running code fail: every pointer and
// index that it reads is out of bounds, which traps.
func (m *linearMemory) poison() {
	spoiled := bytes.Repeat([]byte{0xff}, 1<<20)
	for b := m.spoilable(); len(b) > 0; {
		b = b[copy(b, spoiled):]
	}
}

// spoilable is the part of the memory that poison overwrites. Stack, globals and the
// start of the heap are at the low end.
func (m *linearMemory) spoilable() []byte { return m.b[:min(len(m.b), 64<<20)] }
