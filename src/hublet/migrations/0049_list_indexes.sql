-- Indexes for what lists and counts read without one.
-- Runs of a schedule, copies of a job, jobs that a webhook started; private repositories of an owner in
-- each order of a list; disabled users.

CREATE INDEX jobs_of_initiator ON jobs (initiator_type, initiator_id, id)
WHERE initiator_type <> 'user';

CREATE INDEX private_repos_by_creation ON repos (owner_id, type, created_at, id)
WHERE visibility <> 'public';
CREATE INDEX private_repos_by_update ON repos (owner_id, type, updated_at, id)
WHERE visibility <> 'public';
CREATE INDEX private_repos_by_likes ON repos (owner_id, type, likes, id)
WHERE visibility <> 'public';
CREATE INDEX private_repos_by_downloads ON repos (owner_id, type, downloads, id)
WHERE visibility <> 'public';
CREATE INDEX private_repos_by_trend ON repos (owner_id, type, trending_score, id)
WHERE visibility <> 'public';
-- What an owner's repositories hold together is told with each page of them.
CREATE INDEX repo_sizes_of_owner ON repos (owner_id, size);

-- Members and followers are counted by an index, less those who are disabled.
CREATE INDEX users_disabled ON users (id) WHERE disabled_at IS NOT NULL;
