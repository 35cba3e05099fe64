package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/seal"
)

// Limits of passkeys.
const (
	maxPasskeys        = 20              // of an account
	passkeyTime        = 5 * time.Minute // from the challenge to the response
	maxPasskeyResponse = 32 << 10        // bytes
	maxPasskeyTicket   = 64 << 10        // bytes; it has the IDs of maxPasskeys passkeys
)

// Errors of passkeys, which [httpapi.Service.Fail] sends to clients.
var (
	// ErrPasskey reports a response of an authenticator that is not valid: for another site, with a
	// challenge that was used or has expired, by an unknown passkey, or with a wrong signature.
	ErrPasskey error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "the passkey was not accepted; try again")

	// ErrPasskeyCopied reports a passkey whose signature counter did not grow: somebody may have
	// copied it.
	ErrPasskeyCopied error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "the passkey may have been copied; log in another way and remove it")

	// ErrPasskeyExists reports a new passkey that the account already has, or one too many.
	ErrPasskeyExists error = httpapi.NewProblem(http.StatusConflict, "conflict", "this passkey was added before, or the account has the maximum number of passkeys")

	// ErrPasskeyName reports an invalid name.
	ErrPasskeyName error = httpapi.Invalid("name", "the name of a passkey must have 1 to %d characters and no control characters", maxName)

	// errNoPasskeys reports an address at which browsers offer no passkeys.
	errNoPasskeys error = httpapi.NewProblem(http.StatusConflict, "conflict", "passkeys need HTTPS and a host name; open the service at its public address")
)

// passkeys are the passkeys of accounts.
type passkeys struct {
	store   account.PasskeyStore
	tickets seal.Sealer // empty: nobody can use passkeys
	domain  string      // host name of Config.BaseURL; "": any
}

func newPasskeys(c Config) *passkeys {
	if c.Passkeys == nil {
		return nil
	}
	p := &passkeys{store: c.Passkeys}
	if c.BaseURL != nil {
		p.domain = strings.ToLower(c.BaseURL.Hostname())
	}
	if tickets, err := seal.New("filewright passkey ticket v1", c.Secrets); err == nil {
		p.tickets = tickets
	}
	return p
}

// relyingParty returns the service as authenticators know it: by the host name of its public address.
// Its error is errNoPasskeys where browsers offer no passkeys.
func (a *Accounts) relyingParty(r *http.Request) (*webauthn.WebAuthn, error) {
	base := a.base(r)
	host := strings.ToLower(base.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || host == "" || base.Scheme != "https" && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		return nil, errNoPasskeys
	}
	origin := base.Scheme + "://" + host
	if port := base.Port(); port != "" && !(base.Scheme == "https" && port == "443") && !(base.Scheme == "http" && port == "80") {
		origin += ":" + port
	}
	rp, err := webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: totpIssuer, RPOrigins: []string{origin}})
	if err != nil {
		return nil, errNoPasskeys
	}
	return rp, nil
}

// HasPasskeys reports whether users can log in with passkeys. They cannot where passwords are
// refused: there the sign-in provider decides who may log in.
func (a *Accounts) HasPasskeys() bool {
	return a.passkeys != nil && len(a.passkeys.tickets) > 0 && a.HasFactors() && !a.cfg.NoPasswords
}

// PasskeysAt reports whether browsers offer passkeys at the address of a request.
func (a *Accounts) PasskeysAt(r *http.Request) bool {
	if !a.HasPasskeys() {
		return false
	}
	_, err := a.relyingParty(r)
	return err == nil
}

// Passkeys returns the passkeys of an account, oldest first.
func (a *Accounts) Passkeys(ctx context.Context, id string) ([]*account.Passkey, error) {
	if a.passkeys == nil {
		return nil, nil
	}
	return a.passkeys.store.List(ctx, id)
}

// usable returns the passkeys of an account with which its user can log in. Those of an earlier public
// address do not work any more, so they must not lock the user out.
func (a *Accounts) usable(ctx context.Context, id string) (list []*account.Passkey, err error) {
	if !a.HasPasskeys() {
		return nil, nil
	}
	list, err = a.passkeys.store.List(ctx, id)
	return slices.DeleteFunc(list, func(p *account.Passkey) bool { return a.passkeys.domain != "" && p.Domain != a.passkeys.domain }), err
}

