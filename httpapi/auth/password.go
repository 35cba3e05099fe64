package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Parameters of argon2id, as the OWASP Password Storage Cheat Sheet recommends.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	saltLength  = 16
	hashLength  = 32
)

// Limits of a password in characters. The upper limit bounds the time that hashing takes.
const (
	minPassword = 10
	maxPassword = 200
)

// hashing holds a token for each running hash. It bounds the memory and processors that passwords
// use.
type hashing chan struct{}

// newHashing leaves half of the processors free.
func newHashing() hashing { return make(hashing, max(1, runtime.GOMAXPROCS(0)/2)) }

// argon waits for its turn and hashes a password.
func (h hashing) argon(ctx context.Context, password string, salt []byte, p argonParams, length int) ([]byte, error) {
	select {
	case h <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h }()
	return argon2.IDKey([]byte(password), salt, p.time, p.memory, p.lanes, uint32(length)), nil
}

type argonParams struct {
	memory, time uint32
	lanes        uint8
}

// current are the parameters of new hashes.
var current = argonParams{argonMemory, argonTime, argonLanes}

var b64 = base64.RawStdEncoding

// password returns the hash of a password in PHC form.
func (h hashing) password(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltLength)
	rand.Read(salt) // never fails (crypto/rand)
	sum, err := h.argon(ctx, password, salt, current, hashLength)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		b64.EncodeToString(salt), b64.EncodeToString(sum)), nil
}

// nobody is a hash without a password. Checking it takes as long as any other.
var nobody = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
	b64.EncodeToString(make([]byte, saltLength)), b64.EncodeToString(make([]byte, hashLength)))

// check reports whether a password matches a hash. A hash of "" matches nothing and takes as long.
func (h hashing) check(ctx context.Context, hash, password string) (bool, error) {
	known := hash != ""
	if !known {
		hash = nobody
	}
	p, salt, sum, err := parse(hash)
	if err != nil {
		return false, fmt.Errorf("stored password: %w", err)
	}
	got, err := h.argon(ctx, password, salt, p, len(sum))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, sum) == 1 && known, nil
}

// outdated reports whether a hash has other parameters than new hashes.
func outdated(hash string) bool {
	p, salt, sum, err := parse(hash)
	return err == nil && (p != current || len(salt) != saltLength || len(sum) != hashLength)
}

// parse parses a hash in PHC form.
func parse(hash string) (p argonParams, salt, sum []byte, err error) {
	var version int
	parts := strings.Split(hash, "$")
	err = errors.New("not argon2id in PHC form")
	if len(parts) == 6 && parts[1] == "argon2id" {
		if _, err = fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &p.memory, &p.time, &p.lanes); err == nil {
			salt, err = b64.DecodeString(parts[4])
		}
		if err == nil {
			sum, err = b64.DecodeString(parts[5])
		}
		if err == nil && (version != argon2.Version || p.time == 0 || p.lanes == 0 || len(sum) < 16) {
			err = errors.New("unknown argon2id parameters")
		}
	}
	return p, salt, sum, err
}

// weak reports whether a new password is not acceptable.
func weak(name, old, fresh string) bool {
	n := utf8.RuneCountInString(fresh)
	return n < minPassword || n > maxPassword || !utf8.ValidString(fresh) || fresh == old || strings.EqualFold(fresh, name) || common(fresh)
}

// commonPasswords are the most common passwords of sufficient length, in lower case, one on each
// line.
//
//go:embed common.txt
var commonPasswords string

// common reports whether attackers try a password first: it is in commonPasswords, in any case, or
// has at most two different characters.
func common(password string) bool {
	password = strings.ToLower(password)
	if !strings.Contains(password, "\n") && strings.Contains("\n"+commonPasswords, "\n"+password+"\n") {
		return true
	}
	chars := make(map[rune]bool)
	for _, c := range password {
		chars[c] = true
	}
	return len(chars) <= 2
}

// oneTimePassword returns a password of 100 random bits that is easy to copy.
func oneTimePassword() string {
	b := make([]byte, 13)
	rand.Read(b) // never fails (crypto/rand)
	s := strings.ToLower(encoding.EncodeToString(b))
	return s[:5] + "-" + s[5:10] + "-" + s[10:15] + "-" + s[15:20]
}
