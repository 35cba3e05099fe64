package upload

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A ticket is the permission in an upload URL: to PUT one part of one session, also
// repeatedly.
type ticket struct {
	key     string // of the file
	upload  string // UploadID
	part    int
	max     int64 // bytes
	expires int64 // Unix seconds
}

// A signer converts tickets to URLs and back.
type signer struct {
	prefix  string // of the path
	secrets []secret
}

// A secret signs URLs. Its id names the secret that signed a URL and reveals nothing
// about it.
type secret struct {
	id  string
	key []byte
}

func newSecret(key []byte) secret {
	sum := sha256.Sum256(append([]byte("filewright upload key id\n"), key...))
	return secret{hex.EncodeToString(sum[:6]), key}
}

// mac covers all fields, one per line; keys and ids have no line breaks.
func (s secret) mac(t ticket) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "filewright upload v1\n%s\n%s\n%s\n%d\n%d\n%d\n%s",
		http.MethodPut, t.key, t.upload, t.part, t.max, t.expires, s.id)
	return h.Sum(nil)
}

func (s *signer) url(t ticket) *url.URL {
	by := s.secrets[0]
	return &url.URL{
		Path: s.prefix + t.key + "/" + t.upload + "/" + strconv.Itoa(t.part),
		RawQuery: fmt.Sprintf("expires=%d&max=%d&kid=%s&signature=%s", t.expires, t.max, by.id,
			base64.RawURLEncoding.EncodeToString(by.mac(t))),
	}
}

// verify returns the ticket of a URL if it is authentic and has not expired.
func (s *signer) verify(method string, u *url.URL, now time.Time) (ticket, error) {
	t, ok := s.parse(method, u)
	if !ok {
		return ticket{}, &Error{Kind: ErrSignature, Message: "invalid upload URL signature, or wrong method"}
	}
	if now.Unix() >= t.expires {
		return ticket{}, &Error{Kind: ErrURLExpired, Part: t.part, Message: "the upload URL has expired"}
	}
	return t, nil
}

func (s *signer) parse(method string, u *url.URL) (t ticket, ok bool) {
	rest, ok := strings.CutPrefix(u.Path, s.prefix)
	elems := strings.Split(rest, "/")
	if !ok || method != http.MethodPut || len(elems) != 3 || !isID(elems[0]) || !isID(elems[1]) {
		return t, false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return t, false
	}
	part, ok1 := number(elems[2])
	max, ok2 := number(q.Get("max"))
	expires, ok3 := number(q.Get("expires"))
	sig, err := base64.RawURLEncoding.Strict().DecodeString(q.Get("signature"))
	if !ok1 || !ok2 || !ok3 || err != nil || part < 1 || int64(int(part)) != part {
		return t, false
	}
	t = ticket{elems[0], elems[1], int(part), max, expires}
	for _, by := range s.secrets {
		if by.id == q.Get("kid") {
			return t, hmac.Equal(by.mac(t), sig)
		}
	}
	return t, false
}

// number parses a number in canonical form only.
func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}
