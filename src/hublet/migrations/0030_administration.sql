-- What the pages of administrators show: samples of the metrics, and what was done.

-- One row for each process and minute, of the last day.
CREATE TABLE metric_samples (
    -- The process that wrote it, by a name that no other has.
    process TEXT NOT NULL,
    -- The minute that it ends.
    at BIGINT NOT NULL,
    -- Counts of this minute and levels at its end, as JSON: see core/metric_samples.py.
    body TEXT NOT NULL,
    PRIMARY KEY (at, process)
);

-- Who signed in, and what administrators of the hub did.
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
