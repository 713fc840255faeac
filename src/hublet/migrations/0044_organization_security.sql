-- What organizations decide about tokens and networks, and the handles of people and organizations.

-- Tokens that an administrator cut off from an organization, for good.
CREATE TABLE token_cut_offs (
    -- The id of a token or, for what an app holds, of the access that it was issued from: a renewed token is cut off too.
    credential_id TEXT NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    cut_off_at BIGINT NOT NULL,
    PRIMARY KEY (credential_id, organization_id)
);

CREATE INDEX token_cut_offs_of_organization ON token_cut_offs (organization_id);

-- Whether the token of a service account works from every address.
ALTER TABLE tokens ADD COLUMN skips_network_security BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE organization_networks (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    -- Networks in CIDR notation, as a JSON list.
    ip_ranges TEXT NOT NULL,
    -- Whether members reach the organization from these networks alone.
    is_restricted BOOLEAN NOT NULL,
    -- Whether requests from these networks need a token: no, pending (until an administrator of the hub agrees), yes.
    authentication TEXT NOT NULL
);

-- People with a verified address of such a domain may join without being asked for.
CREATE TABLE organization_email_domains (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    domain TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, domain)
);

-- Handles of users and organizations in other networks.
CREATE TABLE social_handles (
    account_id TEXT NOT NULL,
    network TEXT NOT NULL,
    handle TEXT NOT NULL,
    PRIMARY KEY (account_id, network)
);

-- The role with which new members of the organization join a group; NULL: they do not.
ALTER TABLE resource_groups ADD COLUMN auto_join_role TEXT;
ALTER TABLE resource_groups ADD COLUMN auto_join_scope TEXT;
