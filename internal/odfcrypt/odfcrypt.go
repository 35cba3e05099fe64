// Package odfcrypt decrypts OpenDocument files that are protected by a password
// (OpenDocument 1.3 part 2, 3.8 and 4): AES-256 in CBC or GCM mode, and Blowfish, with keys
// by PBKDF2 or Argon2id.
//
// Entries are encrypted one by one. LibreOffice 24.8 and later can also encrypt the whole
// package, which is then the only entry.
package odfcrypt

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // the format demands it
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/blowfish" //nolint:staticcheck // files before OpenDocument 1.2 use it

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/safezip"
)

const (
	manifestName = "META-INF/manifest.xml"
	packageName  = "encrypted-package"

	maxManifest   = 16 << 20  // bytes
	maxIterations = 1_000_000 // of PBKDF2; LibreOffice uses 100,000
	maxMemory     = 256 << 10 // KiB of Argon2id; LibreOffice uses 65,536
	maxPasses     = 32        // of Argon2id; LibreOffice uses 3
)

// errEntry reports that an entry cannot be decrypted with the password.
var errEntry = errors.New("odfcrypt: the checksum of an entry is wrong")

// A manifest is the part of META-INF/manifest.xml that concerns encryption.
type manifest struct {
	Entries []entry `xml:"file-entry"`
}

type entry struct {
	Path string `xml:"full-path,attr"`
	Data *struct {
		ChecksumType string `xml:"checksum-type,attr"`
		Checksum     base64 `xml:"checksum,attr"`
		Algorithm    struct {
			Name   string `xml:"algorithm-name,attr"`
			Vector base64 `xml:"initialisation-vector,attr"`
		} `xml:"algorithm"`
		Derivation struct {
			Name       string `xml:"key-derivation-name,attr"`
			Size       int    `xml:"key-size,attr"`
			Iterations int    `xml:"iteration-count,attr"`
			Salt       base64 `xml:"salt,attr"`
			Passes     uint32 `xml:"argon2-iterations,attr"`
			Memory     uint32 `xml:"argon2-memory,attr"`
			Lanes      uint8  `xml:"argon2-lanes,attr"`
		} `xml:"key-derivation"`
		Start struct {
			Name string `xml:"start-key-generation-name,attr"`
		} `xml:"start-key-generation"`
	} `xml:"encryption-data"`
}

// Decrypt writes the document of size bytes in r without its encryption to w. Errors are a
// *[fileops.Failure]: [fileops.ErrWrongPassword], [fileops.ErrNotEncrypted],
// [fileops.ErrUnsupportedInput] for an unknown method, [fileops.ErrLimit] or
// [fileops.ErrCorruptInput].
func Decrypt(ctx context.Context, limits safezip.Limits, r io.ReaderAt, size int64, password string, w io.Writer) error {
	z, err := limits.Open(r, size)
	if err != nil {
		return damaged(err)
	}
	if err := limits.Check(z.File, size, nil); err != nil {
		return damaged(err)
	}
	m, text, err := readManifest(z.File)
	if err != nil {
		return damaged(err)
	}
	locked := map[string]*entry{}
	for i, e := range m.Entries {
		if e.Data != nil {
			locked[e.Path] = &m.Entries[i]
		}
	}
	if len(locked) == 0 {
		return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
	}
	d := &decrypter{limits: limits, password: []byte(password), left: limits.Unpacked}
	if e := locked[packageName]; e != nil {
		for _, f := range z.File {
			if f.Name == packageName {
				b, err := d.open(e, f)
				if err != nil {
					return d.blame(err)
				}
				if !bytes.HasPrefix(b, []byte("PK")) {
					if b, err = d.inflate(b); err != nil {
						return d.blame(err)
					}
				}
				_, err = w.Write(b)
				return err
			}
		}
	}
	out := zip.NewWriter(w)
	for _, f := range z.File {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch e := locked[f.Name]; {
		case f.Name == manifestName:
			err = store(out, f, encryptionData.ReplaceAll(text, nil))
		case e != nil:
			err = d.entry(out, e, f)
		default:
			err = out.Copy(f)
		}
		if err != nil {
			return d.blame(err)
		}
	}
	return out.Close()
}

