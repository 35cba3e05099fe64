package engine

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openFlags keep a pipe without a writer from blocking, and refuse links.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// link names an open file path, whatever has its old name by now (linkat(2)).
func link(f *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
