-- Written by `make schema` from the migrations; their digest is acf94482c4c59fcd66bd45d557d7d709c5ee05ae0ea0565a6b199c7a3499eea5.

CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    published_at BIGINT NOT NULL
, trace TEXT);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    slow BOOLEAN NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- While a task is claimed this is the end of its lease.
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT,
    error TEXT,
    parked_at BIGINT
, trace TEXT);

CREATE INDEX tasks_due ON tasks (slow, due_at, id) WHERE parked_at IS NULL;

CREATE INDEX tasks_claimed ON tasks (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE INDEX tasks_parked ON tasks (parked_at) WHERE parked_at IS NOT NULL;

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

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
, default_visibility TEXT NOT NULL DEFAULT 'public');

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
    created_at BIGINT NOT NULL, auto_join_role TEXT, auto_join_scope TEXT,
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
, last_used_at BIGINT);

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
, app_id TEXT, access_id TEXT, organization_id TEXT, skips_network_security BOOLEAN NOT NULL DEFAULT FALSE, resource TEXT);

CREATE INDEX tokens_of_user ON tokens (user_id, id);

CREATE VIEW owners AS
SELECT id, name, 'user' AS type FROM users
UNION ALL
SELECT id, name, 'org' AS type FROM organizations;

CREATE TABLE repos (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    visibility TEXT NOT NULL,
    -- 'auto', 'manual', or NULL for a repository that everybody who sees it may read.
    gated TEXT,
    discussions_disabled BOOLEAN NOT NULL DEFAULT FALSE,
    sdk TEXT,
    resource_group_id TEXT REFERENCES resource_groups (id),
    creator_id TEXT NOT NULL,
    -- What the token belonged to that created it; see the scope contribute-repos.
    created_with TEXT,
    -- The commit that main points to; NULL for buckets and containers.
    head_sha TEXT,
    -- The metadata at the top of README.md on main, as JSON, and the tags that follow from it.
    card TEXT,
    tags TEXT NOT NULL,
    -- Bytes and files on main, or in the bucket.
    size BIGINT NOT NULL DEFAULT 0,
    total_files BIGINT NOT NULL DEFAULT 0,
    downloads BIGINT NOT NULL DEFAULT 0,
    likes BIGINT NOT NULL DEFAULT 0,
    -- Discussions and pull requests share one sequence of numbers.
    last_number BIGINT NOT NULL DEFAULT 0,
    -- Grows with every change of a ref; tells whether git's own list of refs is up to date.
    refs_version BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, packs_version BIGINT NOT NULL DEFAULT 0, trending_score BIGINT NOT NULL DEFAULT 0, num_parameters BIGINT, safetensors TEXT,
    UNIQUE (type, owner_id, name_key)
);

CREATE INDEX repos_of_owner ON repos (owner_id, type, created_at, id);

CREATE INDEX public_repos_by_creation ON repos (type, created_at, id)
WHERE visibility = 'public';

CREATE INDEX public_repos_by_update ON repos (type, updated_at, id)
WHERE visibility = 'public';

CREATE INDEX public_repos_by_likes ON repos (type, likes, id)
WHERE visibility = 'public';

CREATE INDEX public_repos_by_downloads ON repos (type, downloads, id)
WHERE visibility = 'public';

CREATE INDEX repos_of_resource_group ON repos (resource_group_id)
WHERE resource_group_id IS NOT NULL;

CREATE TABLE repo_redirects (
    type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    name_key TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    PRIMARY KEY (type, owner_id, name_key)
);

CREATE INDEX repo_redirects_of_repo ON repo_redirects (repo_id);

CREATE TABLE repo_refs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- As git spells it: refs/heads/main, refs/tags/v1, refs/pr/3.
    name TEXT NOT NULL,
    sha TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, name)
);

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size BIGINT NOT NULL,
    -- What git would call the same bytes, where it is known.
    created_at BIGINT NOT NULL
, is_whole BOOLEAN NOT NULL DEFAULT TRUE, checked_at BIGINT);

CREATE TABLE repo_blobs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    pushed_at BIGINT NOT NULL, is_used BOOLEAN NOT NULL DEFAULT TRUE, git_sha1 TEXT, size BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (repo_id, sha256)
);

CREATE INDEX repo_blobs_of_blob ON repo_blobs (sha256);

CREATE TABLE repo_files (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    media_type TEXT,
    -- When the file was changed where it came from, and when it arrived here.
    modified_at BIGINT NOT NULL,
    uploaded_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, path)
);

CREATE INDEX repo_files_of_blob ON repo_files (sha256);

CREATE TABLE access_requests (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    status TEXT NOT NULL,
    -- What the person filled in, as JSON.
    fields TEXT NOT NULL,
    rejection_reason TEXT,
    -- Who decided; NULL when nobody did, or the gate opens by itself.
    decided_by TEXT,
    decided_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (repo_id, user_id)
);

CREATE INDEX access_requests_by_status ON access_requests (repo_id, status, id);

CREATE TABLE likes (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, user_id)
);

CREATE INDEX likes_of_user ON likes (user_id, created_at);

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    -- discussion (a pull request is one), paper, post or blog.
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    -- NULL for what nobody here wrote, such as a paper.
    author_id TEXT REFERENCES users (id),
    -- The account under whose name a post or blog stands.
    owner_id TEXT,
    repo_id TEXT REFERENCES repos (id) ON DELETE CASCADE,
    number BIGINT,
    is_pull_request BOOLEAN NOT NULL DEFAULT FALSE,
    -- draft, open, closed, merged; NULL for what has no status.
    status TEXT,
    pinned BOOLEAN NOT NULL DEFAULT FALSE,
    -- The branch a pull request wants to change, as in refs/heads/main, and what it became.
    base TEXT,
    merge_commit_id TEXT,
    paper_id TEXT,
    slug TEXT,
    -- The text of a post or blog, the summary of a paper.
    body TEXT,
    -- What only one kind has, as JSON: a paper's authors, for example.
    details TEXT,
    comment_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (repo_id, number),
    UNIQUE (paper_id),
    UNIQUE (kind, owner_id, slug)
);

