-- The W3C traceparent of the span that caused a row, so that what follows joins its trace; NULL while traces are off.

ALTER TABLE outbox ADD COLUMN trace TEXT;
ALTER TABLE tasks ADD COLUMN trace TEXT;
ALTER TABLE webhook_events ADD COLUMN trace TEXT;
ALTER TABLE jobs ADD COLUMN trace TEXT;
