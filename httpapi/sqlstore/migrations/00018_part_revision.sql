-- A part that is sent again is stored beside the one that it replaces.

-- +goose Up

ALTER TABLE parts ADD COLUMN revision bigint NOT NULL DEFAULT 0; -- of its object; 0: the first one