func damaged(cause error) error {
	if errors.Is(cause, fileops.ErrLimit) {
		return cause
	}
	return fileops.Fail(fileops.ErrCorruptInput, cause, "the document is damaged")
}

var encryptionData = regexp.MustCompile(`(?s)<(?:[\w.-]+:)?encryption-data[ >].*?</(?:[\w.-]+:)?encryption-data\s*>`)

func readManifest(files []*zip.File) (m manifest, text []byte, err error) {
	for _, f := range files {
		if f.Name != manifestName {
			continue
		}
		if text, err = read(f, maxManifest); err != nil {
			return m, nil, err
		}
		x := xml.NewDecoder(bytes.NewReader(text))
		x.Strict = false // LibreOffice writes a document type in old versions
		err = x.Decode(&m)
		return m, text, err
	}
	return m, nil, errors.New("odfcrypt: there is no manifest")
}

// read returns an entry of at most most bytes.
func read(f *zip.File, most int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = errors.New("odfcrypt: an entry is too large")
	}
	return b, err
}

func store(out *zip.Writer, f *zip.File, b []byte) error {
	w, err := out.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: f.Modified})
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// A decrypter decrypts the entries of a document.
type decrypter struct {
	limits   safezip.Limits
	password []byte
	left     int64 // bytes that may still be unpacked
	opened   bool  // the password was right for an entry
}

// blame returns the failure for an error.
func (d *decrypter) blame(err error) error {
	var f *fileops.Failure
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, errEntry) && !d.opened:
		return fileops.Fail(fileops.ErrWrongPassword, err, "the password is wrong")
	}
	return damaged(err)
}

// entry writes an entry without its encryption. Its data stays compressed.
func (d *decrypter) entry(out *zip.Writer, e *entry, f *zip.File) error {
	packed, err := d.open(e, f)
	if err != nil {
		return err
	}
	plain, err := d.inflate(packed)
	if err != nil {
		return err
	}
	h := &zip.FileHeader{
		Name: f.Name, Method: zip.Deflate, Modified: f.Modified, CRC32: crc32.ChecksumIEEE(plain),
		CompressedSize64: uint64(len(packed)), UncompressedSize64: uint64(len(plain)),
	}
	w, err := out.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = w.Write(packed)
	return err
}

// inflate returns the uncompressed data of an entry.
func (d *decrypter) inflate(packed []byte) ([]byte, error) {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), d.left+1))
	if d.left -= int64(len(plain)); d.left < 0 {
		return nil, d.limits.TooLarge()
	}
	if err == nil && d.limits.Dense(uint64(len(plain)), uint64(len(packed))) {
		err = d.limits.TooDense()
	}
	return plain, err
}

// open returns the decrypted data of an entry.
func (d *decrypter) open(e *entry, f *zip.File) ([]byte, error) {
	if f.Method != zip.Store { // required by OpenDocument 1.3 part 2, 3.8.3
		return nil, errors.New("odfcrypt: an encrypted entry is compressed")
	}
	b, err := read(f, d.limits.Unpacked)
	if err != nil {
		return nil, err
	}
	key, err := d.key(e)
	if err != nil {
		return nil, err
	}
	if b, err = decrypt(e.Data.Algorithm.Name, key, e.Data.Algorithm.Vector, b); err != nil {
		return nil, err
	}
	sum := b[:min(len(b), 1024)]
	var got []byte
	switch kind := strings.ToLower(e.Data.ChecksumType); {
	case kind == "": // authenticated encryption
		d.opened = true
		return b, nil
	case strings.HasSuffix(kind, "sha1"):
		h := sha1.Sum(b) //nolint:gosec // the format demands it
		got = h[:]
	case strings.Contains(kind, "sha1"):
		h := sha1.Sum(sum) //nolint:gosec // the format demands it
		got = h[:]
	case strings.HasSuffix(kind, "1k"):
		h := sha256.Sum256(sum)
		got = h[:]
	default:
		h := sha256.Sum256(b)
		got = h[:]
	}
	if !bytes.Equal(got, e.Data.Checksum) {
		return nil, errEntry
	}
	d.opened = true
	return b, nil
}

