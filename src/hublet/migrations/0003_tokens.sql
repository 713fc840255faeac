-- Every credential, whatever its origin. Only a keyed digest of its value is stored.

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- The scopes of a fine-grained token, as JSON; see tokens/records.py.
    grants TEXT NOT NULL,
    hint TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX tokens_of_user ON tokens (user_id, id);
