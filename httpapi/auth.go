package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// A Principal is who makes a request.
type Principal struct {
	Account string // owns files and operations
	KeyID   string // for logs and usage; not the key

	// Rate limits the requests with this key, or of this account if KeyID is
	// empty. Zero: Limits.Rate.
	Rate Rate
}

// An Authenticator decides who makes a request. It fails with an error that
// matches [ErrUnauthenticated], or [ErrForbidden] if the account may not go on.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// A Quota counts what accounts use and may refuse more.
type Quota interface {
	// Use is asked before the fact: for bytes when an upload is initiated,
	// for operations when one is created. It fails with an error that
	// matches [ErrQuota] and whose text tells the client what is used up.
	Use(ctx context.Context, p Principal, operations int, bytes int64) error
}

// Errors of an [Authenticator] or a [Quota].
var (
	ErrQuota           = errors.New("quota exceeded")
	ErrUnauthenticated = errors.New("missing or unknown API key")
	ErrForbidden       = errors.New("not allowed")
)

// AuthFunc adapts a function to an [Authenticator].
type AuthFunc func(*http.Request) (Principal, error)

// Authenticate calls f.
func (f AuthFunc) Authenticate(r *http.Request) (Principal, error) { return f(r) }

// Key returns the API key that a request carries, or "": the credential of
// "Authorization: Bearer", or else the header "X-D3-API-Key" that older clients
// send.
func Key(r *http.Request) string {
	if scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return strings.TrimSpace(r.Header.Get("X-D3-API-Key"))
}

// StaticKeys returns an [Authenticator] that accepts the given keys; each is an
// account of its own. Empty keys are never accepted.
func StaticKeys(keys ...string) Authenticator {
	var sums [][32]byte
	for _, k := range keys {
		if k != "" {
			sums = append(sums, sha256.Sum256([]byte(k)))
		}
	}
	return AuthFunc(func(r *http.Request) (Principal, error) {
		sum := sha256.Sum256([]byte(Key(r)))
		for i := range sums {
			if subtle.ConstantTimeCompare(sum[:], sums[i][:]) == 1 {
				id := hex.EncodeToString(sum[:6])
				return Principal{Account: id, KeyID: id}, nil
			}
		}
		return Principal{}, ErrUnauthenticated
	})
}

// AllowAll returns an [Authenticator] that takes everyone for the same account,
// with no limit to the rate of requests.
// It is for tests, and for services behind something that authenticates.
func AllowAll() Authenticator {
	return AuthFunc(func(*http.Request) (Principal, error) { return Principal{Account: "all", Rate: Unlimited()}, nil })
}

type principalKey struct{}

// principal returns who makes a request that went through authenticated.
func principal(r *http.Request) Principal {
	p, _ := r.Context().Value(principalKey{}).(Principal)
	return p
}

// authenticated lets only known principals through.
func (s *Service) authenticated(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.authenticate(r)
		if err == nil {
			err = s.limit(w, p)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		h(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	}
}

// authenticate asks the Authenticator and makes sure that nobody without an
// account gets in: "" owns nothing and means "any owner" further inside. Who
// shows a key that is not valid too often is refused without asking.
func (s *Service) authenticate(r *http.Request) (Principal, error) {
	g := s.guard
	cred := g.credential(r)
	stranger := cred != 0 && !g.isKnown(cred) && g.rate.PerSecond > 0
	from := ""
	if stranger {
		from = s.clientNetwork(r)
		// The token is taken first and given back, so that many requests at
		// the same time do not get through together.
		if a := g.fails.take(from, g.rate, g.fails.now()); !a.ok {
			return Principal{}, errWrongKeys(a.retry)
		}
	}
	p, err := s.cfg.Auth.Authenticate(r)
	if err == nil && p.Account == "" {
		err = ErrUnauthenticated
	}
	wrong := errors.Is(err, ErrUnauthenticated)
	if stranger && !wrong {
		g.fails.giveBack(from, g.rate, g.fails.now())
	}
	if cred != 0 && (wrong && !stranger || err == nil && stranger) {
		g.learn(cred, err == nil)
	}
	return p, err
}
