-- The outbox, the queue, and facts about the database itself.

CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    published_at BIGINT NOT NULL
);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    slow BOOLEAN NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- While a task is claimed this is the end of its lease.
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT,
    error TEXT,
    parked_at BIGINT
);

CREATE INDEX tasks_due ON tasks (slow, due_at, id) WHERE parked_at IS NULL;
CREATE INDEX tasks_claimed ON tasks (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (parked_at) WHERE parked_at IS NOT NULL;

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
