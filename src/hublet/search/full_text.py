"""Full text: texts that have all words of a query, the best first, each with the place where they stand.

The index tells which texts to look at. Whether one is shown is decided by the rule of its repository,
and by the text itself as it is now: what was hidden, edited or gated a moment ago is not shown.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hublet.community.discussions import store as discussions
from hublet.community.threads import store as threads
from hublet.community.threads.records import Comment, Thread
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.paging import InvalidCursor
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.browse import store as lists_store
from hublet.repos.records import Reach, Repo
from hublet.search import documents, text_index, text_store, words
from hublet.search.records import (
    SnippetPart,
    TextCandidate,
    TextHit,
    TextKind,
    TextPosition,
    TextQuery,
    TextSource,
)
from hublet.tokens.records import Caller

_SNIPPET_LENGTH = 240
_BEFORE_HIT = 60
# How many texts are looked at together, and how often, until a page is full.
_STEP = 40
_MOST_STEPS = 10
_POSITION = re.compile(r"(\d{1,9}):(-?\d{1,18})")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    hits: tuple[TextHit, ...] = ()
    # Where to go on; None on the last page.
    end: TextPosition | None = None


async def search_texts(database: Database, caller: Caller | None, query: TextQuery) -> TextPage:
    """Return a page of the texts that the caller may see and that have all words of a query."""
    wanted = words.of_text_query(query.text)
    after = _read_position(query.after)
    if not wanted:
        return TextPage()
    async with database.read() as conn:
        reach = await lists.reach_of(conn, caller)
        scopes = await _scopes(conn, reach, query.kinds)
        ranked = await _ranked(conn, scopes, wanted)
    if after is not None:
        ranked = [each for each in ranked if _order(each) > _order(after)]
    found = list[TextHit]()
    steps = range(0, min(len(ranked), _STEP * _MOST_STEPS), _STEP)
    for start in steps:
        found += await _hits(database, reach, ranked[start : start + _STEP], wanted)
        if len(found) > query.limit:
            shown = found[: query.limit]
            return TextPage(hits=tuple(shown), end=shown[-1].position)
    looked_at = _STEP * _MOST_STEPS
    end = ranked[looked_at - 1] if len(ranked) > looked_at else None
    return TextPage(hits=tuple(found), end=end)


def write_position(position: TextPosition) -> str:
    return f"{position.score}:{position.number}"


def _read_position(text: str) -> TextPosition | None:
    if not text:
        return None
    match = _POSITION.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return TextPosition(score=int(match[1]), number=int(match[2]))


def _order(position: TextPosition) -> tuple[int, int]:
    return -position.score, position.number


async def _scopes(conn: Reader, reach: Reach | None, kinds: Iterable[TextKind]) -> list[str]:
    """Return the scopes that a caller reads; papers are everybody's."""
    groups = await lists_store.list_group_ids(conn, reach) if reach else []
    owners = dict.fromkeys([*reach.readable, *reach.where_created]) if reach else {}
    scopes = []
    for kind in kinds:
        scopes.append(kind.letter)
        if kind is not TextKind.paper:
            scopes += [documents.owner_scope(kind.letter, owner) for owner in owners]
            scopes += [documents.group_scope(kind.letter, group) for group in groups]
    return scopes


async def _ranked(conn: Reader, scopes: Sequence[str], wanted: Sequence[str]) -> list[TextPosition]:
    """Return candidates, the best first: rare words count more, and likes a little."""
    counts = dict(zip(wanted, await text_store.count_words(conn, scopes, wanted), strict=True))
    if not all(counts.values()):
        return []
    driver, *others = sorted(wanted, key=lambda word: counts[word])
    rarity = [math.log(1 + text_store.MOST_CANDIDATES / counts[word]) for word in (driver, *others)]
    candidates = await text_store.list_candidates(conn, scopes, driver, others)
    return sorted((_scored(each, rarity) for each in candidates), key=_order)


