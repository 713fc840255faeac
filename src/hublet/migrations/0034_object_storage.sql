-- Object storage: removals beside uploads, and uploads that clients send there themselves.

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

CREATE TABLE direct_uploads (
    -- The object is `uploads/<id>` until it was checked.
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL,
    -- What the client claims.
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- The id of the multipart upload in the object storage, and how many parts it has.
    upload_id TEXT NOT NULL,
    parts BIGINT NOT NULL,
    is_complete BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX direct_uploads_of_content ON direct_uploads (repo_id, sha256);
CREATE INDEX direct_uploads_by_age ON direct_uploads (created_at);