CREATE INDEX threads_of_repo ON threads (repo_id, pinned, number) WHERE repo_id IS NOT NULL;

CREATE INDEX threads_of_author ON threads (author_id, kind, id);

CREATE INDEX threads_of_kind ON threads (kind, id);

CREATE TABLE comments (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    author_id TEXT NOT NULL REFERENCES users (id),
    -- The comment it answers.
    parent_id TEXT REFERENCES comments (id) ON DELETE CASCADE,
    raw TEXT NOT NULL,
    hidden BOOLEAN NOT NULL DEFAULT FALSE,
    hidden_by TEXT,
    created_at BIGINT NOT NULL,
    -- When it was last edited; NULL when it never was.
    edited_at BIGINT
);

CREATE INDEX comments_of_thread ON comments (thread_id, id);

CREATE TABLE comment_versions (
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    author_id TEXT NOT NULL,
    raw TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (comment_id, number)
);

CREATE TABLE thread_changes (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    author_id TEXT NOT NULL,
    data TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX thread_changes_of_thread ON thread_changes (thread_id, id);

CREATE TABLE thread_participants (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    opened BOOLEAN NOT NULL DEFAULT FALSE,
    commented BOOLEAN NOT NULL DEFAULT FALSE,
    -- Changed its title or state, or pushed to its pull request.
    changed BOOLEAN NOT NULL DEFAULT FALSE,
    mentioned BOOLEAN NOT NULL DEFAULT FALSE,
    since BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);

CREATE INDEX thread_participants_of_user ON thread_participants (user_id, thread_id);

CREATE TABLE thread_mutes (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    muted_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);

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

CREATE TABLE papers (
    thread_id TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    -- Who brought it here; who wrote it stands in the details of the thread.
    submitter_id TEXT NOT NULL REFERENCES users (id),
    published_at BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    upvotes BIGINT NOT NULL DEFAULT 0,
    -- Id, title, summary and authors in lower case, for the search.
    words TEXT NOT NULL
);

CREATE INDEX papers_by_submission ON papers (submitted_at, thread_id);

CREATE INDEX papers_by_publication ON papers (published_at, thread_id);

CREATE INDEX papers_of_submitter ON papers (submitter_id, submitted_at);

CREATE TABLE paper_votes (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);

CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    -- The user or the organization whose webhook it is, and whose access counts.
    owner_id TEXT NOT NULL,
    -- Who created it, and hears when it fails.
    creator_id TEXT NOT NULL REFERENCES users (id),
    -- Exactly one of these three.
    url TEXT,
    job TEXT,
    job_source_id TEXT,
    -- A JSON object of the secrets that a started job gets, sealed, and their names in the open.
    sealed_secrets BYTEA,
    secret_names TEXT NOT NULL,
    sealed_secret BYTEA,
    -- The secret before the last change signs along for a while.
    sealed_old_secret BYTEA,
    old_secret_until BIGINT,
    watches_repo BOOLEAN NOT NULL,
    watches_discussion BOOLEAN NOT NULL,
    -- enabled, disabled or suspended-after-failure.
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, delegation TEXT, private_owners TEXT);

CREATE INDEX webhooks_of_owner ON webhooks (owner_id, id);

CREATE TABLE webhook_watched (
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    type TEXT NOT NULL,
    -- As it was called when it was added; shown when it exists no more.
    name TEXT NOT NULL,
    -- The id of the repository, user or organization, so that renames are followed. A repository
    -- that was deleted is waited for under its name, as in model:ada/engine.
    target TEXT NOT NULL,
    PRIMARY KEY (webhook_id, position)
);

CREATE INDEX webhook_watched_of_target ON webhook_watched (target, webhook_id);

CREATE TABLE webhook_events (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    action TEXT NOT NULL,
    repo_id TEXT NOT NULL,
    repo_type TEXT NOT NULL,
    repo_name TEXT NOT NULL,
    -- As it was then: for the access to a repository that is gone.
    repo_owner_id TEXT NOT NULL,
    repo_private BOOLEAN NOT NULL,
    resource_group_id TEXT,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL
, trace TEXT);

CREATE INDEX webhook_events_by_time ON webhook_events (created_at);

CREATE TABLE webhook_deliveries (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id TEXT NOT NULL REFERENCES webhook_events (id),
    -- fresh: nobody has looked at it; pending: to be tried when due; delivered: a 2xx came;
    -- failed: given up; unsent: not tried, for the reason given.
    state TEXT NOT NULL,
    reason TEXT,
    -- A ping is tried once, counts for no limit and no health.
    ping BOOLEAN NOT NULL DEFAULT FALSE,
    -- Attempts of the schedule that is running, and attempts in all: a replay starts anew.
    tries BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    -- The last answer, if any came.
    status BIGINT,
    due_at BIGINT NOT NULL,
    claimed_by TEXT,
    claimed_until BIGINT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    UNIQUE (event_id, webhook_id)
);

CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, id);

CREATE INDEX webhook_deliveries_fresh ON webhook_deliveries (id) WHERE state = 'fresh';

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id)
WHERE state = 'pending' AND claimed_by IS NULL;

CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (claimed_by)
WHERE claimed_by IS NOT NULL;

CREATE TABLE webhook_attempts (
    id TEXT PRIMARY KEY,
    delivery_id TEXT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- Where it went, without what may be secret in an address; absent when a job was started.
    target TEXT,
    job_id TEXT,
    status BIGINT,
    reason TEXT,
    detail TEXT,
    -- Microseconds; a phase that a kept connection spared is absent.
    dns_micros BIGINT,
    connect_micros BIGINT,
    tls_micros BIGINT,
    first_byte_micros BIGINT,
    total_micros BIGINT NOT NULL,
    response BYTEA
, response_headers TEXT);

CREATE INDEX webhook_attempts_of_delivery ON webhook_attempts (delivery_id, number);