// A passkeyUser is an account as package webauthn sees it.
type passkeyUser struct {
	id, name string
	passkeys []*account.Passkey
}

// WebAuthnID returns the user handle: it must not tell who the user is, and has at most 64 bytes.
func (u passkeyUser) WebAuthnID() []byte {
	sum := sha256.Sum256([]byte("filewright passkey user\x00" + u.id))
	return sum[:]
}

func (u passkeyUser) WebAuthnName() string        { return u.name }
func (u passkeyUser) WebAuthnDisplayName() string { return u.name }

func (u passkeyUser) WebAuthnCredentials() (list []webauthn.Credential) {
	for _, p := range u.passkeys {
		list = append(list, webauthn.Credential{
			ID: p.ID, PublicKey: p.PublicKey, Flags: webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(p.Flags)),
			Authenticator: webauthn.Authenticator{SignCount: p.Count},
		})
	}
	return list
}

// A PasskeyRequest asks a browser for a passkey.
type PasskeyRequest struct {
	Options json.RawMessage `json:"options"` // for navigator.credentials: publicKey in JSON form
	Ticket  string          `json:"ticket"`  // for the function that takes the response, for five minutes
}

// A passkeyTicket is a request for a passkey.
type passkeyTicket struct {
	Session  webauthn.SessionData
	Account  string   // whose passkey it must be; "": any
	Password [32]byte // of a codeTicket
	Expires  time.Time
}

// Purposes of tickets.
const (
	forNewPasskey   = "new passkey "
	forPasskeyLogin = "passkey login"
)

// request returns a request with a sealed ticket.
func (p *passkeys) request(purpose string, options any, session *webauthn.SessionData, t passkeyTicket) (PasskeyRequest, error) {
	t.Session, t.Expires = *session, time.Now().Add(passkeyTime)
	plain, err := json.Marshal(t)
	if err != nil {
		return PasskeyRequest{}, err
	}
	text, err := json.Marshal(options)
	if err != nil {
		return PasskeyRequest{}, err
	}
	return PasskeyRequest{text, base64.RawURLEncoding.EncodeToString(p.tickets.Seal(plain, purpose))}, nil
}

// open returns the request of a sealed ticket and its challenge. It fails with ErrNoSession.
func (p *passkeys) open(purpose, sealed string) (t passkeyTicket, c account.Challenge, err error) {
	if len(sealed) > maxPasskeyTicket {
		return t, c, ErrNoSession
	}
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return t, c, ErrNoSession
	}
	plain, ok := p.tickets.Open(b, purpose)
	if !ok || json.Unmarshal(plain, &t) != nil || time.Now().After(t.Expires) {
		return t, c, ErrNoSession
	}
	return t, account.Challenge{Hash: sha256.Sum256([]byte(t.Session.Challenge)), Expires: t.Expires}, nil
}

// NewPasskey asks the browser of a request for a new passkey of an account. It fails with
// ErrCredentials if the account has a password and the given one is wrong. Attempts are limited as in
// [Accounts.Login].
func (a *Accounts) NewPasskey(r *http.Request, acct *account.Account, password string) (PasskeyRequest, error) {
	rp, err := a.relyingParty(r)
	if err != nil {
		return PasskeyRequest{}, err
	}
	if acct.Password != "" {
		if err := a.checkPassword(r.Context(), acct.ID, password); err != nil {
			if errors.Is(err, ErrCredentials) {
				e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditPasskeyAdd, Object: acct.ID, Name: acct.Name}
				err = a.Audit(r.Context(), e, func(context.Context) error { return ErrCredentials })
			}
			return PasskeyRequest{}, err
		}
	}
	all, err := a.passkeys.store.List(r.Context(), acct.ID)
	if err != nil {
		return PasskeyRequest{}, err
	}
	user := passkeyUser{acct.ID, acct.Name, all}
	options, session, err := rp.BeginRegistration(user,
		webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementRequired),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: protocol.VerificationRequired,
		}),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation),
		webauthn.WithExclusions(webauthn.Credentials(user.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return PasskeyRequest{}, err
	}
	return a.passkeys.request(forNewPasskey+acct.ID, options.Response, session, passkeyTicket{Account: acct.ID})
}

