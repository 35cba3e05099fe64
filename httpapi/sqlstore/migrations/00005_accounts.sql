-- Accounts, their sessions and limits, and what they use. Before, an account was
-- nothing but a name in api_keys, operations and files.

-- +goose Up

CREATE TABLE accounts (
    id              text PRIMARY KEY,  -- owner of files and operations
    name            text NOT NULL,     -- for people; '': none
    login           text UNIQUE,       -- the name without regard to case; NULL: none
    administrator   smallint NOT NULL, -- 0 or 1
    password        text NOT NULL,     -- argon2id in PHC form; '': nobody can log in
    must_change     smallint NOT NULL, -- 0 or 1
    created_ms      bigint NOT NULL,
    last_login_ms   bigint,
    disabled_ms     bigint,
    max_stored      bigint NOT NULL,   -- limits, 0: none; bytes
    max_bytes       bigint NOT NULL,   -- per day
    max_operations  bigint NOT NULL,   -- per day
    max_parallel    bigint NOT NULL
);

CREATE TABLE sessions (
    token      bytea PRIMARY KEY, -- SHA-256 of it
    account    text NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    created_ms bigint NOT NULL,
    seen_ms    bigint NOT NULL,
    address    text NOT NULL,     -- of who has logged in
    agent      text NOT NULL      -- what the browser says of itself
);
CREATE INDEX sessions_account ON sessions (account);

ALTER TABLE api_keys ADD COLUMN scopes text NOT NULL DEFAULT '';           -- names with spaces between them; '': upload operate read
ALTER TABLE api_keys ADD COLUMN rate double precision NOT NULL DEFAULT 0; -- requests per second; 0: the server's
ALTER TABLE api_keys ADD COLUMN burst bigint NOT NULL DEFAULT 0;
CREATE INDEX api_keys_account ON api_keys (account);

-- Counters. Several rows hold one sum, so that what happens to one account at the
-- same time need not wait for each other; where there is a limit only part 0 grows.
CREATE TABLE stored (
    owner text NOT NULL,
    part  bigint NOT NULL, -- 0 to 7
    bytes bigint NOT NULL, -- of files and of uploads that have begun
    PRIMARY KEY (owner, part)
);
CREATE TABLE days (
    owner      text NOT NULL,
    day        bigint NOT NULL, -- days since 1970-01-01 UTC
    part       bigint NOT NULL, -- 0 to 7
    bytes      bigint NOT NULL, -- of uploads that began on this day
    operations bigint NOT NULL, -- that were created on this day
    PRIMARY KEY (owner, day, part)
);

INSERT INTO accounts (id, name, login, administrator, password, must_change, created_ms, max_stored, max_bytes, max_operations, max_parallel)
    SELECT account, '', NULL, 0, '', 0, min(created_ms), 0, 0, 0, 0 FROM api_keys GROUP BY account;
INSERT INTO stored (owner, part, bytes)
    SELECT owner, 0, sum(size) FROM files WHERE state IN ('open', 'ready') GROUP BY owner;
INSERT INTO days (owner, day, part, bytes, operations)
    SELECT owner, day, 0, sum(bytes), sum(operations) FROM (
        SELECT owner, created_ms / 86400000 AS day, size AS bytes, 0 AS operations
            FROM files WHERE task = '' AND (state IN ('open', 'ready') OR etag <> '')
        UNION ALL
        SELECT owner, created_ms / 86400000 AS day, 0 AS bytes, 1 AS operations FROM operations
    ) AS d GROUP BY owner, day;
