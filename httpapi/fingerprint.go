package httpapi

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// fingerprints recognise repeated requests. A fingerprint outlives the parameters of its operation.
// It is keyed because a short password could be guessed from a plain hash. The first key makes new
// fingerprints; all keys recognise them.
type fingerprints [][]byte

func newFingerprints(secrets [][]byte) (keys fingerprints, err error) {
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "filewright fingerprints v1", 32)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// of returns the fingerprint of a request body.
func (keys fingerprints) of(body []byte) string { return keyedHash(keys[0], body) }

// match reports whether a fingerprint belongs to a body, under any key.
func (keys fingerprints) match(print string, body []byte) bool {
	return slices.ContainsFunc(keys, func(key []byte) bool {
		return hmac.Equal([]byte(print), []byte(keyedHash(key, body)))
	})
}

func keyedHash(key, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func randomSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails (crypto/rand)
	return b
}
