package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/internal/seal"
)

// Headers of a delivery.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerSimple    = "X-Webhook-Signature"
)

// tolerance is the accepted difference between the time of an attempt and the
// receiver's clock.
const tolerance = 5 * time.Minute

// sign sets the headers of an attempt made at the given time. keys are the decoded
// secrets, newest first.
func sign(h http.Header, id string, at time.Time, body []byte, keys [][]byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(standardMAC(key, id, stamp, body))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
	// This header holds one signature. Its key is the text of the secret, as receivers
	// have it.
	mac := hmac.New(sha256.New, []byte(secretPrefix+base64.StdEncoding.EncodeToString(keys[0])))
	mac.Write(body)
	h.Set(headerSimple, "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// standardMAC returns the signature that Standard Webhooks calls v1.
func standardMAC(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, stamp)
	mac.Write(body)
	return mac.Sum(nil)
}

// ErrSignature reports that a request is not a validly signed delivery.
var ErrSignature = errors.New("invalid webhook signature")

// Verify returns nil if a request with the given headers and body is a delivery sent
// within five minutes of now. One of the given secrets (whsec_…) must have signed it.
// It takes several secrets because two are valid while one replaces the other.
//
// An attacker can replay a captured request within that time, and the sender itself may
// repeat a delivery. Compare webhook-id with those already received.
//
// The error matches ErrSignature, unless a secret is malformed.
func Verify(secrets []string, h http.Header, body []byte, now time.Time) error {
	id, stamp := h.Get(headerID), h.Get(headerTimestamp)
	if id == "" || stamp == "" || h.Get(headerSignature) == "" {
		return fmt.Errorf("%w: missing header", ErrSignature)
	}
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: webhook-timestamp is not a number", ErrSignature)
	}
	if d := now.Sub(time.Unix(sec, 0)); d > tolerance || d < -tolerance {
		return fmt.Errorf("%w: the timestamp is too old or in the future", ErrSignature)
	}
	var given [][]byte
	for one := range strings.FieldsSeq(h.Get(headerSignature)) {
		text, ok := strings.CutPrefix(one, "v1,")
		if mac, err := base64.StdEncoding.DecodeString(text); ok && err == nil {
			given = append(given, mac)
		}
	}
	found := false
	for _, secret := range secrets {
		text, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil || len(key) == 0 {
			return errors.New("a webhook secret must be whsec_ followed by base64")
		}
		want := standardMAC(key, id, stamp, body)
		for _, mac := range given {
			found = hmac.Equal(mac, want) || found
		}
	}
	if !found {
		return ErrSignature
	}
	return nil
}

// newSealer returns a Sealer that encrypts the endpoints' secrets for the database.
func newSealer(secrets [][]byte) (seal.Sealer, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhook: Config.Secrets is required")
	}
	for _, secret := range secrets {
		if len(secret) < 16 {
			return nil, errors.New("webhook: a secret in Config.Secrets is shorter than 16 bytes")
		}
	}
	return seal.New("filewright webhook secrets v1", secrets)
}

var errSealed = errors.New("cannot read the secret: it was encrypted with another secret of the server; rotate it")
