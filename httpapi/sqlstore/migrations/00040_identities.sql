-- Users of sign-in providers (OpenID Connect), and how sessions were started.

-- +goose Up

CREATE TABLE identities (
    issuer     text NOT NULL,
    subject    text NOT NULL,   -- of the user at the issuer
    account    text NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    created_ms bigint NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_account ON identities (account);

ALTER TABLE sessions ADD COLUMN method text NOT NULL DEFAULT ''; -- '': a password
