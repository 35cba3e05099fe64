-- What people search for, and what they want to know about a finished operation.

-- +goose Up

ALTER TABLE operations ADD COLUMN asked text;     -- a JSON array of parameters without secrets, by step
ALTER TABLE operations ADD COLUMN search text;    -- ID, file names and notes in lower case; NULL: from before this column
ALTER TABLE operations ADD COLUMN condition text; -- NULL: not final
ALTER TABLE items ADD COLUMN attempts text;       -- a JSON array of ended attempts

UPDATE operations SET condition = CASE
        WHEN state = 'completed' THEN 'completed' WHEN cancelled <> 0 THEN 'cancelled' ELSE 'failed' END
    WHERE finished_ms IS NOT NULL;
UPDATE operations SET search = lower(id);
