//go:build cgo && linux

package pdfread_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// A page that loops is stopped even while a garbage collection waits for it. No goroutine
// runs then, so the test needs a timeout of the whole program to fail.
func TestLimitDuringCollection(t *testing.T) {
	e := newEngine(t, pdfread.Options{PageTimeout: 400 * time.Millisecond})
	mustConvert(t, e, fileops.Args{"convert_to": "png"}, fixtures()["text"]) // pdfium is compiled
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	_, codes := warned(t, e, "png", fieldsOfManyParents())
	if !slices.Equal(codes, []string{fileops.WarnContentDropped}) {
		t.Errorf("warnings %q", codes)
	}
}
