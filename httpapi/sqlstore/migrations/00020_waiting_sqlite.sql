-- Attempts count what an item is charged with; restarts of its server have a count of
-- their own. An item whose attempt was put off says what it waits for. 00021 is the same
-- for PostgreSQL.

-- +goose Up

ALTER TABLE items ADD COLUMN restarts bigint NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN suspicions bigint NOT NULL DEFAULT 0; -- attempts that the item itself may have ended
ALTER TABLE items ADD COLUMN clean bigint NOT NULL DEFAULT 0;      -- token up to which no unrecorded results are left
ALTER TABLE items ADD COLUMN waiting_reason text;                  -- NULL: it was not put off
ALTER TABLE items ADD COLUMN waiting_ms bigint;                    -- since when

-- Serves counting what waits, which is nothing most of the time.
CREATE INDEX items_waiting ON items (owner, queue, waiting_reason)
    WHERE waiting_reason IS NOT NULL;
