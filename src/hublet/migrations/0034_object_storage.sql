-- Objects that are being removed from a store that cannot put them aside, and those that were lately.

CREATE TABLE object_removals (
    -- Of the removal, which has many objects.
    id TEXT NOT NULL,
    -- 'blobs' or 'xorbs', and the name of the object.
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    began_at BIGINT NOT NULL,
    -- NULL until no request of this removal is under way any more.
    ended_at BIGINT,
    PRIMARY KEY (id, kind, name)
);

CREATE INDEX object_removals_by_object ON object_removals (kind, name);
