"""SQL of packs: the list of a repository, its version, and the packs that others replaced."""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from enum import StrEnum

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos.records import NewPack, NewPacks

# Longer than any git process lives, and than any node takes to fetch what its list named.
REMOVED_KEPT = timedelta(hours=24)


class PackKind(StrEnum):
    push = "push"
    packed = "packed"
    cruft = "cruft"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPack:
    name: str
    size: int
    kind: PackKind
    created_at: int
    # Whether its bytes lie in the row, and not in the store.
    is_inline: bool


async def version_of(conn: Reader, repo_id: str) -> int | None:
    """Return the version of the list; None without the repository, 0 or less without a list."""
    version: int | None = await conn.fetch_value(
        "SELECT packs_version FROM repos WHERE id = $1", repo_id
    )
    return version


async def list_repo_ids(conn: Reader, *, is_listed: bool, after: str, limit: int) -> list[str]:
    """Return repositories whose objects are in the shared store, or in the folder of a node."""
    condition = "packs_version > 0" if is_listed else "packs_version <= 0"
    rows = await conn.fetch_all(
        f"SELECT id FROM repos WHERE {condition} AND id > $1 ORDER BY id LIMIT $2", after, limit
    )
    return [row["id"] for row in rows]


async def list_of(conn: Reader, repo_id: str) -> list[ListedPack]:
    rows = await conn.fetch_all(
        """
        SELECT name, size, kind, created_at, data IS NOT NULL AS is_inline FROM repo_packs
        WHERE repo_id = $1 AND removed_at IS NULL ORDER BY created_at, name
        """,
        repo_id,
    )
    return [
        ListedPack(
            name=row["name"],
            size=row["size"],
            kind=PackKind(row["kind"]),
            created_at=row["created_at"],
            is_inline=bool(row["is_inline"]),
        )
        for row in rows
    ]


async def find_data(conn: Reader, repo_id: str, names: Iterable[str]) -> dict[str, bytes]:
    """Return those of these packs that lie in their rows, each followed by its index."""
    rows = await conn.fetch_all(
        """
        SELECT name, data FROM repo_packs
        WHERE repo_id = $1 AND name IN each($2) AND data IS NOT NULL
        """,
        repo_id, json.dumps(list(names)),
    )  # fmt: skip
    return {row["name"]: bytes(row["data"]) for row in rows}


async def find_known(conn: Reader, repo_id: str, names: Iterable[str]) -> set[str]:
    """Return those of these packs that have a row, listed or removed."""
    rows = await conn.fetch_all(
        "SELECT name FROM repo_packs WHERE repo_id = $1 AND name IN each($2)",
        repo_id, json.dumps(list(names)),
    )  # fmt: skip
    return {row["name"] for row in rows}


async def list_refs(conn: Reader, repo_id: str) -> tuple[int, dict[str, str]]:
    """Return the version of the refs, and the refs as they were then or later."""
    version: int | None = await conn.fetch_value(
        "SELECT refs_version FROM repos WHERE id = $1", repo_id
    )
    rows = await conn.fetch_all("SELECT name, sha FROM repo_refs WHERE repo_id = $1", repo_id)
    return version or 0, {row["name"]: row["sha"] for row in rows}


async def add(conn: Connection, repo_id: str, new: NewPacks, *, created_by: str | None) -> bool:
    """Add packs to the list; False when the objects were written for a place that is no longer theirs."""
    if new.is_listed and not new.packs:
        return True
    # Locks the row also where nothing changes: objects must not move while refs do.
    changed = await conn.execute(
        "UPDATE repos SET packs_version = packs_version + 1 WHERE id = $1 AND packs_version > 0"
        if new.is_listed
        else "UPDATE repos SET packs_version = packs_version WHERE id = $1 AND packs_version <= 0",
        repo_id,
    )
    if changed == 1:
        await _insert(conn, repo_id, new.packs, PackKind.push, created_by=created_by)
    return changed == 1


