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

-- Sorted, because rows of one page are then written together.
INSERT INTO name_parts (scope, part, id)
WITH RECURSIVE suffixes (scope, suffix, id) AS (
    SELECT * FROM (
        SELECT CASE WHEN r.visibility = 'public' THEN r.type ELSE r.type || '/' || r.owner_id END,
            n.key || '/' || r.name_key, r.id
        FROM repos r JOIN names n ON n.account_id = r.owner_id
        UNION ALL
        SELECT 'user', lower(name), id FROM users
        UNION ALL
        SELECT 'user', lower(fullname), id FROM users
    ) AS names_now
    UNION ALL
    SELECT scope, substr(suffix, 2), id FROM suffixes WHERE length(suffix) > 1
)
SELECT DISTINCT scope, substr(suffix, 1, 24), id FROM suffixes
WHERE suffix <> '' ORDER BY 1, 2, 3;
