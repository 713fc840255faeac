"""Upkeep of what lists sort and filter by: trending scores, parameters, links of older repositories.

Links are written with the card, in its transaction. Parameters stand in the headers of large files,
so a task reads them soon after the commit. Scores are computed every hour.
"""

import asyncio
import json
import math
from datetime import timedelta

import msgspec
import pygit2

from hublet.core import clock, metadata, queue
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.file_cache import cache_in
from hublet.core.queue import NewTask
from hublet.repos import list_index_store as store
from hublet.repos import safetensors
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.browse import downloads
from hublet.repos.browse.overview import find_weights
from hublet.repos.browse.records import Revision
from hublet.repos.cards import links_of
from hublet.repos.evaluations import read_evaluations
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import Card, Repo, RepoType
from hublet.repos.safetensors import HeaderDamaged, HeaderTooLarge, SafetensorsHeader

COUNT_PARAMETERS = "repos.count-parameters"
SCORE = "repos.score"
FILL = "repos.fill-list-index"

# Belongs into the key of the cache of what the headers of a model say.
_VERSION = "parameters-1"
SCORE_EVERY = timedelta(hours=1)
_WINDOW_DAYS = 7
_DAY_SECONDS = 86_400
_WINDOW_SECONDS = _WINDOW_DAYS * _DAY_SECONDS
# A like takes a person and a moment of thought; a program downloads without either.
_POINTS_OF_LIKE = 10
_SCORES_AT_ONCE = 500

# So many are written at once, and done again if the process dies.
_BATCH = 20
_FILLED_NAME = "list_index_filled"
_DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """The task to count the parameters of a model."""

    repo_id: str


async def schedule_count(conn: Connection, repo_id: str) -> None:
    body = msgspec.json.encode(ParameterCount(repo_id=repo_id)).decode()
    await queue.add(conn, NewTask(kind=COUNT_PARAMETERS, body=body))


async def refresh_parameters(database: Database, repo_id: str) -> None:
    """Write down the parameters that a model has on main now; none when its files say none.

    A commit that comes meanwhile has a task of its own only if it changes them.
    """
    while not await _refresh_parameters(database, repo_id):
        pass


async def _refresh_parameters(database: Database, repo_id: str) -> bool:
    """Return False when main moved before they were written."""
    async with database.read() as conn:
        repo = await repos_store.find(conn, repo_id)
    if repo is None or repo.type is not RepoType.model or repo.head_sha is None:
        return True
    try:
        folder = await repos.open_folder(database, repo.id)
        weights = await asyncio.to_thread(find_weights, folder, repo.head_sha)
        by_dtype = await count_parameters(database, repo, weights)
    except (HubError, pygit2.GitError):
        # It was deleted a moment ago, or content of it is gone: the scrubber tells about that.
        return True
    if by_dtype == (repo.safetensors or {}):
        return True
    async with database.transaction() as conn:
        return await store.set_parameters(conn, repo.id, head_sha=repo.head_sha, by_dtype=by_dtype)


async def count_parameters(
    database: Database, repo: Repo, weights: tuple[GitEntry, ...]
) -> dict[str, int]:
    """Return the parameters by type in these files of main; none if one of them is damaged.

    What was counted is kept by what the files hold. Raises ContentMissing.
    """
    if not weights:
        return {}
    cache = cache_in(database.hub.settings.database.data_dir)
    key = " ".join((_VERSION, *(entry.oid for entry in weights)))
    kept = await asyncio.to_thread(cache.find, repo.id, key)
    if kept is not None:
        found: dict[str, int] = json.loads(kept)
        return found
    found = await _read_parameters(database, repo, weights)
    await asyncio.to_thread(cache.put, repo.id, key, json.dumps(found).encode())
    return found


async def _read_parameters(
    database: Database, repo: Repo, weights: tuple[GitEntry, ...]
) -> dict[str, int]:
    folder = await repos.open_folder(database, repo.id)
    revision = Revision(repo=repo, commit=repo.head_sha or "", folder=folder)
    headers: list[SafetensorsHeader] = []
    for entry in weights:
        file = await downloads.get_raw_file(revision, entry.path)
        read = await downloads.open_file(database, revision, file)
        try:
            headers.append(await asyncio.to_thread(safetensors.read_header, read, size=entry.size))
        except (HeaderDamaged, HeaderTooLarge):
            return {}
    return safetensors.count_parameters(headers)


