-- Repositories of the six types, who may reach them, and what lies in them.

-- Whoever can own a repository, under the name that stands in front of the slash.
CREATE VIEW owners AS
SELECT id, name, 'user' AS type FROM users
UNION ALL
SELECT id, name, 'org' AS type FROM organizations;

CREATE TABLE repos (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    visibility TEXT NOT NULL,
    -- 'auto', 'manual', or NULL for a repository that everybody who sees it may read.
    gated TEXT,
    discussions_disabled BOOLEAN NOT NULL DEFAULT FALSE,
    sdk TEXT,
    resource_group_id TEXT REFERENCES resource_groups (id),
    creator_id TEXT NOT NULL,
    -- What the token belonged to that created it; see the scope contribute-repos.
    created_with TEXT,
    -- The commit that main points to; NULL for buckets and containers.
    head_sha TEXT,
    -- The metadata at the top of README.md on main, as JSON, and the tags that follow from it.
    card TEXT,
    tags TEXT NOT NULL,
    -- Bytes and files on main, or in the bucket.
    size BIGINT NOT NULL DEFAULT 0,
    total_files BIGINT NOT NULL DEFAULT 0,
    downloads BIGINT NOT NULL DEFAULT 0,
    likes BIGINT NOT NULL DEFAULT 0,
    -- Discussions and pull requests share one sequence of numbers.
    last_number BIGINT NOT NULL DEFAULT 0,
    -- Grows with every change of a ref; tells whether git's own list of refs is up to date.
    refs_version BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (type, owner_id, name_key)
);

CREATE INDEX repos_of_owner ON repos (owner_id, type, created_at, id);
-- Lists of what everybody may see, in each of their orders, read like a book.
CREATE INDEX public_repos_by_creation ON repos (type, created_at, id)
WHERE visibility = 'public';
CREATE INDEX public_repos_by_update ON repos (type, updated_at, id)
WHERE visibility = 'public';
CREATE INDEX public_repos_by_likes ON repos (type, likes, id)
WHERE visibility = 'public';
CREATE INDEX public_repos_by_downloads ON repos (type, downloads, id)
WHERE visibility = 'public';
CREATE INDEX repos_of_resource_group ON repos (resource_group_id)
WHERE resource_group_id IS NOT NULL;

-- Names that a repository had before it moved; a new repository may take one again.
CREATE TABLE repo_redirects (
    type TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    name_key TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    PRIMARY KEY (type, owner_id, name_key)
);

CREATE INDEX repo_redirects_of_repo ON repo_redirects (repo_id);

-- Branches, tags and pull requests. This table is the truth: git holds the objects only.
CREATE TABLE repo_refs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    -- As git spells it: refs/heads/main, refs/tags/v1, refs/pr/3.
    name TEXT NOT NULL,
    sha TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, name)
);

-- Content that lies in the folder of blobs, once for the whole hub.
CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size BIGINT NOT NULL,
    -- What git would call the same bytes, where it is known.
    git_sha1 TEXT,
    created_at BIGINT NOT NULL
);

-- Which repositories brought a blob along: knowing a digest is no right to its content.
CREATE TABLE repo_blobs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    pushed_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, sha256)
);

CREATE INDEX repo_blobs_of_blob ON repo_blobs (sha256);

-- The files of buckets and containers.
CREATE TABLE repo_files (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    media_type TEXT,
    -- When the file was changed where it came from, and when it arrived here.
    modified_at BIGINT NOT NULL,
    uploaded_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, path)
);

CREATE INDEX repo_files_of_blob ON repo_files (sha256);

-- Who asked to read a gated repository.
CREATE TABLE access_requests (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    status TEXT NOT NULL,
    -- What the person filled in, as JSON.
    fields TEXT NOT NULL,
    rejection_reason TEXT,
    -- Who decided; NULL when nobody did, or the gate opens by itself.
    decided_by TEXT,
    decided_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (repo_id, user_id)
);

CREATE INDEX access_requests_by_status ON access_requests (repo_id, status, id);

CREATE TABLE likes (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, user_id)
);

CREATE INDEX likes_of_user ON likes (user_id, created_at);
