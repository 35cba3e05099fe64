// Package seal encrypts small secrets for storage in a database, with AES-256-GCM under
// keys that HKDF (RFC 5869) derives from the secrets of the server.
//
//	sealer, err := seal.New("filewright webhook secrets v1", secrets)
//	...
//	sealed := sealer.Seal(plain, id)
//	plain, ok := sealer.Open(sealed, id)
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// A Sealer seals with its first key and opens with all of them, so that secrets can be
// rotated.
type Sealer []cipher.AEAD

// New derives a key for a purpose from each of the secrets. Sealers for different
// purposes cannot open each other's data.
func New(purpose string, secrets [][]byte) (Sealer, error) {
	var s Sealer
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		s = append(s, aead)
	}
	return s, nil
}

// Seal encrypts plain for the record with the given ID. Open fails for any other ID.
func (s Sealer) Seal(plain []byte, id string) []byte { return s[0].Seal(nil, nil, plain, []byte(id)) }

// Open decrypts what Seal returned for the same ID. ok is false if the ID, the purpose
// or all secrets differ, or the data was changed.
func (s Sealer) Open(sealed []byte, id string) (plain []byte, ok bool) {
	for _, aead := range s {
		if plain, err := aead.Open(nil, nil, sealed, []byte(id)); err == nil {
			return plain, true
		}
	}
	return nil, false
}