async def schedule_scores(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    """Schedule the computation of scores, once for each hour however often this is called."""
    hour = (clock.now() + delay).strftime("%Y-%m-%dT%H")
    await queue.add(conn, NewTask(kind=SCORE, body="{}", key=f"{SCORE}.{hour}", delay=delay))


async def update_scores(database: Database) -> None:
    """Compute the trending scores of all repositories that were liked or downloaded of late.

    The points of a like or a download fall evenly, to nothing after seven days. Only scores that
    differ are written, a few at a time.
    """
    async with database.read() as conn:
        before = await store.trending_scores(conn)
        after = await _current_scores(conn)
    changed = {
        repo_id: after.get(repo_id, 0)
        for repo_id in before.keys() | after.keys()
        if before.get(repo_id, 0) != after.get(repo_id, 0)
    }
    # In order, so that two who do the same do not wait for each other in a circle.
    ordered = sorted(changed.items())
    for start in range(0, len(ordered), _SCORES_AT_ONCE):
        async with database.transaction() as conn:
            await store.set_trending_scores(conn, ordered[start : start + _SCORES_AT_ONCE])


async def _current_scores(conn: Reader) -> dict[str, int]:
    now = clock.micros()
    likes = await store.like_seconds_since(conn, now - _WINDOW_SECONDS * 1_000_000)
    today = now // (_DAY_SECONDS * 1_000_000)
    fetched = await store.download_days_since(conn, today - _WINDOW_DAYS)
    return {
        repo_id: math.ceil(
            _POINTS_OF_LIKE * likes.get(repo_id, 0) / _WINDOW_SECONDS
            + fetched.get(repo_id, 0) / _WINDOW_DAYS
        )
        for repo_id in likes.keys() | fetched.keys()
    }


async def schedule_filling(conn: Connection) -> None:
    """Schedule the task that fills in older repositories from where it is, unless it is done."""
    progress = await metadata.find(conn, _FILLED_NAME)
    if progress is not None and progress != _DONE:
        await queue.add(conn, NewTask(kind=FILL, body="{}", key=f"{FILL}.{progress}"))


async def is_filled(conn: Reader) -> bool:
    """Tell whether the links of all repositories are known."""
    return await metadata.find(conn, _FILLED_NAME) in {None, _DONE}


async def fill(database: Database) -> None:
    """Fill in a part of the repositories; another task goes on where this one ends."""
    await queue.run_batches(database, _fill_batch, schedule=schedule_filling)


async def _fill_batch(database: Database) -> bool:
    async with database.read() as conn:
        progress = await metadata.find(conn, _FILLED_NAME)
        if progress is None or progress == _DONE:
            return False
        ids = await repos_store.list_ids(conn, after=progress, limit=_BATCH)
    for repo_id in ids:
        async with database.transaction() as conn:
            await _fill_links(conn, repo_id)
        await refresh_parameters(database, repo_id)
        await _fill_evaluations(database, repo_id)
    async with database.transaction() as conn:
        await metadata.set_value(conn, _FILLED_NAME, ids[-1] if ids else _DONE)
    return True


async def _fill_links(conn: Connection, repo_id: str) -> None:
    # A commit to it waits, or came before: else the links of the card before it would win.
    await store.lock(conn, repo_id)
    repo = await repos_store.find(conn, repo_id)
    if repo is not None and repo.type.has_git:
        await store.set_links(conn, repo.id, links_of(Card(data=repo.card, tags=repo.tags)))


async def _fill_evaluations(database: Database, repo_id: str) -> None:
    """Write down the results that an older model states."""
    while not await _read_evaluations_of_now(database, repo_id):
        pass


async def _read_evaluations_of_now(database: Database, repo_id: str) -> bool:
    """Return False when main moved before the results were written."""
    async with database.read() as conn:
        repo = await repos_store.find(conn, repo_id)
    if repo is None or repo.type is not RepoType.model or repo.head_sha is None:
        return True
    try:
        folder = await repos.open_folder(database, repo.id)
        found = await asyncio.to_thread(read_evaluations, folder, repo.head_sha, repo.card)
    except (HubError, pygit2.GitError):
        return True
    async with database.transaction() as conn:
        await store.lock(conn, repo_id)
        current = await repos_store.find(conn, repo_id)
        if current is not None and current.head_sha != repo.head_sha:
            return False
        if current is not None:
            await store.set_evaluations(conn, repo_id, found)
    return True
