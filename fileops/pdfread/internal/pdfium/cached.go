package pdfium

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file shortens the start of a process whose machine code is in a cache. wazero
// decodes and validates the whole module before it looks there, which takes twice as
// long as loading the code. So the machine code is stored as that of an outline: the
// module without the bodies of its functions, whose number and types are the same. The
// code of an outline that was really compiled does nothing but trap.

// loadCached returns the library from the cache in dir, and compiles it if necessary.
func loadCached(ctx context.Context, dir string, fonts []string) (*library, error) {
	outline, err := outlineOf(pdfiumWasm)
	if err != nil {
		return nil, err
	}
	before, err := cacheFiles(dir)
	if err != nil {
		return nil, err
	}
	l, err := newLibrary(ctx, outline, dir, fonts)
	if err != nil {
		return nil, err
	}
	after, err := cacheFiles(dir)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	created := slices.DeleteFunc(slices.Clone(after), func(path string) bool { return slices.Contains(before, path) })
	if len(created) == 0 {
		if err = l.works(); err == nil {
			return l, nil
		}
		// A process ended between the next two steps.
		created = after
	}
	err = errors.Join(err, l.close())
	for _, path := range created {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return nil, errors.Join(err, rerr)
		}
	}
	if len(created) != 1 {
		return newLibrary(ctx, pdfiumWasm, "", fonts) // the next process fills the cache
	}
	if err := compileInto(ctx, created[0], dir, fonts); err != nil {
		return nil, err
	}
	if l, err = newLibrary(ctx, outline, dir, fonts); err == nil {
		if err = l.works(); err != nil {
			err = errors.Join(err, l.close())
		}
	}
	return l, err
}

// compileInto compiles the module and stores its machine code in a file of the cache.
func compileInto(ctx context.Context, path, dir string, fonts []string) error {
	temp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	l, err := newLibrary(ctx, pdfiumWasm, temp, fonts)
	if err != nil {
		return err
	}
	files, err := cacheFiles(temp)
	if err := errors.Join(err, l.close()); err != nil {
		return err
	}
	if len(files) != 1 {
		return errors.New("pdfium was not stored in the cache")
	}
	return os.Rename(files[0], path)
}

// cacheFiles returns the paths of the files that wazero stored in a directory.
func cacheFiles(dir string) ([]string, error) {
	var files []string
	versions, err := os.ReadDir(dir)
	for _, v := range versions {
		if !v.IsDir() || !strings.HasPrefix(v.Name(), "wazero-") {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(dir, v.Name()))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, filepath.Join(dir, v.Name(), e.Name()))
		}
	}
	return files, err
}

// works starts the first instance. It returns an error if the code is that of an outline.
func (l *library) works() error {
	in, err := l.newInstance()
	if err != nil {
		return err
	}
	l.first = in
	return nil
}

// outlineOf returns a module without custom sections, whose functions only trap
// (WebAssembly core specification, 5.5).
func outlineOf(module []byte) ([]byte, error) {
	const (
		header       = 8
		custom, code = 0, 10
	)
	bad := errors.New("the module of pdfium is damaged")
	if len(module) < header {
		return nil, bad
	}
	out := append([]byte(nil), module[:header]...)
	for rest := module[header:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, bad
		}
		content := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch id {
		case custom:
			continue
		case code:
			count, n := binary.Uvarint(content)
			if n <= 0 || count > size {
				return nil, bad
			}
			content = append([]byte(nil), content[:n]...)
			// A body of three bytes: no local variables, unreachable, end.
			content = append(content, bytes.Repeat([]byte{3, 0, 0x00, 0x0b}, int(count))...)
		}
		out = binary.AppendUvarint(append(out, id), uint64(len(content)))
		out = append(out, content...)
	}
	return out, nil
}
