package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// A sealer encrypts the parameters of operations while they wait, because some
// are passwords: AES-256-GCM under keys derived from the service's secrets.
type sealer struct{ aeads []cipher.AEAD }

func newSealer(secrets [][]byte) (*sealer, error) {
	s := &sealer{}
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "filewright parameters v1", 32)
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
		s.aeads = append(s.aeads, aead)
	}
	return s, nil
}

// seal encrypts plain for one operation: it cannot be moved to another.
func (s *sealer) seal(plain []byte, operation string) []byte {
	return s.aeads[0].Seal(nil, nil, plain, []byte(operation))
}

var errSealed = errors.New("the parameters cannot be read: they were sealed with another secret")

func (s *sealer) open(sealed []byte, operation string) ([]byte, error) {
	for _, a := range s.aeads {
		if plain, err := a.Open(nil, nil, sealed, []byte(operation)); err == nil {
			return plain, nil
		}
	}
	return nil, errSealed
}

func randomSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails, see its documentation
	return b
}
