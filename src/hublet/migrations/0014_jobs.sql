-- Jobs: what was asked for, how far it is, each attempt to run it, and what runs by the clock.

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
);

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
    removed_at BIGINT,
    PRIMARY KEY (job_id, number)
);

CREATE INDEX job_attempts_left ON job_attempts (runner, job_id) WHERE removed_at IS NULL;

-- What happened to a job, for those who follow it.
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
);

CREATE INDEX scheduled_jobs_of_owner ON scheduled_jobs (owner_id, id);
CREATE INDEX scheduled_jobs_due ON scheduled_jobs (next_run_at, id) WHERE NOT suspended;