// AddPasskey stores the passkey with which a browser responded to [Accounts.NewPasskey]. It fails with
// ErrNoSession if the ticket has expired, and with ErrPasskey, ErrPasskeyName or ErrPasskeyExists.
func (a *Accounts) AddPasskey(r *http.Request, acct *account.Account, name, ticket string, response []byte) (*account.Passkey, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return nil, ErrPasskeyName
	}
	rp, err := a.relyingParty(r)
	if err != nil {
		return nil, err
	}
	t, challenge, err := a.passkeys.open(forNewPasskey+acct.ID, ticket)
	if err != nil {
		return nil, err
	}
	if len(response) > maxPasskeyResponse {
		return nil, ErrPasskey
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, a.passkeyRefused(r, err)
	}
	c, err := rp.CreateCredential(passkeyUser{id: acct.ID, name: acct.Name}, t.Session, parsed)
	if err != nil {
		return nil, a.passkeyRefused(r, err)
	}
	p := &account.Passkey{
		ID: c.ID, Account: acct.ID, Domain: rp.Config.RPID, Name: name, PublicKey: c.PublicKey, Flags: byte(c.Flags.ProtocolValue()),
		Count: c.Authenticator.SignCount, Created: time.Now().UTC().Truncate(time.Millisecond),
	}
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditPasskeyAdd, Object: acct.ID, Name: acct.Name, Detail: name}
	err = a.Audit(r.Context(), e, func(ctx context.Context) error { return a.passkeys.store.Add(ctx, p, challenge, maxPasskeys) })
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrPasskeyExists
	}
	if err != nil {
		return nil, err
	}
	a.cfg.Log.Info("passkey added", "account", acct.ID)
	return p, nil
}

// passkeyRefused logs why a response was refused and returns ErrPasskey.
func (a *Accounts) passkeyRefused(r *http.Request, err error) error {
	reason := err.Error()
	var e *protocol.Error
	if errors.As(err, &e) {
		reason = e.Details
	}
	a.cfg.Log.Warn("passkey refused", "from", a.From(r).Address, "reason", fmt.Sprintf("%.200q", reason))
	return ErrPasskey
}

// AskPasskey asks the browser of a request for a passkey to log in. With the ticket of a
// [CodeRequired] error it must be one of that login, else it may be any: the user needs to enter no
// name. It fails with ErrNoSession if that ticket has expired.
func (a *Accounts) AskPasskey(r *http.Request, code string) (PasskeyRequest, error) {
	rp, err := a.relyingParty(r)
	if err != nil {
		return PasskeyRequest{}, err
	}
	verify := webauthn.WithUserVerification(protocol.VerificationRequired)
	if code == "" {
		options, session, err := rp.BeginDiscoverableLogin(verify)
		if err != nil {
			return PasskeyRequest{}, err
		}
		return a.passkeys.request(forPasskeyLogin, options.Response, session, passkeyTicket{})
	}
	acct, err := a.openCode(r.Context(), code)
	if err != nil {
		return PasskeyRequest{}, err
	}
	all, err := a.usable(r.Context(), acct.ID)
	if err != nil {
		return PasskeyRequest{}, err
	}
	if len(all) == 0 {
		return PasskeyRequest{}, ErrPasskey
	}
	options, session, err := rp.BeginLogin(passkeyUser{acct.ID, acct.Name, all}, verify)
	if err != nil {
		return PasskeyRequest{}, err
	}
	return a.passkeys.request(forPasskeyLogin, options.Response, session, passkeyTicket{Account: acct.ID, Password: sha256.Sum256([]byte(acct.Password))})
}

