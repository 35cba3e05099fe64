-- For lists of the operations of all accounts. SQLite has them in this order anyway.

-- +goose Up

CREATE INDEX operations_created ON operations (created_ms, id);
