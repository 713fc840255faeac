-- Care of the storage: what is unused, what was not checked for long, what is damaged.

CREATE INDEX repo_blobs_not_used ON repo_blobs (pushed_at) WHERE is_used = FALSE;
CREATE INDEX repo_xorbs_not_used ON repo_xorbs (unused_since) WHERE unused_since IS NOT NULL;

-- When the object was last read and found sound; NULL: never since it arrived.
ALTER TABLE blobs ADD COLUMN checked_at BIGINT;
ALTER TABLE xorbs ADD COLUMN checked_at BIGINT;

CREATE INDEX blobs_by_check ON blobs ((coalesce(checked_at, created_at))) WHERE is_whole = TRUE;
CREATE INDEX xorbs_by_check ON xorbs ((coalesce(checked_at, created_at)));

-- Objects whose bytes are wrong or gone, and could not be healed from another copy.
CREATE TABLE damaged_objects (
    -- 'blobs' or 'xorbs', as in the store.
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- 'damaged' or 'missing'.
    problem TEXT NOT NULL,
    found_at BIGINT NOT NULL,
    PRIMARY KEY (kind, digest)
);
