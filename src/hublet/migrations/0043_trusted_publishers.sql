-- Trusted publishers: workflows of other services that exchange their ID tokens for tokens of one repository.

-- Each has a row in `users` with the same id, without a name in `names`: it is the author of its commits.
CREATE TABLE trusted_publishers (
    id TEXT PRIMARY KEY REFERENCES users (id),
    -- Not a reference: the publishers of a deleted repository are removed with their tokens by a reaction.
    repo_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    issuer TEXT NOT NULL,
    -- What an ID token must say, as JSON: values by the names of claims.
    claims TEXT NOT NULL,
    -- Ids of the repository or project at the provider, as JSON: typed, or those of the first use.
    pins TEXT NOT NULL,
    creator_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_used_at BIGINT,
    last_subject TEXT
);

CREATE INDEX trusted_publishers_of_repo ON trusted_publishers (repo_id, id);
CREATE INDEX trusted_publishers_of_issuer ON trusted_publishers (issuer);
CREATE INDEX trusted_publishers_of_creator ON trusted_publishers (creator_id);

-- ID tokens that were exchanged, until they expire: each is worth one token.
CREATE TABLE used_id_tokens (
    -- Of the issuer and the token's own id, or of the whole token where it has none.
    digest TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX used_id_tokens_by_expiry ON used_id_tokens (expires_at);
