-- Inboxes: one row per user and thread, and counts that are kept, so that no page counts rows.

-- Whoever changes an inbox holds its row until the end: changes of one inbox happen one after the
-- other, and what is committed later has a later time.
CREATE TABLE inboxes (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    -- Grows with every change; tells those who listen that there is something to look at.
    version BIGINT NOT NULL,
    -- The time of the newest item that ever came, in microseconds.
    last_at BIGINT NOT NULL
);

CREATE TABLE notifications (
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- The id of the thread, or of a message of the hub.
    thread_id TEXT NOT NULL,
    -- dataset, model, space, bucket, kernel or container for a discussion; paper, post, blog.
    type TEXT NOT NULL,
    -- The repository of a discussion, the owner of a post; NULL for the others.
    place_id TEXT,
    -- 0: watched, 1: participating, 2: mentioned.
    involvement BIGINT NOT NULL,
    read BOOLEAN NOT NULL,
    updated_at BIGINT NOT NULL,
    -- The first thing in the thread that was not seen yet, and the last thing that happened.
    event_id TEXT,
    last_event_id TEXT,
    PRIMARY KEY (user_id, thread_id)
);

CREATE INDEX notifications_by_time ON notifications (user_id, updated_at);
CREATE INDEX notifications_by_type ON notifications (user_id, type, updated_at);
CREATE INDEX notifications_by_place ON notifications (user_id, place_id, updated_at)
WHERE place_id IS NOT NULL;
CREATE INDEX notifications_involved ON notifications (user_id, involvement, updated_at)
WHERE involvement > 0;
CREATE INDEX notifications_unread ON notifications (user_id, updated_at) WHERE NOT read;
CREATE INDEX notifications_unread_by_type ON notifications (user_id, type, updated_at)
WHERE NOT read;
CREATE INDEX notifications_unread_by_place ON notifications (user_id, place_id, updated_at)
WHERE NOT read AND place_id IS NOT NULL;
CREATE INDEX notifications_unread_involved ON notifications (user_id, involvement, updated_at)
WHERE NOT read AND involvement > 0;
CREATE INDEX notifications_of_thread ON notifications (thread_id, user_id);

CREATE TABLE notification_counts (
    user_id TEXT NOT NULL REFERENCES inboxes (user_id),
    -- A type, or the id of a place.
    facet TEXT NOT NULL,
    involvement BIGINT NOT NULL,
    total BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    PRIMARY KEY (user_id, facet, involvement)
);

CREATE INDEX notification_counts_of_facet ON notification_counts (facet, user_id);

-- What the hub itself tells a user; in the inbox it is a post of the hub.
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX messages_of_user ON messages (user_id, id);

CREATE TABLE watches (
    user_id TEXT NOT NULL REFERENCES users (id),
    -- org, user or repo.
    type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (user_id, target_id)
);

CREATE INDEX watches_of_target ON watches (target_id, user_id);

-- Members watch their organizations until they say otherwise.
INSERT INTO watches (user_id, type, target_id, since)
SELECT m.user_id, 'org', m.organization_id, m.created_at
FROM memberships m JOIN users u ON u.id = m.user_id WHERE u.type = 'user';

CREATE TABLE repo_mutes (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    muted_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, user_id)
);

CREATE INDEX repo_mutes_of_user ON repo_mutes (user_id);
CREATE INDEX thread_mutes_of_user ON thread_mutes (user_id);

-- What a user chose; a key that is absent has its default.
CREATE TABLE notification_settings (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    settings TEXT NOT NULL,
    prepaid_amount TEXT,
    updated_at BIGINT NOT NULL
);

-- Blogs are found by their slug alone.
CREATE INDEX threads_of_slug ON threads (kind, slug) WHERE slug IS NOT NULL;
