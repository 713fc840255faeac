"""SQL of refs."""

import json
from collections.abc import Iterable

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.events import UpdatedRef
from hublet.repos import list_index_store
from hublet.repos.cards import links_of
from hublet.repos.records import Card, Ref


async def find(conn: Reader, repo_id: str, name: str) -> str | None:
    """Return the commit a ref points to."""
    sha: str | None = await conn.fetch_value(
        "SELECT sha FROM repo_refs WHERE repo_id = $1 AND name = $2", repo_id, name
    )
    return sha


async def find_many(conn: Reader, repo_id: str, names: Iterable[str]) -> dict[str, str]:
    """Return the commits that these refs point to, by name; one that is not there is left out."""
    rows = await conn.fetch_all(
        "SELECT name, sha FROM repo_refs WHERE repo_id = $1 AND name IN each($2)",
        repo_id, json.dumps(list(names)),
    )  # fmt: skip
    return {row["name"]: row["sha"] for row in rows}


async def list_of(conn: Reader, repo_id: str) -> list[Ref]:
    rows = await conn.fetch_all(
        "SELECT name, sha FROM repo_refs WHERE repo_id = $1 ORDER BY name", repo_id
    )
    return [Ref(name=row["name"], sha=row["sha"]) for row in rows]


async def list_names(conn: Reader, repo_id: str, *, prefix: str, limit: int) -> list[str]:
    """Return the names of refs that begin with a prefix, which ends in a slash."""
    # The character behind the slash is 0.
    rows = await conn.fetch_all(
        """
        SELECT name FROM repo_refs WHERE repo_id = $1 AND name > $2 AND name < $3
        ORDER BY name LIMIT $4
        """,
        repo_id, prefix, f"{prefix.removesuffix('/')}0", limit,
    )  # fmt: skip
    return [row["name"] for row in rows]


async def add_all(conn: Connection, repo_id: str, refs: Iterable[Ref]) -> None:
    """Add the refs of a new repository."""
    await conn.execute_many(
        "INSERT INTO repo_refs (repo_id, name, sha, updated_at) VALUES ($1, $2, $3, $4)",
        [(repo_id, ref.name, ref.sha, micros()) for ref in refs],
    )


async def find_conflicting(conn: Reader, repo_id: str, name: str) -> str | None:
    """Return a ref that this one lies in, or that lies in this one."""
    parts = name.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    # The character behind the slash is 0, so what lies between begins with the name and a slash.
    found: str | None = await conn.fetch_value(
        """
        SELECT name FROM repo_refs
        WHERE repo_id = $1 AND (name IN each($2) OR (name > $3 AND name < $4))
        ORDER BY name LIMIT 1
        """,
        repo_id, json.dumps(above), f"{name}/", f"{name}0",
    )  # fmt: skip
    return found


async def version_of(conn: Reader, repo_id: str) -> int:
    """Return a number that grows with every change of the repository's refs."""
    version: int = await conn.fetch_value("SELECT refs_version FROM repos WHERE id = $1", repo_id)
    return version


async def update_ref(conn: Connection, repo_id: str, update: UpdatedRef) -> bool:
    """Create, move or delete a ref; False when it is not where the update takes it from."""
    if update.old_sha is None:
        changed = await conn.execute(
            """
            INSERT INTO repo_refs (repo_id, name, sha, updated_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING
            """,
            repo_id, update.ref, update.new_sha, micros(),
        )  # fmt: skip
    elif update.new_sha is None:
        changed = await conn.execute(
            "DELETE FROM repo_refs WHERE repo_id = $1 AND name = $2 AND sha = $3",
            repo_id, update.ref, update.old_sha,
        )  # fmt: skip
    else:
        changed = await conn.execute(
            """
            UPDATE repo_refs SET sha = $4, updated_at = $5
            WHERE repo_id = $1 AND name = $2 AND sha = $3
            """,
            repo_id, update.ref, update.old_sha, update.new_sha, micros(),
        )  # fmt: skip
    return changed == 1


async def record_change(
    conn: Connection, repo_id: str, *, added_bytes: int, main_sha: str | None
) -> None:
    """Count a change of the refs; `main_sha` is the commit of main when that moved."""
    await conn.execute(
        """
        UPDATE repos SET refs_version = refs_version + 1, size = size + $2, updated_at = $3,
            head_sha = coalesce($4, head_sha)
        WHERE id = $1
        """,
        repo_id, added_bytes, micros(), main_sha,
    )  # fmt: skip


async def set_card(conn: Connection, repo_id: str, card: Card) -> None:
    """Set the card of the commit of main, and what lists find it by."""
    await conn.execute(
        "UPDATE repos SET card = $2, tags = $3 WHERE id = $1",
        repo_id, None if card.data is None else json.dumps(card.data), json.dumps(card.tags),
    )  # fmt: skip
    await list_index_store.set_links(conn, repo_id, links_of(card))
    if card.evaluations is not None:
        await list_index_store.set_evaluations(conn, repo_id, card.evaluations)
