-- Invitations, links that set another password, and when an SSH key was last used.

CREATE TABLE invitations (
    id TEXT PRIMARY KEY,
    -- Of the secret in the link, which is stored nowhere.
    digest TEXT NOT NULL UNIQUE,
    -- None for an invitation to the hub alone.
    organization_id TEXT REFERENCES organizations (id),
    role TEXT,
    -- Where it was sent to, if it was.
    email TEXT,
    -- None for whoever runs the hub.
    creator_id TEXT REFERENCES users (id),
    creator_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- When it was accepted or revoked.
    ended_at BIGINT,
    accepted_by TEXT REFERENCES users (id)
);

CREATE INDEX invitations_of_organization ON invitations (organization_id, id);

-- The last link of each user; a newer one takes its place.
CREATE TABLE password_resets (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    digest TEXT NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);

ALTER TABLE ssh_keys ADD COLUMN last_used_at BIGINT;
