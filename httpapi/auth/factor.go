package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/internal/gcra"
	"github.com/filewright/filewright/internal/seal"
)

// Limits of second factors.
const (
	codeTicketTime  = 5 * time.Minute  // from the password to the code
	setupTime       = 30 * time.Minute // from the QR code to its first code
	recoveryCodes   = 10
	maxFactorTicket = 2000 // bytes
)

// codeRate limits wrong codes of an account. Who knows the password guesses one of a million codes,
// three of which are valid, with a probability of 0.1 % in a day.
var codeRate = gcra.Rate{PerSecond: 1.0 / 300, Burst: 5}

// factors are the second factors of accounts.
type factors struct {
	store    account.FactorStore
	secrets  seal.Sealer // of apps, in the database
	tickets  seal.Sealer
	attempts *gcra.Buckets
}

func newFactors(store account.FactorStore, secrets [][]byte) *factors {
	if store == nil {
		return nil
	}
	// Without secrets nobody can set up a factor, and accounts that have one cannot log in.
	f := &factors{store: store, attempts: gcra.New()}
	inDatabase, err := seal.New("filewright second factor v1", secrets)
	if err != nil {
		return f
	}
	tickets, err := seal.New("filewright second factor ticket v1", secrets)
	if err != nil {
		return f
	}
	f.secrets, f.tickets = inDatabase, tickets
	return f
}

// codeMethod is how audit entries describe a login with a wrong code.
const codeMethod = "second factor"

// ErrCode reports a wrong, used or expired code of a second factor.
var ErrCode error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "wrong or used code")

// CodeRequired reports that a login needs a second factor: a code, which [Accounts.LoginCode] takes, or
// a passkey, for which [Accounts.AskPasskey] asks. Both take the ticket for five minutes.
type CodeRequired struct {
	Ticket  string
	Code    bool // the account has an authenticator app
	Passkey bool // the account has a passkey
}

// Error implements error.
func (*CodeRequired) Error() string { return "a code of the second factor is required" }

// HasFactors reports whether users can set up second factors.
func (a *Accounts) HasFactors() bool { return a.factors != nil && len(a.factors.tickets) > 0 }

// errNoSecrets reports that Config.Secrets is missing.
var errNoSecrets = errors.New("auth: second factors require Config.Secrets")

// Factor returns the second factor of an account. The error for none matches fs.ErrNotExist.
func (a *Accounts) Factor(ctx context.Context, id string) (*account.Factor, error) {
	if a.factors == nil {
		return nil, fs.ErrNotExist
	}
	return a.factors.store.Get(ctx, id)
}

