-- Serves counting what is worked on for an owner.

-- +goose Up

CREATE INDEX items_running ON items (owner)
    WHERE worker IS NOT NULL;
