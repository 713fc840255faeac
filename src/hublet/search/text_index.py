"""Index of whole texts: cards, discussions and papers are brought in step, one by one or all of a hub.

Like the index of names it is kept by tasks that write what is true when they run. Who may see a text
stands in its key, so a repository that changes hands takes its discussions along.
"""

import asyncio
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hublet.community.discussions import store as discussions
from hublet.community.threads import store as threads
from hublet.community.threads.records import Comment, Thread, ThreadKind
from hublet.core.database import Database, Reader
from hublet.core.errors import HubError
from hublet.repos import cards
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.git import trees
from hublet.repos.records import Repo, RepoType
from hublet.search import documents, index, text_store, words
from hublet.search.index import IdLister, IndexFilling, Refresher
from hublet.search.records import IndexSource, TextDocument, TextKind

FILL = "search.fill_texts"
README = "README.md"
APP = "app.py"
# Of a repository, whatever its type.
FILES = (README, APP)
# Threads whose texts are found.
KINDS = (ThreadKind.discussion, ThreadKind.paper)
MOST_WORDS = 1000
# Of a text of so many words, a word that stands there once weighs 100.
_USUAL_LENGTH = 150
_TITLE_COUNTS = 4
# So many texts are written in one transaction.
_AT_ONCE = 50


def text_of(content: str) -> str:
    """Return the part of a text that is read, in the form in which words are found."""
    return unicodedata.normalize("NFC", content[: words.LONGEST_TEXT])


def weigh(title: str, text: str) -> dict[str, int]:
    """Return the words of a text, each with a weight: more often is more, up to twice as much."""
    found = [word for word, _, _ in words.places(text_of(text))]
    in_title = [word for word, _, _ in words.places(text_of(title))]
    counts = Counter[str]()
    for _ in range(_TITLE_COUNTS):
        counts.update(in_title)
    counts.update(found)
    length = len(found) + len(in_title)
    slope = 1.2 * (0.25 + 0.75 * length / _USUAL_LENGTH)
    kept = ((word, count) for word, count in counts.items() if not words.is_common(word))
    return {
        word: max(round(220 * count / (count + slope)), 1)
        for (word, count), _ in zip(kept, range(MOST_WORDS), strict=False)
    }


def files_of(repo: Repo) -> tuple[str, ...]:
    """Return the files whose text is found; those of a gated repository are for whom it is open to."""
    if not repo.type.has_git or repo.gated is not None or repo.head_sha is None:
        return ()
    return (README, APP) if repo.type is RepoType.space else (README,)


def read_file(folder: Path, commit: str, file: str) -> str:
    """Return the text of a file of a commit; nothing for one that is not there or in LFS."""
    try:
        if file == README:
            return text_of(cards.read_text(folder, commit))
        entry = next(iter(trees.find_entries(folder, commit, [file])), None)
        if entry is None or entry.type != "file" or entry.lfs is not None:
            return ""
        content = trees.read_blob(folder, entry.oid)
    except HubError:
        # It was deleted a moment ago.
        return ""
    return text_of(content[: words.LONGEST_TEXT].decode(errors="replace"))


async def refresh(database: Database, source: IndexSource, ids: Sequence[str]) -> None:
    """Bring the texts of these repositories, threads or comments in step."""
    if source is IndexSource.repo:
        await _refresh_repos(database, ids)
    elif source is IndexSource.thread:
        await _refresh_threads(database, ids)
    elif source is IndexSource.comment:
        await _refresh_comments(database, ids)


# Words and weights of files, by repository, commit and file.
_Weights = Mapping[tuple[str, str, str], Mapping[str, int]]


async def _refresh_repos(database: Database, ids: Sequence[str]) -> None:
    while not await _refresh_cards(database, ids):
        pass
    for repo_id in ids:
        await _move_texts(database, repo_id)


