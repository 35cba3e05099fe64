package odfcrypt_test

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/blowfish" //nolint:staticcheck // files before OpenDocument 1.2 use it

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/odfcrypt"
	"github.com/filewright/filewright/internal/safezip"
	"github.com/filewright/filewright/internal/systest"
)

const password = "pässword"

// A method encrypts one entry, which is already compressed, and returns the
// encryption-data of the manifest.
type method func(packed []byte) (b []byte, data string)

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

var salt = []byte("0123456789abcdef")

func pbkdf(secret []byte, size int) []byte {
	key, err := pbkdf2.Key(sha1.New, string(secret), salt, 10, size)
	if err != nil {
		panic(err)
	}
	return key
}

const derivation = `<m:key-derivation m:key-derivation-name="PBKDF2" m:key-size="%d" m:iteration-count="10" m:salt="%s"/><m:start-key-generation m:start-key-generation-name="%s"/>`

func cbc(packed []byte) ([]byte, string) {
	secret := sha256.Sum256([]byte(password))
	block, _ := aes.NewCipher(pbkdf(secret[:], 32))
	pad := 16 - len(packed)%16
	b := append(bytes.Clone(packed), make([]byte, pad)...)
	b[len(b)-1] = byte(pad)
	cipher.NewCBCEncrypter(block, salt).CryptBlocks(b, b)
	sum := sha256.Sum256(packed[:min(len(packed), 1024)])
	return b, fmt.Sprintf(`<m:encryption-data m:checksum-type="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0#sha256-1k" m:checksum="%s"><m:algorithm m:algorithm-name="http://www.w3.org/2001/04/xmlenc#aes256-cbc" m:initialisation-vector="%s"/>`+derivation+`</m:encryption-data>`,
		b64(sum[:]), b64(salt), 32, b64(salt), "http://www.w3.org/2000/09/xmldsig#sha256")
}

func old(packed []byte) ([]byte, string) {
	secret := sha1.Sum([]byte(password))
	block, _ := blowfish.NewCipher(pbkdf(secret[:], 16))
	b := bytes.Clone(packed)
	last := salt[:8]
	for i := 0; i < len(b); i += 8 {
		pad := make([]byte, 8)
		block.Encrypt(pad, last)
		for j := i; j < min(i+8, len(b)); j++ {
			b[j] ^= pad[j-i]
		}
		last = b[i:min(i+8, len(b))]
	}
	sum := sha1.Sum(packed[:min(len(packed), 1024)])
	return b, fmt.Sprintf(`<m:encryption-data m:checksum-type="SHA1/1K" m:checksum="%s"><m:algorithm m:algorithm-name="Blowfish CFB" m:initialisation-vector="%s"/><m:key-derivation m:key-derivation-name="PBKDF2" m:iteration-count="10" m:salt="%s"/></m:encryption-data>`,
		b64(sum[:]), b64(salt[:8]), b64(salt))
}

func gcm(packed []byte) ([]byte, string) {
	secret := sha256.Sum256([]byte(password))
	block, _ := aes.NewCipher(argon2.IDKey(secret[:], salt, 1, 64, 1, 32))
	g, _ := cipher.NewGCM(block)
	return g.Seal(bytes.Clone(salt[:12]), salt[:12], packed, nil), fmt.Sprintf(`<m:encryption-data><m:algorithm m:algorithm-name="http://www.w3.org/2009/xmlenc11#aes256-gcm" m:initialisation-vector="%s"/><m:key-derivation m:key-derivation-name="urn:org:documentfoundation:names:experimental:office:manifest:argon2id" m:key-size="32" x:argon2-iterations="1" x:argon2-memory="64" x:argon2-lanes="1" m:salt="%s"/><m:start-key-generation m:start-key-generation-name="http://www.w3.org/2001/04/xmlenc#sha256"/></m:encryption-data>`,
		b64(salt[:12]), b64(salt))
}

func deflated(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, w.Close())
	return b.Bytes()
}

const content = "<office:document-content/>"

