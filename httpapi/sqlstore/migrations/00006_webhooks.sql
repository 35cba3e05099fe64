-- Who wants to be told of what happens, what they are to be told, and what came of
-- it. A delivery is written by the transaction in which it happens.

-- +goose Up

CREATE TABLE webhook_endpoints (
    id                text PRIMARY KEY,
    account           text NOT NULL,
    url               text NOT NULL,
    description       text NOT NULL,
    events            text NOT NULL,  -- separated by spaces; '': all
    secret            bytea NOT NULL, -- sealed
    previous          bytea,          -- the secret before, sealed
    previous_until_ms bigint,
    created_ms        bigint NOT NULL,
    disabled_ms       bigint,
    reason            text NOT NULL,  -- why it is disabled
    failing_ms        bigint,         -- first attempt of those that failed since the last success
    failed_ms         bigint          -- last of them
);

CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account, created_ms, id);

CREATE TABLE webhook_deliveries (
    id           text PRIMARY KEY,
    endpoint     text NOT NULL,    -- which may have been deleted
    account      text NOT NULL,
    type         text NOT NULL,
    operation    text NOT NULL,    -- '': none
    created_ms   bigint NOT NULL,
    state        text NOT NULL,
    attempts     bigint NOT NULL,
    step         bigint NOT NULL,  -- attempts that were not made by hand
    token        bigint NOT NULL,  -- number of claims
    claimed      smallint NOT NULL,
    due_ms       bigint NOT NULL,  -- not before; while claimed: end of the lease
    manual       smallint NOT NULL, -- 1: the next attempt is made by hand
    resume_ms    bigint,           -- what due_ms is again if that fails; NULL: there is no other one
    delivered_ms bigint,
    finished_ms  bigint,           -- NULL: pending
    event        text,             -- what happened, JSON; NULL once the body is made
    body         bytea
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint, due_ms)
    WHERE finished_ms IS NULL;
CREATE INDEX webhook_deliveries_account ON webhook_deliveries (account, created_ms, id);
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint, created_ms, id);
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_ms)
    WHERE finished_ms IS NOT NULL;

CREATE TABLE webhook_attempts (
    delivery text NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
    n        bigint NOT NULL, -- from 1
    at_ms    bigint NOT NULL,
    took_ms  bigint NOT NULL,
    url      text NOT NULL,
    status   bigint NOT NULL, -- 0: there was no answer
    response text NOT NULL,   -- its beginning
    error    text NOT NULL,
    manual   smallint NOT NULL,
    PRIMARY KEY (delivery, n)
);
