-- Members: logins of an account besides its own. Each is a row of accounts, which has its password,
-- sessions and factors, but no keys, files or operations. Existing logins own their accounts.

-- +goose Up

ALTER TABLE accounts ADD COLUMN member_of text REFERENCES accounts (id) ON DELETE CASCADE; -- NULL: an account
ALTER TABLE accounts ADD COLUMN role text NOT NULL DEFAULT 'owner';                         -- of the login in its account
CREATE INDEX accounts_member_of ON accounts (member_of);
