-- Search: an inverted index over repositories, people, organizations, papers, posts and blogs.

-- What was written into the index of each thing that can be found, to be able to take it out again.
CREATE TABLE search_documents (
    -- Counts down, so that of equals the newest comes first.
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    target_id TEXT NOT NULL UNIQUE,
    -- Who may see it; see search_words.
    scope TEXT NOT NULL,
    -- How many binary digits its likes have.
    heat BIGINT NOT NULL,
    -- The commit whose README was read; NULL when its text must not be found.
    text_version TEXT,
    -- A line each for whole names and names, and for labels and text; every word between blanks.
    names TEXT NOT NULL,
    words TEXT NOT NULL
);

-- What a reader may not see stands under scopes that nobody looks up for them: a letter for the
-- kind alone when everybody may see it, followed by o and the owner, or by g and the resource
-- group, when it is private.
CREATE TABLE search_words (
    scope TEXT NOT NULL,
    -- A word, or the beginning of a name with a star behind it.
    word TEXT NOT NULL,
    -- The smallest is shown first: where the word stands (64 for each line), less the heat.
    rank BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (scope, word, rank, number)
) /* clustered */;

-- Words of names and labels with one letter left out, to find those that were mistyped.
CREATE TABLE search_spellings (
    scope TEXT NOT NULL,
    spelling TEXT NOT NULL,
    word TEXT NOT NULL,
    PRIMARY KEY (scope, spelling, word)
) /* clustered */;
