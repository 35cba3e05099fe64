package archiveops

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// lzipMagic starts every member of a lzip file.
const lzipMagic = "LZIP"

var errLzip = errors.New("lzip: invalid member")

// lzipMembers reads a lzip file, which has one or more members (lzip manual, "File
// format"): a header of 6 bytes, an LZMA stream with an end marker, and a trailer with the
// checksum and the sizes. Other data may follow the last member.
type lzipMembers struct {
	raw      *bufio.Reader
	trailing *bool // set if other data follows

	version byte
	in      *memberBytes // the source of member
	member  io.Reader    // nil between two members
	sum     hash.Hash32
	size    uint64 // of the content so far
}

// memberBytes reads an LZMA stream from a member. The decoder expects the longer header of
// LZMA_Alone in front of it.
type memberBytes struct {
	head *bytes.Reader
	raw  *bufio.Reader
	read uint64 // bytes from raw
}

// Read implements io.Reader.
func (m *memberBytes) Read(p []byte) (int, error) {
	if m.head.Len() > 0 {
		return m.head.Read(p)
	}
	n, err := m.raw.Read(p)
	m.read += uint64(n)
	return n, err
}

// ReadByte implements io.ByteReader, without which the decoder would be slow.
func (m *memberBytes) ReadByte() (byte, error) {
	if m.head.Len() > 0 {
		return m.head.ReadByte()
	}
	b, err := m.raw.ReadByte()
	if err == nil {
		m.read++
	}
	return b, err
}

// newLzip returns a reader of a lzip file.
func newLzip(raw *bufio.Reader, trailing *bool) (io.Reader, error) {
	l := &lzipMembers{raw: raw, trailing: trailing, sum: crc32.NewIEEE()}
	if err := l.next(); err != nil {
		return nil, err
	}
	return noPanic{l}, nil
}

// next starts the next member. It returns io.EOF if none follows.
func (l *lzipMembers) next() error {
	head, err := l.raw.Peek(6)
	if len(head) < 6 || string(head[:4]) != lzipMagic {
		switch {
		case len(head) == 0 && errors.Is(err, io.EOF):
		case len(head) > 0 && l.in != nil && string(head[:min(len(head), 4)]) != lzipMagic[:min(len(head), 4)]:
			*l.trailing = true
		default:
			return io.ErrUnexpectedEOF
		}
		return io.EOF
	}
	l.version = head[4]
	coded := head[5]
	if l.version > 1 {
		return errLzip
	}
	if bits := coded & 31; bits < 12 || bits > 29 {
		return errLzip
	}
	dictionary := uint32(1) << (coded & 31)
	dictionary -= dictionary / 16 * uint32(coded>>5)
	if dictionary > maxDictionary {
		return errDictionary()
	}
	if _, err := l.raw.Discard(len(head)); err != nil {
		return err
	}
	// Three literal context bits and two position bits, the only choice of lzip.
	alone := append(binary.LittleEndian.AppendUint32([]byte{2*5*9 + 3}, dictionary), "\xff\xff\xff\xff\xff\xff\xff\xff"...)
	l.in = &memberBytes{head: bytes.NewReader(alone), raw: l.raw}
	l.sum.Reset()
	l.size = 0
	l.member, err = lzma.NewReader(l.in)
	return unexpected(err)
}

// Read implements io.Reader.
func (l *lzipMembers) Read(p []byte) (int, error) {
	for {
		if l.member == nil {
			if err := l.next(); err != nil {
				return 0, err
			}
		}
		n, err := l.member.Read(p)
		l.sum.Write(p[:n])
		l.size += uint64(n)
		if errors.Is(err, io.EOF) {
			l.member = nil
			err = l.trailer()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// trailer reads the end of a member and compares it with the content. Version 0 does not
// have the size of the member.
func (l *lzipMembers) trailer() error {
	const header = 6
	b := make([]byte, 12+8*int(l.version))
	if _, err := io.ReadFull(l.raw, b); err != nil {
		return unexpected(err)
	}
	if binary.LittleEndian.Uint32(b) != l.sum.Sum32() || binary.LittleEndian.Uint64(b[4:]) != l.size {
		return errDamaged
	}
	if l.version == 1 && binary.LittleEndian.Uint64(b[12:]) != header+l.in.read+uint64(len(b)) {
		return errDamaged
	}
	return nil
}

// unexpected returns io.ErrUnexpectedEOF in place of io.EOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
