-- Where an operation comes from, for the log lines of whoever works on it.

-- +goose Up

ALTER TABLE operations ADD COLUMN request_id text;
ALTER TABLE operations ADD COLUMN key_id text;
