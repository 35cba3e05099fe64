-- Times are Unix milliseconds. Column types are those that PostgreSQL knows;
-- SQLite takes them by their affinity.

-- +goose Up

CREATE TABLE operations (
    id              text PRIMARY KEY,
    owner           text NOT NULL,
    action          text NOT NULL,
    args            bytea,             -- erased when the operation is final
    notes           text,              -- JSON object
    state           text NOT NULL,
    cancelled       smallint NOT NULL, -- 0 or 1
    open_items      bigint NOT NULL,   -- not final yet
    completed_items bigint NOT NULL,
    idempotency_key text,              -- NULL: none, or too old
    fingerprint     text NOT NULL,
    created_ms      bigint NOT NULL,
    finished_ms     bigint
);

CREATE UNIQUE INDEX operations_idempotency ON operations (owner, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX operations_list ON operations (owner, created_ms, id, state);
CREATE INDEX operations_unfinished ON operations (created_ms, id)
    WHERE finished_ms IS NULL;
CREATE INDEX operations_finished ON operations (finished_ms)
    WHERE finished_ms IS NOT NULL;

CREATE TABLE items (
    operation   text NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    idx         bigint NOT NULL,
    queue       text NOT NULL,
    owner       text NOT NULL,             -- the operation's
    created_ms  bigint NOT NULL,           -- the operation's
    state       text NOT NULL,
    attempt     bigint NOT NULL,
    token       bigint NOT NULL,           -- number of claims, never reset
    worker      text,                      -- while running
    due_ms      bigint NOT NULL,           -- while queued: not to be started before; while running: end of the lease
    progress    double precision NOT NULL, -- 0 to 1
    inputs      text,                      -- JSON array
    results     text,                      -- JSON array
    error       text,                      -- JSON object
    started_ms  bigint,
    finished_ms bigint,
    PRIMARY KEY (operation, idx)
);

-- Serves the items of an owner in a queue in order, and counting them.
CREATE INDEX items_unfinished ON items (queue, owner, created_ms, operation, idx, state)
    WHERE finished_ms IS NULL;
CREATE INDEX items_worker ON items (worker)
    WHERE worker IS NOT NULL;

CREATE TABLE files (
    file_key        text PRIMARY KEY,
    owner           text NOT NULL,
    name            text NOT NULL,
    content_type    text NOT NULL,
    size            bigint NOT NULL,   -- bytes
    state           text NOT NULL,
    object          text NOT NULL,
    upload_id       text NOT NULL,
    parts           bigint NOT NULL,
    etag            text NOT NULL,
    task            text NOT NULL,
    idempotency_key text,
    fingerprint     text NOT NULL,
    created_ms      bigint NOT NULL,
    expires_ms      bigint             -- NULL: never
);

CREATE UNIQUE INDEX files_idempotency ON files (owner, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX files_expiry ON files (expires_ms, file_key)
    WHERE expires_ms IS NOT NULL;

CREATE TABLE parts (
    file_key text NOT NULL REFERENCES files (file_key) ON DELETE CASCADE,
    number   bigint NOT NULL,
    etag     text NOT NULL,
    size     bigint NOT NULL,   -- bytes
    staged   smallint NOT NULL, -- 0 or 1
    PRIMARY KEY (file_key, number)
);

CREATE TABLE api_keys (
    id           text PRIMARY KEY,
    name         text NOT NULL,
    prefix       text NOT NULL,
    account      text NOT NULL,
    hash         bytea NOT NULL UNIQUE, -- SHA-256 of the secret
    created_ms   bigint NOT NULL,
    last_used_ms bigint,
    expires_ms   bigint,
    revoked_ms   bigint
);

CREATE TABLE settings (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);
