//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlstore

import (
	"errors"
	"os"
)

// lock fails: a database that two processes may change is not safe.
func lock(path string) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