// neededFactor returns what a login with a password needs besides it; nil: nothing.
func (a *Accounts) neededFactor(ctx context.Context, id string) (*CodeRequired, error) {
	var c CodeRequired
	switch _, err := a.Factor(ctx, id); {
	case err == nil:
		c.Code = true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	all, err := a.usable(ctx, id)
	if err != nil {
		return nil, err
	}
	if c.Passkey = len(all) > 0; !c.Code && !c.Passkey {
		return nil, nil
	}
	return &c, nil
}

// A codeTicket is a login with a right password.
type codeTicket struct {
	Account  string
	Password [32]byte // SHA-256 of the hash of the password, which may change meanwhile
	Expires  time.Time
}

// needCode returns the error that asks for a second factor.
func (a *Accounts) needCode(ctx context.Context, acct *account.Account, password string, needed *CodeRequired) error {
	if outdated(acct.Password) {
		a.renew(ctx, acct.ID, acct.Password, password)
		var err error
		if acct, err = a.store.Get(ctx, acct.ID); err != nil {
			return err
		}
	}
	sealed, err := a.factors.seal("code", codeTicket{acct.ID, sha256.Sum256([]byte(acct.Password)), time.Now().Add(codeTicketTime)})
	if err != nil {
		return err
	}
	needed.Ticket = sealed
	return needed
}

// seal returns a value for open with the same ID.
func (f *factors) seal(id string, v any) (string, error) {
	if len(f.tickets) == 0 {
		return "", errNoSecrets
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(f.tickets.Seal(b, id)), nil
}

func (f *factors) open(sealed, id string, v any) bool {
	if len(sealed) > maxFactorTicket {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return false
	}
	plain, ok := f.tickets.Open(b, id)
	return ok && json.Unmarshal(plain, v) == nil
}

// LoginCode finishes a login with the ticket of a [CodeRequired] error and a code of the
// authenticator app, or a recovery code. It fails with ErrNoSession if the ticket has expired, with
// ErrCode, and with an [httpapi.Problem] of status 429 after too many wrong codes.
func (a *Accounts) LoginCode(ctx context.Context, ticket, code string, from Client) (token string, acct *account.Account, err error) {
	if acct, err = a.openCode(ctx, ticket); err != nil {
		return "", nil, err
	}
	if err := a.checkCode(ctx, acct.ID, code); err != nil {
		if errors.Is(err, ErrCode) {
			a.cfg.Log.Warn("login refused: wrong code of the second factor", "from", from.Address, "account", acct.ID)
			err = a.login(ctx, acct, codeMethod, from, func(context.Context) error { return ErrCode })
		}
		return "", nil, err
	}
	token, err = a.start(ctx, acct, acct.Password, account.MethodPassword, from)
	if err != nil {
		return "", nil, err
	}
	return token, acct, nil
}

// openCode returns the account of a login with a right password. It fails with ErrNoSession.
func (a *Accounts) openCode(ctx context.Context, ticket string) (*account.Account, error) {
	var t codeTicket
	if a.factors == nil || !a.factors.open(ticket, "code", &t) || time.Now().After(t.Expires) {
		return nil, ErrNoSession
	}
	acct, err := a.store.Get(ctx, t.Account)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	if now := sha256.Sum256([]byte(acct.Password)); now != t.Password || !acct.Disabled.IsZero() {
		return nil, ErrNoSession
	}
	return acct, nil
}

// checkCode accepts a code of an account once.
func (a *Accounts) checkCode(ctx context.Context, id, code string) error {
	f := a.factors
	now := f.attempts.Now()
	if n := f.attempts.Take(id, codeRate, now, 1); !n.OK {
		p := httpapi.NewProblem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many wrong codes; try again later")
		p.RetryAfter = n.Retry
		return p
	}
	code = strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(code))
	var err error
	if len(code) == totpDigits {
		err = f.useCode(ctx, id, code)
	} else {
		err = f.store.UseRecovery(ctx, id, recoveryHash(id, code))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrCode
	}
	if err == nil {
		f.attempts.GiveBack(id, codeRate, f.attempts.Now())
	}
	return err
}

// useCode accepts a code of the app. The error for a wrong or used one matches fs.ErrNotExist.
func (f *factors) useCode(ctx context.Context, id, code string) error {
	factor, err := f.store.Get(ctx, id)
	if err != nil {
		return err
	}
	secret, ok := f.secrets.Open(factor.Secret, id)
	if !ok {
		return errors.New("the secret of a second factor cannot be opened: the secrets of the server have changed")
	}
	step, ok := totpMatch(secret, code, time.Now())
	if !ok {
		return fs.ErrNotExist
	}
	return f.store.UseStep(ctx, id, step)
}

// recoveryHash returns the hash of a recovery code. The code has 80 random bits, so that nobody can
// guess it from its hash.
func recoveryHash(id, code string) [32]byte { return sha256.Sum256([]byte(id + "\x00" + code)) }

// A FactorSetup is a new second factor before its first code.
type FactorSetup struct {
	Secret string // in base32, to type into an authenticator app
	URL    string // for a QR code
	Ticket string // for EnableFactor, for 30 minutes
}

// setupTicket is a sealed FactorSetup.
type setupTicket struct {
	Secret  []byte
	Expires time.Time
}

var base32Secret = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewFactor returns a new second factor for an account. Nothing is stored before
// [Accounts.EnableFactor].
func (a *Accounts) NewFactor(acct *account.Account) (FactorSetup, error) {
	secret := make([]byte, totpSecret)
	rand.Read(secret) // never fails (crypto/rand)
	ticket, err := a.factors.seal("setup "+acct.ID, setupTicket{secret, time.Now().Add(setupTime)})
	if err != nil {
		return FactorSetup{}, err
	}
	return a.setup(acct, secret, ticket), nil
}

func (a *Accounts) setup(acct *account.Account, secret []byte, ticket string) FactorSetup {
	text := base32Secret.EncodeToString(secret)
	return FactorSetup{Secret: text, URL: totpURL(acct.Name, text), Ticket: ticket}
}

// OpenSetup returns the second factor of a ticket of [Accounts.NewFactor]. It fails with ErrNoSession
// if the ticket has expired.
func (a *Accounts) OpenSetup(acct *account.Account, ticket string) (FactorSetup, error) {
	var t setupTicket
	if !a.factors.open(ticket, "setup "+acct.ID, &t) || time.Now().After(t.Expires) {
		return FactorSetup{}, ErrNoSession
	}
	return a.setup(acct, t.Secret, ticket), nil
}

// EnableFactor turns the second factor of a ticket on, and returns recovery codes, which are not shown
// again. It fails with ErrNoSession if the ticket has expired, with ErrCredentials if the password is
// wrong and with ErrCode if the code is. Attempts are limited as in [Accounts.Login].
func (a *Accounts) EnableFactor(ctx context.Context, id, ticket, password, code string) (recovery []string, err error) {
	var t setupTicket
	if a.factors == nil || !a.factors.open(ticket, "setup "+id, &t) || time.Now().After(t.Expires) {
		return nil, ErrNoSession
	}
	f := &account.Factor{Account: id, Secret: a.factors.secrets.Seal(t.Secret, id), Created: time.Now().UTC().Truncate(time.Millisecond)}
	var hashes [][32]byte
	for range recoveryCodes {
		b := make([]byte, 10)
		rand.Read(b) // never fails (crypto/rand)
		s := strings.ToLower(base32Secret.EncodeToString(b))
		recovery = append(recovery, s[:4]+"-"+s[4:8]+"-"+s[8:12]+"-"+s[12:])
		hashes = append(hashes, recoveryHash(id, s))
	}
	err = a.Audit(ctx, a.entry(ctx, account.AuditFactorEnable, id), func(with context.Context) error {
		if err := a.checkPassword(ctx, id, password); err != nil {
			return err
		}
		step, ok := totpMatch(t.Secret, strings.ReplaceAll(code, " ", ""), time.Now())
		if !ok {
			return ErrCode
		}
		f.Step = step
		return a.factors.store.Put(with, f, hashes)
	})
	if err != nil {
		return nil, err
	}
	a.cfg.Log.Info("second factor turned on", "account", id)
	return recovery, nil
}

// checkPassword checks the password of an account. It fails with ErrCredentials.
func (a *Accounts) checkPassword(ctx context.Context, id, password string) error {
	acct, err := a.store.Get(ctx, id)
	if err != nil {
		return err
	}
	release, err := a.attempts.begin("id\x00"+id, "")
	if err != nil {
		return err
	}
	ok, err := a.hashing.check(ctx, acct.Password, password)
	if err != nil {
		return err
	}
	if !ok {
		return ErrCredentials
	}
	release()
	return nil
}

// DisableFactor turns the second factor off. It fails with ErrCredentials if the password is wrong.
func (a *Accounts) DisableFactor(ctx context.Context, id, password string) error {
	return a.Audit(ctx, a.entry(ctx, account.AuditFactorDisable, id), func(with context.Context) error {
		if err := a.checkPassword(ctx, id, password); err != nil {
			return err
		}
		return a.turnOff(with, id)
	})
}

// RemoveFactor turns the second factor of an account off and removes its passkeys, for a user who has
// lost them.
func (a *Accounts) RemoveFactor(ctx context.Context, id string) error {
	e := a.entry(ctx, account.AuditFactorDisable, id)
	e.Detail = "second factor and passkeys"
	return a.Audit(ctx, e, func(with context.Context) error {
		if a.passkeys != nil {
			if err := a.passkeys.store.RemoveAll(ctx, id); err != nil {
				return err
			}
		}
		return a.turnOff(with, id)
	})
}

// turnOff turns the second factor of an account off.
func (a *Accounts) turnOff(ctx context.Context, id string) error {
	if a.factors == nil {
		return nil
	}
	if err := a.factors.store.Delete(ctx, id); err != nil {
		return err
	}
	a.cfg.Log.Info("second factor turned off", "account", id)
	return nil
}
