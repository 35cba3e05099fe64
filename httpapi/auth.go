package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/filewright/filewright/httpapi/internal/gcra"
)

// A Scope is a set of what a key may be used for.
type Scope uint8

// The scopes. What a key needs for an endpoint is in the OpenAPI document.
const (
	ScopeUpload  Scope = 1 << iota // sending files, and deleting them
	ScopeOperate                   // beginning and cancelling operations
	ScopeRead                      // everything else but ScopeAdmin: status, lists, downloads, what is possible
	ScopeAdmin                     // managing the account: its keys, webhooks and usage

	// DefaultScopes are those of a Principal that names none.
	DefaultScopes = ScopeUpload | ScopeOperate | ScopeRead
)

var scopeNames = [...]string{"upload", "operate", "read", "admin"}

// String returns the names of the scopes with spaces between them, such as
// "upload operate read".
func (s Scope) String() string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// ParseScope reads what [Scope.String] writes; commas between the names are good
// as well. A text without a name is no error: it is 0.
func ParseScope(text string) (Scope, error) {
	var s Scope
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.Index(scopeNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("there is no scope %q; there are %s", name, strings.Join(scopeNames[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// A Principal is who makes a request.
type Principal struct {
	Account string // owns files and operations
	KeyID   string // for logs and usage; not the key

	// Scopes are what the key may be used for. 0: DefaultScopes, for an
	// Authenticator that knows nothing of scopes.
	Scopes Scope

	// Administrator says that, with ScopeAdmin, other accounts may be managed
	// as well.
	Administrator bool

	// Rate limits the requests with this key, or of this account if KeyID is
	// empty. Zero: Limits.Rate.
	Rate Rate
}

// An Authenticator decides who makes a request. It fails with an error that
// matches [ErrUnauthenticated], or [ErrForbidden] if the account may not go on.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
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

// PrincipalOf returns who makes a request that the service has let through, from
// the context of the request. An [Extension] and a [Quota] may ask.
func PrincipalOf(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// principal returns who makes a request that went through authenticated.
func principal(r *http.Request) Principal {
	p, _ := PrincipalOf(r.Context())
	return p
}

// may refuses a principal whose key is not for a scope.
func (p Principal) may(scope Scope) error {
	if p.Scopes&scope == scope {
		return nil
	}
	return problem(http.StatusForbidden, "forbidden", "the API key does not allow this: it needs the scope %s", scope)
}

// authenticated lets only known principals through that have a scope.
func (s *Service) authenticated(h http.HandlerFunc, scope Scope) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.authenticate(r)
		if err == nil {
			err = s.limit(w, p)
		}
		if err == nil {
			err = p.may(scope)
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
		if a := g.fails.Take(from, gcra.Rate(g.rate), g.fails.Now(), 1); !a.OK {
			return Principal{}, errWrongKeys(a.Retry)
		}
	}
	p, err := s.cfg.Auth.Authenticate(r)
	if err == nil && p.Account == "" {
		err = ErrUnauthenticated
	}
	if p.Scopes == 0 {
		p.Scopes = DefaultScopes
	}
	if err == nil {
		infoOf(r).who = p
	}
	wrong := errors.Is(err, ErrUnauthenticated)
	if stranger && !wrong {
		g.fails.GiveBack(from, gcra.Rate(g.rate), g.fails.Now())
	}
	if cred != 0 && (wrong && !stranger || err == nil && stranger) {
		g.learn(cred, err == nil)
	}
	return p, err
}
