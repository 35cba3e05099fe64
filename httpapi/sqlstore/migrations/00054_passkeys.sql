-- Passkeys (WebAuthn) of logins.

-- +goose Up

CREATE TABLE passkeys (
    id           bytea PRIMARY KEY, -- credential ID, which the authenticator chooses
    account      text NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    domain       text NOT NULL,     -- RP ID: host name of the service
    name         text NOT NULL,     -- for people
    public_key   bytea NOT NULL,    -- COSE_Key (RFC 9052)
    flags        bigint NOT NULL,   -- of the authenticator data, at the latest use
    sign_count   bigint NOT NULL,   -- at the latest use; 0: the authenticator does not count
    created_ms   bigint NOT NULL,
    last_used_ms bigint
);
CREATE INDEX passkeys_account ON passkeys (account);

-- Challenges that were answered and have not expired: each counts once.
CREATE TABLE passkey_challenges (
    challenge  bytea PRIMARY KEY, -- SHA-256
    expires_ms bigint NOT NULL
);
CREATE INDEX passkey_challenges_expires ON passkey_challenges (expires_ms);
