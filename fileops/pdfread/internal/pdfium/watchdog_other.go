//go:build !cgo || !linux

package pdfium

import "time"

// A watchdog does nothing here: the clock of a thread, and threads that the runtime of Go
// does not know, need C and Linux.
type watchdog struct{}

func newWatchdog([]byte) *watchdog { return nil }

func (*watchdog) arm(time.Duration) {}
func (*watchdog) disarm()           {}
func (*watchdog) fired() bool       { return false }
func (*watchdog) close()            {}
