package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// A sealer encrypts the parameters of operations while they wait, because some
// are passwords: AES-256-GCM under keys derived from the service's secrets.
//
// It also makes the fingerprints by which repeated requests are recognised. They
// are kept for longer than the parameters, so they are keyed as well: of a plain
// hash a short password could be guessed. And it makes the keys of results, from
// the first secret.
type sealer struct {
	aeads   []cipher.AEAD
	macs    [][]byte
	results []byte
}

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
		mac, err := hkdf.Key(sha256.New, secret, nil, "filewright fingerprints v1", 32)
		if err != nil {
			return nil, err
		}
		s.macs = append(s.macs, mac)
	}
	var err error
	s.results, err = hkdf.Key(sha256.New, secrets[0], nil, "filewright result keys v1", 32)
	return s, err
}

// seal encrypts plain for one operation: it cannot be moved to another.
func (s *sealer) seal(plain []byte, operation string) []byte {
	return s.aeads[0].Seal(nil, nil, plain, []byte(operation))
}

// resultKey returns the key of the n-th result of the attempt under a claim. Whoever
// has the secret can name the results of an attempt that a crash has ended before
// they were recorded; nobody else can guess them.
func (s *sealer) resultKey(c *status.Claim, token, n int) string {
	mac := hmac.New(sha256.New, s.results)
	fmt.Fprintf(mac, "%s %d %d %d", c.Operation, c.Index, token, n)
	return upload.KeyOf([16]byte(mac.Sum(nil)[:16]))
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

// fingerprint identifies the body of a request.
func (s *sealer) fingerprint(body []byte) string { return fingerprintWith(s.macs[0], body) }

// matches tells whether fingerprint is that of a body, under any of the secrets.
func (s *sealer) matches(fingerprint string, body []byte) bool {
	return slices.ContainsFunc(s.macs, func(mac []byte) bool {
		return hmac.Equal([]byte(fingerprint), []byte(fingerprintWith(mac, body)))
	})
}

func fingerprintWith(mac, body []byte) string {
	h := hmac.New(sha256.New, mac)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func randomSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails, see its documentation
	return b
}
