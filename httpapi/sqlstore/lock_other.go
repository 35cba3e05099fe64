//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlstore

import (
	"errors"
	"os"
)

// lock fails: without a lock two processes could change the database.
func lock(path string) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
