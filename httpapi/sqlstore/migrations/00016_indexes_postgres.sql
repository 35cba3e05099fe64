-- The indexes of 00015, built while other servers read and write: none of these
-- statements locks a table against changes. One that was interrupted leaves an index
-- behind that is not valid, hence the drops before.

-- +goose NO TRANSACTION
-- +goose Up

-- Each build waits for the transactions that are open, such as that of a backup.
SET lock_timeout = 0;

-- Upload sessions that a crash may have interrupted.
DROP INDEX CONCURRENTLY IF EXISTS files_open;
CREATE INDEX CONCURRENTLY files_open ON files (file_key)
    WHERE state = 'open';

-- Lists of operations: of an account, newest first; by state, of open and of
-- finished ones, so that an operation is in few of them at a time. They are on
-- created_ms + 0 so that only a query for a state uses them, and uses nothing else:
-- the planner of PostgreSQL expects to find some operations of any state and account
-- soon, and would walk all operations by time.
DROP INDEX CONCURRENTLY IF EXISTS operations_newest;
CREATE INDEX CONCURRENTLY operations_newest ON operations (owner, created_ms, id);
DROP INDEX CONCURRENTLY IF EXISTS operations_list;
DROP INDEX CONCURRENTLY IF EXISTS operations_owner_open;
CREATE INDEX CONCURRENTLY operations_owner_open ON operations (owner, state, (created_ms + 0), id)
    WHERE finished_ms IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS operations_owner_ended;
CREATE INDEX CONCURRENTLY operations_owner_ended ON operations (owner, state, (created_ms + 0), id)
    WHERE finished_ms IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS operations_ended;
CREATE INDEX CONCURRENTLY operations_ended ON operations (state, (created_ms + 0), id)
    WHERE finished_ms IS NOT NULL;

-- Why items failed lately.
DROP INDEX CONCURRENTLY IF EXISTS items_failed;
CREATE INDEX CONCURRENTLY items_failed ON items (finished_ms)
    WHERE state = 'failed';

-- Deliveries by state. Those of an account are the ones of its endpoints.
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_state;
CREATE INDEX CONCURRENTLY webhook_deliveries_state ON webhook_deliveries (endpoint, state, created_ms, id);
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_account;

DROP INDEX CONCURRENTLY IF EXISTS accounts_administrators;
CREATE INDEX CONCURRENTLY accounts_administrators ON accounts (id)
    WHERE administrator = 1;

-- Counts of days that are too old.
DROP INDEX CONCURRENTLY IF EXISTS usage_day;
CREATE INDEX CONCURRENTLY usage_day ON usage (day);
DROP INDEX CONCURRENTLY IF EXISTS days_day;
CREATE INDEX CONCURRENTLY days_day ON days (day);

RESET lock_timeout;
