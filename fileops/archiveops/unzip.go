package archiveops

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"
	"golang.org/x/text/encoding/charmap"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/safezip"
)

// A zipArchive is a ZIP archive whose entries are unpacked. It implements archive.
type zipArchive struct {
	ctx       context.Context
	limits    safezip.Limits
	files     []*zip.File
	names     []string // paths of files
	passwords [][]byte // none means that no password was given
}

func openZIP(ctx context.Context, l safezip.Limits, in content, password string) (*zipArchive, error) {
	zr, err := l.Open(in.Reader(), in.Size())
	if err == nil {
		// Sizes are checked for each entry that is unpacked.
		err = l.Check(zr.File, in.Size(), func(*zip.File) bool { return true })
	}
	z := &zipArchive{ctx: ctx, limits: l}
	if err != nil {
		return nil, z.failure(err)
	}
	z.files, z.names = zr.File, zipNames(zr.File)
	if password != "" {
		z.passwords = passwords(password)
	}
	return z, nil
}

// zipNames returns the names of entries in UTF-8. Without a mark, a name has the code
// page of the system that made it: that of DOS, unless the names suggest another.
func zipNames(files []*zip.File) []string {
	names := make([]string, len(files))
	var unknown bytes.Buffer
	fromDOS := true
	for i, f := range files {
		names[i] = f.Name
		if utf8.ValidString(f.Name) {
			continue
		}
		if name, ok := unicodePath(f); ok {
			names[i] = name
			continue
		}
		unknown.WriteString(f.Name)
		unknown.WriteByte('\n')
		fromDOS = fromDOS && f.CreatorVersion>>8 == 0
	}
	if unknown.Len() == 0 {
		return names
	}
	enc := charset.Detect(unknown.Bytes())
	if enc == charmap.Windows1252 && fromDOS {
		enc = charmap.CodePage437 // APPNOTE, appendix D
	}
	for i, name := range names {
		if enc != nil && !utf8.ValidString(name) {
			if s, err := enc.NewDecoder().String(name); err == nil {
				names[i] = s
			}
		}
	}
	return names
}

// unicodePath returns the name in Info-ZIP's extra field 0x7075 (APPNOTE 4.6.9): a
// version, the checksum of the usual name, and the name in UTF-8.
func unicodePath(f *zip.File) (string, bool) {
	const id, head = 0x7075, 5
	for b := f.Extra; len(b) >= 4; {
		n := 4 + int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b) {
			break
		}
		if field := b[4:n]; binary.LittleEndian.Uint16(b) == id && len(field) > head && field[0] == 1 {
			name := string(field[head:])
			return name, binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(f.Name)) && utf8.ValidString(name)
		}
		b = b[n:]
	}
	return "", false
}

// walk implements archive.
func (z *zipArchive) walk(visit func(*tar.Header, io.Reader) error, _ func() int64) error {
	for i, f := range z.files {
		if z.ctx.Err() != nil {
			return context.Cause(z.ctx)
		}
		h := &tar.Header{Name: z.names[i], Size: int64(min(f.UncompressedSize64, math.MaxInt64)), ModTime: f.Modified, Typeflag: typeFlag(f.Mode()), Mode: int64(f.Mode().Perm())}
		if host := f.CreatorVersion >> 8; host != hostUnix && host != hostMacOS {
			h.Mode = 0 // it has no permissions
		}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if h.Typeflag == tar.TypeReg && !z.readable(f) {
			h.Typeflag = typeUnreadable
		}
		content := &zipContent{archive: z, file: f}
		err := visit(h, content)
		if err == nil && content.r != nil {
			_, err = io.Copy(io.Discard, struct{ io.Reader }{content}) // the rest, to verify the checksum
		}
		if err != nil {
			return z.failure(err)
		}
	}
	return nil
}

// Systems that store permissions (APPNOTE 4.4.2).
const (
	hostUnix  = 3
	hostMacOS = 19
)

// Compression methods (APPNOTE 4.4.5).
const (
	methodBZip2   = 12
	methodLZMA    = 14
	methodOldZstd = 20
	methodZstd    = 93
	methodXZ      = 95
)

// readable reports whether the method and the encryption of an entry are known.
func (z *zipArchive) readable(f *zip.File) bool {
	method := f.Method
	if f.Flags&flagEncrypted != 0 {
		info, err := encryption(&f.FileHeader)
		if err != nil {
			return false
		}
		method = info.method
	}
	switch method {
	case zip.Store, zip.Deflate, methodBZip2, methodLZMA, methodOldZstd, methodZstd, methodXZ:
		return true
	}
	return false
}

// A zipContent is the content of an entry. The first Read opens it. It fails unless the
// content has the size and the checksum of the directory.
type zipContent struct {
	archive *zipArchive
	file    *zip.File
	r       io.Reader // nil before the first Read
	raw     io.Reader // under r; it has an authentication code at its end
	sum     uint32
	noSum   bool
	left    uint64
	doubt   bool // the password may be wrong although it was accepted
}

