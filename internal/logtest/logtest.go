// Package logtest keeps what is written while a test looks at it.
package logtest

import (
	"bytes"
	"sync"
)

// A Buffer keeps what is written to it. The zero value is empty and ready. It is safe
// for concurrent use, and must not be copied.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that has been written until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
