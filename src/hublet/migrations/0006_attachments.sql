-- Pictures, videos and sounds that somebody uploaded to show them in a text.

CREATE TABLE attachments (
    -- The last part of its address; nobody can guess it.
    name TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX attachments_of_blob ON attachments (sha256);
CREATE INDEX attachments_of_user ON attachments (user_id, created_at);