async def _refresh_cards(database: Database, ids: Sequence[str]) -> bool:
    """Write the texts of files; False when a repository has moved on since they were read.

    A commit that changes none of these files has no task of its own.
    """
    async with database.read() as conn:
        known = await repos_store.list_by_ids(conn, ids)
        stored = [text for _, text in await text_store.find(conn, ids)]
    versions = {(text.source_id, text.version, text.file) for text in stored}
    unread = [
        (repo, file)
        for repo in known
        for file in files_of(repo)
        if (repo.id, repo.head_sha, file) not in versions
    ]
    folders = {
        repo_id: await repos.open_folder(database, repo_id)
        for repo_id in dict.fromkeys(repo.id for repo, _ in unread)
    }
    weights = await asyncio.to_thread(_weigh_files, folders, unread)
    moved = False

    async def current(conn: Reader, stored: list[TextDocument]) -> list[TextDocument]:
        nonlocal moved
        found, moved = await _card_texts(conn, ids, stored, weights)
        return found

    await _write(database, ids, current)
    return not moved


def _weigh_files(folders: Mapping[str, Path], unread: Iterable[tuple[Repo, str]]) -> _Weights:
    return {
        (repo.id, repo.head_sha or "", file): weigh(
            "", read_file(folders[repo.id], repo.head_sha or "", file)
        )
        for repo, file in unread
    }


async def _card_texts(
    conn: Reader, ids: Collection[str], stored: Iterable[TextDocument], weights: _Weights
) -> tuple[list[TextDocument], bool]:
    """Return the texts of these repositories, and whether one is missing because main moved."""
    former = {(text.source_id, text.version or "", text.file): text.words for text in stored}
    found, moved = [], False
    for repo in await repos_store.list_by_ids(conn, ids):
        for file in files_of(repo):
            key = (repo.id, repo.head_sha or "", file)
            moved = moved or (key not in former and key not in weights)
            if weighed := former.get(key) or weights.get(key):
                found.append(_card_text(repo, file, weighed))
    return found, moved


def _card_text(repo: Repo, file: str, weighed: Mapping[str, int]) -> TextDocument:
    kind = TextKind(repo.type)
    return TextDocument(
        kind=kind,
        source_id=repo.id,
        file=file,
        repo_id=repo.id,
        scope=documents.scope_in(kind.letter, repo),
        rank=-documents.heat_of(repo.likes),
        version=repo.head_sha,
        words=weighed,
    )


async def _move_texts(database: Database, repo_id: str) -> None:
    """Move the texts of a repository to where it is now; those of one that is gone are removed."""
    while True:
        async with database.transaction() as conn:
            await text_store.lock(conn)
            repo = await repos_store.find(conn, repo_id)
            place = None if repo is None else documents.scope_in("", repo)
            misplaced = await text_store.list_misplaced(conn, repo_id, place, limit=_AT_ONCE)
            for number, text in misplaced:
                if place is None:
                    await text_store.remove(conn, number, text)
                else:
                    await text_store.replace(conn, number, text, _in_place(text, place))
        if len(misplaced) < _AT_ONCE:
            return


def _in_place(text: TextDocument, place: str) -> TextDocument:
    return replace(text, scope=f"{text.kind.letter}{place}")


async def _refresh_threads(database: Database, ids: Sequence[str]) -> None:
    await _write(database, ids, lambda conn, _: _thread_texts(conn, ids))
    async with database.read() as conn:
        there = {thread.id for thread in await threads.list_by_ids(conn, ids)}
    for thread_id in ids:
        if thread_id not in there:
            await _remove_comments(database, thread_id)


async def _remove_comments(database: Database, thread_id: str) -> None:
    while True:
        async with database.transaction() as conn:
            await text_store.lock(conn)
            texts = await text_store.list_of_thread(conn, thread_id, limit=_AT_ONCE)
            for number, text in texts:
                await text_store.remove(conn, number, text)
        if len(texts) < _AT_ONCE:
            return


async def _thread_texts(conn: Reader, ids: Collection[str]) -> list[TextDocument]:
    found = [each for each in await threads.list_by_ids(conn, ids) if each.kind in KINDS]
    openings = await discussions.list_openings(conn, [each.id for each in found])
    scopes = await _scopes_of(conn, found)
    return [
        _thread_text(thread, scopes[thread.id], opening_of(thread, openings.get(thread.id)))
        for thread in found
        if thread.id in scopes
    ]


def opening_of(thread: Thread, opening: Comment | None) -> str:
    """Return what stands below the title: the summary of a paper, the first comment otherwise."""
    if thread.kind is ThreadKind.discussion:
        return "" if opening is None or opening.hidden else opening.raw
    authors = (thread.details or {}).get("authors", ())
    return "\n".join([thread.body or "", *map(str, authors)])


