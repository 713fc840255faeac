"""A large inbox against a small one among ten million items, and its page over HTTP."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import inboxes
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, opened
from benchmarks.inboxes import Crowd
from benchmarks.machine import tied_to
from benchmarks.notification_page import page_rows
from benchmarks.query_plans import show_plans
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop
from hublet.core.clock import from_micros
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.inbox.schemas import Filters
from hublet.notifications.inbox.service import select
from hublet.notifications.records import Selection

_FLAT = Goal(floor=1.5, aim=1.1, more_is_better=False, of="ratio")
_READS = 50
_MARKS = 15
_MARKS_OF_EVERYTHING = 2
_GROUPS = 5

Call = Callable[[Any, str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A list that is asked for, and how many items its page has in either inbox."""

    name: str
    filters: Filters
    items: int = 25


def questions(crowd: Crowd) -> list[Question]:
    """Return one question for each filter of interface 4.1."""
    asked: dict[str, dict[str, Any]] = {
        "list": {},
        "list, last page of 1,000 items": {"p": inboxes.SMALL // 25 - 1},
        "list, readStatus": {"readStatus": "unread"},
        "list, repoType": {"repoType": "dataset"},
        "list, repoName": {"repoName": crowd.repo_name},
        "list, postAuthor": {"postAuthor": crowd.author},
        "list, mention=participating": {"mention": "participating"},
        "list, mention=mentions": {"mention": "mentions"},
        "list, repoName and mention=mentions": {
            "repoName": crowd.repo_name,
            "mention": "mentions",
        },
        "list, lastUpdate of 25 items ago": {"lastUpdate": from_micros(crowd.recent)},
    }
    found = [Question(name=name, filters=Filters(**given)) for name, given in asked.items()]
    behind = Filters(p=10**9)
    return [*found, Question(name="counts alone", filters=behind, items=0)]


def measure(bench: Workbench) -> Iterator[Row]:
    """Lists, counts and mark-all of 100,000 items against 1,000; the page against bare SQL."""
    total = max(round(inboxes.TOTAL * bench.share), inboxes.QUICK_TOTAL)
    for engine in ENGINES:
        site = bench.site(engine)
        with tied_to(bench.cores.server):
            crowd, rows = run_loop(_rows(bench, engine, site.settings(), total=total))
        yield from rows
        yield from page_rows(bench, engine, site, crowd)


async def _rows(
    bench: Workbench, engine: Engine, settings: Settings, *, total: int
) -> tuple[Crowd, Sequence[Row]]:
    async with opened(settings) as database:
        crowd = await inboxes.load(database, engine, total=total, large_has=inboxes.LARGE)
        rows = [await _read_row(bench, database, engine, crowd, each) for each in questions(crowd)]
        rows.append(await _mark_row(bench, database, engine, crowd))
        rows.append(await _mark_everything_row(database, engine, crowd))
    note = f"{total:,} items in all; of some calls in a row the shortest, {_GROUPS} times"
    return crowd, [replace(row, note=note) for row in rows]


async def _read_row(
    bench: Workbench, database: Database, engine: Engine, crowd: Crowd, question: Question
) -> Row:
    async def read(on: Any, user_id: str) -> object:
        async with on.read() as conn:
            selection = await select(conn, user_id, question.filters)
        page = await read_page(on, user_id, selection, page=question.filters.p)
        if len(page["notifications"]) != question.items:
            raise Spoiled(f"{question.name} has {len(page['notifications'])} items.")
        return page

    if bench.plans:
        await show_plans(database, engine, question.name, lambda on: read(on, crowd.large))
    ours, other = await _in_turn(database, read, crowd, rounds=_READS)
    return _compared(f"{question.name}, {engine}", ours, other)


async def _mark_row(bench: Workbench, database: Database, engine: Engine, crowd: Crowd) -> Row:
    """Mark all as read, with the same number of unread items in both inboxes."""

    async def mark(on: Any, user_id: str) -> object:
        return await _mark(on, user_id, Selection(), read=True, expected=len(crowd.unread))

    async def undo(user_id: str) -> None:
        unread = Selection().of_threads(crowd.unread)
        await _mark(database, user_id, unread, read=False, expected=len(crowd.unread))

    if bench.plans:
        await show_plans(database, engine, "mark all", lambda on: mark(on, crowd.large))
        await undo(crowd.large)
    ours, other = await _in_turn(database, mark, crowd, rounds=_MARKS, undo=undo)
    return _compared(f"mark all, {len(crowd.unread)} unread, {engine}", ours, other)


async def _mark_everything_row(database: Database, engine: Engine, crowd: Crowd) -> Row:
    """Mark all as read when all is unread: what one item costs must not grow with the inbox."""
    costs: dict[str, list[float]] = {crowd.large: [], crowd.small: []}
    sizes = {crowd.large: inboxes.LARGE, crowd.small: inboxes.SMALL}
    for _ in range(_MARKS_OF_EVERYTHING):
        for user_id, items in sizes.items():
            async with database.read() as conn:
                selection = await inbox.limit_to_now(conn, user_id, Selection())
            async with database.transaction() as conn:
                await inbox.mark(conn, user_id, selection, read=False)
            start = time.perf_counter()
            await _mark(database, user_id, Selection(), read=True, expected=items)
            costs[user_id].append((time.perf_counter() - start) / items * 1e6)
    subject = f"mark all when all is unread, for each item, {engine}"
    return replace(_compared(subject, costs[crowd.large], costs[crowd.small]), unit="µs")


async def _mark(on: Any, user_id: str, selection: Selection, *, read: bool, expected: int) -> int:
    async with on.read() as conn:
        bound = await inbox.limit_to_now(conn, user_id, selection)
    async with on.transaction() as conn:
        count: int = await inbox.mark(conn, user_id, bound, read=read)
    if count != expected:
        raise Spoiled(f"{count} items were marked instead of {expected}.")
    return count


async def _in_turn(
    database: Database,
    call: Call,
    crowd: Crowd,
    *,
    rounds: int,
    undo: Callable[[str], Awaitable[None]] | None = None,
) -> tuple[list[float], list[float]]:
    """Return milliseconds of the large and of the small inbox, measured one after the other."""
    taken: dict[str, list[float]] = {crowd.large: [], crowd.small: []}
    for number in range(-1, rounds):
        for user_id in (crowd.large, crowd.small):
            start = time.perf_counter()
            await call(database, user_id)
            if number >= 0:
                taken[user_id].append((time.perf_counter() - start) * 1000)
            if undo is not None:
                await undo(user_id)
    return taken[crowd.large], taken[crowd.small]


def _compared(subject: str, ours: Sequence[float], other: Sequence[float]) -> Row:
    # A single call is short, and whatever else the machine does is added to one of the two: the
    # shortest of some calls each are held against each other.
    size = max(1, len(ours) // _GROUPS)
    starts = range(0, len(ours), size)
    return compare(
        f"inbox of {inboxes.LARGE:,}: {subject}",
        ours=[min(ours[at : at + size]) for at in starts],
        other=[min(other[at : at + size]) for at in starts],
        other_is=f"an inbox of {inboxes.SMALL:,}",
        unit="ms",
        goal=_FLAT,
    )
