-- Changes of an inbox that its owner can undo for a while, and the items that each of them changed.

CREATE TABLE inbox_changes (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- What the items were marked as.
    read BOOLEAN NOT NULL,
    -- The time of the newest item then: what came later stays as it is.
    last_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX inbox_changes_of_user ON inbox_changes (user_id, created_at);

CREATE TABLE inbox_change_items (
    change_id TEXT NOT NULL REFERENCES inbox_changes (id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    -- What the item led to before.
    event_id TEXT,
    -- Whether the change marked it, and whether it muted the thread.
    marked BOOLEAN NOT NULL,
    muted BOOLEAN NOT NULL,
    PRIMARY KEY (change_id, thread_id)
);
