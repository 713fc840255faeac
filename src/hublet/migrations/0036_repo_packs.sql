-- Packs of git objects in a store that several nodes share. Without such a store there are none.

-- Positive: git's objects of the repository are in the packs of the list, and each change of the list adds 1.
-- 0 or negative: they are in the folder of a node; the absolute value is that of the last list.
ALTER TABLE repos ADD COLUMN packs_version BIGINT NOT NULL DEFAULT 0;

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
