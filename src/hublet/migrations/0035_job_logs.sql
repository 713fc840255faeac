-- Logs of jobs that lie in a shared store: how far the log of each attempt is there.

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
