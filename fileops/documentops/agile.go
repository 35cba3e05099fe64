package documentops

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/compound"
)

// Agile encryption, which Office has written since 2010 ([MS-OFFCRYPTO] 2.3.4.10
// to 2.3.4.15).
const (
	segment = 4096 // bytes of a package that are encrypted as a unit
	spins   = 100000
	maxSpin = 10000000 // [MS-OFFCRYPTO] 2.3.4.10, ST_SpinCount
)

// Block keys. Each derives the key for one purpose.
var (
	blockInput   = []byte{0xfe, 0xa7, 0xd2, 0x76, 0x3b, 0x4b, 0x9e, 0x79}
	blockValue   = []byte{0xd7, 0xaa, 0x0f, 0x6d, 0x30, 0x61, 0x34, 0x4e}
	blockKey     = []byte{0x14, 0x6e, 0x0b, 0xe7, 0xab, 0xac, 0xd0, 0xd6}
	blockHMACKey = []byte{0x5f, 0xb2, 0xad, 0x01, 0x0c, 0xb9, 0xe1, 0xf6}
	blockHMAC    = []byte{0xa0, 0x67, 0x7f, 0x02, 0xb2, 0x2c, 0x84, 0x33}
)

const (
	nsEncryption = "http://schemas.microsoft.com/office/2006/encryption"
	nsPassword   = "http://schemas.microsoft.com/office/2006/keyEncryptor/password"
)

// agileXML is the XML in the stream EncryptionInfo.
type agileXML struct {
	KeyData   agileKey `xml:"http://schemas.microsoft.com/office/2006/encryption keyData"`
	Integrity struct {
		Key   base64Bytes `xml:"encryptedHmacKey,attr"`
		Value base64Bytes `xml:"encryptedHmacValue,attr"`
	} `xml:"http://schemas.microsoft.com/office/2006/encryption dataIntegrity"`
	Encryptors []struct {
		URI      string `xml:"uri,attr"`
		Password *struct {
			agileKey
			SpinCount uint32      `xml:"spinCount,attr"`
			Input     base64Bytes `xml:"encryptedVerifierHashInput,attr"`
			Value     base64Bytes `xml:"encryptedVerifierHashValue,attr"`
			Key       base64Bytes `xml:"encryptedKeyValue,attr"`
		} `xml:"http://schemas.microsoft.com/office/2006/keyEncryptor/password encryptedKey"`
	} `xml:"http://schemas.microsoft.com/office/2006/encryption keyEncryptors>keyEncryptor"`
}

type agileKey struct {
	SaltSize  int         `xml:"saltSize,attr"`
	BlockSize int         `xml:"blockSize,attr"`
	KeyBits   int         `xml:"keyBits,attr"`
	HashSize  int         `xml:"hashSize,attr"`
	Cipher    string      `xml:"cipherAlgorithm,attr"`
	Chaining  string      `xml:"cipherChaining,attr"`
	Hash      string      `xml:"hashAlgorithm,attr"`
	Salt      base64Bytes `xml:"saltValue,attr"`
}

type base64Bytes []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *base64Bytes) UnmarshalText(text []byte) error {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	*b = out[:n]
	return err
}

// errCipher reports an unknown kind of encryption.
var errCipher = errors.New("documentops: unknown encryption")

func (k agileKey) newHash() (func() hash.Hash, error) {
	h := map[string]func() hash.Hash{
		"SHA1": sha1.New, "SHA-1": sha1.New, "SHA256": sha256.New, "SHA-256": sha256.New,
		"SHA384": sha512.New384, "SHA-384": sha512.New384, "SHA512": sha512.New, "SHA-512": sha512.New,
	}[k.Hash]
	if h == nil || k.Cipher != "AES" || k.Chaining != "ChainingModeCBC" {
		return nil, fmt.Errorf("%w: %s, %s, %s", errCipher, k.Cipher, k.Chaining, k.Hash)
	}
	if k.KeyBits != 128 && k.KeyBits != 192 && k.KeyBits != 256 || k.BlockSize != aes.BlockSize || len(k.Salt) == 0 || len(k.Salt) > 1024 || h().Size() != k.HashSize {
		return nil, errEncryption
	}
	return h, nil
}

// errEncryption reports that the encryption header is invalid.
var errEncryption = errors.New("documentops: the encryption header is damaged")