def _thread_text(thread: Thread, scope: str, text: str) -> TextDocument:
    return TextDocument(
        kind=TextKind(thread.kind),
        source_id=thread.id,
        thread_id=thread.id,
        repo_id=thread.repo_id,
        scope=scope,
        words=weigh(thread.title, text),
    )


async def _scopes_of(conn: Reader, found: Iterable[Thread]) -> dict[str, str]:
    """Return the scopes of threads; one whose repository is gone has none."""
    found = list(found)
    repo_ids = {each.repo_id for each in found if each.repo_id}
    owners = {repo.id: repo for repo in await repos_store.list_by_ids(conn, repo_ids)}
    scopes = {}
    for thread in found:
        letter = TextKind(thread.kind).letter
        if thread.repo_id is None:
            scopes[thread.id] = letter
        elif thread.repo_id in owners:
            scopes[thread.id] = documents.scope_in(letter, owners[thread.repo_id])
    return scopes


async def _refresh_comments(database: Database, ids: Sequence[str]) -> None:
    await _write(database, ids, lambda conn, _: _comment_texts(conn, ids))
    async with database.read() as conn:
        found = await discussions.list_comments_by_ids(conn, ids)
        opened = await _opened_threads(conn, found)
    if opened:
        await _refresh_threads(database, opened)


async def _opened_threads(conn: Reader, found: Iterable[Comment]) -> list[str]:
    """Return the discussions that are opened by these comments."""
    found = list(found)
    openings = await discussions.list_openings(conn, {each.thread_id for each in found})
    first = {each.id for each in openings.values()}
    known = await threads.list_by_ids(conn, {each.thread_id for each in found if each.id in first})
    return [each.id for each in known if each.kind is ThreadKind.discussion]


async def _comment_texts(conn: Reader, ids: Collection[str]) -> list[TextDocument]:
    found = [each for each in await discussions.list_comments_by_ids(conn, ids) if not each.hidden]
    thread_ids = {each.thread_id for each in found}
    known = {
        each.id: each for each in await threads.list_by_ids(conn, thread_ids) if each.kind in KINDS
    }
    scopes = await _scopes_of(conn, known.values())
    opened = await discussions.list_openings(
        conn, [each.id for each in known.values() if each.kind is ThreadKind.discussion]
    )
    openings = {each.id for each in opened.values()}
    return [
        TextDocument(
            kind=TextKind(known[each.thread_id].kind),
            source_id=each.id,
            thread_id=each.thread_id,
            repo_id=known[each.thread_id].repo_id,
            scope=scopes[each.thread_id],
            words=weigh("", each.raw),
        )
        for each in found
        if each.thread_id in scopes and each.id not in openings
    ]


# What is true now of some sources, when what is stored of them is known.
_CurrentTexts = Callable[[Reader, list[TextDocument]], Awaitable[list[TextDocument]]]


async def _write(database: Database, ids: Collection[str], current: _CurrentTexts) -> None:
    """Write what differs between what is stored of these sources and what is true now."""
    async with database.transaction() as conn:
        await text_store.lock(conn)
        stored = {
            (text.source_id, text.file): (number, text)
            for number, text in await text_store.find(conn, ids)
        }
        true = await current(conn, [text for _, text in stored.values()])
        now = {(text.source_id, text.file): text for text in true if text.words}
        for key, (number, text) in stored.items():
            if key not in now:
                await text_store.remove(conn, number, text)
            elif now[key] != text:
                await text_store.replace(conn, number, text, now[key])
        for key, text in now.items():
            if key not in stored:
                await text_store.add(conn, text)


def _part(
    name: str, source: IndexSource, list_ids: Callable[..., Awaitable[list[str]]]
) -> tuple[str, tuple[IdLister, Refresher]]:
    async def list_next(conn: Reader, after: str) -> list[str]:
        return await list_ids(conn, after=after, limit=index.BATCH)

    async def refresh_ids(database: Database, ids: Sequence[str]) -> None:
        await refresh(database, source, ids)

    return name, (list_next, refresh_ids)


FILLING = IndexFilling(
    name="search_texts_filled",
    task=FILL,
    parts=dict(
        [
            _part("repositories", IndexSource.repo, repos_store.list_ids),
            _part("discussions and papers", IndexSource.thread, threads.list_ids),
            _part("comments", IndexSource.comment, discussions.list_comment_ids),
        ]
    ),
)