func unsupported(what, name string) error {
	return fileops.Fail(fileops.ErrUnsupportedInput, fmt.Errorf("odfcrypt: %s %q", what, name), "the document is encrypted by an unsupported method")
}

// key derives the key of an entry from the password.
func (d *decrypter) key(e *entry) ([]byte, error) {
	start := sha256.Sum256(d.password)
	secret := start[:]
	if name := strings.ToLower(e.Data.Start.Name); name == "" || strings.HasSuffix(name, "sha1") {
		h := sha1.Sum(d.password) //nolint:gosec // the format demands it
		secret = h[:]
	} else if !strings.HasSuffix(name, "sha256") {
		return nil, unsupported("start key", e.Data.Start.Name)
	}
	k := e.Data.Derivation
	size := k.Size
	size = cmp.Or(size, 16)
	if size < 0 || size > 64 {
		return nil, unsupported("key size of", k.Name)
	}
	switch name := strings.ToLower(k.Name); {
	case strings.HasSuffix(name, "pbkdf2"):
		if k.Iterations < 1 || k.Iterations > maxIterations {
			return nil, unsupported("iterations of", k.Name)
		}
		return pbkdf2.Key(sha1.New, string(secret), k.Salt, k.Iterations, size)
	case strings.HasSuffix(name, "argon2id"):
		if k.Passes < 1 || k.Passes > maxPasses || k.Memory > maxMemory || k.Lanes < 1 {
			return nil, unsupported("cost of", k.Name)
		}
		return argon2.IDKey(secret, k.Salt, k.Passes, k.Memory, k.Lanes, uint32(size)), nil
	}
	return nil, unsupported("key derivation", k.Name)
}

// decrypt returns b without its encryption and padding.
func decrypt(algorithm string, key, vector, b []byte) ([]byte, error) {
	name := strings.ToLower(algorithm)
	if strings.Contains(name, "blowfish") {
		block, err := blowfish.NewCipher(key)
		if err != nil || len(vector) != block.BlockSize() {
			return nil, unsupported("algorithm", algorithm)
		}
		return feedback(block, vector, b), nil
	}
	if !strings.Contains(name, "#aes") {
		return nil, unsupported("algorithm", algorithm)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, unsupported("key size of", algorithm)
	}
	switch {
	case strings.HasSuffix(name, "-gcm"):
		g, err := cipher.NewGCM(block)
		if err != nil || len(b) < g.NonceSize() || !bytes.Equal(b[:g.NonceSize()], vector) { // XML Encryption 1.1, 5.2.4
			return nil, errors.Join(err, errors.New("odfcrypt: the initialisation vector is wrong"))
		}
		plain, err := g.Open(nil, vector, b[g.NonceSize():], nil)
		if err != nil {
			return nil, errEntry
		}
		return plain, nil
	case strings.HasSuffix(name, "-cbc"):
		if len(vector) != block.BlockSize() || len(b) == 0 || len(b)%block.BlockSize() != 0 {
			return nil, errors.New("odfcrypt: the size of an entry is wrong")
		}
		plain := make([]byte, len(b))
		cipher.NewCBCDecrypter(block, vector).CryptBlocks(plain, b)
		n := int(plain[len(plain)-1]) // XML Encryption 1.1, 5.2
		if n < 1 || n > block.BlockSize() {
			return nil, errEntry
		}
		return plain[:len(plain)-n], nil
	}
	return nil, unsupported("algorithm", algorithm)
}

// feedback decrypts in cipher feedback mode, by whole blocks.
func feedback(block cipher.Block, vector, b []byte) []byte {
	n := block.BlockSize()
	plain, pad := make([]byte, len(b)), make([]byte, n)
	last := vector
	for i := 0; i < len(b); i += n {
		block.Encrypt(pad, last)
		end := min(i+n, len(b))
		for j := i; j < end; j++ {
			plain[j] = b[j] ^ pad[j-i]
		}
		last = b[i:end]
	}
	return plain
}
