-- An index for every filter that a list offers, and for what a server reads when it
-- starts. 00016 is the same for PostgreSQL.

-- +goose Up

-- Upload sessions that a crash may have interrupted.
CREATE INDEX files_open ON files (file_key)
    WHERE state = 'open';

-- Lists of operations: of an account, newest first; by state, of open and of
-- finished ones, so that an operation is in few of them at a time. They are on
-- created_ms + 0 so that only a query for a state uses them, and uses nothing else:
-- the planner of PostgreSQL expects to find some operations of any state and account
-- soon, and would walk all operations by time.
CREATE INDEX operations_newest ON operations (owner, created_ms, id);
DROP INDEX operations_list;
CREATE INDEX operations_owner_open ON operations (owner, state, (created_ms + 0), id)
    WHERE finished_ms IS NULL;
CREATE INDEX operations_owner_ended ON operations (owner, state, (created_ms + 0), id)
    WHERE finished_ms IS NOT NULL;
CREATE INDEX operations_ended ON operations (state, (created_ms + 0), id)
    WHERE finished_ms IS NOT NULL;

-- Why items failed lately.
CREATE INDEX items_failed ON items (finished_ms)
    WHERE state = 'failed';

-- Deliveries by state. Those of an account are the ones of its endpoints.
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (endpoint, state, created_ms, id);
DROP INDEX webhook_deliveries_account;

CREATE INDEX accounts_administrators ON accounts (id)
    WHERE administrator = 1;

-- Counts of days that are too old.
CREATE INDEX usage_day ON usage (day);
CREATE INDEX days_day ON days (day);
