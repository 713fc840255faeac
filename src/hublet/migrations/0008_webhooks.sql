-- Webhooks, what they watch, what happened, and what was sent of it.

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
);

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

-- What happened, with the payload rendered once; the part that names the webhook is added
-- when it is sent.
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
);

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
);

CREATE INDEX webhook_attempts_of_delivery ON webhook_attempts (delivery_id, number);

-- What the delivering process knows of each target, so that a slow or dead one delays nobody.
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