// spin hashes a password n times ([MS-OFFCRYPTO] 2.3.4.11).
func spin(ctx context.Context, h hash.Hash, salt []byte, password string, n uint32) ([]byte, error) {
	h.Reset()
	h.Write(salt)
	for _, u := range utf16.Encode([]rune(password)) {
		h.Write([]byte{byte(u), byte(u >> 8)})
	}
	sum := h.Sum(nil)
	var count [4]byte
	for i := range n {
		if i%10000 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		binary.LittleEndian.PutUint32(count[:], i)
		h.Reset()
		h.Write(count[:])
		h.Write(sum)
		sum = h.Sum(sum[:0])
	}
	return sum, nil
}

func hashOf(h hash.Hash, parts ...[]byte) []byte {
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// fitKey truncates or pads a hash to the length of a key or block.
func fitKey(b []byte, n int) []byte {
	for len(b) < n {
		b = append(b, 0x36)
	}
	return b[:n]
}

func cbc(key, iv, data []byte, encrypt bool) ([]byte, error) {
	c, err := aes.NewCipher(key)
	if err != nil || len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errEncryption
	}
	out := make([]byte, len(data))
	if encrypt {
		cipher.NewCBCEncrypter(c, iv).CryptBlocks(out, data)
	} else {
		cipher.NewCBCDecrypter(c, iv).CryptBlocks(out, data)
	}
	return out, nil
}

// An agile is the state of an agile encryption, opened or new.
type agile struct {
	newHash func() hash.Hash
	salt    []byte // of the data
	key     []byte // of the data
	hmacKey []byte // nil if absent
	hmac    []byte // expected value
}

// openAgile derives the key of the data. It returns nil for a wrong password.
func openAgile(ctx context.Context, text []byte, password string) (*agile, error) {
	var x agileXML
	if err := xml.Unmarshal(text, &x); err != nil {
		return nil, fmt.Errorf("%w: %w", errEncryption, err)
	}
	a := &agile{salt: x.KeyData.Salt}
	var err error
	if a.newHash, err = x.KeyData.newHash(); err != nil {
		return nil, err
	}
	for _, enc := range x.Encryptors {
		p := enc.Password
		if p == nil {
			continue
		}
		newHash, err := p.newHash()
		if err != nil {
			return nil, err
		}
		if p.SpinCount > maxSpin {
			return nil, errEncryption
		}
		h := newHash()
		sum, err := spin(ctx, h, p.Salt, password, p.SpinCount)
		if err != nil {
			return nil, err
		}
		iv := fitKey(bytes.Clone(p.Salt), aes.BlockSize)
		get := func(block, data []byte) []byte {
			var out []byte
			if err == nil {
				out, err = cbc(fitKey(hashOf(h, sum, block), p.KeyBits/8), iv, data, false)
			}
			return out
		}
		input, value, key := get(blockInput, p.Input), get(blockValue, p.Value), get(blockKey, p.Key)
		if err != nil {
			return nil, err
		}
		if len(input) < p.SaltSize || p.SaltSize <= 0 || len(value) < p.HashSize || len(key) < x.KeyData.KeyBits/8 {
			return nil, errEncryption
		}
		if subtle.ConstantTimeCompare(hashOf(h, input[:p.SaltSize]), value[:p.HashSize]) != 1 {
			continue
		}
		a.key = key[:x.KeyData.KeyBits/8]
		if len(x.Integrity.Key) > 0 {
			if err := a.openIntegrity(x.Integrity.Key, x.Integrity.Value); err != nil {
				return nil, err
			}
		}
		return a, nil
	}
	if len(x.Encryptors) > 0 && x.Encryptors[0].Password == nil {
		return nil, fmt.Errorf("%w: a certificate", errCipher)
	}
	return nil, nil
}

func (a *agile) iv(block []byte) []byte {
	return fitKey(hashOf(a.newHash(), a.salt, block), aes.BlockSize)
}

func (a *agile) openIntegrity(key, value []byte) (err error) {
	if a.hmacKey, err = cbc(a.key, a.iv(blockHMACKey), key, false); err != nil {
		return err
	}
	if a.hmac, err = cbc(a.key, a.iv(blockHMAC), value, false); err != nil {
		return err
	}
	n := a.newHash().Size()
	if len(a.hmacKey) < n || len(a.hmac) < n {
		return errEncryption
	}
	a.hmacKey, a.hmac = a.hmacKey[:n], a.hmac[:n]
	return nil
}

