-- The columns and the index of 00020. The index is built while other servers read and
-- write, as those of 00016 are; the columns take no time.

-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE items
    ADD COLUMN IF NOT EXISTS restarts bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS suspicions bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS clean bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS waiting_reason text,
    ADD COLUMN IF NOT EXISTS waiting_ms bigint;

-- The build waits for the transactions that are open, such as that of a backup.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS items_waiting;
CREATE INDEX CONCURRENTLY items_waiting ON items (owner, queue, waiting_reason)
    WHERE waiting_reason IS NOT NULL;

RESET lock_timeout;
