-- A ticket says that an item is in the queue that several processes share. It is
-- the number of the ticket there. SQLite needs none.

-- +goose Up

ALTER TABLE items ADD COLUMN ticket bigint;
