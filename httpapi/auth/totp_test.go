package auth

import (
	"testing"
	"time"
)

// The vectors of RFC 6238, appendix B, for SHA-1.
func TestTOTPVectors(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for at, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := totpCode(secret, totpStep(time.Unix(at, 0)), 8); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
	now := time.Unix(1234567890, 0)
	for d, want := range map[int64]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		step := totpStep(now) + d
		if got, ok := totpMatch(secret, totpCode(secret, step, totpDigits), now); ok != want || ok && got != step {
			t.Errorf("%d steps away: %t at step %d", d, ok, got)
		}
	}
	if _, ok := totpMatch(secret, "", now); ok {
		t.Error("no code is accepted")
	}
	if got, want := totpURL("a b@c", "ABC"), "otpauth://totp/Filewright:a%20b@c?issuer=Filewright&secret=ABC"; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
}
