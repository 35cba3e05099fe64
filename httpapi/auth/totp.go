package auth

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"
)

// Parameters of codes: those that every authenticator app supports.
const (
	totpPeriod = 30 // seconds
	totpDigits = 6
	totpSecret = 20 // bytes, as RFC 4226 recommends
	totpIssuer = "Filewright"
)

// totpStep returns the time step of a time (RFC 6238, section 4.2).
func totpStep(at time.Time) int64 { return at.Unix() / totpPeriod }

// totpCode returns the code of a time step (RFC 4226, section 5.3).
func totpCode(secret []byte, step int64, digits int) string {
	h := hmac.New(sha1.New, secret)
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	h.Write(counter[:])
	sum := h.Sum(nil)
	offset := sum[len(sum)-1] & 15
	n := binary.BigEndian.Uint32(sum[offset:]) & 0x7fffffff
	mod := uint32(1)
	for range digits {
		mod *= 10
	}
	return fmt.Sprintf("%0*d", digits, n%mod)
}

// totpMatch returns the time step of a code. Clocks may differ by one step.
func totpMatch(secret []byte, code string, now time.Time) (step int64, ok bool) {
	for _, d := range []int64{0, -1, 1} {
		s := totpStep(now) + d
		if subtle.ConstantTimeCompare([]byte(totpCode(secret, s, totpDigits)), []byte(code)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// totpURL returns the URL that authenticator apps read from a QR code.
func totpURL(name, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {totpIssuer}}
	return "otpauth://totp/" + url.PathEscape(totpIssuer+":"+name) + "?" + q.Encode()
}
