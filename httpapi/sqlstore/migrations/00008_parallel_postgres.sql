-- +goose Up

-- Compared with the owners of items, which are compared byte by byte: otherwise the
-- indexes would not serve.
ALTER TABLE accounts
    ALTER COLUMN id TYPE text COLLATE "C";
ALTER TABLE webhook_endpoints
    ALTER COLUMN account TYPE text COLLATE "C";

-- By owner first, so that the queues of an owner are found too.
DROP INDEX items_unfinished;
CREATE INDEX items_unfinished ON items (owner, queue, created_ms, operation, idx, state)
    WHERE finished_ms IS NULL;
