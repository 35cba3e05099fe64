-- The steps of an operation of several steps: a JSON array of actions and of how many
-- items each has. The items of a step are stored when it starts.

-- +goose Up

ALTER TABLE operations ADD COLUMN steps text; -- NULL: a single action
