-- Second factors of logins with a password.

-- +goose Up

CREATE TABLE second_factors (
    account    text PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    secret     bytea NOT NULL,  -- of the authenticator app, sealed
    created_ms bigint NOT NULL,
    step       bigint NOT NULL  -- time step (RFC 6238) of the last accepted code
);

CREATE TABLE recovery_codes (
    account text NOT NULL REFERENCES second_factors (account) ON DELETE CASCADE,
    code    bytea NOT NULL, -- SHA-256
    PRIMARY KEY (account, code)
);
