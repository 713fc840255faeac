-- SCIM: who an identity provider provisions in an organization.
--
-- An organization has two directories: of invited users, who have accounts of their own, and of
-- managed users, whose accounts belong to the organization. Neither sees the other.

CREATE TABLE scim_users (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    managed BOOLEAN NOT NULL,
    -- None while nobody has an account with one of the addresses.
    user_id TEXT REFERENCES users (id),
    user_name TEXT NOT NULL,
    -- The keys are what is compared: see scim/records.py.
    user_name_key TEXT NOT NULL,
    external_id TEXT,
    given_name TEXT,
    given_name_key TEXT,
    family_name TEXT,
    family_name_key TEXT,
    active BOOLEAN NOT NULL,
    -- JSON: the roles that come back when the user does.
    kept TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    UNIQUE (organization_id, managed, user_name_key),
    UNIQUE (organization_id, managed, external_id),
    UNIQUE (organization_id, managed, user_id)
);

-- Pages are read along it.
CREATE INDEX scim_users_of_organization ON scim_users (organization_id, managed, id);
CREATE INDEX scim_users_waiting ON scim_users (user_name_key) WHERE user_id IS NULL;
CREATE INDEX scim_users_of_user ON scim_users (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE scim_emails (
    scim_user_id TEXT NOT NULL REFERENCES scim_users (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    address TEXT NOT NULL,
    address_key TEXT NOT NULL,
    -- None where the provider does not say.
    is_primary BOOLEAN,
    -- Kept so that changes which name it find their address; never shown.
    type TEXT,
    PRIMARY KEY (scim_user_id, position)
);

CREATE INDEX scim_emails_by_address ON scim_emails (address_key, scim_user_id);

CREATE TABLE scim_groups (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    managed BOOLEAN NOT NULL,
    display_name TEXT NOT NULL,
    display_name_key TEXT NOT NULL,
    external_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    UNIQUE (organization_id, managed, display_name_key),
    UNIQUE (organization_id, managed, external_id)
);

CREATE INDEX scim_groups_of_organization ON scim_groups (organization_id, managed, id);

CREATE TABLE scim_members (
    group_id TEXT NOT NULL REFERENCES scim_groups (id) ON DELETE CASCADE,
    scim_user_id TEXT NOT NULL REFERENCES scim_users (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, scim_user_id)
);

CREATE INDEX scim_members_of_user ON scim_members (scim_user_id, group_id);

-- Accounts that an identity provider created. They outlive their user in the directory, because
-- what they wrote stays, and their name may be given to the same organization only.
CREATE TABLE scim_accounts (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    organization_id TEXT NOT NULL REFERENCES organizations (id)
);
