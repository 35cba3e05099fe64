package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
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
	if link(f, path) == nil {
		return nil
	}
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, w.Close())
}
