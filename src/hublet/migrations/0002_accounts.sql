-- Users, organizations and what belongs to them.

-- Users and organizations share one space of names, because repositories are owner/name.
CREATE TABLE names (
    key TEXT PRIMARY KEY,
    account_id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL
);

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    fullname TEXT NOT NULL,
    plan TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    fullname TEXT NOT NULL,
    type TEXT NOT NULL,
    -- The organization that a service account belongs to; people have none.
    organization_id TEXT REFERENCES organizations (id),
    password_hash TEXT,
    is_admin BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

CREATE INDEX users_service_accounts ON users (organization_id) WHERE organization_id IS NOT NULL;

CREATE TABLE emails (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    address TEXT NOT NULL,
    address_key TEXT NOT NULL UNIQUE,
    is_primary BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    verified_at BIGINT
);

CREATE INDEX emails_of_user ON emails (user_id, is_primary);

CREATE TABLE memberships (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);

CREATE INDEX memberships_of_user ON memberships (user_id);

CREATE TABLE resource_groups (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, name_key)
);

CREATE TABLE resource_group_members (
    resource_group_id TEXT NOT NULL REFERENCES resource_groups (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    PRIMARY KEY (resource_group_id, user_id)
);

CREATE INDEX resource_group_members_of_user ON resource_group_members (user_id);

CREATE TABLE ssh_keys (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    title TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE INDEX ssh_keys_of_user ON ssh_keys (user_id);

CREATE TABLE follows (
    follower_id TEXT NOT NULL REFERENCES users (id),
    account_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (follower_id, account_id)
);

CREATE INDEX follows_of_account ON follows (account_id, follower_id);

CREATE TABLE avatars (
    account_id TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    content BYTEA NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Append only: nothing in the hub changes or removes a line.
CREATE TABLE audit_log (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    actor_id TEXT,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,
    address TEXT,
    at BIGINT NOT NULL
);

CREATE INDEX audit_log_of_organization ON audit_log (organization_id, id);