// build is a document whose entries with a name are encrypted.
func build(t testing.TB, m method, name string, packed []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		systest.NoError(t, err)
	}
	add("mimetype", []byte("application/vnd.oasis.opendocument.text"))
	data := ""
	if m != nil {
		packed, data = m(packed)
	}
	add(name, packed)
	add("META-INF/manifest.xml", []byte(`<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" xmlns:x="x"><m:file-entry m:full-path="/"/><m:file-entry m:full-path="`+name+`" m:size="`+fmt.Sprint(len(content))+`">`+data+`</m:file-entry></m:manifest>`))
	systest.NoError(t, z.Close())
	return b.Bytes()
}

func decrypt(t testing.TB, b []byte, password string) ([]byte, error) {
	var out bytes.Buffer
	err := odfcrypt.Decrypt(t.Context(), safezip.Limits{Unpacked: 1 << 20}.OrDefault(1<<20), bytes.NewReader(b), int64(len(b)), password, &out)
	return out.Bytes(), err
}

func TestDecrypt(t *testing.T) {
	t.Parallel()
	inner := build(t, nil, "content.xml", []byte(content))
	for name, tt := range map[string]struct {
		b    []byte
		kind error
	}{
		"cbc":           {build(t, cbc, "content.xml", deflated(t, content)), nil},
		"blowfish":      {build(t, old, "content.xml", deflated(t, content)), nil},
		"gcm":           {build(t, gcm, "content.xml", deflated(t, content)), nil},
		"whole package": {build(t, gcm, "encrypted-package", inner), nil},
		"packed whole":  {build(t, gcm, "encrypted-package", deflated(t, string(inner))), nil},
		"plain":         {build(t, nil, "content.xml", []byte(content)), fileops.ErrNotEncrypted},
		"bomb":          {build(t, cbc, "content.xml", deflated(t, strings.Repeat("x", 2<<20))), fileops.ErrLimit},
		"not deflated":  {build(t, cbc, "content.xml", []byte("\xff\xff\xff")), fileops.ErrCorruptInput},
		"other cipher": {bytes.ReplaceAll(build(t, old, "content.xml", deflated(t, content)), []byte("Blowfish"), []byte("Twofish!")),
			fileops.ErrCorruptInput}, // the checksum of the manifest
		"not a document": {[]byte("PK"), fileops.ErrCorruptInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decrypt(t, tt.b, password)
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) {
					t.Fatalf("got %v, want %v", err, tt.kind)
				}
				return
			}
			systest.NoError(t, err)
			z, err := zip.NewReader(bytes.NewReader(got), int64(len(got)))
			systest.NoError(t, err)
			for _, f := range z.File {
				r, err := f.Open()
				systest.NoError(t, err)
				b, err := io.ReadAll(r)
				if err != nil || f.Name == "content.xml" && string(b) != content || bytes.Contains(b, []byte("encryption-data")) {
					t.Errorf("%s: %q, %v", f.Name, b, err)
				}
			}
			if z.File[0].Name != "mimetype" || len(z.File) != 3 {
				t.Errorf("entries %v", z.File)
			}
			if _, err := decrypt(t, tt.b, "no"); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("wrong password: %v", err)
			}
		})
	}
}

// Costs that would take minutes or gigabytes are refused.
func TestCosts(t *testing.T) {
	t.Parallel()
	for _, change := range [][2]string{{`iteration-count="10"`, `iteration-count="2000000000"`}, {`argon2-memory="64"`, `argon2-memory="4000000"`}, {`argon2-iterations="1"`, `argon2-iterations="9999999"`}, {"Blowfish CFB", "Twofish"}} {
		m := func(packed []byte) ([]byte, string) {
			encrypt := gcm
			if strings.Contains(change[0], "count") {
				encrypt = cbc
			} else if strings.Contains(change[0], "fish") {
				encrypt = old
			}
			b, data := encrypt(packed)
			return b, strings.Replace(data, change[0], change[1], 1)
		}
		if _, err := decrypt(t, build(t, m, "content.xml", deflated(t, content)), password); !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}
