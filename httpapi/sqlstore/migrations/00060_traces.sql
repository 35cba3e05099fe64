-- The trace in which an operation was submitted: a traceparent of W3C Trace Context. Webhook
-- deliveries have their own copy, because they outlive the operation.

-- +goose Up

ALTER TABLE operations ADD COLUMN trace text; -- NULL: none
ALTER TABLE webhook_deliveries ADD COLUMN trace text;
