package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens a file that a program created in its directory dir, for reading. The
// program may be compromised and still running. Open therefore follows no symbolic link
// out of dir, and refuses everything that is not a regular file.
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

// Take makes a file that [Open] opened available at path, which must not exist: as a
// hard link if possible, else as a copy.
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