CREATE TABLE webhook_lanes (
    webhook_id TEXT PRIMARY KEY REFERENCES webhooks (id) ON DELETE CASCADE,
    -- When to look here for deliveries that are due; NULL: nothing waits.
    next_due_at BIGINT,
    last_trigger_at BIGINT,
    last_success_at BIGINT,
    -- Failed attempts in a row, and since when the target counts as degraded.
    failures BIGINT NOT NULL DEFAULT 0,
    failing_since BIGINT,
    degraded_since BIGINT,
    probes BIGINT NOT NULL DEFAULT 0,
    -- Deliveries given up since the last success.
    exhausted BIGINT NOT NULL DEFAULT 0,
    first_exhausted_at BIGINT,
    last_exhausted_at BIGINT,
    -- How far the owner was told on the way to the suspension: 0, 50, 90 percent; NULL: not yet.
    told BIGINT,
    -- The running day of the trigger limit.
    day_started_at BIGINT NOT NULL DEFAULT 0,
    day_count BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX webhook_lanes_due ON webhook_lanes (next_due_at) WHERE next_due_at IS NOT NULL;

CREATE TABLE inboxes (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    -- Grows with every change; tells those who listen that there is something to look at.
    version BIGINT NOT NULL,
    -- The time of the newest item that ever came, in microseconds.
    last_at BIGINT NOT NULL
);

CREATE TABLE notifications (
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- The id of the thread, or of a message of the hub.
    thread_id TEXT NOT NULL,
    -- dataset, model, space, bucket, kernel or container for a discussion; paper, post, blog.
    type TEXT NOT NULL,
    -- The repository of a discussion, the owner of a post; NULL for the others.
    place_id TEXT,
    -- 0: watched, 1: participating, 2: mentioned.
    involvement BIGINT NOT NULL,
    read BOOLEAN NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The first thing in the thread that was not seen yet, and the last thing that happened.
    event_id TEXT,
    last_event_id TEXT,
    PRIMARY KEY (user_id, thread_id)
);

CREATE INDEX notifications_by_time ON notifications (user_id, updated_at);

CREATE INDEX notifications_by_type ON notifications (user_id, type, updated_at);

CREATE INDEX notifications_by_place ON notifications (user_id, place_id, updated_at)
WHERE place_id IS NOT NULL;

CREATE INDEX notifications_involved ON notifications (user_id, involvement, updated_at)
WHERE involvement > 0;

CREATE INDEX notifications_unread ON notifications (user_id, updated_at) WHERE NOT read;

CREATE INDEX notifications_unread_by_type ON notifications (user_id, type, updated_at)
WHERE NOT read;

CREATE INDEX notifications_unread_by_place ON notifications (user_id, place_id, updated_at)
WHERE NOT read AND place_id IS NOT NULL;

CREATE INDEX notifications_unread_involved ON notifications (user_id, involvement, updated_at)
WHERE NOT read AND involvement > 0;

CREATE INDEX notifications_of_thread ON notifications (thread_id, user_id);

CREATE TABLE notification_counts (
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- A type, or the id of a place.
    facet TEXT NOT NULL,
    involvement BIGINT NOT NULL,
    total BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    PRIMARY KEY (user_id, facet, involvement)
);

CREATE INDEX notification_counts_of_facet ON notification_counts (facet, user_id);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX messages_of_user ON messages (user_id, id);

CREATE TABLE watches (
    user_id TEXT NOT NULL REFERENCES users (id),
    -- org, user or repo.
    type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (user_id, target_id)
);

CREATE INDEX watches_of_target ON watches (target_id, user_id);

CREATE TABLE repo_mutes (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    muted_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, user_id)
);

CREATE INDEX repo_mutes_of_user ON repo_mutes (user_id);

CREATE INDEX thread_mutes_of_user ON thread_mutes (user_id);

CREATE TABLE notification_settings (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    settings TEXT NOT NULL,
    prepaid_amount TEXT,
    updated_at BIGINT NOT NULL
);

CREATE INDEX threads_of_slug ON threads (kind, slug) WHERE slug IS NOT NULL;

