"""Commands run in processes of their own, and end sessions all the same."""

import asyncio

import pytest

from hublet.accounts.users import service as accounts
from hublet.core.startup import open_hub
from hublet.login import sessions
from hublet.login.records import Visitor
from processes import Place, run_hublet


def hublet(place: Place, *arguments: str) -> None:
    done = run_hublet(*arguments, *place.flags, folder=place.folder)
    assert done.returncode == 0, done.stderr


async def begin_session(place: Place) -> None:
    async with open_hub(place.settings) as database, database.transaction() as conn:
        user = await accounts.get_user(conn, "ada")
        await sessions.begin(conn, user, Visitor(address="127.0.0.1", agent=None))


async def count_sessions(place: Place) -> int:
    async with open_hub(place.settings) as database, database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM sessions")
        return count


@pytest.mark.parametrize("command", ["password", "disable"])
def test_a_command_signs_the_user_out_everywhere(place: Place, command: str) -> None:
    hublet(place, "migrate")
    hublet(place, "user", "add", "ada")
    asyncio.run(begin_session(place))
    before = asyncio.run(count_sessions(place))

    hublet(place, "user", command, "ada")

    assert (before, asyncio.run(count_sessions(place))) == (1, 0)
