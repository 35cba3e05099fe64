//go:build !linux

package fsblob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// On other systems the store works without these optimisations and guarantees.

func syncAll(*os.File) error { return nil }

func syncData(f *os.File) error { return f.Sync() }

func reserve(*os.File, int64, int64) error { return nil }

func checkRoom(*os.File, int64) error { return nil }

func freeSpace(*os.File) (int64, error) { return 0, errors.ErrUnsupported }

func punch(*os.File, int64, int64) {}

func (s *Store) copyRange(ctx context.Context, dst *os.File, dstOff int64, src *os.File, srcOff, n int64) error {
	return s.copyPortably(ctx, dst, dstOff, src, srcOff, n)
}

func (s *Store) linkOpen(f *os.File, name string) bool {
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	return os.Link(f.Name(), to) == nil
}

func (s *Store) takeOver(_ *os.File, path, name string) bool {
	return os.Rename(path, filepath.Join(s.dir, filepath.FromSlash(name))) == nil
}

func (o *object) fallbackPath() string { return o.f.Name() }

func startWriting(*os.File, int64, int64) {}

func setDirect(*os.File, bool) error { return errors.ErrUnsupported }

func unfit(error) bool { return false }
