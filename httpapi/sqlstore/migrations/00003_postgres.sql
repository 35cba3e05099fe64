-- What PostgreSQL needs beyond what both databases have.

-- +goose Up

-- Identifiers are compared byte by byte, whatever the language of the database.
ALTER TABLE operations
    ALTER COLUMN id TYPE text COLLATE "C",
    ALTER COLUMN owner TYPE text COLLATE "C",
    ALTER COLUMN idempotency_key TYPE text COLLATE "C";
ALTER TABLE items
    ALTER COLUMN operation TYPE text COLLATE "C",
    ALTER COLUMN queue TYPE text COLLATE "C",
    ALTER COLUMN owner TYPE text COLLATE "C";
ALTER TABLE files
    ALTER COLUMN file_key TYPE text COLLATE "C",
    ALTER COLUMN owner TYPE text COLLATE "C",
    ALTER COLUMN idempotency_key TYPE text COLLATE "C";
ALTER TABLE parts
    ALTER COLUMN file_key TYPE text COLLATE "C";
ALTER TABLE api_keys
    ALTER COLUMN id TYPE text COLLATE "C",
    ALTER COLUMN account TYPE text COLLATE "C";

-- The tickets of an owner in a queue are counted often.
CREATE INDEX items_ticketed ON items (queue, owner)
    WHERE ticket IS NOT NULL AND finished_ms IS NULL;

-- Rows are updated a few times each: room for the new versions in the same page,
-- and dead ones removed before there are many.
ALTER TABLE operations SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 2000);
ALTER TABLE items SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 2000);

-- Processes that share the database, and what they say of themselves.
CREATE TABLE nodes (
    id      text COLLATE "C" PRIMARY KEY,
    info    bytea NOT NULL,
    beat_ms bigint NOT NULL -- by the clock of the database
);
