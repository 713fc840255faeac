-- Papers: what their threads do not hold, and who voted for them.

CREATE TABLE papers (
    thread_id TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    -- Who brought it here; who wrote it stands in the details of the thread.
    submitter_id TEXT NOT NULL REFERENCES users (id),
    published_at BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL,
    upvotes BIGINT NOT NULL DEFAULT 0,
    -- Id, title, summary and authors in lower case, for the search.
    words TEXT NOT NULL
);

CREATE INDEX papers_by_submission ON papers (submitted_at, thread_id);
CREATE INDEX papers_by_publication ON papers (published_at, thread_id);
CREATE INDEX papers_of_submitter ON papers (submitter_id, submitted_at);

CREATE TABLE paper_votes (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);
