package archiveops

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/bodgit/sevenzip"
	"github.com/nwaples/rardecode/v2"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// A listed is a 7z or rar archive, which has a directory.
type listed struct {
	ctx      context.Context
	limits   safezip.Limits
	in       content
	password string

	headersOnly bool  // do not unpack content
	encrypted   bool  // an entry of a rar archive is encrypted
	unpacked    int64 // total size of the entries so far
}

// directory returns an archive that has a directory, or nil if in has another format.
func (c *converter) directory(ctx context.Context, job *fileops.Job, in content, headersOnly bool) (archive, error) {
	password := job.Params.Get("password")
	switch in.Format() {
	case format.ZIP:
		z, err := openZIP(ctx, c.limits, in, password)
		if err != nil {
			return nil, err // not a nil *zipArchive
		}
		return z, nil
	case format.SevenZip, format.RAR:
		return &listed{ctx: ctx, limits: c.limits, in: in, password: password, headersOnly: headersOnly}, nil
	}
	return nil, nil
}

// walk implements archive.
func (l *listed) walk(visit func(*tar.Header, io.Reader) error, _ func() int64) (err error) {
	defer func() {
		// Hostile input can make the libraries panic.
		if v := recover(); v != nil {
			err = l.failure(fmt.Errorf("decoder: %v", v))
		}
	}()
	if l.in.Format() == format.RAR {
		return l.failure(l.rar(visit))
	}
	return l.failure(l.sevenZip(visit))
}

// entry checks the limits and visits one entry. It fails if the content is longer or
// shorter than declared.
func (l *listed) entry(n int, h *tar.Header, open func() (io.Reader, error), visit func(*tar.Header, io.Reader) error) error {
	switch {
	case l.ctx.Err() != nil:
		return context.Cause(l.ctx)
	case n >= l.limits.Entries:
		return l.limits.TooMany()
	case h.Size < 0 || h.Size > l.limits.Unpacked-l.unpacked:
		return l.limits.TooLarge()
	}
	if l.unpacked += h.Size; l.limits.Dense(uint64(l.unpacked), uint64(l.in.Size())) {
		return l.limits.TooDense()
	}
	if l.headersOnly {
		return visit(h, nil)
	}
	r, err := open()
	if err != nil {
		return err
	}
	r = &sized{ctx: l.ctx, r: r, left: h.Size}
	if err := visit(h, r); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, struct{ io.Reader }{r}) // read the rest to verify the checksum
	return err
}

