"""Whether a credential exists cannot be learned from the response to a report.

That the time does not tell it either is measured by the benchmark `revoke`.
"""

from datetime import timedelta

import httpx2

from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.database import Database
from hublet.tokens import service
from hublet.tokens.format import TokenKind, new_credential
from hublet.tokens.records import TokenRole
from people import a_token, a_user
from workers import drain

PATH = "/api/credentials/revoke"
# These differ from call to call, whatever it holds.
OWN_TO_THE_CALL = {"date", "x-request-id", "ratelimit"}


async def _answer(client: httpx2.AsyncClient, values: list[str]) -> tuple[object, ...]:
    response = await client.post(PATH, json={"credentials": values})
    headers = [pair for pair in response.headers.raw if pair[0].decode() not in OWN_TO_THE_CALL]
    return response.status_code, headers, response.content


async def _expired(database: Database, name: str) -> str:
    user = await a_user(database, name)
    soon = clock.now() + timedelta(minutes=1)
    async with database.transaction() as conn:
        _, value = await service.issue(
            conn, user_id=user.id, name="short", role=TokenRole.read, expires_at=soon
        )
    clock.move(timedelta(minutes=2))
    return value


async def _of_a_disabled_user(database: Database, name: str) -> str:
    value = await a_token(database, name)
    user = await a_user(database, name)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)
    return value


async def test_the_answer_is_the_same_to_the_byte_whatever_was_reported(
    client: httpx2.AsyncClient, database: Database
) -> None:
    real, revoked = await a_token(database, "ada"), await a_token(database, "ada")
    expected = await _answer(client, [revoked])
    await drain(database)
    reports = {
        "unknown": [new_credential("hf_", TokenKind.access)],
        "malformed": ["no token at all"],
        "not even ASCII": ["ключ"],
        "of another hub": ["ghp_" + "x" * 36],
        "as long as may be": ["x" * 200],
        "already revoked": [revoked],
        "expired": [await _expired(database, "grace")],
        "of a disabled user": [await _of_a_disabled_user(database, "bob")],
        "mixed, and one of them twice": [real, "unknown", revoked, real],
    }

    answers = {name: await _answer(client, values) for name, values in reports.items()}

    assert expected[::2] == (202, b"{}")
    assert answers == dict.fromkeys(reports, expected)
