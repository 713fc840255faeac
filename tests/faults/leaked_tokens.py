"""Many tokens of one user, reported as leaked: work that a kill can interrupt anywhere."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from hublet.accounts.records import Role
from hublet.core.clock import micros
from hublet.core.database import Database, Reader
from hublet.core.ids import new_object_id
from hublet.core.startup import open_hub
from hublet.tokens.format import TokenKind, new_credential
from hublet.tokens.records import TokenRole
from hublet.tokens.service import digests_of, issue
from people import a_user, an_organization
from processes import Place, Server

VALUES_PER_CALL = 1000

# Counting takes time from the server on a machine with few cores.
_POLL_SECONDS = 0.05
_COPY = """
    INSERT INTO tokens (id, digest, kind, user_id, name, role, grants, hint, created_at)
    SELECT $1, $2, kind, user_id, name, role, grants, hint, created_at FROM tokens WHERE id = $3
"""


def issue_many(place: Place, count: int) -> list[str]:
    """Return the values of new tokens of a user who is a member of one organization."""

    async def run() -> list[str]:
        async with open_hub(place.settings) as database:
            return await _issue_many(database, count)

    return asyncio.run(run())


async def _issue_many(database: Database, count: int) -> list[str]:
    await an_organization(database, "acme", members={"ada": Role.write})
    ada = await a_user(database, "ada")
    values = [new_credential("hf_", TokenKind.access) for _ in range(count - 1)]
    digests = [digests_of(database.hub.keys, value)[0] for value in values]
    async with database.transaction() as conn:
        first, value = await issue(conn, user_id=ada.id, name="leaked", role=TokenRole.read)
        # Copies of the first: issuing each one by itself would take most of the test's time.
        await conn.execute_many(_COPY, [(new_object_id(), digest, first.id) for digest in digests])
    return [value, *values]


def report(server: Server, values: Sequence[str]) -> None:
    """Report values as leaked; every call must be answered with 202."""
    with server.client() as client:
        for call in _calls(values):
            answer = client.post("/api/credentials/revoke", json={"credentials": call})
            assert (answer.status_code, answer.json()) == (202, {})


def _calls(values: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(values)
    while call := list(itertools.islice(rest, VALUES_PER_CALL)):
        yield call


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the work has come."""

    revoked: int = 0
    audit_lines: int = 0
    published: int = 0
    # Tasks that no worker holds, that a worker holds, that were given up.
    free: int = 0
    held: int = 0
    parked: int = 0


def done(count: int) -> Progress:
    """Each token is revoked, each has its one line, and nothing is left to do."""
    return Progress(revoked=count, audit_lines=count)


_HALF_HOUR = 1_800_000_000
_PROGRESS = """
    SELECT (SELECT count(*) FROM tokens WHERE revoked_at IS NOT NULL) AS revoked,
           (SELECT count(*) FROM audit_log WHERE action = 'credential.revoke') AS audit_lines,
           (SELECT count(*) FROM outbox) AS published,
           (SELECT count(*) FROM tasks
            WHERE claimed_by IS NULL AND parked_at IS NULL AND due_at < $1) AS free,
           (SELECT count(*) FROM tasks WHERE claimed_by IS NOT NULL) AS held,
           (SELECT count(*) FROM tasks WHERE parked_at IS NOT NULL) AS parked
"""


async def _progress(conn: Reader) -> Progress:
    # What is due later, such as the next sweep, is always left to do.
    row = await conn.fetch_one(_PROGRESS, micros() + _HALF_HOUR)
    assert row is not None
    names = ("revoked", "audit_lines", "published", "free", "held", "parked")
    return Progress(**{name: row[name] for name in names})


def wait_for(
    place: Place,
    reached: Callable[[Progress], bool],
    *,
    seconds: float,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Watch the database until this much is done, and then do that without delay.

    It is closed again at the end: the file of a killed server must be recovered by the next.
    """

    async def watch() -> None:
        deadline = monotonic() + seconds
        async with open_hub(place.settings) as database, database.read() as conn:
            while not reached(progress := await _progress(conn)):
                assert monotonic() < deadline, f"After {seconds} seconds: {progress}"
                await asyncio.sleep(_POLL_SECONDS)
            then()

    asyncio.run(watch())


def when_idle(place: Place, *, seconds: float) -> Progress:
    """Wait until nothing is left to do; what is not done by then never will be."""
    wait_for(place, lambda now: now.published + now.free + now.held == 0, seconds=seconds)
    return progress_of(place)


def progress_of(place: Place) -> Progress:
    async def read() -> Progress:
        async with open_hub(place.settings) as database, database.read() as conn:
            return await _progress(conn)

    return asyncio.run(read())


def audited_tokens(place: Place) -> set[str]:
    """Return the ids of the tokens that a line of the audit log is about."""

    async def read() -> set[str]:
        async with open_hub(place.settings) as database, database.read() as conn:
            rows = await conn.fetch_all(
                "SELECT details FROM audit_log WHERE action = 'credential.revoke'"
            )
        return {json.loads(row["details"])["token_id"] for row in rows}

    return asyncio.run(read())


def workers_that_hold_tasks(place: Place) -> set[str]:
    async def read() -> set[str]:
        async with open_hub(place.settings) as database, database.read() as conn:
            rows = await conn.fetch_all(
                "SELECT DISTINCT claimed_by FROM tasks WHERE claimed_by IS NOT NULL"
            )
        return {row["claimed_by"] for row in rows}

    return asyncio.run(read())
