package documentops

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/compound"
)

// Standard encryption, written by Office 2007 and older versions of LibreOffice
// ([MS-OFFCRYPTO] 2.3.4.5 to 2.3.4.9): AES in ECB mode, SHA-1. It is only
// decrypted here.
const standardSpins = 50000

// A standard is the state of an opened standard encryption.
type standard struct{ key []byte }

// openStandard derives the key of the data. b is the part of the stream
// EncryptionInfo after the version. openStandard returns nil for a wrong
// password.
func openStandard(ctx context.Context, b []byte, password string) (*standard, error) {
	le := binary.LittleEndian
	if len(b) < 8 {
		return nil, errEncryption
	}
	n := int64(le.Uint32(b[4:]))
	if n < 32 || 8+n+72 > int64(len(b)) {
		return nil, errEncryption
	}
	head, verifier := b[8:8+n], b[8+n:]
	bits := le.Uint32(head[16:])
	switch le.Uint32(head[8:]) {
	case 0x660e, 0x660f, 0x6610: // AES-128, -192, -256
	default:
		return nil, fmt.Errorf("%w: algorithm %#x", errCipher, le.Uint32(head[8:]))
	}
	if bits != 128 && bits != 192 && bits != 256 || le.Uint32(verifier) != 16 {
		return nil, errEncryption
	}
	h := sha1.New()
	sum, err := spin(ctx, h, verifier[4:20], password, standardSpins)
	if err != nil {
		return nil, err
	}
	sum = hashOf(h, sum, make([]byte, 4))
	derive := func(fill byte) []byte {
		buf := bytes.Repeat([]byte{fill}, 64)
		subtle.XORBytes(buf, buf[:len(sum)], sum)
		return hashOf(h, buf)
	}
	s := &standard{key: append(derive(0x36), derive(0x5c)...)[:bits/8]}
	input, value := bytes.Clone(verifier[20:36]), bytes.Clone(verifier[40:72])
	if err := errors.Join(s.blocks(input), s.blocks(value)); err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(hashOf(h, input), value[:sha1.Size]) != 1 {
		return nil, nil
	}
	return s, nil
}

// blocks decrypts whole blocks in place.
func (s *standard) blocks(b []byte) error {
	c, err := aes.NewCipher(s.key)
	if err != nil {
		return errEncryption
	}
	for ; len(b) >= aes.BlockSize; b = b[aes.BlockSize:] {
		c.Decrypt(b, b)
	}
	return nil
}

// decrypt decrypts the stream EncryptedPackage and writes the package.
func (s *standard) decrypt(ctx context.Context, r io.Reader, w io.Writer) error {
	r = fileops.ContextReader(ctx, r)
	left, err := packageSize(r)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for left > 0 {
		n, err := io.ReadFull(r, buf)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n &^= aes.BlockSize - 1; int64(n) < min(left, int64(len(buf))) {
			return errors.Join(compound.ErrDamaged, err)
		}
		if err := s.blocks(buf[:n]); err != nil {
			return err
		}
		k := min(left, int64(n))
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		left -= k
	}
	return nil
}
