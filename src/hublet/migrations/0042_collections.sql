-- Collections: lists of repositories, papers and other collections, with notes, order and upvotes.

CREATE TABLE collections (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    creator_id TEXT NOT NULL,
    title TEXT NOT NULL,
    -- What stands before the id in its address; it follows the title.
    slug TEXT NOT NULL,
    description TEXT NOT NULL,
    -- Title and description in lower case, for the filter of lists.
    words TEXT NOT NULL,
    theme TEXT NOT NULL,
    is_private BOOLEAN NOT NULL,
    resource_group_id TEXT REFERENCES resource_groups (id),
    -- Its place among those of its owner; there may be gaps.
    position BIGINT NOT NULL,
    upvotes BIGINT NOT NULL DEFAULT 0,
    -- When it was created, and a week more for each doubling of its upvotes.
    trending BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX collections_of_owner ON collections (owner_id, position, id);
CREATE INDEX collections_of_group ON collections (resource_group_id);
CREATE INDEX collections_public_by_update ON collections (updated_at, id) WHERE NOT is_private;
CREATE INDEX collections_public_by_upvotes ON collections (upvotes, id) WHERE NOT is_private;
CREATE INDEX collections_public_by_trend ON collections (trending, id) WHERE NOT is_private;

-- Exactly one of repo_id, thread_id (of a paper) and listed_id (of another collection) is set.
CREATE TABLE collection_items (
    id TEXT PRIMARY KEY,
    collection_id TEXT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    -- Its place in the collection; there may be gaps.
    position BIGINT NOT NULL,
    repo_id TEXT REFERENCES repos (id) ON DELETE CASCADE,
    thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
    listed_id TEXT REFERENCES collections (id) ON DELETE CASCADE,
    note TEXT NOT NULL,
    -- Addresses of pictures, as JSON.
    gallery TEXT NOT NULL,
    added_by TEXT NOT NULL,
    added_at BIGINT NOT NULL
);

CREATE INDEX collection_items_in_order ON collection_items (collection_id, position, id);
CREATE UNIQUE INDEX collection_items_of_repo ON collection_items (repo_id, collection_id);
CREATE UNIQUE INDEX collection_items_of_thread ON collection_items (thread_id, collection_id);
CREATE UNIQUE INDEX collection_items_of_listed ON collection_items (listed_id, collection_id);

CREATE TABLE collection_votes (
    collection_id TEXT NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (collection_id, user_id)
);
