package httpapi

import (
	"cmp"
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

// A Scope is a set of permissions of an API key.
type Scope uint8

// The scopes. The OpenAPI document names the scope that each endpoint requires.
const (
	ScopeUpload  Scope = 1 << iota // upload and delete files
	ScopeOperate                   // start and cancel operations
	ScopeRead                      // everything else except ScopeAdmin: status, lists, downloads, formats
	ScopeAdmin                     // manage the account: its keys, webhooks and usage

	// DefaultScopes are the scopes of a Principal that sets no scopes.
	DefaultScopes = ScopeUpload | ScopeOperate | ScopeRead
)

var scopeNames = [...]string{"upload", "operate", "read", "admin"}

// String returns the names of the scopes, separated by spaces, such as "upload operate read".
func (s Scope) String() string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// ParseScope parses the output of [Scope.String]. Commas between the names are accepted too. An
// empty text is no error: its result is 0.
func ParseScope(text string) (Scope, error) {
	var s Scope
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.Index(scopeNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("unknown scope %q; scopes are %s", name, strings.Join(scopeNames[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// A Principal identifies the caller of a request.
type Principal struct {
	Account string // owns files and operations
	KeyID   string // for logs and usage; not the key
	Login   string // ID of the login of a session; "": the request has a key

	// Scopes are the permissions of the key. 0 means DefaultScopes, for an Authenticator without
	// scopes.
	Scopes Scope

	// Administrator permits managing other accounts too. It takes effect only with ScopeAdmin.
	Administrator bool

	// Rate limits requests with this key, or of this account if KeyID is empty. Zero: Limits.Rate.
	Rate Rate
}

// An Authenticator identifies the caller of a request. Its error matches [ErrUnauthenticated], or
// [ErrForbidden] if the account is known but refused.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// An Auditor is an [Authenticator] that records what users change through the API.
type Auditor interface {
	// Changed records that an authenticated request made a change, such as "operation.cancel", to an
	// object with an ID.
	Changed(r *http.Request, action, object string)
}

// changed passes a change to the Authenticator if that is an Auditor.
func (s *Service) changed(r *http.Request, action, object string) {
	if a, ok := s.cfg.Auth.(Auditor); ok {
		a.Changed(r, action, object)
	}
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

// Key returns the API key of a request, or "". It reads "Authorization: Bearer", or else the header
// "X-D3-API-Key" that older clients send.
func Key(r *http.Request) string {
	if scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return strings.TrimSpace(r.Header.Get("X-D3-API-Key"))
}

// StaticKeys returns an [Authenticator] that accepts the given keys. Each key is its own account.
// Empty keys are never accepted.
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

// AllowAll returns an [Authenticator] that maps every request to one account without a rate limit.
// It is for tests and for services behind an authenticating proxy.
func AllowAll() Authenticator {
	return AuthFunc(func(*http.Request) (Principal, error) { return Principal{Account: "all", Rate: Unlimited()}, nil })
}

type principalKey struct{}

// PrincipalOf returns the caller of an authenticated request from the request's context. It is for
// an [Extension] or a [Quota].
func PrincipalOf(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// principal returns the caller of a request that passed authenticated.
func principal(r *http.Request) Principal {
	p, _ := PrincipalOf(r.Context())
	return p
}

// may returns an error unless the key has the scope.
func (p Principal) may(scope Scope) error {
	if p.Scopes&scope == scope {
		return nil
	}
	return problem(http.StatusForbidden, "forbidden", "the API key lacks the scope %s", scope)
}

// authenticated passes only requests whose caller is known and has the scope.
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

// authenticate calls the Authenticator and requires an account: the account "" owns nothing and
// means "any owner" inside the service. A client that has sent too many invalid keys is refused
// before the call.
func (s *Service) authenticate(r *http.Request) (Principal, error) {
	g := s.guard
	cred := g.credential(r)
	stranger := cred != 0 && !g.isKnown(cred) && g.rate.PerSecond > 0
	from := ""
	if stranger {
		from = s.clientNetwork(r)
		// Take the token first and give it back later: otherwise many concurrent requests would
		// pass together.
		if a := g.fails.Take(from, gcra.Rate(g.rate), g.fails.Now(), 1); !a.OK {
			return Principal{}, errInvalidKeys(a.Retry)
		}
	}
	p, err := s.cfg.Auth.Authenticate(r)
	if err == nil && p.Account == "" {
		err = ErrUnauthenticated
	}
	p.Scopes = cmp.Or(p.Scopes, DefaultScopes)
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
