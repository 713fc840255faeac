-- Threads that comments name, as in #12 or ada/engine#12, for the timeline of the thread named.
-- Comments from before have no rows here.

CREATE TABLE thread_references (
    -- The thread that is named.
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    PRIMARY KEY (thread_id, comment_id)
);

CREATE INDEX thread_references_of_comment ON thread_references (comment_id);
