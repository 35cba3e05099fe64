package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Open opens a file that a program has made in its directory dir, for reading. The
// program may have been taken over, and still run: a link that leads out of dir
// is not followed, and what is no regular file is refused.
func Open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// A pipe that nobody writes to must not keep us.
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("open %s: not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Take makes a file that [Open] has opened available at path, which must not exist:
// as another name where that is possible, else as a copy.
func Take(f *os.File, path string) error {
	// Of the file that is open, whatever bears its name by now (linkat(2)).
	open := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if unix.Linkat(unix.AT_FDCWD, open, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW) == nil {
		return nil
	}
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, w.Close())
}
