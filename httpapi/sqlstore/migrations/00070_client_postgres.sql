-- The columns and indexes of 00070 for SQLite. The indexes are built while other servers read and
-- write. A statement that was interrupted is repeated, hence IF EXISTS and IF NOT EXISTS.

-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE operations
    ADD COLUMN IF NOT EXISTS client text,
    ADD COLUMN IF NOT EXISTS address text,
    ADD COLUMN IF NOT EXISTS bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS name text COLLATE "C" NOT NULL DEFAULT '';

-- Each build waits for the transactions that are open, such as that of a backup.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS operations_size;
CREATE INDEX CONCURRENTLY operations_size ON operations (owner, bytes, id);
DROP INDEX CONCURRENTLY IF EXISTS operations_name;
CREATE INDEX CONCURRENTLY operations_name ON operations (owner, name, id);
DROP INDEX CONCURRENTLY IF EXISTS operations_duration;
CREATE INDEX CONCURRENTLY operations_duration ON operations (owner, (coalesce(finished_ms - created_ms, 9007199254740991)), id);

RESET lock_timeout;
