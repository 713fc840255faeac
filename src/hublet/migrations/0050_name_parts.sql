-- An index of suffixes: each part of a name is the beginning of a row.

CREATE TABLE name_parts (
    -- Who may see the name: 'user'; the type of a public repository, of another one type/owner id.
    scope TEXT NOT NULL,
    -- The lower-case name from one of its positions on, at most 24 characters.
    part TEXT NOT NULL,
    -- The user or the repository.
    id TEXT NOT NULL,
    PRIMARY KEY (scope, part, id)
) /* clustered */;

-- How far a task has filled this in for the names that are there already; without a row there is
-- nothing to do.
INSERT INTO facts (name, value)
SELECT 'name_parts_filled', '' WHERE EXISTS (SELECT 1 FROM users);
