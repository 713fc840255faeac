-- Full text: a second inverted index, of whole cards, discussions and papers.

-- Each text that can be found: the file of a repository, a thread with what opens it, a comment.
CREATE TABLE search_texts (
    -- Counts down, so that of equals the newest comes first.
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    -- The repository, thread or comment, and the file of a repository.
    source_id TEXT NOT NULL,
    file TEXT NOT NULL,
    -- The thread of a comment, and the repository that decides who may see it.
    thread_id TEXT,
    repo_id TEXT,
    -- Who may see it, as in search_words.
    scope TEXT NOT NULL,
    -- Minus the number of binary digits of its likes.
    rank BIGINT NOT NULL,
    -- The commit whose file was read.
    version TEXT,
    -- What was written of it, to be able to take it out again: words, each with its weight.
    words TEXT NOT NULL,
    UNIQUE (source_id, file)
);
CREATE INDEX search_texts_by_thread ON search_texts (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX search_texts_by_repo ON search_texts (repo_id, number) WHERE repo_id IS NOT NULL;

CREATE TABLE search_text_words (
    scope TEXT NOT NULL,
    word TEXT NOT NULL,
    rank BIGINT NOT NULL,
    number BIGINT NOT NULL,
    -- How much the word says of the text: how often it stands there, and how long the text is.
    weight BIGINT NOT NULL,
    PRIMARY KEY (scope, word, rank, number)
) /* clustered */;