def _scored(candidate: TextCandidate, rarity: Sequence[float]) -> TextPosition:
    weighed = sum(weight * rare for weight, rare in zip(candidate.weights, rarity, strict=True))
    score = round(10 * weighed * (1 - 0.02 * candidate.rank))
    return TextPosition(score=score, number=candidate.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundText:
    """A text that the caller may see; that of a file is read later."""

    source: TextSource
    position: TextPosition
    title: str
    text: str = ""
    repo: Repo | None = None
    thread: Thread | None = None


async def _hits(
    database: Database,
    reach: Reach | None,
    positions: Sequence[TextPosition],
    wanted: Sequence[str],
) -> list[TextHit]:
    async with database.read() as conn:
        found = await _visible(conn, reach, positions)
    folders = {
        each.repo.id: await repos.open_folder(database, each.repo.id)
        for each in found
        if each.source.file and each.repo
    }
    return await asyncio.to_thread(_with_snippets, found, folders, frozenset(wanted))


async def _visible(
    conn: Reader, reach: Reach | None, positions: Sequence[TextPosition]
) -> list[_FoundText]:
    """Leave out what the caller may not see, and what is there no more."""
    sources = await text_store.list_sources(conn, [each.number for each in positions])
    repo_ids = {each.repo_id for each in sources.values() if each.repo_id}
    visible = {repo.id: repo for repo in await lists_store.list_visible(conn, repo_ids, reach)}
    thread_ids = {each.thread_id for each in sources.values() if each.thread_id}
    known = {each.id: each for each in await threads.list_by_ids(conn, thread_ids)}
    openings = await discussions.list_openings(conn, known)
    comment_ids = {each.source_id for each in sources.values() if each.source_id not in known}
    comments = {each.id: each for each in await discussions.list_comments_by_ids(conn, comment_ids)}
    found = []
    for position in positions:
        source = sources.get(position.number)
        if source is None or (source.repo_id and source.repo_id not in visible):
            continue
        repo = visible.get(source.repo_id or "")
        if source.file:
            each = _file_text(source, position, repo)
        else:
            thread = known.get(source.thread_id or "")
            opening = openings.get(source.thread_id or "")
            each = _thread_text(source, position, repo, thread, comments, opening)
        if each is not None:
            found.append(each)
    return found


def _file_text(source: TextSource, position: TextPosition, repo: Repo | None) -> _FoundText | None:
    if repo is None or source.file not in text_index.files_of(repo):
        return None
    return _FoundText(source=source, position=position, title=repo.full_name, repo=repo)


def _thread_text(
    source: TextSource,
    position: TextPosition,
    repo: Repo | None,
    thread: Thread | None,
    comments: Mapping[str, Comment],
    opening: Comment | None,
) -> _FoundText | None:
    if thread is None:
        return None
    comment = comments.get(source.source_id)
    if source.source_id == thread.id:
        text = text_index.opening_of(thread, opening)
    elif comment is None or comment.hidden:
        return None
    else:
        text = comment.raw
    return _FoundText(
        source=source,
        position=position,
        title=thread.title,
        text=text_index.text_of(text),
        repo=repo,
        thread=thread,
    )


def _with_snippets(
    found: Iterable[_FoundText], folders: Mapping[str, Path], wanted: frozenset[str]
) -> list[TextHit]:
    hits = (_hit(each, folders, wanted) for each in found)
    return [each for each in hits if each is not None]


def _hit(found: _FoundText, folders: Mapping[str, Path], wanted: frozenset[str]) -> TextHit | None:
    """Return a hit; None when its text does not have the words any more."""
    source, text = found.source, found.text
    if source.file and found.repo:
        text = text_index.read_file(folders[found.repo.id], found.repo.head_sha or "", source.file)
    places = [(word, start, end) for word, start, end in words.places(text) if word in wanted]
    is_comment = source.source_id != source.thread_id and not source.file
    named = () if source.file or is_comment else words.split(text_index.text_of(found.title))
    if wanted - {word for word, _, _ in places} - set(named):
        return None
    return TextHit(
        kind=source.kind,
        position=found.position,
        title=found.title,
        snippet=cut_snippet(text, places),
        repo=found.repo,
        file=source.file,
        thread=found.thread,
        comment_id=_comment_id(source, found.thread),
    )


def _comment_id(source: TextSource, thread: Thread | None) -> str | None:
    if thread is None or source.source_id == thread.id:
        return None
    return source.source_id


def cut_snippet(text: str, places: Sequence[tuple[str, int, int]]) -> tuple[SnippetPart, ...]:
    """Return the piece of a text with most of the words, in parts; the beginning when it has none."""
    start = _best_start(text, places)
    end = min(start + _SNIPPET_LENGTH, len(text))
    parts, at = [], start
    for _, begin, finish in places:
        if begin < at or finish > end:
            continue
        parts.append(SnippetPart(text=_plain(text[at:begin])))
        parts.append(SnippetPart(text=text[begin:finish], is_hit=True))
        at = finish
    parts.append(SnippetPart(text=_plain(text[at:end]).rstrip()))
    if not parts[0].is_hit:
        parts[0] = replace(parts[0], text=parts[0].text.lstrip())
    return tuple(part for part in parts if part.text)


def _best_start(text: str, places: Sequence[tuple[str, int, int]]) -> int:
    best, start = 0, 0
    for _, begin, _ in places:
        within = {word for word, at, _ in places if begin <= at < begin + _SNIPPET_LENGTH // 2}
        if len(within) > best:
            best, start = len(within), max(begin - _BEFORE_HIT, 0)
    # Not in the middle of a word.
    blank = text.find(" ", start, start + _BEFORE_HIT // 2) if start else -1
    return blank + 1 if blank >= 0 else start


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text)
