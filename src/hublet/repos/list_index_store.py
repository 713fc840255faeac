"""SQL of what lists sort and filter by beside the record: links, parameters, results, scores."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from hublet.core.database import Connection, Reader
from hublet.repos.records import EvaluationResult, LinkKind, Repo, RepoLink, RepoType

# Of the names that a repository had, so many are looked for in cards.
_MOST_FORMER_NAMES = 20
# Of lists of tags: how many repositories are looked at, and how many characters of each.
MOST_TAGGED = 100_000
LONGEST_TAGS = 10_000


async def lock(conn: Connection, repo_id: str) -> None:
    """Wait for others who change this repository, and let them wait until the transaction ends."""
    await conn.execute("UPDATE repos SET head_sha = head_sha WHERE id = $1", repo_id)


async def set_links(conn: Connection, repo_id: str, links: Collection[RepoLink]) -> None:
    """Let a repository have exactly these links; only those that differ are written."""
    rows = await conn.fetch_all(
        "SELECT type, kind, target FROM repo_links WHERE repo_id = $1", repo_id
    )
    before = {(row["kind"], row["target"]): row["type"] for row in rows}
    after = {(str(link.kind), link.target) for link in links}
    await conn.execute_many(
        "DELETE FROM repo_links WHERE type = $1 AND kind = $2 AND target = $3 AND repo_id = $4",
        [(before[link], *link, repo_id) for link in sorted(before.keys() - after)],
    )
    await conn.execute_many(
        """
        INSERT INTO repo_links (type, kind, target, repo_id)
        SELECT r.type, $2, $3, r.id FROM repos r WHERE r.id = $1
        ON CONFLICT DO NOTHING
        """,
        [(repo_id, *link) for link in sorted(after - before.keys())],
    )


async def target_keys_of(conn: Reader, repos: Collection[Repo]) -> dict[str, list[str]]:
    """Return how cards may name these repositories: as they are called now, or were once, by id."""
    rows = await conn.fetch_all(
        """
        SELECT d.repo_id, n.key || '/' || d.name_key AS target
        FROM repo_redirects d JOIN names n ON n.account_id = d.owner_id
        WHERE d.repo_id IN each($1) ORDER BY target
        """,
        json.dumps([repo.id for repo in repos]),
    )
    found = {repo.id: [repo.full_name.casefold()] for repo in repos}
    for row in rows:
        if len(found[row["repo_id"]]) <= _MOST_FORMER_NAMES:
            found[row["repo_id"]].append(row["target"])
    return found


async def set_parameters(
    conn: Connection, repo_id: str, *, head_sha: str, by_dtype: Mapping[str, int]
) -> bool:
    """Set the parameters of a model; False when it has other files by now, or is gone."""
    return await conn.execute(
        """
        UPDATE repos SET num_parameters = $3, safetensors = $4
        WHERE id = $1 AND head_sha = $2
        """,
        repo_id, head_sha, sum(by_dtype.values()) if by_dtype else None,
        json.dumps(dict(by_dtype)) if by_dtype else None,
    ) == 1  # fmt: skip


async def like_seconds_since(conn: Reader, micros: int) -> dict[str, int]:
    """Return the seconds from a moment to each like after it, summed up by repository."""
    rows = await conn.fetch_all(
        """
        SELECT repo_id, CAST(sum((created_at - $1) / 1000000) AS BIGINT) AS seconds
        FROM likes WHERE created_at > $1 GROUP BY repo_id
        """,
        micros,
    )
    return {row["repo_id"]: row["seconds"] for row in rows}


async def download_days_since(conn: Reader, day: int) -> dict[str, int]:
    """Return the days from a day to each download after it, summed up by repository."""
    rows = await conn.fetch_all(
        """
        SELECT repo_id, CAST(sum(count * (day - $1)) AS BIGINT) AS days
        FROM repo_downloads WHERE day > $1 GROUP BY repo_id
        """,
        day,
    )
    return {row["repo_id"]: row["days"] for row in rows}


async def trending_scores(conn: Reader) -> dict[str, int]:
    """Return the scores that are not 0, by repository."""
    rows = await conn.fetch_all("SELECT id, trending_score FROM repos WHERE trending_score > 0")
    return {row["id"]: row["trending_score"] for row in rows}


async def set_trending_scores(conn: Connection, scores: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many("UPDATE repos SET trending_score = $2 WHERE id = $1", scores)


async def list_linked_ids(
    conn: Reader,
    type: RepoType,  # noqa: A002 - the column
    kind: LinkKind,
    targets: Sequence[str],
    *,
    limit: int,
) -> tuple[str, ...]:
    """Return repositories of a type that have such a link.

    Each target is read in the order of its own entries: whatever order would do is a reason for
    PostgreSQL to read the whole table, where one of a thousand targets has half of it.
    """
    parts = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT repo_id FROM repo_links WHERE type = $1 AND kind = $2 AND target = ${number}
            ORDER BY repo_id LIMIT $3
        ) AS part_{number}
        """
        for number in range(4, 4 + len(targets))
    )
    rows = await conn.fetch_all(f"{parts} LIMIT $3", type, kind, limit, *targets)
    return tuple(row["repo_id"] for row in rows)


async def list_ids_by_parameters(
    conn: Reader,
    type: RepoType,  # noqa: A002 - as above
    *,
    least: int,
    most: int,
    limit: int,
) -> tuple[str, ...]:
    """Return repositories of a type that have so many parameters."""
    rows = await conn.fetch_all(
        "SELECT id FROM repos WHERE type = $1 AND num_parameters BETWEEN $2 AND $3 LIMIT $4",
        type, least, most, limit,
    )  # fmt: skip
    return tuple(row["id"] for row in rows)


async def set_evaluations(
    conn: Connection, repo_id: str, evaluations: Sequence[EvaluationResult]
) -> None:
    """Write what a model states, in the place of what it stated before."""
    await conn.execute("DELETE FROM evaluation_results WHERE repo_id = $1", repo_id)
    if not evaluations:
        return
    await conn.execute_many(
        """
        INSERT INTO evaluation_results
            (repo_id, position, dataset_key, task_id, value, filename, source, notes)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
            (
                repo_id, position, each.dataset_key, each.task_id, each.value, each.filename,
                json.dumps(each.source), each.notes,
            )
            for position, each in enumerate(evaluations)
        ],
    )  # fmt: skip


async def tags_in_use(conn: Reader, type: RepoType) -> list[str]:  # noqa: A002 - the column
    """Return the tags of the public repositories that changed last, each as JSON."""
    rows = await conn.fetch_all(
        """
        SELECT r.tags FROM repos r
        WHERE r.type = $1 AND r.visibility = 'public' AND length(r.tags) <= $2
        ORDER BY r.updated_at DESC, r.id DESC LIMIT $3
        """,
        type, LONGEST_TAGS, MOST_TAGGED,
    )  # fmt: skip
    return [row["tags"] for row in rows]
