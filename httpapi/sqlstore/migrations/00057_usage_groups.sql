-- What accounts have had done, by day and by API key, input format or error. As in usage, several rows
-- hold one sum.

-- +goose Up

CREATE TABLE usage_groups (
    owner     text NOT NULL,
    kind      text NOT NULL,   -- key, format or error
    day       bigint NOT NULL, -- days since 1970-01-01 UTC
    value     text NOT NULL,   -- ID of the key ('': a session), extension, error code
    part      bigint NOT NULL, -- 0 to 7
    items     bigint NOT NULL,
    failed    bigint NOT NULL, -- of items
    bytes_in  bigint NOT NULL,
    bytes_out bigint NOT NULL,
    work_ms   bigint NOT NULL,
    PRIMARY KEY (owner, kind, day, value, part)
);
CREATE INDEX usage_groups_day ON usage_groups (day);
