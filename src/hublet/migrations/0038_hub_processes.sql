-- The processes of the hub that run now: each writes its row again every few seconds.
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
