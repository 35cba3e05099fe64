package archiveops

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zip"
	"golang.org/x/text/encoding/charmap"
)

var (
	errPassword  = errors.New("wrong password")
	errDamaged   = errors.New("the entry is damaged")
	errEncrypted = errors.New("unknown encryption")
)

// Flags of an entry (APPNOTE 4.4.4).
const (
	flagEncrypted  = 1
	flagDescriptor = 1 << 3
	flagStrong     = 1 << 6
	flagMasked     = 1 << 13
)

// A cipherInfo describes the encryption of an entry.
type cipherInfo struct {
	aes    bool
	key    int    // bytes, for AES
	crc    bool   // the header contains the checksum of the content
	method uint16 // compression method
}

// encryption returns the encryption of an entry: WinZip's AES, or PKZIP's
// traditional encryption (APPNOTE 6.1).
func encryption(h *zip.FileHeader) (cipherInfo, error) {
	if h.Flags&(flagStrong|flagMasked) != 0 {
		return cipherInfo{}, errEncrypted
	}
	if h.Method != aesMethod {
		return cipherInfo{crc: true, method: h.Method}, nil
	}
	for b := h.Extra; len(b) >= 4; {
		n := 4 + int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b) {
			break
		}
		if binary.LittleEndian.Uint16(b) == aesExtra && n >= 11 {
			strength := int(b[8])
			if strength < 1 || strength > 3 {
				break
			}
			return cipherInfo{
				aes: true, key: 8 + 8*strength, method: binary.LittleEndian.Uint16(b[9:]),
				crc: binary.LittleEndian.Uint16(b[4:]) == 1,
			}, nil
		}
		b = b[n:]
	}
	return cipherInfo{}, errEncrypted
}

// aesExtra is the extra field of WinZip's encryption.
const aesExtra = 0x9901

// withoutExtra returns extra without the field id.
func withoutExtra(extra []byte, id uint16) (out []byte) {
	for b := extra; len(b) >= 4; {
		n := 4 + int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b) {
			return append(out, b...)
		}
		if binary.LittleEndian.Uint16(b) != id {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// decrypted returns the compressed content of an encrypted entry, and its size. If
// the content has an authentication code that does not match, the reader fails with
// errDamaged at its end.
func decrypted(f *zip.File, info cipherInfo, password []byte) (io.Reader, int64, error) {
	raw, err := f.OpenRaw()
	if err != nil {
		return nil, 0, errDamaged
	}
	size := int64(f.CompressedSize64)
	if info.aes {
		return newOpener(raw, size, info.key, password)
	}
	return newTraditional(raw, size, &f.FileHeader, password)
}

// An opener decrypts the output of a sealer of any strength.
type opener struct {
	raw  io.Reader // the encrypted content
	mac  hash.Hash
	end  io.Reader // the authentication code
	keys keyStream
	err  error
}

func newOpener(raw io.Reader, size int64, key int, password []byte) (io.Reader, int64, error) {
	salt := make([]byte, key/2+aesCheck)
	size -= int64(len(salt)) + aesMAC
	if size < 0 {
		return nil, 0, errDamaged
	}
	if _, err := io.ReadFull(raw, salt); err != nil {
		return nil, 0, errDamaged
	}
	keys, err := pbkdf2.Key(sha1.New, string(password), salt[:key/2], aesRounds, 2*key+aesCheck)
	if err != nil {
		return nil, 0, err
	}
	if subtle.ConstantTimeCompare(keys[2*key:], salt[key/2:]) == 0 {
		return nil, 0, errPassword
	}
	block, err := aes.NewCipher(keys[:key])
	if err != nil {
		return nil, 0, err
	}
	o := &opener{raw: io.LimitReader(raw, size), mac: hmac.New(sha1.New, keys[key:2*key]), end: raw, keys: keyStream{block: block}}
	return o, size, nil
}

// Read implements io.Reader.
func (o *opener) Read(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	pad := o.keys.next()
	n, err := o.raw.Read(p[:min(len(p), len(pad))])
	o.mac.Write(p[:n])
	subtle.XORBytes(p[:n], p[:n], pad)
	o.keys.used += n
	if err == io.EOF {
		code := make([]byte, aesMAC)
		if _, rerr := io.ReadFull(o.end, code); rerr != nil || !hmac.Equal(code, o.mac.Sum(nil)[:aesMAC]) {
			err = errDamaged
		}
	}
	o.err = err
	return n, err
}

// A traditional decrypts PKZIP 2.0 encryption, which is easy to break but still
// common (APPNOTE 6.1).
type traditional struct {
	raw  io.Reader
	keys [3]uint32
}

func newTraditional(raw io.Reader, size int64, h *zip.FileHeader, password []byte) (io.Reader, int64, error) {
	const head = 12
	t := &traditional{raw: raw, keys: [3]uint32{0x12345678, 0x23456789, 0x34567890}}
	for _, b := range password {
		t.update(b)
	}
	first := make([]byte, head)
	if size < head {
		return nil, 0, errDamaged
	}
	if _, err := io.ReadFull(t, first); err != nil {
		return nil, 0, errDamaged
	}
	check := byte(h.CRC32 >> 24)
	if h.Flags&flagDescriptor != 0 {
		check = byte(h.ModifiedTime >> 8)
	}
	if first[head-1] != check {
		return nil, 0, errPassword
	}
	return t, size - head, nil
}

func (t *traditional) update(b byte) {
	one := func(crc uint32, b byte) uint32 { return crc32.IEEETable[byte(crc)^b] ^ crc>>8 }
	t.keys[0] = one(t.keys[0], b)
	t.keys[1] = (t.keys[1]+t.keys[0]&0xff)*134775813 + 1
	t.keys[2] = one(t.keys[2], byte(t.keys[1]>>24))
}

// Read implements io.Reader.
func (t *traditional) Read(p []byte) (int, error) {
	n, err := t.raw.Read(p)
	for i, b := range p[:n] {
		k := uint16(t.keys[2]) | 2
		p[i] = b ^ byte(k*(k^1)>>8)
		t.update(p[i])
	}
	return n, err
}

// passwords returns the possible encodings of a password: UTF-8, and the code pages
// of older Windows programs.
func passwords(password string) [][]byte {
	out := [][]byte{[]byte(password)}
	for _, c := range []*charmap.Charmap{charmap.CodePage850, charmap.CodePage437, charmap.Windows1252} {
		b, err := c.NewEncoder().Bytes([]byte(password))
		if err != nil || string(b) == password {
			continue
		}
		out = append(out, b)
	}
	return out
}
