-- Where the bytes of a blob lie: in one object, in pieces of xorbs, or in both.

-- Its file hash of Xet, once it is cut into chunks.
ALTER TABLE blobs ADD COLUMN xet_hash TEXT;
-- Whether the store has it as one object.
ALTER TABLE blobs ADD COLUMN is_whole BOOLEAN NOT NULL DEFAULT TRUE;

-- Blobs that are yet to be cut.
CREATE INDEX blobs_without_xet ON blobs (sha256) WHERE xet_hash IS NULL;

-- Verified xorbs in the store, once for the whole hub. Behind its chunks each has a footer with
-- their layout. Hashes of Xet are in their text form everywhere.
CREATE TABLE xorbs (
    hash TEXT PRIMARY KEY,
    chunks BIGINT NOT NULL,
    -- Bytes of content, and bytes of the chunks as they are stored.
    size BIGINT NOT NULL,
    stored_size BIGINT NOT NULL,
    -- When it last arrived.
    created_at BIGINT NOT NULL
);

-- The runs of chunks that make up a blob, in their order.
CREATE TABLE blob_segments (
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    xorb TEXT NOT NULL REFERENCES xorbs (hash),
    -- Chunks, and where they lie in the stored xorb; the ends are not included.
    start_chunk BIGINT NOT NULL,
    end_chunk BIGINT NOT NULL,
    start_byte BIGINT NOT NULL,
    end_byte BIGINT NOT NULL,
    -- Bytes of content.
    size BIGINT NOT NULL,
    PRIMARY KEY (sha256, position)
);

CREATE INDEX blob_segments_of_xorb ON blob_segments (xorb);

-- File hashes of Xet: one content has several when it was cut in several ways.
CREATE TABLE xet_files (
    hash TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256) ON DELETE CASCADE
);

CREATE INDEX xet_files_of_blob ON xet_files (sha256);

-- Whether a commit or a file points to a blob that a repository brought along. What was uploaded
-- and never used is removed after a while.
ALTER TABLE repo_blobs ADD COLUMN is_used BOOLEAN NOT NULL DEFAULT TRUE;

-- Xorbs that were uploaded to a repository with all their bytes: its own uploads may use them.
CREATE TABLE repo_xorbs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    xorb TEXT NOT NULL REFERENCES xorbs (hash),
    -- Since when no content of the repository has a piece of it; NULL while some has.
    unused_since BIGINT,
    PRIMARY KEY (repo_id, xorb)
);

CREATE INDEX repo_xorbs_of_xorb ON repo_xorbs (xorb);

-- Chunks that clients ask for, to find xorbs of the repository that have what they would upload.
CREATE TABLE repo_chunks (
    repo_id TEXT NOT NULL,
    chunk TEXT NOT NULL,
    -- The xorb that has it, and as JSON those that follow in the file.
    xorb TEXT NOT NULL,
    next_xorbs TEXT NOT NULL,
    PRIMARY KEY (repo_id, chunk),
    FOREIGN KEY (repo_id, xorb) REFERENCES repo_xorbs (repo_id, xorb) ON DELETE CASCADE
);

CREATE INDEX repo_chunks_of_xorb ON repo_chunks (repo_id, xorb);
