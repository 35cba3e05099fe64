package worker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// A sealer encrypts the parameters of operations with AES-256-GCM under keys derived
// from the secrets. The first secret seals, and all of them open. The first one also
// makes the keys of results.
type sealer struct {
	aeads   []cipher.AEAD
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
	}
	var err error
	s.results, err = hkdf.Key(sha256.New, secrets[0], nil, "filewright result keys v1", 32)
	return s, err
}

// Seal encrypts parameters for the member Args of one operation. They cannot be moved
// to another operation.
func (w *Worker) Seal(operation string, args map[string]any) ([]byte, error) {
	plain, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return w.sealer.aeads[0].Seal(nil, nil, plain, []byte(operation)), nil
}

// resultKey returns the key of the n-th result of the attempt under a claim. With the
// secret, another process can name the results that a crashed attempt did not record.
// Without it nobody can guess them.
func (s *sealer) resultKey(c *status.Claim, token, n int) string {
	mac := hmac.New(sha256.New, s.results)
	fmt.Fprintf(mac, "%s %d %d %d", c.Operation, c.Index, token, n)
	return upload.KeyOf([16]byte(mac.Sum(nil)[:16]))
}

// ErrSealed is matched by the failure of an attempt that cannot open the parameters.
var ErrSealed = errors.New("the parameters cannot be read: they were sealed with another secret")

// args opens the parameters of an operation.
func (w *Worker) args(op *status.Operation) (args fileops.Args, err error) {
	for _, a := range w.sealer.aeads {
		if plain, err := a.Open(nil, nil, op.Args, []byte(op.ID)); err == nil {
			err = json.Unmarshal(plain, &args)
			return args, err
		}
	}
	return nil, ErrSealed
}
