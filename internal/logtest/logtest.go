// Package logtest buffers output that a test reads while it is being written.
package logtest

import (
	"bytes"
	"sync"
)

// A Buffer stores everything that is written to it. The zero value is empty and ready.
// It is safe for concurrent use, and must not be copied.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
