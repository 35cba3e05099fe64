package engine

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openFlags refuse symbolic links, and keep a pipe without a writer from blocking.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// link adds the name path to an open file, even if the file was renamed or removed
// (linkat(2)).
func link(f *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
