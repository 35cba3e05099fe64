//go:build linux || darwin

package worker

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes can be written to the file system of a
// directory. ok is false if that cannot be known.
func freeSpace(dir string) (n int64, ok bool) {
	var st unix.Statfs_t
	for {
		switch err := unix.Statfs(dir, &st); err {
		case nil:
			return int64(st.Bavail) * int64(st.Bsize), true
		case unix.EINTR:
		default:
			return 0, false
		}
	}
}
