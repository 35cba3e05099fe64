-- What the results of an item lost: a JSON array of codes and messages.

-- +goose Up

ALTER TABLE items ADD COLUMN warnings text;
