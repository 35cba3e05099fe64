-- Invitations of members, which links contain.

-- +goose Up

CREATE TABLE invitations (
    token      bytea PRIMARY KEY, -- SHA-256 of it
    account    text NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    role       text NOT NULL,     -- of the new member
    note       text NOT NULL,     -- for whom it is; for people
    inviter    text NOT NULL,     -- name of the login that created it
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX invitations_account ON invitations (account);