// Read implements io.Reader.
func (c *zipContent) Read(p []byte) (int, error) {
	if c.archive.ctx.Err() != nil {
		return 0, context.Cause(c.archive.ctx)
	}
	if c.r == nil {
		if err := c.open(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p)
	c.sum = crc32.Update(c.sum, crc32.IEEETable, p[:n])
	switch {
	case uint64(n) > c.left:
		err = errTooMany
	case errors.Is(err, io.EOF):
		c.left -= uint64(n)
		_, rerr := io.Copy(io.Discard, struct{ io.Reader }{c.raw})
		if c.left > 0 || !c.noSum && c.sum != c.file.CRC32 || errors.Is(rerr, errDamaged) {
			err = errDamaged
		}
	default:
		c.left -= uint64(n)
	}
	if err != nil && !errors.Is(err, io.EOF) && c.doubt {
		return 0, fileops.Fail(fileops.ErrWrongPassword, err, "the password is wrong, or the archive is damaged")
	}
	return n, err
}

func (c *zipContent) open() error {
	f, l := c.file, c.archive.limits
	if f.UncompressedSize64 > uint64(l.Unpacked) {
		return l.TooLarge()
	}
	if l.Dense(f.UncompressedSize64, f.CompressedSize64) {
		return l.TooDense()
	}
	c.left = f.UncompressedSize64
	if f.Flags&flagEncrypted == 0 {
		raw, err := f.OpenRaw()
		if err != nil {
			return err
		}
		return c.decompress(f.Method, raw)
	}
	if len(c.archive.passwords) == 0 {
		return fileops.Fail(fileops.ErrPasswordRequired, nil, "the archive is protected by a password")
	}
	info, err := encryption(&f.FileHeader)
	if err != nil {
		return err
	}
	c.noSum, c.doubt = info.aes && !info.crc, !info.aes
	for _, pw := range c.archive.passwords {
		// One in 256 wrong passwords passes the check of the traditional encryption, so all
		// of the content decides.
		if len(c.archive.passwords) > 1 && c.doubt {
			if _, err := (&recrypter{l}).unpack(c.archive.ctx, f, info, pw); errors.Is(err, errPassword) || errors.Is(err, errDamaged) {
				continue
			}
		}
		raw, _, err := decrypted(f, info, pw)
		if errors.Is(err, errPassword) {
			continue
		}
		if err != nil {
			return err
		}
		return c.decompress(info.method, raw)
	}
	return fileops.Fail(fileops.ErrWrongPassword, errPassword, "the password is wrong")
}

// decompress opens the content of raw.
func (c *zipContent) decompress(method uint16, raw io.Reader) (err error) {
	c.raw = raw
	switch method {
	case zip.Store:
		c.r = raw
	case zip.Deflate:
		c.r = flate.NewReader(raw)
	case methodBZip2:
		c.r = bzip2.NewReader(raw)
	case methodLZMA:
		c.r, err = newZIPLZMA(raw, c.file)
	case methodXZ:
		c.r, err = newXZ(bufio.NewReader(raw))
	case methodOldZstd, methodZstd:
		// With one goroutine the decoder needs no Close.
		c.r, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDictionary), zstd.WithDecoderLowmem(true))
	default:
		return errEncrypted
	}
	if err == nil {
		c.r = noPanic{c.r}
	}
	return err
}

// newZIPLZMA returns a reader of LZMA data in an entry: a version, the size of the
// properties, the properties, and the data (APPNOTE 5.8.8). Flag 1 marks data with an
// end mark. The classic header, which the library reads, has the properties and the
// size.
func newZIPLZMA(raw io.Reader, f *zip.File) (io.Reader, error) {
	var head [9]byte
	if _, err := io.ReadFull(raw, head[:]); err != nil {
		return nil, errDamaged
	}
	if binary.LittleEndian.Uint16(head[2:]) != 5 {
		return nil, errDamaged
	}
	if binary.LittleEndian.Uint32(head[5:]) > maxDictionary {
		return nil, errDictionary()
	}
	classic := bytes.Clone(head[4:])
	size := f.UncompressedSize64
	if f.Flags&(1<<1) != 0 {
		size = math.MaxUint64
	}
	classic = binary.LittleEndian.AppendUint64(classic, size)
	return lzma.NewReader(io.MultiReader(bytes.NewReader(classic), raw))
}

// failure turns an error into the error of the action.
func (z *zipArchive) failure(err error) error {
	if errors.Is(err, safezip.ErrOverlap) {
		return fileops.Fail(fileops.ErrCorruptInput, err, "the entries of the archive overlap or are incomplete")
	}
	return (&stream{ctx: z.ctx}).failure(err)
}
