-- Threads: discussions and pull requests, papers, posts and blogs, with their comments.

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    -- discussion (a pull request is one), paper, post or blog.
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    -- NULL for what nobody here wrote, such as a paper.
    author_id TEXT REFERENCES users (id),
    -- The account under whose name a post or blog stands.
    owner_id TEXT,
    repo_id TEXT REFERENCES repos (id) ON DELETE CASCADE,
    number BIGINT,
    is_pull_request BOOLEAN NOT NULL DEFAULT FALSE,
    -- draft, open, closed, merged; NULL for what has no status.
    status TEXT,
    pinned BOOLEAN NOT NULL DEFAULT FALSE,
    -- The branch a pull request wants to change, as in refs/heads/main, and what it became.
    base TEXT,
    merge_commit_id TEXT,
    paper_id TEXT,
    slug TEXT,
    -- The text of a post or blog, the summary of a paper.
    body TEXT,
    -- What only one kind has, as JSON: a paper's authors, for example.
    details TEXT,
    comment_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (repo_id, number),
    UNIQUE (paper_id),
    UNIQUE (kind, owner_id, slug)
);

CREATE INDEX threads_of_repo ON threads (repo_id, pinned, number) WHERE repo_id IS NOT NULL;
CREATE INDEX threads_of_author ON threads (author_id, kind, id);
CREATE INDEX threads_of_kind ON threads (kind, id);

CREATE TABLE comments (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    author_id TEXT NOT NULL REFERENCES users (id),
    -- The comment it answers.
    parent_id TEXT REFERENCES comments (id) ON DELETE CASCADE,
    raw TEXT NOT NULL,
    hidden BOOLEAN NOT NULL DEFAULT FALSE,
    hidden_by TEXT,
    created_at BIGINT NOT NULL,
    -- When it was last edited; NULL when it never was.
    edited_at BIGINT
);

CREATE INDEX comments_of_thread ON comments (thread_id, id);

-- What a comment said before it was edited.
CREATE TABLE comment_versions (
    comment_id TEXT NOT NULL REFERENCES comments (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    author_id TEXT NOT NULL,
    raw TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (comment_id, number)
);

-- What happened in a thread beside comments: status-change, title-change, commit and so on.
CREATE TABLE thread_changes (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    type TEXT NOT NULL,
    author_id TEXT NOT NULL,
    data TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX thread_changes_of_thread ON thread_changes (thread_id, id);

-- Who has to do with a thread, and how; a mention sticks.
CREATE TABLE thread_participants (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    opened BOOLEAN NOT NULL DEFAULT FALSE,
    commented BOOLEAN NOT NULL DEFAULT FALSE,
    -- Changed its title or state, or pushed to its pull request.
    changed BOOLEAN NOT NULL DEFAULT FALSE,
    mentioned BOOLEAN NOT NULL DEFAULT FALSE,
    since BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);

CREATE INDEX thread_participants_of_user ON thread_participants (user_id, thread_id);

-- Who wants to hear nothing more of a thread.
CREATE TABLE thread_mutes (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    muted_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);