CREATE TABLE mails (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- thread, message, digest or tags.
    kind TEXT NOT NULL,
    -- The id of the thread, message or repository, or the day of the digest.
    about TEXT NOT NULL,
    -- The switch that turns such mails off; NULL for what cannot be turned off.
    key TEXT,
    -- What happened, by ids or names of tags, with blanks between them.
    events TEXT NOT NULL,
    -- Whether the inbox told of it as well: what was read there is not mailed.
    in_inbox BOOLEAN NOT NULL,
    -- A mail that is being sent is closed: what happens meanwhile opens another.
    closed BOOLEAN NOT NULL DEFAULT FALSE,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX mails_open ON mails (user_id, about) WHERE NOT closed;

CREATE TABLE verification_mails (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    sent_at BIGINT NOT NULL
);

CREATE INDEX verification_mails_of_user ON verification_mails (user_id, sent_at);

CREATE TABLE mcp_settings (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    -- Names, as a JSON array, in the order they were given.
    built_in_tools TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE mcp_space_tools (
    user_id TEXT NOT NULL REFERENCES users (id),
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    PRIMARY KEY (user_id, repo_id)
);

CREATE INDEX mcp_space_tools_of_repo ON mcp_space_tools (repo_id);

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

CREATE TABLE passkey_challenges (
    digest TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

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

CREATE TABLE oauth_secrets (
    id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES oauth_apps (id) ON DELETE CASCADE,
    digest TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

CREATE INDEX oauth_secrets_of_app ON oauth_secrets (app_id);

CREATE TABLE oauth_documents (
    client_id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL UNIQUE REFERENCES oauth_apps (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    fetched_at BIGINT NOT NULL,
    fresh_until BIGINT NOT NULL
);

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
, resource TEXT);

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
, resource TEXT);

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

CREATE TABLE oauth_organizations (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    exchange_seconds BIGINT NOT NULL
);

CREATE TABLE oauth_answers (
    id TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    -- The user or the organization whose job it is.
    owner_id TEXT NOT NULL,
    -- Who asked for it, and whose access counts for what is mounted.
    creator_id TEXT NOT NULL REFERENCES users (id),
    resource_group_id TEXT,
    -- user, scheduled-job, duplicated-job or webhook, and its id.
    initiator_type TEXT NOT NULL,
    initiator_id TEXT NOT NULL,
    -- One job at most for the same key, such as the delivery that asked for it.
    key TEXT UNIQUE,
    -- What to run, as JSON: see Spec in jobs/records.py.
    spec TEXT NOT NULL,
    labels TEXT NOT NULL,
    -- The ports that are reached from outside, as JSON; NULL: none.
    expose TEXT,
    -- A JSON object, sealed, and the names in the open. Dropped when the job is deleted.
    sealed_secrets BYTEA,
    secret_names TEXT NOT NULL,
    -- SCHEDULING, RUNNING, COMPLETED, ERROR, CANCELED or DELETED.
    stage TEXT NOT NULL,
    message TEXT,
    cancel_reason TEXT,
    failure_count BIGINT NOT NULL DEFAULT 0,
    -- Grows with every change of the stage or its message: who changes them names what it saw.
    version BIGINT NOT NULL DEFAULT 1,
    -- The attempt that runs or comes next.
    attempt BIGINT NOT NULL DEFAULT 1,
    -- Somebody wants it to end; the one who looks after it does that.
    cancel_requested_at BIGINT,
    -- When to look after it again; NULL: nothing is left to do.
    due_at BIGINT,
    claimed_by TEXT,
    claimed_until BIGINT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    -- Of all attempts that ended.
    running_micros BIGINT NOT NULL DEFAULT 0
, delegation TEXT, trace TEXT);

CREATE INDEX jobs_of_owner ON jobs (owner_id, id);

CREATE INDEX jobs_of_owner_by_stage ON jobs (owner_id, stage, id);

CREATE INDEX jobs_due ON jobs (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX jobs_claimed ON jobs (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE TABLE job_labels (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    PRIMARY KEY (job_id, name)
);

CREATE INDEX job_labels_of_owner ON job_labels (owner_id, name, value, job_id);

CREATE TABLE job_attempts (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    -- The runner that has it, and what that calls it.
    runner TEXT NOT NULL,
    handle TEXT NOT NULL,
    launched_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    exit_code BIGINT,
    -- Why it ended, in the words of the message.
    reason TEXT,
    -- What it left behind was cleared away.
    removed_at BIGINT, machine_id TEXT,
    PRIMARY KEY (job_id, number)
);

CREATE INDEX job_attempts_left ON job_attempts (runner, job_id) WHERE removed_at IS NULL;

CREATE TABLE job_events (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    stage TEXT NOT NULL,
    message TEXT,
    attempt BIGINT NOT NULL,
    at BIGINT NOT NULL
);

CREATE INDEX job_events_of_job ON job_events (job_id, id);

CREATE TABLE scheduled_jobs (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    creator_id TEXT NOT NULL REFERENCES users (id),
    resource_group_id TEXT,
    spec TEXT NOT NULL,
    labels TEXT NOT NULL,
    sealed_secrets BYTEA,
    secret_names TEXT NOT NULL,
    -- As it was written: five fields in UTC, or @daily and the like.
    schedule TEXT NOT NULL,
    -- Whether a run may start while the one before goes on.
    concurrency BOOLEAN NOT NULL,
    suspended BOOLEAN NOT NULL,
    last_job_id TEXT,
    last_job_at BIGINT,
    -- The last time at which no job began, and why.
    last_skip_at BIGINT,
    last_skip_reason TEXT,
    next_run_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
, delegation TEXT);

CREATE INDEX scheduled_jobs_of_owner ON scheduled_jobs (owner_id, id);

CREATE INDEX scheduled_jobs_due ON scheduled_jobs (next_run_at, id) WHERE NOT suspended;

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

CREATE TABLE scim_accounts (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    organization_id TEXT NOT NULL REFERENCES organizations (id)
, switched_off_at BIGINT);

CREATE TABLE job_passes (
    -- Of the code or of the cookie's value, which only the browser has.
    digest TEXT PRIMARY KEY,
    -- code or cookie.
    kind TEXT NOT NULL,
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    port BIGINT NOT NULL,
    -- Who signs out is out everywhere.
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Of what the browser was given when it came without a cookie: a code is good for it alone.
    state_digest TEXT,
    expires_at BIGINT NOT NULL
);

CREATE INDEX job_passes_of_session ON job_passes (session_id);

CREATE INDEX job_passes_of_job ON job_passes (job_id);

CREATE INDEX job_passes_by_expiry ON job_passes (expires_at);

CREATE TABLE comment_emoji (
    -- Grows with time, so the list of a comment is in its order.
    id TEXT PRIMARY KEY,
    -- The thread of the comment: lists of threads count all in it.
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- The name of the emoji on the wire: thumbsup.
    reaction TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (comment_id, reaction, user_id)
);

CREATE INDEX comment_emoji_of_comment ON comment_emoji (comment_id, id);

CREATE INDEX comment_emoji_of_thread ON comment_emoji (thread_id, reaction, user_id);

CREATE TABLE xorbs (
    name TEXT PRIMARY KEY,
    chunks BIGINT NOT NULL,
    -- Bytes of content, and bytes of the chunks as they are stored.
    size BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    -- When it last arrived.
    created_at BIGINT NOT NULL
, checked_at BIGINT, hash TEXT NOT NULL DEFAULT '');

CREATE TABLE repo_xorbs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    xorb TEXT NOT NULL REFERENCES xorbs (name),
    -- Since when no content of the repository has a piece of it; NULL while some has.
    unused_since BIGINT,
    PRIMARY KEY (repo_id, xorb)
);

CREATE INDEX repo_xorbs_of_xorb ON repo_xorbs (xorb);

CREATE TABLE repo_chunks (
    repo_id TEXT NOT NULL,
    chunk TEXT NOT NULL,
    -- The xorb that has it, and as JSON those that follow in the file.
    xorb TEXT NOT NULL,
    next_xorbs TEXT NOT NULL,
    PRIMARY KEY (repo_id, chunk),
    FOREIGN KEY (repo_id, xorb) REFERENCES repo_xorbs (repo_id, xorb) ON DELETE CASCADE
);

CREATE INDEX repo_chunks_of_xorb ON repo_chunks (repo_id, xorb);

CREATE INDEX repo_blobs_not_used ON repo_blobs (pushed_at) WHERE is_used = FALSE;

CREATE INDEX repo_xorbs_not_used ON repo_xorbs (unused_since) WHERE unused_since IS NOT NULL;

CREATE INDEX blobs_by_check ON blobs ((coalesce(checked_at, created_at))) WHERE is_whole = TRUE;

CREATE INDEX xorbs_by_check ON xorbs ((coalesce(checked_at, created_at)));

CREATE TABLE damaged_objects (
    -- 'blobs' or 'xorbs', as in the store.
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- 'damaged' or 'missing'.
    problem TEXT NOT NULL,
    found_at BIGINT NOT NULL,
    PRIMARY KEY (kind, digest)
);

CREATE INDEX xorbs_by_hash ON xorbs (hash);

CREATE TABLE layouts (
    id TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE
);

CREATE INDEX layouts_of_blob ON layouts (sha256);

CREATE TABLE layout_segments (
    layout TEXT NOT NULL REFERENCES layouts (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    xorb TEXT NOT NULL REFERENCES xorbs (name),
    -- Chunks, and where they lie in the stored xorb; the ends are not included.
    start_chunk BIGINT NOT NULL,
    end_chunk BIGINT NOT NULL,
    start_byte BIGINT NOT NULL,
    end_byte BIGINT NOT NULL,
    -- Bytes of content.
    size BIGINT NOT NULL,
    PRIMARY KEY (layout, position)
);

CREATE INDEX layout_segments_of_xorb ON layout_segments (xorb);

CREATE TABLE repo_layouts (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    xet_hash TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    layout TEXT NOT NULL REFERENCES layouts (id) ON DELETE CASCADE,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, xet_hash)
);

CREATE INDEX repo_layouts_of_blob ON repo_layouts (repo_id, sha256);

CREATE INDEX repo_layouts_of_layout ON repo_layouts (layout);

CREATE TABLE uncut_contents (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE,
    PRIMARY KEY (repo_id, sha256)
);

CREATE INDEX uncut_contents_of_blob ON uncut_contents (sha256);

CREATE INDEX repo_blobs_by_size ON repo_blobs (repo_id, is_used, size);

CREATE TABLE search_documents (
    -- Counts down, so that of equals the newest comes first.
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    target_id TEXT NOT NULL UNIQUE,
    -- Who may see it; see search_words.
    scope TEXT NOT NULL,
    -- How many binary digits its likes have.
    heat BIGINT NOT NULL,
    -- The commit whose README was read; NULL when its text must not be found.
    text_version TEXT,
    -- A line each for whole names and names, and for labels and text; every word between blanks.
    names TEXT NOT NULL,
    words TEXT NOT NULL
);

CREATE TABLE search_words (
    scope TEXT NOT NULL,
    -- A word, or the beginning of a name with a star behind it.
    word TEXT NOT NULL,
    -- The smallest is shown first: where the word stands (64 for each line), less the heat.
    rank BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (scope, word, rank, number)
) WITHOUT ROWID;

CREATE TABLE search_spellings (
    scope TEXT NOT NULL,
    spelling TEXT NOT NULL,
    word TEXT NOT NULL,
    PRIMARY KEY (scope, spelling, word)
) WITHOUT ROWID;

CREATE TABLE repo_downloads (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Days since 1970-01-01, UTC.
    day INTEGER NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (repo_id, day)
);

CREATE INDEX repo_downloads_by_day ON repo_downloads (day);

CREATE TABLE thread_references (
    -- The thread that is named.
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    PRIMARY KEY (thread_id, comment_id)
);

CREATE INDEX thread_references_of_comment ON thread_references (comment_id);

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

CREATE TABLE password_resets (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    digest TEXT NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);

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

CREATE TABLE metric_samples (
    -- The process that wrote it, by a name that no other has.
    process TEXT NOT NULL,
    -- The minute that it ends.
    at BIGINT NOT NULL,
    -- Counts of this minute and levels at its end, as JSON: see core/metric_samples.py.
    body TEXT NOT NULL,
    PRIMARY KEY (at, process)
);

CREATE TABLE hub_activity (
    id TEXT PRIMARY KEY,
    actor_id TEXT,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,
    address TEXT,
    at BIGINT NOT NULL
);

CREATE INDEX hub_activity_by_action ON hub_activity (action, actor_id, at);

CREATE TABLE inbox_changes (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- What the items were marked as.
    read BOOLEAN NOT NULL,
    -- The time of the newest item then: what came later stays as it is.
    last_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX inbox_changes_of_user ON inbox_changes (user_id, created_at);

CREATE TABLE inbox_change_items (
    change_id TEXT NOT NULL REFERENCES inbox_changes (id) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    -- What the item led to before.
    event_id TEXT,
    -- Whether the change marked it, and whether it muted the thread.
    marked BOOLEAN NOT NULL,
    muted BOOLEAN NOT NULL,
    PRIMARY KEY (change_id, thread_id)
);

CREATE TABLE machines (
    id TEXT PRIMARY KEY,
    -- Of its data folder: several machines may share one.
    folder_id TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Where the other machines reach it; empty: no process of it answers requests.
    address TEXT NOT NULL,
    -- What its jobs share out, as JSON.
    room TEXT NOT NULL,
    -- On the clock of leases.
    seen_at BIGINT NOT NULL,
    lease_ends BIGINT NOT NULL
);

CREATE TABLE object_removals (
    -- Of the removal, which has many objects.
    id TEXT NOT NULL,
    -- 'blobs' or 'xorbs', and the name of the object.
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    began_at BIGINT NOT NULL,
    -- NULL until no request of this removal is under way any more.
    ended_at BIGINT,
    PRIMARY KEY (id, kind, name)
);

CREATE INDEX object_removals_by_object ON object_removals (kind, name);

CREATE TABLE direct_uploads (
    -- The object is `uploads/<id>` until it was checked.
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL,
    -- What the client claims.
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- The id of the multipart upload in the object storage, and how many parts it has.
    upload_id TEXT NOT NULL,
    parts BIGINT NOT NULL,
    is_complete BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX direct_uploads_of_content ON direct_uploads (repo_id, sha256);

CREATE INDEX direct_uploads_by_age ON direct_uploads (created_at);

CREATE TABLE job_logs (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    -- Bytes and lines in the store.
    size BIGINT NOT NULL DEFAULT 0,
    lines BIGINT NOT NULL DEFAULT 0,
    -- A JSON list: where each object ends; it begins where the one before it ends.
    ends TEXT NOT NULL DEFAULT '[]',
    -- A JSON list: the number of lines before the end of each whole block of 256 KiB.
    block_lines TEXT NOT NULL DEFAULT '[]',
    -- When all that there will ever be was there; NULL: more may come.
    ended_at BIGINT,
    -- A line after the last one that says what is missing.
    notice TEXT,
    -- The name of the object with the kept usage; NULL: there is none.
    usage TEXT,
    PRIMARY KEY (job_id, attempt)
);

CREATE INDEX job_logs_open ON job_logs (job_id) WHERE ended_at IS NULL;

CREATE TABLE repo_packs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Given once: no other pack ever has it.
    name TEXT NOT NULL,
    -- Of the pack, in bytes, without its index.
    size BIGINT NOT NULL,
    objects BIGINT NOT NULL,
    -- push: new objects; packed: all that refs reach; cruft: what no ref reached.
    kind TEXT NOT NULL,
    -- A small pack, followed by its index; NULL: both are objects of the store.
    data BYTEA,
    created_at BIGINT NOT NULL,
    -- The user whose change brought it; NULL: the hub packed it.
    created_by TEXT,
    -- When another pack took its place; its objects go a day later, and the row with them.
    removed_at BIGINT,
    PRIMARY KEY (repo_id, name)
);

CREATE INDEX repo_packs_removed ON repo_packs (removed_at) WHERE removed_at IS NOT NULL;

CREATE TABLE hub_processes (
    id TEXT PRIMARY KEY,
    -- The name of the machine, as it calls itself.
    node TEXT NOT NULL,
    -- What the process is called on its machine, such as api-1.
    name TEXT NOT NULL,
    -- all, api or worker.
    role TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    -- On the clock of leases.
    seen_at BIGINT NOT NULL,
    is_draining BOOLEAN NOT NULL
);

CREATE TABLE registry_blobs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- Under which the store has it.
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    -- When it was last uploaded or mounted, or a client was told that it need not upload it.
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, digest)
);

CREATE INDEX registry_blobs_of_content ON registry_blobs (sha256);

CREATE INDEX registry_blobs_of_digest ON registry_blobs (digest);

CREATE INDEX registry_blobs_by_touch ON registry_blobs (touched_at);

CREATE TABLE registry_manifests (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    -- Byte by byte as it was pushed; the store has it too, for the files of the repository.
    content BYTEA NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    -- What a list of referrers shows: its own type, or that of the configuration of an image.
    artifact_type TEXT,
    -- As JSON.
    annotations TEXT,
    -- The digest of the manifest that it is about, which need not exist.
    subject TEXT,
    pushed_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, digest)
);

CREATE INDEX registry_manifests_of_subject ON registry_manifests (repo_id, image, subject)
WHERE subject IS NOT NULL;

CREATE INDEX registry_manifests_of_content ON registry_manifests (sha256);

CREATE INDEX registry_manifests_by_touch ON registry_manifests (touched_at);

CREATE TABLE registry_references (
    repo_id TEXT NOT NULL,
    image TEXT NOT NULL,
    manifest TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- 'blob' or 'manifest'.
    kind TEXT NOT NULL,
    PRIMARY KEY (repo_id, image, manifest, digest),
    FOREIGN KEY (repo_id, image, manifest)
        REFERENCES registry_manifests (repo_id, image, digest) ON DELETE CASCADE
);

CREATE INDEX registry_references_to ON registry_references (repo_id, image, digest);

CREATE TABLE registry_tags (
    repo_id TEXT NOT NULL,
    image TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    pushed_by TEXT NOT NULL,
    pushed_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, name),
    FOREIGN KEY (repo_id, image, digest)
        REFERENCES registry_manifests (repo_id, image, digest) ON DELETE CASCADE
);

CREATE INDEX registry_tags_of_manifest ON registry_tags (repo_id, image, digest);

CREATE INDEX registry_tags_by_push ON registry_tags (repo_id, image, pushed_at, name);

CREATE TABLE registry_uploads (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    user_id TEXT NOT NULL,
    -- How many bytes arrived.
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE INDEX registry_uploads_by_change ON registry_uploads (changed_at);

CREATE INDEX registry_uploads_of_repo ON registry_uploads (repo_id);

CREATE TABLE registry_upload_parts (
    upload_id TEXT NOT NULL REFERENCES registry_uploads (id) ON DELETE CASCADE,
    -- Of its first byte.
    position BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (upload_id, position)
);

CREATE TABLE registry_retention (
    repo_id TEXT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    -- The tags of each image that were pushed last are kept, so many of them; NULL: all.
    keep_tags BIGINT,
    -- Manifests without a tag are removed after so many days; NULL: never.
    untagged_days BIGINT
);

CREATE TABLE registry_credentials (
    -- A user or an organization; '' for the hub itself.
    owner_id TEXT NOT NULL,
    -- As in the name of an image: registry.example.com:5000, docker.io.
    host TEXT NOT NULL,
    username TEXT NOT NULL,
    -- Sealed.
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner_id, host)
);

CREATE TABLE tunnel_orders (
    nonce TEXT PRIMARY KEY,
    -- On the clock of leases; from then on the order itself says that it is too old.
    expires_at BIGINT NOT NULL
);

CREATE INDEX tunnel_orders_expires_at ON tunnel_orders (expires_at);

CREATE TABLE collections (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    creator_id TEXT NOT NULL,
    title TEXT NOT NULL,
    -- What stands before the id in its address; it follows the title.
    slug TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Title and description in lower case, for the filter of lists.
    words TEXT NOT NULL,
    theme TEXT NOT NULL,
    is_private BOOLEAN NOT NULL,
    resource_group_id TEXT REFERENCES resource_groups (id),
    -- Its place among those of its owner; there may be gaps.
    position BIGINT NOT NULL,
    upvotes BIGINT NOT NULL DEFAULT 0,
    -- When it was created, and a week more for each doubling of its upvotes.
    trending BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX collections_of_owner ON collections (owner_id, position, id);

CREATE INDEX collections_of_group ON collections (resource_group_id);

CREATE INDEX collections_public_by_update ON collections (updated_at, id) WHERE NOT is_private;

CREATE INDEX collections_public_by_upvotes ON collections (upvotes, id) WHERE NOT is_private;

CREATE INDEX collections_public_by_trend ON collections (trending, id) WHERE NOT is_private;

CREATE TABLE collection_items (
    id TEXT PRIMARY KEY,
    collection_id TEXT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    -- Its place in the collection; there may be gaps.
    position BIGINT NOT NULL,
    repo_id TEXT REFERENCES repos (id) ON DELETE CASCADE,
    thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
    listed_id TEXT REFERENCES collections (id) ON DELETE CASCADE,
    note TEXT NOT NULL,
    -- Addresses of pictures, as JSON.
    gallery TEXT NOT NULL,
    added_by TEXT NOT NULL,
    added_at BIGINT NOT NULL
);

CREATE INDEX collection_items_in_order ON collection_items (collection_id, position, id);

CREATE UNIQUE INDEX collection_items_of_repo ON collection_items (repo_id, collection_id);

CREATE UNIQUE INDEX collection_items_of_thread ON collection_items (thread_id, collection_id);

CREATE UNIQUE INDEX collection_items_of_listed ON collection_items (listed_id, collection_id);

CREATE TABLE collection_votes (
    collection_id TEXT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (collection_id, user_id)
);

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

CREATE TABLE used_id_tokens (
    -- Of the issuer and the token's own id, or of the whole token where it has none.
    digest TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX used_id_tokens_by_expiry ON used_id_tokens (expires_at);

CREATE TABLE token_cut_offs (
    -- The id of a token or, for what an app holds, of the access that it was issued from: a renewed token is cut off too.
    credential_id TEXT NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    cut_off_at BIGINT NOT NULL,
    PRIMARY KEY (credential_id, organization_id)
);

CREATE INDEX token_cut_offs_of_organization ON token_cut_offs (organization_id);

CREATE TABLE organization_networks (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    -- Networks in CIDR notation, as a JSON list.
    ip_ranges TEXT NOT NULL,
    -- Whether members reach the organization from these networks alone.
    is_restricted BOOLEAN NOT NULL,
    -- Whether requests from these networks need a token: no, pending (until an administrator of the hub agrees), yes.
    authentication TEXT NOT NULL
);

CREATE TABLE organization_email_domains (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    domain TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, domain)
);

CREATE TABLE social_handles (
    account_id TEXT NOT NULL,
    network TEXT NOT NULL,
    handle TEXT NOT NULL,
    PRIMARY KEY (account_id, network)
);

CREATE INDEX public_repos_by_trend ON repos (type, trending_score, id)
WHERE visibility = 'public';

CREATE INDEX trending_repos ON repos (id)
WHERE trending_score > 0;

CREATE INDEX repos_by_parameters ON repos (type, num_parameters)
WHERE num_parameters IS NOT NULL;

CREATE INDEX likes_by_time ON likes (created_at);

CREATE TABLE repo_links (
    -- Of the repository that has the tag or the card.
    type TEXT NOT NULL,
    -- 'tag', 'model', 'dataset', 'base_model'; 'linked' with an empty target: any of models and
    -- datasets.
    kind TEXT NOT NULL,
    -- A name, not an id: a card may name what is not here, or not yet.
    target TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    PRIMARY KEY (type, kind, target, repo_id)
) WITHOUT ROWID;

CREATE INDEX repo_links_of_repo ON repo_links (repo_id);

CREATE TABLE search_texts (
    -- Counts down, so that of equals the newest comes first.
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    -- The repository, thread or comment, and the file of a repository.
    source_id TEXT NOT NULL,
    file TEXT NOT NULL,
    -- The thread of a comment, and the repository that decides who may see it.
    thread_id TEXT,
    repo_id TEXT,
    -- Who may see it, as in search_words.
    scope TEXT NOT NULL,
    -- Minus the number of binary digits of its likes.
    rank BIGINT NOT NULL,
    -- The commit whose file was read.
    version TEXT,
    -- What was written of it, to be able to take it out again: words, each with its weight.
    words TEXT NOT NULL,
    UNIQUE (source_id, file)
);

CREATE INDEX search_texts_by_thread ON search_texts (thread_id) WHERE thread_id IS NOT NULL;

CREATE INDEX search_texts_by_repo ON search_texts (repo_id, number) WHERE repo_id IS NOT NULL;

CREATE TABLE search_text_words (
    scope TEXT NOT NULL,
    word TEXT NOT NULL,
    rank BIGINT NOT NULL,
    number BIGINT NOT NULL,
    -- How much the word says of the text: how often it stands there, and how long the text is.
    weight BIGINT NOT NULL,
    PRIMARY KEY (scope, word, rank, number)
) WITHOUT ROWID;

CREATE TABLE saved_queries (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- What an address names it by.
    slug TEXT NOT NULL,
    title TEXT NOT NULL,
    sql TEXT NOT NULL,
    -- The parts of the dataset that the query names, as JSON.
    views TEXT NOT NULL,
    is_private BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX saved_queries_by_slug ON saved_queries (repo_id, slug);

CREATE INDEX saved_queries_of_repo ON saved_queries (repo_id, id);

CREATE INDEX saved_queries_of_user ON saved_queries (user_id, repo_id);

CREATE TABLE evaluation_results (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    -- The dataset as the model names it, owner/name in the form in which names are compared.
    dataset_key TEXT NOT NULL,
    task_id TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    filename TEXT NOT NULL,
    -- Where the result comes from, as JSON.
    source TEXT NOT NULL,
    notes TEXT NOT NULL,
    PRIMARY KEY (repo_id, position)
);

CREATE INDEX evaluation_results_of_dataset ON evaluation_results (dataset_key, task_id, value);

CREATE INDEX jobs_of_initiator ON jobs (initiator_type, initiator_id, id)
WHERE initiator_type <> 'user';

CREATE INDEX private_repos_by_creation ON repos (owner_id, type, created_at, id)
WHERE visibility <> 'public';

CREATE INDEX private_repos_by_update ON repos (owner_id, type, updated_at, id)
WHERE visibility <> 'public';

CREATE INDEX private_repos_by_likes ON repos (owner_id, type, likes, id)
WHERE visibility <> 'public';

CREATE INDEX private_repos_by_downloads ON repos (owner_id, type, downloads, id)
WHERE visibility <> 'public';

CREATE INDEX private_repos_by_trend ON repos (owner_id, type, trending_score, id)
WHERE visibility <> 'public';

CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;

CREATE TABLE name_parts (
    -- Who may see the name: 'user'; the type of a public repository, of another one type/owner id.
    scope TEXT NOT NULL,
    -- The lower-case name from one of its positions on, at most 24 characters.
    part TEXT NOT NULL,
    -- The user or the repository.
    id TEXT NOT NULL,
    PRIMARY KEY (scope, part, id)
) WITHOUT ROWID;

CREATE TABLE totals (
    -- What is counted, with its stage or type, as in jobs:RUNNING.
    kind TEXT NOT NULL,
    -- Whose it is; what has parts is kept by part, as in {owner}/{resource group}.
    subject TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

CREATE TABLE total_changes (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    change BIGINT NOT NULL
);

CREATE INDEX total_changes_of_subject ON total_changes (kind, subject);

CREATE TRIGGER count_new_job AFTER INSERT ON jobs BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_changed_job AFTER UPDATE OF stage, owner_id, resource_group_id ON jobs
WHEN (OLD.stage, OLD.owner_id, OLD.resource_group_id)
    IS NOT (NEW.stage, NEW.owner_id, NEW.resource_group_id) BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES
        ('jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1),
        ('jobs:' || NEW.stage, NEW.owner_id || coalesce('/' || NEW.resource_group_id, ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_job AFTER DELETE ON jobs BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('jobs:' || OLD.stage, OLD.owner_id || coalesce('/' || OLD.resource_group_id, ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_member AFTER INSERT ON memberships BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('members', NEW.organization_id, 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', NEW.organization_id, 1 FROM users
    WHERE id = NEW.user_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_member AFTER DELETE ON memberships BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('members', OLD.organization_id, -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', OLD.organization_id, -1 FROM users
    WHERE id = OLD.user_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_follower AFTER INSERT ON follows BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('followers', NEW.account_id, 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', NEW.account_id, 1 FROM users
    WHERE id = NEW.follower_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_follower AFTER DELETE ON follows BEGIN
    INSERT INTO totals (kind, subject, value) VALUES ('followers', OLD.account_id, -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', OLD.account_id, -1 FROM users
    WHERE id = OLD.follower_id AND disabled_at IS NOT NULL
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_disabled_user AFTER UPDATE OF disabled_at ON users
WHEN (OLD.disabled_at IS NULL) <> (NEW.disabled_at IS NULL) BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_members', organization_id, iif(NEW.disabled_at IS NULL, -1, 1)
    FROM memberships WHERE user_id = NEW.id
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
    INSERT INTO totals (kind, subject, value)
    SELECT 'disabled_followers', account_id, iif(NEW.disabled_at IS NULL, -1, 1)
    FROM follows WHERE follower_id = NEW.id
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_repo AFTER INSERT ON repos BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', NEW.owner_id, NEW.size WHERE NEW.size <> 0
    UNION ALL
    SELECT 'public_repos', NEW.owner_id || '/' || NEW.type, 1 WHERE NEW.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_changed_repo AFTER UPDATE OF size, owner_id, visibility, type ON repos
WHEN (OLD.size, OLD.owner_id, OLD.visibility, OLD.type)
    IS NOT (NEW.size, NEW.owner_id, NEW.visibility, NEW.type) BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', OLD.owner_id, - OLD.size WHERE OLD.owner_id <> NEW.owner_id
    UNION ALL
    SELECT 'repo_bytes', NEW.owner_id, NEW.size - iif(OLD.owner_id = NEW.owner_id, OLD.size, 0)
    UNION ALL
    SELECT 'public_repos', OLD.owner_id || '/' || OLD.type, -1 WHERE OLD.visibility = 'public'
    UNION ALL
    SELECT 'public_repos', NEW.owner_id || '/' || NEW.type, 1 WHERE NEW.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_repo AFTER DELETE ON repos BEGIN
    INSERT INTO totals (kind, subject, value)
    SELECT 'repo_bytes', OLD.owner_id, - OLD.size WHERE OLD.size <> 0
    UNION ALL
    SELECT 'public_repos', OLD.owner_id || '/' || OLD.type, -1 WHERE OLD.visibility = 'public'
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_scim_user AFTER INSERT ON scim_users BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_users', NEW.organization_id || iif(NEW.managed, '/managed', ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_scim_user AFTER DELETE ON scim_users BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_users', OLD.organization_id || iif(OLD.managed, '/managed', ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_new_scim_group AFTER INSERT ON scim_groups BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_groups', NEW.organization_id || iif(NEW.managed, '/managed', ''), 1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;

CREATE TRIGGER count_removed_scim_group AFTER DELETE ON scim_groups BEGIN
    INSERT INTO totals (kind, subject, value)
    VALUES ('scim_groups', OLD.organization_id || iif(OLD.managed, '/managed', ''), -1)
    ON CONFLICT (kind, subject) DO UPDATE SET value = value + excluded.value;
END;
