-- Saved queries of datasets, and the evaluation results that models state, for leaderboards.

CREATE TABLE saved_queries (
    id TEXT PRIMARY KEY,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- What an address names it by.
    slug TEXT NOT NULL,
    title TEXT NOT NULL,
    sql TEXT NOT NULL,
    -- The parts of the dataset that the query names, as JSON.
    views TEXT NOT NULL,
    is_private BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX saved_queries_by_slug ON saved_queries (repo_id, slug);
CREATE INDEX saved_queries_of_repo ON saved_queries (repo_id, id);
CREATE INDEX saved_queries_of_user ON saved_queries (user_id, repo_id);

-- What the main branch of a model says; each commit to it writes all of its rows anew.
CREATE TABLE evaluation_results (
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    -- The dataset as the model names it, owner/name in the form in which names are compared.
    dataset_key TEXT NOT NULL,
    task_id TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    filename TEXT NOT NULL,
    -- Where the result comes from, as JSON.
    source TEXT NOT NULL,
    notes TEXT NOT NULL,
    PRIMARY KEY (repo_id, position)
);

CREATE INDEX evaluation_results_of_dataset ON evaluation_results (dataset_key, task_id, value);
