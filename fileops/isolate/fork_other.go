//go:build !linux || !cgo

package isolate

const canFork = false
