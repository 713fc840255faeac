-- Downloads of repositories by day; the totals stay with the repositories.

CREATE TABLE repo_downloads (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- Days since 1970-01-01, UTC.
    day INTEGER NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (repo_id, day)
);

CREATE INDEX repo_downloads_by_day ON repo_downloads (day);
