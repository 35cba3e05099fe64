-- What accounts have had done, by day. Several rows hold one sum, so that items of
-- one account that end at the same time need not wait for each other.

-- +goose Up

CREATE TABLE usage (
    owner     text NOT NULL,
    day       bigint NOT NULL, -- days since 1970-01-01 UTC
    action    text NOT NULL,
    part      bigint NOT NULL, -- 0 to 7
    items     bigint NOT NULL,
    failed    bigint NOT NULL, -- of items
    bytes_in  bigint NOT NULL,
    bytes_out bigint NOT NULL,
    work_ms   bigint NOT NULL,
    PRIMARY KEY (owner, day, action, part)
);
