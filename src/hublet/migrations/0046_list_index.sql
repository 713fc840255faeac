-- What lists sort and filter by beside the record: trending scores, parameters, tags and links.

-- Likes and downloads of the last seven days, the newer the more; 0 when there were none.
ALTER TABLE repos ADD COLUMN trending_score BIGINT NOT NULL DEFAULT 0;
-- Of a model with safetensors files on main: how many parameters it has, and how many of each
-- type, as JSON.
ALTER TABLE repos ADD COLUMN num_parameters BIGINT;
ALTER TABLE repos ADD COLUMN safetensors TEXT;

CREATE INDEX public_repos_by_trend ON repos (type, trending_score, id)
WHERE visibility = 'public';
-- Those whose score falls when nothing happens.
CREATE INDEX trending_repos ON repos (id)
WHERE trending_score > 0;
CREATE INDEX repos_by_parameters ON repos (type, num_parameters)
WHERE num_parameters IS NOT NULL;
CREATE INDEX likes_by_time ON likes (created_at);

-- The tags of a repository, and the repositories that its card names, in lower case.
CREATE TABLE repo_links (
    -- Of the repository that has the tag or the card.
    type TEXT NOT NULL,
    -- 'tag', 'model', 'dataset', 'base_model'; 'linked' with an empty target: any of models and
    -- datasets.
    kind TEXT NOT NULL,
    -- A name, not an id: a card may name what is not here, or not yet.
    target TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    PRIMARY KEY (type, kind, target, repo_id)
) /* clustered */;

CREATE INDEX repo_links_of_repo ON repo_links (repo_id);

-- How far a task has filled this in for the repositories that are there already; without a row
-- there is nothing to do.
INSERT INTO facts (name, value)
SELECT 'list_index_filled', '' WHERE EXISTS (SELECT 1 FROM repos);
