-- A repository sees how content was packed that was uploaded to it or cut in it, and nothing of others.

-- The same chunks may be stored in several forms, compressed in other ways. The name is that of the
-- object: the hash, and behind it a digest of the form; without one for those of earlier versions.
ALTER TABLE xorbs RENAME COLUMN hash TO name;
ALTER TABLE xorbs ADD COLUMN hash TEXT NOT NULL DEFAULT '';
UPDATE xorbs SET hash = name;

CREATE INDEX xorbs_by_hash ON xorbs (hash);

-- One way to make up a blob of runs of chunks; equal ones are the same row.
CREATE TABLE layouts (
    id TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE
);

CREATE INDEX layouts_of_blob ON layouts (sha256);

CREATE TABLE layout_segments (
    layout TEXT NOT NULL REFERENCES layouts (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    xorb TEXT NOT NULL REFERENCES xorbs (name),
    -- Chunks, and where they lie in the stored xorb; the ends are not included.
    start_chunk BIGINT NOT NULL,
    end_chunk BIGINT NOT NULL,
    start_byte BIGINT NOT NULL,
    end_byte BIGINT NOT NULL,
    -- Bytes of content.
    size BIGINT NOT NULL,
    PRIMARY KEY (layout, position)
);

CREATE INDEX layout_segments_of_xorb ON layout_segments (xorb);

-- The files of Xet that a repository has: hash, content, and the layout that it sees. A content that
-- was cut in several ways has several; the one that came first is shown.
CREATE TABLE repo_layouts (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    xet_hash TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    layout TEXT NOT NULL REFERENCES layouts (id) ON DELETE CASCADE,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, xet_hash)
);

CREATE INDEX repo_layouts_of_blob ON repo_layouts (repo_id, sha256);
CREATE INDEX repo_layouts_of_layout ON repo_layouts (layout);

-- Contents that are yet to be cut for a repository.
CREATE TABLE uncut_contents (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE,
    PRIMARY KEY (repo_id, sha256)
);

CREATE INDEX uncut_contents_of_blob ON uncut_contents (sha256);

-- What was there keeps the segments that came first.
INSERT INTO layouts (id, sha256) SELECT sha256, sha256 FROM blobs WHERE xet_hash IS NOT NULL;

INSERT INTO layout_segments (
    layout, position, xorb, start_chunk, end_chunk, start_byte, end_byte, size
)
SELECT sha256, position, xorb, start_chunk, end_chunk, start_byte, end_byte, size
FROM blob_segments WHERE sha256 IN (SELECT id FROM layouts);

INSERT INTO repo_layouts (repo_id, xet_hash, sha256, layout, added_at)
SELECT held.repo_id, x.hash, x.sha256, x.sha256,
    CASE WHEN x.hash = b.xet_hash THEN b.created_at ELSE b.created_at + 1 END
FROM (
    SELECT repo_id, sha256 FROM repo_blobs UNION SELECT repo_id, sha256 FROM repo_files
) AS held
JOIN blobs b ON b.sha256 = held.sha256 AND b.xet_hash IS NOT NULL
JOIN xet_files x ON x.sha256 = held.sha256;

INSERT INTO uncut_contents (repo_id, sha256)
SELECT held.repo_id, held.sha256 FROM (
    SELECT repo_id, sha256 FROM repo_blobs UNION SELECT repo_id, sha256 FROM repo_files
) AS held
JOIN blobs b ON b.sha256 = held.sha256 AND b.xet_hash IS NULL;

-- The id of a blob in git, where the upload to this repository told it.
ALTER TABLE repo_blobs ADD COLUMN git_sha1 TEXT;
UPDATE repo_blobs SET git_sha1 = (
    SELECT b.git_sha1 FROM blobs b WHERE b.sha256 = repo_blobs.sha256
);
ALTER TABLE blobs DROP COLUMN git_sha1;

-- The size again, so that the sum of a repository is read from one index.
ALTER TABLE repo_blobs ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
UPDATE repo_blobs SET size = (SELECT b.size FROM blobs b WHERE b.sha256 = repo_blobs.sha256);

CREATE INDEX repo_blobs_by_size ON repo_blobs (repo_id, is_used, size);

-- Of whose private repositories a webhook may hear, as JSON: those that the token could read with
-- which it was set or last changed. NULL: all that its owner may see.
ALTER TABLE webhooks ADD COLUMN private_owners TEXT;

DROP TABLE blob_segments;
DROP TABLE xet_files;
DROP INDEX blobs_without_xet;
ALTER TABLE blobs DROP COLUMN xet_hash;
