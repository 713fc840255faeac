-- Emoji with which users react to comments, at most one of each kind per user and comment.

CREATE TABLE comment_emoji (
    -- Grows with time, so the list of a comment is in its order.
    id TEXT PRIMARY KEY,
    -- The thread of the comment: lists of threads count all in it.
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- The name of the emoji on the wire: thumbsup.
    reaction TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (comment_id, reaction, user_id)
);

CREATE INDEX comment_emoji_of_comment ON comment_emoji (comment_id, id);
CREATE INDEX comment_emoji_of_thread ON comment_emoji (thread_id, reaction, user_id);
