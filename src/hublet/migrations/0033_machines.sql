-- Machines that run jobs, and which of them each attempt is on.

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

-- NULL: an engine has it that every machine reaches, or it is on no machine yet.
ALTER TABLE job_attempts ADD COLUMN machine_id TEXT;
