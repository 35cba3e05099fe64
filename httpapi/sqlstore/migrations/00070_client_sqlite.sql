-- Which client submitted an operation, and orders of the list other than by time. 00070 for
-- PostgreSQL is the same.

-- +goose Up

ALTER TABLE operations ADD COLUMN client text;  -- User-Agent; NULL: none
ALTER TABLE operations ADD COLUMN address text; -- IP address or network; NULL: unknown
ALTER TABLE operations ADD COLUMN bytes bigint NOT NULL DEFAULT 0; -- size of all inputs; 0 also: from before this column
ALTER TABLE operations ADD COLUMN name text NOT NULL DEFAULT '';   -- of the first input, in lower case

CREATE INDEX operations_size ON operations (owner, bytes, id);
CREATE INDEX operations_name ON operations (owner, name, id);
CREATE INDEX operations_duration ON operations (owner, (coalesce(finished_ms - created_ms, 9007199254740991)), id);
