//go:build cgo

package imageops

// #include <stdint.h>
import "C"

import (
	"io"
	"runtime/cgo"
	"unsafe"
)

// A rowSink receives the rows of a picture; see copyTo.
type rowSink struct {
	w   io.Writer
	row int // bytes
	err error
}

// fileopsRows writes rows that are skip bytes apart. C calls it, so it has a file of its own:
// the preamble of this file may only declare functions.
//
//export fileopsRows
func fileopsRows(h C.uintptr_t, pix unsafe.Pointer, skip, rows C.int) C.int {
	s := cgo.Handle(h).Value().(*rowSink)
	n, size := int(rows), s.row
	if int(skip) == s.row {
		n, size = 1, int(rows)*s.row
	}
	for i := range n {
		if _, s.err = s.w.Write(unsafe.Slice((*byte)(unsafe.Add(pix, i*int(skip))), size)); s.err != nil {
			return -1
		}
	}
	return 0
}
