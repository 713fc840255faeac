-- OAuth and OpenID Connect: apps, what people allowed them, and what is on its way.

-- The app that a credential was issued to, and what it is part of.
ALTER TABLE tokens ADD COLUMN app_id TEXT;
ALTER TABLE tokens ADD COLUMN access_id TEXT;
-- The organization that a token is confined to; it works as long as its user is a member.
ALTER TABLE tokens ADD COLUMN organization_id TEXT;

CREATE INDEX tokens_of_app ON tokens (app_id) WHERE app_id IS NOT NULL;
CREATE INDEX tokens_of_access ON tokens (access_id) WHERE access_id IS NOT NULL;

CREATE TABLE oauth_apps (
    id TEXT PRIMARY KEY,
    -- What requests call it: an id of ours, or the address of its metadata document.
    client_id TEXT NOT NULL UNIQUE,
    -- registered (by a user), dynamic (by itself), document (a metadata document), first-party.
    kind TEXT NOT NULL,
    -- Who registered it.
    owner_id TEXT REFERENCES users (id),
    -- The organization that it is bound to.
    organization_id TEXT REFERENCES organizations (id),
    name TEXT NOT NULL,
    client_uri TEXT,
    logo_uri TEXT,
    -- JSON arrays.
    redirect_uris TEXT NOT NULL,
    scopes TEXT NOT NULL,
    -- Redirect URIs may carry any query, for the helpers of the public Python client.
    dynamic_query BOOLEAN NOT NULL DEFAULT FALSE,
    -- May use the token exchange; the operator grants it.
    token_exchange BOOLEAN NOT NULL DEFAULT FALSE,
    -- How long access tokens live.
    token_seconds BIGINT NOT NULL,
    -- Grows when what people agreed to changes: name, logo, redirect hosts. Then they are asked again.
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX oauth_apps_of_owner ON oauth_apps (owner_id, id);
CREATE INDEX oauth_apps_of_organization ON oauth_apps (organization_id, id)
WHERE organization_id IS NOT NULL;

CREATE TABLE oauth_logos (
    app_id TEXT PRIMARY KEY REFERENCES oauth_apps (id) ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    content BYTEA NOT NULL,
    updated_at BIGINT NOT NULL
);

-- An app without a secret is public. A replaced secret works on until it expires.
CREATE TABLE oauth_secrets (
    id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    digest TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

CREATE INDEX oauth_secrets_of_app ON oauth_secrets (app_id);

-- Metadata documents that were fetched.
CREATE TABLE oauth_documents (
    client_id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL UNIQUE REFERENCES oauth_apps (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    fetched_at BIGINT NOT NULL,
    fresh_until BIGINT NOT NULL
);

-- What a person agreed to, remembered so that the same is not asked twice.
CREATE TABLE oauth_consents (
    user_id TEXT NOT NULL REFERENCES users (id),
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    organization_ids TEXT NOT NULL,
    -- The app's revision then.
    revision BIGINT NOT NULL,
    given_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, app_id)
);

-- One access that a person gave an app: everything issued from it ends with it.
CREATE TABLE oauth_accesses (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    -- code, device or exchange.
    via TEXT NOT NULL,
    scopes TEXT NOT NULL,
    organization_ids TEXT NOT NULL,
    session_id TEXT,
    authenticated_at BIGINT,
    address TEXT,
    agent TEXT,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    -- An access with refresh tokens ends at the latest then.
    expires_at BIGINT NOT NULL,
    ended_at BIGINT,
    -- Why: owner, app-deleted, reuse, revoked, reported, lapsed.
    end_reason TEXT
);

CREATE INDEX oauth_accesses_of_user ON oauth_accesses (user_id, id) WHERE ended_at IS NULL;
CREATE INDEX oauth_accesses_of_app ON oauth_accesses (app_id) WHERE ended_at IS NULL;
CREATE INDEX oauth_accesses_by_expiry ON oauth_accesses (expires_at);

CREATE TABLE oauth_codes (
    digest TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- Byte for byte as the authorization request had it.
    redirect_uri TEXT NOT NULL,
    challenge TEXT,
    nonce TEXT,
    scopes TEXT NOT NULL,
    organization_ids TEXT NOT NULL,
    session_id TEXT,
    authenticated_at BIGINT NOT NULL,
    address TEXT,
    agent TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- A used code is kept for a while: who comes with it again ends what it gave.
    used_at BIGINT,
    access_id TEXT
);

CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

CREATE TABLE oauth_devices (
    digest TEXT PRIMARY KEY,
    user_code_digest TEXT NOT NULL UNIQUE,
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    -- pending, approved, denied or consumed.
    state TEXT NOT NULL,
    -- Seconds between two polls; grows with each one that comes too early.
    interval_seconds BIGINT NOT NULL,
    -- Who asks, for the person who decides.
    address TEXT,
    agent TEXT,
    user_id TEXT REFERENCES users (id),
    organization_ids TEXT NOT NULL,
    authenticated_at BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    access_id TEXT
);

CREATE INDEX oauth_devices_of_app ON oauth_devices (app_id, expires_at);
CREATE INDEX oauth_devices_by_expiry ON oauth_devices (expires_at);

-- What a refresh token is beside a credential; the access is its family.
CREATE TABLE oauth_refreshes (
    token_id TEXT PRIMARY KEY REFERENCES tokens (id) ON DELETE CASCADE,
    access_id TEXT NOT NULL REFERENCES oauth_accesses (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL,
    -- When it was replaced, and the answer that was given then, for who asks again at once.
    replaced_at BIGINT,
    sealed_answer BYTEA
);

CREATE INDEX oauth_refreshes_of_access ON oauth_refreshes (access_id);

CREATE TABLE oauth_keys (
    -- The thumbprint of the public key.
    id TEXT PRIMARY KEY,
    sealed_private BYTEA NOT NULL,
    public TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Shown from its creation, signs from here on, and is shown for a while after the next signs.
    signs_from BIGINT NOT NULL
);

-- What the administrators of an organization decide about apps that are bound to it.
CREATE TABLE oauth_organizations (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    exchange_seconds BIGINT NOT NULL
);

-- Consent questions that were answered: none is answered twice.
CREATE TABLE oauth_answers (
    id TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
