-- Transfers between the service and URLs: imports of files and deliveries of results.

-- +goose Up

CREATE TABLE transfers (
    kind        text NOT NULL,
    id          text NOT NULL,
    owner       text NOT NULL,
    request     bytea,             -- sealed; NULL once finished
    state       bytea,             -- progress and outcome
    claims      bigint NOT NULL,   -- number of claims
    claimed     smallint NOT NULL,
    due_ms      bigint NOT NULL,   -- not before; while claimed: end of the lease
    created_ms  bigint NOT NULL,
    finished_ms bigint,            -- NULL: pending
    PRIMARY KEY (kind, id)
);

CREATE INDEX transfers_due ON transfers (kind, due_ms)
    WHERE finished_ms IS NULL;
CREATE INDEX transfers_owner ON transfers (owner, kind)
    WHERE finished_ms IS NULL;
CREATE INDEX transfers_finished ON transfers (kind, finished_ms)
    WHERE finished_ms IS NOT NULL;
