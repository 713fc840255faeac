-- Which tools a user offers to a program that speaks the Model Context Protocol.

CREATE TABLE mcp_settings (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    -- Names, as a JSON array, in the order they were given.
    built_in_tools TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Kept by id, so that renames are followed; a space that is deleted leaves by itself.
CREATE TABLE mcp_space_tools (
    user_id TEXT NOT NULL REFERENCES users (id),
    repo_id TEXT NOT NULL REFERENCES repos (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    PRIMARY KEY (user_id, repo_id)
);

CREATE INDEX mcp_space_tools_of_repo ON mcp_space_tools (repo_id);
