package account

import (
	"context"
	"time"
)

// MethodPasskey is the Session.Method of a login with a passkey.
const MethodPasskey = "passkey"

// A Passkey is a WebAuthn credential with which a user logs in.
type Passkey struct {
	ID        []byte // credential ID, which the authenticator chooses
	Account   string
	Domain    string // RP ID: the host name at which the passkey was created
	Name      string // given by its owner, for people
	PublicKey []byte // COSE_Key (RFC 9052)
	Flags     byte   // of the authenticator data (WebAuthn, section 6.1), at the latest use
	Count     uint32 // signature counter at the latest use; 0: the authenticator does not count
	Created   time.Time
	LastUsed  time.Time // zero: never
}

// A Challenge is the SHA-256 of a WebAuthn challenge that was answered.
type Challenge struct {
	Hash    [32]byte
	Expires time.Time // when nobody can answer it any more
}

// A PasskeyStore keeps passkeys. The error for a missing one matches fs.ErrNotExist.
type PasskeyStore interface {
	// Get returns the passkey with a credential ID.
	Get(ctx context.Context, id []byte) (*Passkey, error)

	// List returns the passkeys of an account, oldest first.
	List(ctx context.Context, account string) ([]*Passkey, error)

	// Add stores a passkey and marks the challenge as used. The error matches fs.ErrExist if
	// the challenge was used before, if the ID exists, or if the account has most passkeys.
	Add(ctx context.Context, p *Passkey, c Challenge, most int) error

	// Use records a login: Flags, Count and LastUsed of p. It marks the challenge as used. The
	// error matches fs.ErrExist if the challenge was used before, and fs.ErrNotExist if the
	// passkey is missing or its stored counter is not below Count. Two counters of 0 are not
	// compared.
	Use(ctx context.Context, p *Passkey, c Challenge) error

	// Remove removes a passkey of an account. A missing one is no error.
	Remove(ctx context.Context, account string, id []byte) error

	// RemoveAll removes all passkeys of an account.
	RemoveAll(ctx context.Context, account string) error
}
