package archiveops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"io"

	"github.com/klauspost/compress/zip"
)

// Entries are encrypted in WinZip's format, version AE-2, with 256-bit keys
// (https://www.winzip.com/en/support/aes-encryption/). 7-Zip reads it too. The
// format prescribes SHA-1 and 1000 rounds.
const (
	aesMethod  = 99
	aesVersion = 51 // version needed to extract
	aesRounds  = 1000
	aesKey     = 32
	aesSalt    = aesKey / 2
	aesCheck   = 2
	aesMAC     = 10

	// maxPassword is the longest password in bytes that 7-Zip accepts.
	maxPassword = 99
)

// A sealer encrypts the content of one entry and writes it to w.
type sealer struct {
	w    io.Writer
	head []byte // salt and password check
	mac  hash.Hash
	keys keyStream
	buf  []byte
}

// A keyStream produces the key stream that is XORed with content. The mode is
// CTR with a little-endian counter that starts at 1, unlike crypto/cipher's.
type keyStream struct {
	block   cipher.Block
	counter uint64 // of the last block in pad
	pad     []byte
	used    int // number of used bytes in pad
}

// keyChunk is the number of bytes that a keyStream produces at once.
const keyChunk = 32 << 10

// next returns the next bytes of the key stream, at least one. The caller adds
// the number of used bytes to k.used.
func (k *keyStream) next() []byte {
	if k.used == len(k.pad) {
		if k.pad == nil {
			k.pad = make([]byte, keyChunk)
		}
		clear(k.pad)
		for b := k.pad; len(b) > 0; b = b[aes.BlockSize:] {
			k.counter++
			binary.LittleEndian.PutUint64(b, k.counter)
			k.block.Encrypt(b[:aes.BlockSize], b[:aes.BlockSize])
		}
		k.used = 0
	}
	return k.pad[k.used:]
}

// newSealer derives the keys of an entry, which takes about a millisecond. Every
// entry needs its own salt, because all counters start at the same value.
func newSealer(password string) (*sealer, error) {
	salt := make([]byte, aesSalt)
	rand.Read(salt) // never fails
	keys, err := pbkdf2.Key(sha1.New, password, salt, aesRounds, 2*aesKey+aesCheck)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(keys[:aesKey])
	if err != nil {
		return nil, err
	}
	return &sealer{
		head: append(salt, keys[2*aesKey:]...), keys: keyStream{block: block},
		mac: hmac.New(sha1.New, keys[aesKey:2*aesKey]),
	}, nil
}

// mark turns h into the header of an encrypted entry. AE-2 omits the checksum,
// because it would reveal short content.
func (s *sealer) mark(h *zip.FileHeader) {
	const size, ae2, strength256 = 7, 2, 3
	le := binary.LittleEndian
	h.Extra = le.AppendUint16(le.AppendUint16(le.AppendUint16(h.Extra, 0x9901), size), ae2)
	h.Extra = le.AppendUint16(append(h.Extra, 'A', 'E', strength256), h.Method)
	h.Method = aesMethod
	h.Flags |= 1
	h.CRC32 = 0
	h.CompressedSize64 += aesSalt + aesCheck + aesMAC
	h.ReaderVersion = aesVersion
}

// start writes the salt and the password check to w. The encrypted content follows.
func (s *sealer) start(w io.Writer) error {
	s.w = w
	_, err := w.Write(s.head)
	return err
}

// Write implements io.Writer.
func (s *sealer) Write(p []byte) (n int, err error) {
	if s.buf == nil {
		s.buf = make([]byte, keyChunk)
	}
	for len(p) > 0 {
		chunk := s.buf[:subtle.XORBytes(s.buf, p, s.keys.next())]
		s.keys.used += len(chunk)
		s.mac.Write(chunk)
		m, err := s.w.Write(chunk)
		if n += m; err != nil {
			return n, err
		}
		p = p[len(chunk):]
	}
	return n, nil
}

// finish writes the authentication code after the content.
func (s *sealer) finish() error {
	_, err := s.w.Write(s.mac.Sum(nil)[:aesMAC])
	return err
}
