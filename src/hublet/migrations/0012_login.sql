-- How people show in a browser who they are.

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    -- Of the cookie's value, which only the browser has.
    digest TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    -- When the person last showed a password or a passkey.
    authenticated_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- From where and with what, as its owner recognizes it.
    address TEXT,
    agent TEXT
);

CREATE INDEX sessions_of_user ON sessions (user_id, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE passkeys (
    id TEXT PRIMARY KEY,
    -- As the browser names it, in base64url.
    credential_id TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    public_key BYTEA NOT NULL,
    sign_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);

CREATE INDEX passkeys_of_user ON passkeys (user_id, id);

-- Challenges that a passkey has answered: none is taken twice. Kept until they expire anyway.
CREATE TABLE passkey_challenges (
    digest TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
