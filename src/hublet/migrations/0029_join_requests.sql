-- Who asks to join an organization, until one of its administrators decides.

CREATE TABLE join_requests (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    -- What the person wrote; may be empty.
    message TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, user_id)
);

CREATE INDEX join_requests_of_organization ON join_requests (organization_id, id);
