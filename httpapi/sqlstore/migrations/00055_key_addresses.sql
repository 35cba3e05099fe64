-- The addresses from which requests with an API key are accepted.

-- +goose Up

ALTER TABLE api_keys ADD COLUMN addresses text NOT NULL DEFAULT ''; -- networks separated by spaces; '': all