async def add_first(
    conn: Connection, repo_id: str, packs: Iterable[NewPack], *, created_by: str | None
) -> None:
    """Begin the list of a repository that is new."""
    await conn.execute("UPDATE repos SET packs_version = 1 WHERE id = $1", repo_id)
    await _insert(conn, repo_id, packs, PackKind.push, created_by=created_by)


async def begin_list(
    conn: Connection, repo_id: str, new: Mapping[PackKind, Iterable[NewPack]], *, refs_version: int
) -> bool:
    """Begin the list of a repository whose objects were in a folder; False if its refs moved since."""
    changed = await conn.execute(
        """
        UPDATE repos SET packs_version = 1 - packs_version
        WHERE id = $1 AND packs_version <= 0 AND refs_version = $2
        """,
        repo_id, refs_version,
    )  # fmt: skip
    for kind, packs in new.items() if changed == 1 else ():
        await _insert(conn, repo_id, packs, kind, created_by=None)
    return changed == 1


async def end_list(conn: Connection, repo_id: str, *, version: int) -> bool:
    """End the list: the objects are in a folder from now on. False if the list changed since."""
    changed = await conn.execute(
        "UPDATE repos SET packs_version = - packs_version WHERE id = $1 AND packs_version = $2",
        repo_id, version,
    )  # fmt: skip
    if changed == 1:
        await conn.execute("DELETE FROM repo_packs WHERE repo_id = $1", repo_id)
    return changed == 1


async def replace(
    conn: Connection,
    repo_id: str,
    old: Collection[str],
    new: Mapping[PackKind, Iterable[NewPack]],
    *,
    refs_version: int,
) -> bool:
    """Let new packs take the place of old ones; False if refs moved or others replaced them first."""
    changed = await conn.execute(
        """
        UPDATE repos SET packs_version = packs_version + 1
        WHERE id = $1 AND packs_version > 0 AND refs_version = $2
        """,
        repo_id, refs_version,
    )  # fmt: skip
    if changed != 1:
        return False
    names = json.dumps(list(old))
    # What lay in the row goes with it; nobody fetches it from anywhere else.
    gone = await conn.execute(
        "DELETE FROM repo_packs WHERE repo_id = $1 AND name IN each($2) AND data IS NOT NULL",
        repo_id, names,
    )  # fmt: skip
    gone += await conn.execute(
        """
        UPDATE repo_packs SET removed_at = $3
        WHERE repo_id = $1 AND name IN each($2) AND removed_at IS NULL
        """,
        repo_id, names, micros(),
    )  # fmt: skip
    if gone != len(old):
        return False
    for kind, packs in new.items():
        await _insert(conn, repo_id, packs, kind, created_by=None)
    return True


async def list_removed(conn: Reader, *, limit: int) -> list[tuple[str, str]]:
    """Return packs, each after its repository, that others replaced long enough ago."""
    rows = await conn.fetch_all(
        """
        SELECT repo_id, name FROM repo_packs
        WHERE removed_at IS NOT NULL AND removed_at < $1 ORDER BY removed_at LIMIT $2
        """,
        micros() - REMOVED_KEPT // timedelta(microseconds=1), limit,
    )  # fmt: skip
    return [(row["repo_id"], row["name"]) for row in rows]


async def forget_removed(conn: Connection, removed: Iterable[tuple[str, str]]) -> None:
    await conn.execute_many(
        "DELETE FROM repo_packs WHERE repo_id = $1 AND name = $2 AND removed_at IS NOT NULL",
        list(removed),
    )


async def has_lists(conn: Reader) -> bool:
    """Tell whether objects of any repository are in packs of a shared store."""
    return await conn.fetch_value("SELECT 1 FROM repo_packs LIMIT 1") is not None


async def _insert(
    conn: Connection,
    repo_id: str,
    packs: Iterable[NewPack],
    kind: PackKind,
    *,
    created_by: str | None,
) -> None:
    await conn.execute_many(
        """
        INSERT INTO repo_packs (repo_id, name, size, objects, kind, data, created_at, created_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
            (repo_id, each.name, each.size, each.objects, kind, each.data, micros(), created_by)
            for each in packs
        ],
    )
