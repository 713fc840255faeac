-- Mails that wait to be sent.

CREATE TABLE mails (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- thread, message, digest or tags.
    kind TEXT NOT NULL,
    -- The id of the thread, message or repository, or the day of the digest.
    about TEXT NOT NULL,
    -- The switch that turns such mails off; NULL for what cannot be turned off.
    key TEXT,
    -- What happened, by ids or names of tags, with blanks between them.
    events TEXT NOT NULL,
    -- Whether the inbox told of it as well: what was read there is not mailed.
    in_inbox BOOLEAN NOT NULL,
    -- A mail that is being sent is closed: what happens meanwhile opens another.
    closed BOOLEAN NOT NULL DEFAULT FALSE,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX mails_open ON mails (user_id, about) WHERE NOT closed;

-- How often somebody asked for mails to addresses that are not verified: strangers may own them.
CREATE TABLE verification_mails (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    sent_at BIGINT NOT NULL
);

CREATE INDEX verification_mails_of_user ON verification_mails (user_id, sent_at);
