-- Container registry: manifests, blobs and tags of images, uploads that are not complete, rules.

-- A container repository has images: that of `ada/tool` is '', that of `ada/tool/gpu` is 'gpu'.
-- Digests have their algorithm: sha256:… or sha512:….

-- Which images have a blob: knowing its digest is no right to its content.
CREATE TABLE registry_blobs (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- Under which the store has it.
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    -- When it was last uploaded or mounted, or a client was told that it need not upload it.
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, digest)
);

CREATE INDEX registry_blobs_of_content ON registry_blobs (sha256);
CREATE INDEX registry_blobs_of_digest ON registry_blobs (digest);
CREATE INDEX registry_blobs_by_touch ON registry_blobs (touched_at);

CREATE TABLE registry_manifests (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    -- Byte by byte as it was pushed; the store has it too, for the files of the repository.
    content BYTEA NOT NULL,
    sha256 TEXT NOT NULL REFERENCES blobs (sha256),
    size BIGINT NOT NULL,
    -- What a list of referrers shows: its own type, or that of the configuration of an image.
    artifact_type TEXT,
    -- As JSON.
    annotations TEXT,
    -- The digest of the manifest that it is about, which need not exist.
    subject TEXT,
    pushed_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, digest)
);

CREATE INDEX registry_manifests_of_subject ON registry_manifests (repo_id, image, subject)
WHERE subject IS NOT NULL;
CREATE INDEX registry_manifests_of_content ON registry_manifests (sha256);
CREATE INDEX registry_manifests_by_touch ON registry_manifests (touched_at);

-- The blobs and manifests of the same image that a manifest names.
CREATE TABLE registry_references (
    repo_id TEXT NOT NULL,
    image TEXT NOT NULL,
    manifest TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- 'blob' or 'manifest'.
    kind TEXT NOT NULL,
    PRIMARY KEY (repo_id, image, manifest, digest),
    FOREIGN KEY (repo_id, image, manifest)
        REFERENCES registry_manifests (repo_id, image, digest) ON DELETE CASCADE
);

CREATE INDEX registry_references_to ON registry_references (repo_id, image, digest);

CREATE TABLE registry_tags (
    repo_id TEXT NOT NULL,
    image TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    pushed_by TEXT NOT NULL,
    pushed_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, image, name),
    FOREIGN KEY (repo_id, image, digest)
        REFERENCES registry_manifests (repo_id, image, digest) ON DELETE CASCADE
);

CREATE INDEX registry_tags_of_manifest ON registry_tags (repo_id, image, digest);
CREATE INDEX registry_tags_by_push ON registry_tags (repo_id, image, pushed_at, name);

-- Uploads of blobs that are not complete.
CREATE TABLE registry_uploads (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    image TEXT NOT NULL,
    user_id TEXT NOT NULL,
    -- How many bytes arrived.
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE INDEX registry_uploads_by_change ON registry_uploads (changed_at);
CREATE INDEX registry_uploads_of_repo ON registry_uploads (repo_id);

-- Their parts are objects of the store, so every node can go on with an upload.
CREATE TABLE registry_upload_parts (
    upload_id TEXT NOT NULL REFERENCES registry_uploads (id) ON DELETE CASCADE,
    -- Of its first byte.
    position BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (upload_id, position)
);

-- Which images of a repository are kept; a repository without a row keeps all.
CREATE TABLE registry_retention (
    repo_id TEXT PRIMARY KEY REFERENCES repos (id) ON DELETE CASCADE,
    -- The tags of each image that were pushed last are kept, so many of them; NULL: all.
    keep_tags BIGINT,
    -- Manifests without a tag are removed after so many days; NULL: never.
    untagged_days BIGINT
);

-- How jobs log in to other registries when they pull an image.
CREATE TABLE registry_credentials (
    -- A user or an organization; '' for the hub itself.
    owner_id TEXT NOT NULL,
    -- As in the name of an image: registry.example.com:5000, docker.io.
    host TEXT NOT NULL,
    username TEXT NOT NULL,
    -- Sealed.
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner_id, host)
);
