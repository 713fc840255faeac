"""What the hub told of changed content, as a reaction got to hear it."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hublet.core.database import Database
from hublet.core.outbox import Event
from hublet.core.startup import open_hub
from processes import Place

# Events leave no trace once they are handed on, so this hub has a reaction that
# notes them: what is noted twice was told twice.
NOTING_HUBLET = (sys.executable, str(Path(__file__).with_name("noting_hublet.py")))
# Its worker never begins, so that all that was published can be counted.
IDLE_HUBLET = (sys.executable, str(Path(__file__).with_name("idle_hublet.py")))

_POLL_SECONDS = 0.05
_COUNT_UNHANDLED = """
    SELECT (SELECT count(*) FROM outbox)
         + (SELECT count(*) FROM tasks WHERE kind LIKE 'reaction:%')
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    """A ref that has moved, according to an event."""

    ref: str
    old_sha: str | None
    new_sha: str | None


def with_database(place: Place, run: Callable[[Database], Awaitable[T]]) -> T:
    """Open the hub of a place beside its server, and close it again."""

    async def opened() -> T:
        async with open_hub(place.settings) as database:
            return await run(database)

    return asyncio.run(opened())


def prepare_notes(place: Place) -> None:
    async def create(database: Database) -> None:
        async with database.transaction() as conn:
            await conn.execute(
                "CREATE TABLE noted (repo_id TEXT NOT NULL, ref TEXT NOT NULL, "
                "old_sha TEXT, new_sha TEXT)"
            )

    with_database(place, create)


def ref_updates_of(place: Place) -> dict[str, list[RefUpdate]]:
    """Return all that was told so far, by the id of the repository."""

    async def read(database: Database) -> dict[str, list[RefUpdate]]:
        told: dict[str, list[RefUpdate]] = {}
        async with database.read() as conn:
            for row in await conn.fetch_all("SELECT repo_id, ref, old_sha, new_sha FROM noted"):
                noted = RefUpdate(ref=row["ref"], old_sha=row["old_sha"], new_sha=row["new_sha"])
                told.setdefault(row["repo_id"], []).append(noted)
        return told

    return with_database(place, read)


def wait_until_events_are_handled(place: Place, *, seconds: float) -> None:
    """Wait until no event waits to be handed on, and no reaction to run."""

    async def watch(database: Database) -> None:
        async with asyncio.timeout(seconds), database.read() as conn:
            while await conn.fetch_value(_COUNT_UNHANDLED):
                await asyncio.sleep(_POLL_SECONDS)

    with_database(place, watch)


def repos_with_waiting_events(place: Place, event: type[Event]) -> list[str]:
    """Return the ids of the repositories of which events of a kind wait to be handed on."""

    async def read(database: Database) -> list[str]:
        async with database.read() as conn:
            rows = await conn.fetch_all(
                "SELECT body FROM outbox WHERE kind = $1 ORDER BY id", event.kind
            )
        return [json.loads(row["body"])["repo"]["id"] for row in rows]

    return with_database(place, read)