// A sized is a reader that fails unless its content has an exact size.
type sized struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (s *sized) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.r.Read(p)
	s.left -= int64(n)
	switch {
	case s.left < 0:
		return 0, errTooMany
	case err == io.EOF && s.left > 0:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// empty reports whether a 7z archive has no entries, and therefore no header after its start header
// (7zFormat.txt, "SignatureHeader"; 32 bytes). The library rejects it.
func (l *listed) empty() bool {
	var b [32]byte
	if _, err := l.in.Reader().ReadAt(b[:], 0); err != nil {
		return false
	}
	return [20]byte(b[12:]) == [20]byte{} && binary.LittleEndian.Uint32(b[8:]) == crc32.ChecksumIEEE(b[12:])
}

// hasUnixMode marks attributes in a 7z archive whose upper half is a Unix mode (p7zip,
// FILE_ATTRIBUTE_UNIX_EXTENSION).
const hasUnixMode = 0x8000

func (l *listed) sevenZip(visit func(*tar.Header, io.Reader) error) error {
	if l.empty() {
		return nil
	}
	zr, err := sevenzip.NewReaderWithPassword(l.in.Reader(), l.in.Size(), l.password)
	if err != nil {
		return err
	}
	for n, f := range zr.File {
		h := &tar.Header{Name: f.Name, Size: int64(min(f.UncompressedSize, 1<<62)), ModTime: f.Modified, Typeflag: typeFlag(f.Mode()), Mode: int64(f.Mode().Perm())}
		if h.Typeflag == tar.TypeDir {
			h.Size = 0
		}
		if f.Attributes&hasUnixMode == 0 {
			h.Mode = 0 // it has no permissions
		}
		var rc io.ReadCloser
		err := l.entry(n, h, func() (io.Reader, error) {
			if h.Size == 0 {
				return eof{}, nil
			}
			var err error
			if rc, err = f.Open(); err != nil {
				return nil, err
			}
			return &summed{r: rc, want: f.CRC32, sum: crc32.NewIEEE()}, nil
		}, visit)
		if rc != nil {
			err = errors.Join(err, rc.Close())
		}
		if errors.Is(err, errDamaged) && l.secret(n) {
			err = &sevenzip.ReadError{Encrypted: true, Err: err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// secret reports whether an entry of a 7z archive is encrypted. The library does not
// say so. An entry is encrypted if its content depends on the password.
func (l *listed) secret(n int) bool {
	first := func(password string) []byte {
		zr, err := sevenzip.NewReaderWithPassword(l.in.Reader(), l.in.Size(), password)
		if err != nil || n >= len(zr.File) {
			return nil
		}
		rc, err := zr.File[n].Open()
		if err != nil {
			return nil
		}
		defer rc.Close()
		b, _ := io.ReadAll(io.LimitReader(rc, 64))
		return b
	}
	return !bytes.Equal(first(l.password), first(l.password+"?"))
}

// anySecret reports whether one of the first entries of a 7z archive with content is
// encrypted.
func (l *listed) anySecret() bool {
	const most = 20 // entries, because each opens the archive three times
	zr, err := sevenzip.NewReaderWithPassword(l.in.Reader(), l.in.Size(), l.password)
	if err != nil {
		return false
	}
	tried := 0
	for n, f := range zr.File {
		if f.UncompressedSize == 0 {
			continue
		}
		if tried++; tried > most {
			break
		}
		var broken *sevenzip.ReadError
		rc, err := f.Open()
		if err == nil {
			_, err = io.CopyN(io.Discard, rc, 1)
			rc.Close()
		}
		if errors.As(err, &broken) && broken.Encrypted || l.secret(n) {
			return true
		}
	}
	return false
}

// A summed is a reader that verifies a checksum, because the library does not.
type summed struct {
	r    io.Reader
	want uint32
	sum  hash.Hash32
}

// Read implements io.Reader.
func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	if err == io.EOF && s.want != 0 && s.sum.Sum32() != s.want {
		err = errDamaged
	}
	return n, err
}

// volume reports whether the input is a part of a multi-part archive of RAR 4, which starts with a
// main header (type 0x73) after the signature, with flag 1 for a part (RAR technote.txt, 2006).
func (l *listed) volume() bool {
	var b [12]byte
	_, err := l.in.Reader().ReadAt(b[:], 0)
	return err == nil && string(b[:7]) == "Rar!\x1a\x07\x00" && b[9] == 0x73 && b[10]&1 != 0
}

func (l *listed) rar(visit func(*tar.Header, io.Reader) error) error {
	opts := []rardecode.Option{rardecode.MaxDictionarySize(maxDictionary)}
	if l.password != "" {
		opts = append(opts, rardecode.Password(l.password))
	}
	rr, err := rardecode.NewReader(l.in.Reader(), opts...)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		f, err := rr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.encrypted = l.encrypted || f.Encrypted
		if f.Encrypted && l.password == "" && !l.headersOnly {
			return rardecode.ErrArchivedFileEncrypted
		}
		h := &tar.Header{Name: f.Name, Size: f.UnPackedSize, ModTime: f.ModificationTime, Typeflag: typeFlag(f.Mode()), Mode: int64(f.Mode().Perm())}
		switch {
		case f.UnKnownSize:
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the archive does not declare the sizes of its files")
		case f.LinkType == rardecode.LinkTypeHardLink || f.LinkType == rardecode.LinkTypeFileCopy:
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, f.LinkTarget, 0
		case f.LinkType != rardecode.LinkTypeNone:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.LinkTarget, 0
		case f.IsDir:
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		open := func() (io.Reader, error) { return rr, nil }
		if h.Size == 0 {
			open = func() (io.Reader, error) { return eof{}, nil }
		}
		if err := l.entry(n, h, open, visit); err != nil {
			return err
		}
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// typeFlag returns the tar type flag of an entry.
func typeFlag(m fs.FileMode) byte {
	switch {
	case m.IsDir():
		return tar.TypeDir
	case m&fs.ModeSymlink != 0:
		return tar.TypeSymlink
	case m.IsRegular():
		return tar.TypeReg
	}
	return tar.TypeFifo
}

// failure turns an error into the error of the action. Errors that the system did
// not cause mean that the input is damaged.
func (l *listed) failure(err error) error {
	var known *fileops.Failure
	var system *fs.PathError
	var broken *sevenzip.ReadError
	if err == nil || errors.Is(err, errStopped) || errors.As(err, &known) || errors.As(err, &system) {
		return err
	}
	encrypted := errors.As(err, &broken) && broken.Encrypted
	switch {
	case l.ctx.Err() != nil:
		return context.Cause(l.ctx)
	case errors.Is(err, rardecode.ErrArchiveEncrypted), errors.Is(err, rardecode.ErrArchivedFileEncrypted), encrypted && l.password == "":
		return fileops.Fail(fileops.ErrPasswordRequired, err, "the archive is protected by a password")
	case errors.Is(err, rardecode.ErrBadPassword), encrypted:
		return fileops.Fail(fileops.ErrWrongPassword, err, "the password is wrong")
	case errors.Is(err, rardecode.ErrMultiVolume), errors.Is(err, rardecode.ErrBadVolumeNumber), errors.Is(err, rardecode.ErrInvalidFileBlock) && l.volume():
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the archive is one part of a multi-part archive; join the parts first")
	case errors.Is(err, rardecode.ErrDictionaryTooLarge):
		return fileops.Fail(fileops.ErrLimit, err, "unpacking the file needs more than the limit of %d MiB of memory", maxDictionary>>20)
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the archive is damaged or incomplete")
}
