package fsblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// syncAll makes everything on the file system of f durable.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }

// syncData makes the content of f durable, without its times.
func syncData(f *os.File) error {
	return retry(func() error { return unix.Fdatasync(int(f.Fd())) })
}

// startWriting makes the disk start writing a range of f without waiting
// (sync_file_range(2)). It makes nothing durable: the following sync reports failures.
func startWriting(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

// setDirect switches direct writes to f, which bypass the page cache, on or off
// (O_DIRECT).
func setDirect(f *os.File, on bool) error {
	return retry(func() error {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		if flags &^= unix.O_DIRECT; on {
			flags |= unix.O_DIRECT
		}
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
		return err
	})
}

// unfit reports whether the kernel refused a direct write because of the address, the
// offset or the size.
func unfit(err error) bool { return errors.Is(err, unix.EINVAL) }

// reserve allocates disk space for a range of f, so that a full disk is known before
// the bytes are sent. It checks the free space first: fallocate may take all of it
// before it fails, and for that moment the disk is full for everyone else.
func reserve(f *os.File, off, n int64) error {
	if n < minReserve {
		return nil
	}
	if err := checkRoom(f, n); err != nil {
		return err
	}
	err := retry(func() error { return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// checkRoom fails with ENOSPC if fewer than n bytes are free.
func checkRoom(f *os.File, n int64) error {
	free, err := freeSpace(f)
	if err == nil && free < n {
		err = unix.ENOSPC
	}
	return err
}

// freeSpace returns how many bytes can be written to the file system of f.
func freeSpace(f *os.File) (int64, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return 0, err
	}
	return int64(min(st.Bavail, math.MaxInt64/uint64(st.Bsize)) * uint64(st.Bsize)), nil
}

// punch frees the disk space of a reserved range that was not filled; the range then
// reads as zeros. Failure is harmless: the range belongs to no object.
func punch(f *os.File, off, n int64) {
	_ = retry(func() error {
		return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE|unix.FALLOC_FL_PUNCH_HOLE, off, n)
	})
}

// copyRange copies n bytes between files: by sharing blocks if the file system supports
// it and the range is aligned, else within the kernel, else through memory.
func (s *Store) copyRange(ctx context.Context, dst *os.File, dstOff int64, src *os.File, srcOff, n int64) error {
	if n == 0 {
		return nil
	}
	if unix.IoctlFileCloneRange(int(dst.Fd()), &unix.FileCloneRange{
		Src_fd: int64(src.Fd()), Src_offset: uint64(srcOff), Src_length: uint64(n), Dest_offset: uint64(dstOff),
	}) == nil {
		return nil
	}
	const step = 64 << 20 // between two checks of ctx
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := unix.CopyFileRange(int(src.Fd()), &srcOff, int(dst.Fd()), &dstOff, int(min(n, step)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG), errors.Is(err, unix.EIO):
			return err
		case err != nil: // not supported between these files: EXDEV, EOPNOTSUPP, ENOSYS, EINVAL …
			return s.copyPortably(ctx, dst, dstOff, src, srcOff, n)
		case k == 0:
			return io.ErrUnexpectedEOF
		}
		n -= int64(max(k, 0))
	}
	return nil
}

// linkOpen gives an open file a name in the root. Unlike a link by name it
// cannot hit another file.
func (s *Store) linkOpen(f *os.File, name string) bool {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW) == nil
}

// takeOver gives the file f at path a name in the root, unless it has names other than
// path.
func (s *Store) takeOver(f *os.File, _, name string) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 1 && s.linkOpen(f, name)
}

// fallbackPath returns a path of an object that was deleted before the first call of
// LocalPath.
func (o *object) fallbackPath() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), o.f.Fd())
}

// retry repeats a call while signals interrupt it.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
