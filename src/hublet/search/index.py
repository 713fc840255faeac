"""Index: documents are brought in step with what they describe, one by one or all of a hub.

A task for each change does it, soon after the commit. It writes what is true when it runs, so it may
run late, twice, or beside another one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hublet.accounts.organizations import store as organizations
from hublet.accounts.records import Organization, User
from hublet.accounts.users import store as users
from hublet.community.collections import store as collections
from hublet.community.threads import store as threads
from hublet.community.threads.records import ThreadKind
from hublet.core import metadata, queue
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.queue import NewTask
from hublet.repos import cards
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.records import Repo
from hublet.search import documents, index_store, words
from hublet.search.index_store import WordKey
from hublet.search.records import IndexSource, SearchDocument

REFRESH = "search.refresh"
FILL = "search.fill"
# So many are written at once, and done again if the process dies.
BATCH = 20
_DONE = "done"
# The next ids of a part after one, and what brings their documents in step.
IdLister = Callable[[Reader, str], Awaitable[list[str]]]
Refresher = Callable[[Database, Sequence[str]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """The task to bring one document in step."""

    source: IndexSource
    target_id: str


async def schedule_refresh(conn: Connection, source: IndexSource, target_id: str) -> None:
    body = msgspec.json.encode(Refresh(source=source, target_id=target_id)).decode()
    await queue.add(conn, NewTask(kind=REFRESH, body=body))


# The words of README.md by the id of the repository and the commit.
_Texts = dict[tuple[str, str], tuple[str, ...]]


async def refresh(database: Database, source: IndexSource, target_ids: Sequence[str]) -> None:
    """Bring the documents of these in step; those that exist no more leave the index.

    A repository whose text is of an older commit when it is to be written is read once more: a
    commit that changes no text has no task of its own.
    """
    while await _refresh(database, source, target_ids):
        pass


async def _refresh(database: Database, source: IndexSource, target_ids: Sequence[str]) -> bool:
    """Return whether a repository has moved on meanwhile; its document stays as it was."""
    async with database.read() as conn:
        stored = await _stored(conn, target_ids)
        unread = await _unread_repos(conn, source, target_ids, stored)
        if not unread and await _current(conn, source, target_ids, stored, {}) == stored:
            return False
    folders = {repo.id: await repos.open_folder(database, repo.id) for repo in unread}
    texts = await asyncio.to_thread(_read_texts, folders, unread) if unread else {}
    async with database.transaction() as conn:
        await index_store.lock(conn)
        known = await index_store.find(conn, target_ids)
        stored = {target_id: document for target_id, (_, document) in known.items()}
        unread = await _unread_repos(conn, source, target_ids, stored)
        moved = {repo.id for repo in unread if (repo.id, repo.head_sha or "") not in texts}
        current = await _current(conn, source, target_ids, stored, texts)
        for target_id in target_ids:
            if target_id in moved:
                continue
            number, before = known.get(target_id, (0, None))
            if before != (after := current.get(target_id)):
                await _replace(conn, number, before, after)
    return bool(moved)


async def _stored(conn: Reader, target_ids: Collection[str]) -> dict[str, SearchDocument]:
    known = await index_store.find(conn, target_ids)
    return {target_id: document for target_id, (_, document) in known.items()}


async def _unread_repos(
    conn: Reader,
    source: IndexSource,
    target_ids: Collection[str],
    stored: dict[str, SearchDocument],
) -> list[Repo]:
    if source is not IndexSource.repo:
        return []
    return [
        repo
        for repo in await repos_store.list_by_ids(conn, target_ids)
        if (version := _text_version(repo)) is not None
        and (repo.id not in stored or stored[repo.id].text_version != version)
    ]


def _text_version(repo: Repo) -> str | None:
    # The README of a gated repository is for those with access to it.
    return repo.head_sha if repo.type.has_git and repo.gated is None else None


def _read_texts(folders: Mapping[str, Path], unread: Iterable[Repo]) -> _Texts:
    return {(repo.id, repo.head_sha or ""): _text_of(folders[repo.id], repo) for repo in unread}


def _text_of(folder: Path, repo: Repo) -> tuple[str, ...]:
    try:
        text = cards.read_text(folder, repo.head_sha or "")
    except HubError:
        # It was deleted a moment ago.
        return ()
    return words.of_markdown(text)


async def _current(
    conn: Reader,
    source: IndexSource,
    target_ids: Collection[str],
    stored: dict[str, SearchDocument],
    texts: _Texts,
) -> dict[str, SearchDocument]:
    """Return the documents as they should be now, with texts that are stored or were read."""
    if source is IndexSource.repo:
        found = [
            _repo_document(repo, stored.get(repo.id), texts)
            for repo in await repos_store.list_by_ids(conn, target_ids)
        ]
    elif source is IndexSource.account:
        found = await _account_documents(conn, target_ids)
    elif source is IndexSource.collection:
        collected = await collections.list_by_ids(conn, target_ids)
        found = [documents.of_collection(each) for each in collected]
    else:
        listed = await threads.list_by_ids(conn, target_ids)
        found = [
            documents.of_thread(each) for each in listed if each.kind is not ThreadKind.discussion
        ]
    return {document.target_id: document for document in found}


def _repo_document(repo: Repo, stored: SearchDocument | None, texts: _Texts) -> SearchDocument:
    version = _text_version(repo)
    if version is not None and stored is not None and stored.text_version == version:
        return documents.of_repo(repo, text=stored.text, text_version=version)
    if version is not None and (repo.id, version) in texts:
        return documents.of_repo(repo, text=texts[repo.id, version], text_version=version)
    # There is none, or none of this commit was read.
    return documents.of_repo(repo)


async def _account_documents(conn: Reader, ids: Collection[str]) -> list[SearchDocument]:
    found: list[User | Organization] = [
        *await users.list_by_ids(conn, ids),
        *await organizations.list_by_ids(conn, ids),
    ]
    followers = await users.count_followers_of(conn, ids)
    return [documents.of_account(each, followers=followers.get(each.id, 0)) for each in found]


async def _replace(
    conn: Connection, number: int, before: SearchDocument | None, after: SearchDocument | None
) -> None:
    """Replace a document; only entries of the index that differ are written."""
    if after is None:
        await index_store.remove(conn, number)
    elif before is None:
        number = await index_store.add(conn, after)
    else:
        await index_store.update(conn, number, after)
    old, new = _word_keys(before), _word_keys(after)
    await index_store.remove_words(conn, number, old - new)
    await index_store.add_words(conn, number, new - old)
    old_spelled, new_spelled = _spelled(before), _spelled(after)
    await index_store.add_spellings(conn, new_spelled - old_spelled)
    await index_store.remove_unused_spellings(conn, old_spelled - new_spelled)


def _word_keys(document: SearchDocument | None) -> set[WordKey]:
    if document is None:
        return set()
    ranks = documents.ranks_of(document)
    return {(document.scope, word, rank) for word, rank in ranks.items()}


def _spelled(document: SearchDocument | None) -> set[tuple[str, str]]:
    if document is None:
        return set()
    return {(document.scope, word) for word in documents.correctable_words(document)}


class IndexFilling:
    """Fills an index from what a hub has, in batches; it goes on where it was stopped.

    `parts` are lists of ids, each with what brings documents of these ids in step.
    """

    def __init__(
        self, *, name: str, task: str, parts: Mapping[str, tuple[IdLister, Refresher]]
    ) -> None:
        self._name = name
        self._task = task
        self._parts = parts

    async def schedule(self, conn: Connection) -> None:
        """Schedule the filling from where it is, unless it is done."""
        progress = await metadata.find(conn, self._name) or ""
        if progress != _DONE:
            await queue.add(
                conn, NewTask(kind=self._task, body="{}", key=f"{self._task}.{progress}")
            )

    async def find_part(self, conn: Reader) -> str | None:
        """Return the part that is under way, and how many there are; None: it is done."""
        progress = await metadata.find(conn, self._name) or ""
        if progress == _DONE:
            return None
        names = list(self._parts)
        part = progress.partition(":")[0] or names[0]
        return f"{part}, part {names.index(part) + 1} of {len(names)}"

    async def run(self, database: Database) -> None:
        """Put a part of what a hub has into the index; another task goes on where this one ends."""
        await queue.run_batches(database, self._fill_batch, schedule=self.schedule)

    async def _fill_batch(self, database: Database) -> bool:
        """Refresh the next documents, if there are any, and remember how far it went."""
        names = list(self._parts)
        async with database.read() as conn:
            progress = await metadata.find(conn, self._name) or f"{names[0]}:"
            if progress == _DONE:
                return False
            part, _, after = progress.partition(":")
            list_ids, refresh_ids = self._parts[part]
            ids = await list_ids(conn, after)
        if ids:
            await refresh_ids(database, ids)
            progress = f"{part}:{ids[-1]}"
        else:
            following = names.index(part) + 1
            progress = f"{names[following]}:" if following < len(names) else _DONE
        async with database.transaction() as conn:
            await metadata.set_value(conn, self._name, progress)
        return True


def _part(name: str, source: IndexSource) -> tuple[str, tuple[IdLister, Refresher]]:
    async def list_ids(conn: Reader, after: str) -> list[str]:
        return await _list_ids(conn, name, after)

    async def refresh_ids(database: Database, ids: Sequence[str]) -> None:
        await refresh(database, source, ids)

    return name, (list_ids, refresh_ids)


async def _list_ids(conn: Reader, part: str, after: str) -> list[str]:
    if part == "users":
        return [each.id for each in await users.list_all(conn, after=after, limit=BATCH)]
    if part == "organizations":
        return [each.id for each in await organizations.list_all(conn, after=after, limit=BATCH)]
    if part == "repos":
        return await repos_store.list_ids(conn, after=after, limit=BATCH)
    if part == "collections":
        return await collections.list_ids(conn, after=after, limit=BATCH)
    listed = await threads.list_newest(conn, ThreadKind(part), owner="", after=after, limit=BATCH)
    return [each.id for each in listed]


FILLING = IndexFilling(
    name="search_filled",
    task=FILL,
    parts=dict(
        [
            _part("users", IndexSource.account),
            _part("organizations", IndexSource.account),
            _part("repos", IndexSource.repo),
            _part("paper", IndexSource.thread),
            _part("post", IndexSource.thread),
            _part("blog", IndexSource.thread),
            _part("collections", IndexSource.collection),
        ]
    ),
)