// LoginPasskey logs in with the passkey with which a browser responded to [Accounts.AskPasskey]. It
// fails with ErrNoSession if the ticket has expired, with ErrPasskey, with ErrPasskeyCopied, and with
// ErrCredentials if the account is disabled.
func (a *Accounts) LoginPasskey(r *http.Request, ticket string, response []byte) (token string, acct *account.Account, err error) {
	ctx := r.Context()
	rp, err := a.relyingParty(r)
	if err != nil {
		return "", nil, err
	}
	t, challenge, err := a.passkeys.open(forPasskeyLogin, ticket)
	if err != nil {
		return "", nil, err
	}
	if len(response) > maxPasskeyResponse {
		return "", nil, ErrPasskey
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return "", nil, a.passkeyRefused(r, err)
	}
	p, err := a.passkeys.store.Get(ctx, parsed.RawID)
	if err == nil {
		acct, err = a.store.Get(ctx, p.Account)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, a.passkeyRefused(r, errors.New("the passkey is unknown"))
	}
	if err != nil {
		return "", nil, err
	}
	refuse := func(err error) error {
		return a.login(ctx, acct, account.MethodPasskey, a.From(r), func(context.Context) error { return err })
	}
	c, err := a.verifyPasskey(ctx, rp, t, parsed, p)
	if err != nil {
		return "", nil, refuse(a.passkeyRefused(r, err))
	}
	if t.Account != "" && sha256.Sum256([]byte(acct.Password)) != t.Password {
		return "", nil, ErrNoSession
	}
	if !acct.Disabled.IsZero() {
		a.cfg.Log.Warn("login refused", "from", a.From(r).Address, "account", acct.ID)
		return "", nil, refuse(ErrCredentials)
	}
	used := *p
	used.Flags, used.Count, used.LastUsed = byte(c.Flags.ProtocolValue()), parsed.Response.AuthenticatorData.Counter, time.Now()
	// The store compares the counters, so that of concurrent logins with a copy only one succeeds.
	err = a.passkeys.store.Use(ctx, &used, challenge)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.cfg.Log.Warn("passkey refused: its counter did not grow", "from", a.From(r).Address, "account", acct.ID, "stored", p.Count, "received", used.Count)
		return "", nil, refuse(ErrPasskeyCopied)
	case errors.Is(err, fs.ErrExist):
		return "", nil, a.passkeyRefused(r, errors.New("the challenge was answered before"))
	case err != nil:
		return "", nil, err
	}
	token, err = a.start(ctx, acct, acct.Password, account.MethodPasskey, a.From(r))
	if err != nil {
		return "", nil, err
	}
	return token, acct, nil
}

// verifyPasskey verifies the response of an authenticator (WebAuthn, section 7.2).
func (a *Accounts) verifyPasskey(ctx context.Context, rp *webauthn.WebAuthn, t passkeyTicket, parsed *protocol.ParsedCredentialAssertionData, p *account.Passkey) (*webauthn.Credential, error) {
	user := passkeyUser{id: p.Account, passkeys: []*account.Passkey{p}}
	if t.Account == "" {
		return rp.ValidateDiscoverableLogin(func(id, _ []byte) (webauthn.User, error) {
			if !bytes.Equal(id, p.ID) {
				return nil, fs.ErrNotExist
			}
			return user, nil
		}, t.Session, parsed)
	}
	if p.Account != t.Account {
		return nil, errors.New("the passkey belongs to another account")
	}
	all, err := a.usable(ctx, p.Account)
	if err != nil {
		return nil, err
	}
	user.passkeys = all
	return rp.ValidateLogin(user, t.Session, parsed)
}

// RemovePasskey removes a passkey of an account. It fails with ErrCredentials if the account has a
// password and the given one is wrong, and with ErrOnlyLogin if nobody could log in any more.
func (a *Accounts) RemovePasskey(ctx context.Context, acct *account.Account, passkey []byte, password string) error {
	e := account.AuditEntry{Account: acct.Owner(), Action: account.AuditPasskeyRemove, Object: acct.ID, Name: acct.Name}
	err := a.Audit(ctx, e, func(with context.Context) error {
		if err := a.mayRemove(ctx, acct, passkey, password); err != nil {
			return err
		}
		return a.passkeys.store.Remove(with, acct.ID, passkey)
	})
	if err == nil {
		a.cfg.Log.Info("passkey removed", "account", acct.ID)
	}
	return err
}

// mayRemove returns an error if a user may not remove a passkey.
func (a *Accounts) mayRemove(ctx context.Context, acct *account.Account, passkey []byte, password string) error {
	if acct.Password != "" {
		return a.checkPassword(ctx, acct.ID, password)
	}
	all, err := a.usable(ctx, acct.ID)
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(all, func(p *account.Passkey) bool { return !bytes.Equal(p.ID, passkey) })
	users, err := a.Identities(ctx, acct.ID)
	if err != nil {
		return err
	}
	if !others && len(users) == 0 {
		return ErrOnlyLogin
	}
	return nil
}
