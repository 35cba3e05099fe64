package worker

import (
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

// resultKeys makes the keys of results.
type resultKeys []byte

func newResultKeys(secret []byte) (resultKeys, error) {
	return hkdf.Key(sha256.New, secret, nil, "filewright result keys v1", 32)
}

// of returns the key of the n-th result of the attempt under a claim. With the
// secret, another process can name the results that a crashed attempt did not record.
// Without it nobody can guess them.
func (keys resultKeys) of(c *status.Claim, token, n int) string {
	mac := hmac.New(sha256.New, keys)
	fmt.Fprintf(mac, "%s %d %d %d", c.Operation, c.Index, token, n)
	return upload.KeyOf([16]byte(mac.Sum(nil)[:16]))
}

// Seal encrypts parameters for the member Args of one operation. They cannot be moved
// to another operation.
func (w *Worker) Seal(operation string, args map[string]any) ([]byte, error) {
	plain, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return w.sealer.Seal(plain, operation), nil
}

// ErrSealed is matched by the failure of an attempt that cannot open the parameters.
var ErrSealed = errors.New("cannot read the parameters: they were encrypted with another secret")

// args opens the parameters of an operation.
func (w *Worker) args(op *status.Operation) (args fileops.Args, err error) {
	plain, ok := w.sealer.Open(op.Args, op.ID)
	if !ok {
		return nil, ErrSealed
	}
	err = json.Unmarshal(plain, &args)
	return args, err
}
