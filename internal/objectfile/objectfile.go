// Package objectfile makes stored objects the inputs of actions.
package objectfile

import (
	"errors"
	"io"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/upload/blob"
)

// File returns an object as a file called name: the local file or the memory that it is in, or else a
// copy in the new file that spool returns, which the caller removes. The file is valid until obj is
// closed.
func File(name string, obj blob.Object, spool func() (*os.File, error)) (*fileops.File, error) {
	if l, ok := obj.(blob.LocalObject); ok {
		if path := l.LocalPath(); path != "" {
			return fileops.Path(path).Named(name), nil
		}
	}
	if m, ok := obj.(blob.MemoryObject); ok {
		return fileops.Bytes(name, m.Bytes()), nil
	}
	f, err := spool()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, io.NewSectionReader(obj, 0, obj.Info().Size))
	return fileops.Path(f.Name()).Named(name), errors.Join(err, f.Close())
}
