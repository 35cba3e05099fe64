// Package safezip rejects ZIP archives and compressed files that are built to
// harm programs that unpack them. Archives, documents and compressed files have
// the same rules.
package safezip

import (
	"cmp"
	"errors"
	"io"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
)

// Limits bound the content of a file. Zero fields mean the defaults.
type Limits struct {
	Entries  int   // files in an archive; 0 means 10,000
	Unpacked int64 // bytes of all entries together; 0 means 4 GiB
	Ratio    int64 // see Dense; 0 means 500
}

// OrDefault returns l with defaults for fields that are zero or negative.
// unpacked is the default of Limits.Unpacked, or 0.
func (l Limits) OrDefault(unpacked int64) Limits {
	return Limits{
		Entries:  cmp.Or(max(l.Entries, 0), 10_000),
		Unpacked: cmp.Or(max(l.Unpacked, 0), unpacked, 4<<30),
		Ratio:    cmp.Or(max(l.Ratio, 0), 500),
	}
}

// Dense reports whether data unpacks to more than 10 MiB, and to more than Ratio
// times its packed size. Deflate reaches 1,032, and every bomb is near that.
// Logs of repeated lines reach 260.
func (l Limits) Dense(unpacked, packed uint64) bool {
	const from = 10 << 20
	// Division, because a product could overflow.
	return unpacked > from && (unpacked-1)/uint64(l.Ratio) >= max(packed, 1)
}

// TooDense returns the error for data that is [Limits.Dense].
func (l Limits) TooDense() error {
	return fileops.Fail(fileops.ErrLimit, nil, "the file unpacks to more than %d times its size", l.Ratio)
}

// TooLarge returns the error for data of more than Limits.Unpacked bytes.
func (l Limits) TooLarge() error {
	return fileops.Fail(fileops.ErrLimit, nil, "the file unpacks to more than the limit of %d bytes; split it first", l.Unpacked)
}

// TooMany returns the error for an archive of more than Limits.Entries entries.
func (l Limits) TooMany() error {
	return fileops.Fail(fileops.ErrLimit, nil, "the file has more than the limit of %d entries; split it first", l.Entries)
}

// Open reads the directory of an archive. It limits the size of the directory,
// which takes ten times as much memory. The caller should also call
// [Limits.Check]. An error that is not an [fileops.ErrLimit] means damage.
func (l Limits) Open(r io.ReaderAt, size int64) (*zip.Reader, error) {
	const anyDirectory = 8 << 20 // bytes that every directory may have
	src := &directory{Limits: l, r: r, left: max(anyDirectory, int64(l.Entries)<<10)}
	z, err := zip.NewReader(src, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	src.read = true
	return z, nil
}

// A directory fails after left bytes. Once the directory has been read, there is no
// limit, and several goroutines may read entries.
type directory struct {
	Limits
	r    io.ReaderAt
	left int64
	read bool
}

// ReadAt implements io.ReaderAt.
func (d *directory) ReadAt(p []byte, off int64) (int, error) {
	if !d.read {
		if d.left -= int64(len(p)); d.left < 0 {
			return 0, d.TooMany()
		}
	}
	return d.r.ReadAt(p, off)
}

// ErrOverlap reports that entries share data, or are incomplete. A few kilobytes
// can claim to be petabytes (D. Fifield, A better zip bomb, 2019).
var ErrOverlap = errors.New("safezip: the entries of the archive overlap or are incomplete")

// Check compares the directory of an archive of size bytes with the limits. It
// ignores the content of entries for which copied, if not nil, returns true: the
// caller does not unpack them. It returns [ErrOverlap] for a damaged archive.
func (l Limits) Check(files []*zip.File, size int64, copied func(*zip.File) bool) error {
	if len(files) > l.Entries {
		return l.TooMany()
	}
	var packed, unpacked uint64
	for _, f := range files {
		if f.CompressedSize64 > uint64(size) {
			return ErrOverlap
		}
		packed += f.CompressedSize64
		if copied != nil && copied(f) {
			continue
		}
		if f.UncompressedSize64 > uint64(l.Unpacked) || unpacked+f.UncompressedSize64 > uint64(l.Unpacked) {
			return l.TooLarge()
		}
		unpacked += f.UncompressedSize64
		if l.Dense(f.UncompressedSize64, f.CompressedSize64) {
			return l.TooDense()
		}
	}
	if packed > uint64(size) {
		return ErrOverlap
	}
	return nil
}
