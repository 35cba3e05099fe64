-- The audit log: who changed what. Entries outlive what they describe, so nothing is referenced.

-- +goose Up

CREATE TABLE audit (
    id      text PRIMARY KEY,
    at_ms   bigint NOT NULL,
    account text NOT NULL,     -- account that was changed; '': none
    login   text NOT NULL,     -- ID of the login that acted; '': none
    key_id  text NOT NULL,     -- ID of the API key that acted; '': none
    actor   text NOT NULL,     -- name of the login or the key
    address text NOT NULL,     -- of the client
    action  text NOT NULL,
    object  text NOT NULL,     -- ID of what was changed
    name    text NOT NULL,     -- its name
    detail  text NOT NULL,
    refused bigint NOT NULL,   -- 1: the change was refused
    search  text NOT NULL      -- actor, login, key_id and address in lower case
);
CREATE INDEX audit_at ON audit (at_ms, id);
CREATE INDEX audit_account ON audit (account, at_ms, id);