// decrypt decrypts the stream EncryptedPackage and writes the package.
func (a *agile) decrypt(ctx context.Context, r io.Reader, w io.Writer) error {
	mac := hmac.New(a.newHash, a.hmacKey)
	r = io.TeeReader(fileops.ContextReader(ctx, r), mac)
	left, err := packageSize(r)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(a.key)
	if err != nil {
		return errEncryption
	}
	buf := make([]byte, segment)
	var count [4]byte
	for i := uint32(0); left > 0; i++ {
		n, err := io.ReadFull(r, buf)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n &^= aes.BlockSize - 1; int64(n) < min(left, segment) {
			return errors.Join(compound.ErrDamaged, err)
		}
		binary.LittleEndian.PutUint32(count[:], i)
		cipher.NewCBCDecrypter(block, a.iv(count[:])).CryptBlocks(buf[:n], buf[:n])
		k := min(left, int64(n))
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		left -= k
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if a.hmacKey != nil && !hmac.Equal(mac.Sum(nil), a.hmac) {
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the document was changed after its encryption, or is damaged")
	}
	return nil
}

// packageSize reads the size that precedes a package.
func packageSize(r io.Reader) (int64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", compound.ErrDamaged, err)
	}
	n := int64(binary.LittleEndian.Uint64(b[:]))
	if n < 0 {
		return 0, compound.ErrDamaged
	}
	return n, nil
}

// newAgile returns a new encryption with AES-256 and SHA-512, as in Office. The
// returned function returns the stream EncryptionInfo. Its length is always right,
// but its content is valid only after encrypt.
func newAgile(ctx context.Context, password string) (*agile, func() []byte, error) {
	random := func(n int) []byte { b := make([]byte, n); rand.Read(b); return b }
	a := &agile{newHash: sha512.New, salt: random(16), key: random(32), hmacKey: random(sha512.Size), hmac: make([]byte, sha512.Size)}
	salt, input := random(16), random(16)
	h := sha512.New()
	sum, err := spin(ctx, h, salt, password, spins)
	if err != nil {
		return nil, nil, err
	}
	put := func(block, data []byte) string {
		b, _ := cbc(fitKey(hashOf(h, sum, block), 32), salt, data, true) // all lengths fit
		return base64.StdEncoding.EncodeToString(b)
	}
	encInput, encKey := put(blockInput, input), put(blockKey, a.key)
	encValue := put(blockValue, hashOf(h, input))
	hmacKey, err := cbc(a.key, a.iv(blockHMACKey), a.hmacKey, true)
	if err != nil {
		return nil, nil, err
	}
	const algorithms = `saltSize="16" blockSize="16" keyBits="256" hashSize="64" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC" hashAlgorithm="SHA512"`
	b64 := base64.StdEncoding.EncodeToString
	info := func() []byte {
		value, _ := cbc(a.key, a.iv(blockHMAC), a.hmac, true)
		// Version 4.4, flag "agile", XML.
		return append([]byte{4, 0, 4, 0, 0x40, 0, 0, 0}, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`+"\r\n"+
			`<encryption xmlns="`+nsEncryption+`" xmlns:p="`+nsPassword+`">`+
			`<keyData `+algorithms+` saltValue="`+b64(a.salt)+`"/>`+
			`<dataIntegrity encryptedHmacKey="`+b64(hmacKey)+`" encryptedHmacValue="`+b64(value)+`"/>`+
			`<keyEncryptors><keyEncryptor uri="`+nsPassword+`"><p:encryptedKey spinCount="`+fmt.Sprint(spins)+`" `+algorithms+` saltValue="`+b64(salt)+
			`" encryptedVerifierHashInput="`+encInput+`" encryptedVerifierHashValue="`+encValue+`" encryptedKeyValue="`+encKey+`"/></keyEncryptor></keyEncryptors></encryption>`...)
	}
	return a, info, nil
}

// encryptedSize returns the length of the stream EncryptedPackage for a package
// of n bytes.
func encryptedSize(n int64) int64 { return 8 + (n+aes.BlockSize-1)/aes.BlockSize*aes.BlockSize }

// encrypt writes the stream EncryptedPackage and computes its authentication
// code.
func (a *agile) encrypt(ctx context.Context, r io.Reader, size int64, w io.Writer) error {
	mac := hmac.New(a.newHash, a.hmacKey)
	w = io.MultiWriter(w, mac)
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(size))); err != nil {
		return err
	}
	block, err := aes.NewCipher(a.key)
	if err != nil {
		return err
	}
	buf := make([]byte, segment)
	var count [4]byte
	for i := uint32(0); size > 0; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k := min(size, segment)
		if _, err := io.ReadFull(r, buf[:k]); err != nil {
			return err
		}
		n := (k + aes.BlockSize - 1) / aes.BlockSize * aes.BlockSize
		clear(buf[k:n])
		binary.LittleEndian.PutUint32(count[:], i)
		cipher.NewCBCEncrypter(block, a.iv(count[:])).CryptBlocks(buf[:n], buf[:n])
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		size -= k
	}
	a.hmac = mac.Sum(nil)
	return nil
}
