-- How browsers are let in to the ports of jobs.

-- One-time codes that the hub hands out, and what a job's own host gives for one: the cookie.
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
