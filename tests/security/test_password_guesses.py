"""Guessing passwords: every way to try one counts for the same account."""

import re
from dataclasses import replace

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from login.login_pages import PASSWORD, a_person, log_in
from people import Headers, sign_in

EMAIL = "ada@example.com"
CHANGE = "/api/settings/password"
NEW = "another horse battery"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Three attempts for an account, eight for an address."""
    login = replace(settings.login, account_attempts=3, address_attempts=8, window_seconds=600)
    return replace(settings, login=login)


@pytest.fixture
async def token(database: Database) -> Headers:
    """A token of ada's, who has a password and an address."""
    await a_person(database, email=EMAIL)
    return await sign_in(database, "ada")


async def change(
    client: httpx2.AsyncClient, token: Headers, current: str, new: str = NEW
) -> httpx2.Response:
    body = {"currentPassword": current, "newPassword": new}
    return await client.put(CHANGE, headers=token, json=body)


async def guesses(client: httpx2.AsyncClient, *names: str) -> list[httpx2.Response]:
    return [await log_in(client, name, "wrong") for name in names]


def without_seconds(response: httpx2.Response) -> str:
    return re.sub(r"in \d+ seconds", "soon", response.text)


async def test_a_stolen_token_cannot_guess_the_password(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    failed = [(await change(client, token, guess)).status_code for guess in ("one", "two", "three")]

    response = await change(client, token, PASSWORD)

    seconds = response.headers["retry-after"]
    assert failed == [403] * 3
    assert response.status_code == 429
    assert 0 < int(seconds) <= 600
    assert response.json() == {
        "error": f"Too many attempts to sign in. Try again in {seconds} seconds."
    }


async def test_what_was_guessed_with_a_token_counts_at_the_login(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    for guess in ("one", "two", "three"):
        await change(client, token, guess)

    assert (await log_in(client)).status_code == 403
    assert (await log_in(client, EMAIL)).status_code == 403


async def test_what_was_guessed_at_the_login_counts_for_a_token(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    await guesses(client, "ada", EMAIL, "ada")

    assert (await change(client, token, PASSWORD)).status_code == 429


async def test_guesses_by_name_and_by_address_count_as_one_account(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    await guesses(client, "ada", EMAIL, "ADA")

    assert (await log_in(client, EMAIL)).status_code == 403
    assert (await log_in(client)).status_code == 403


async def test_an_address_is_refused_alike_whether_it_is_an_accounts_or_nobodys(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    """Three wrong passwords for a name and one for an address: is it the address of that name?"""
    await guesses(client, "ada", "ada", "ada")

    own, unknown = await guesses(client, EMAIL, "bob@example.com")

    assert own.status_code == unknown.status_code == 403
    assert own.text.replace(EMAIL, "bob@example.com") == unknown.text


async def test_an_unknown_name_and_a_known_one_are_refused_alike(
    client: httpx2.AsyncClient, token: Headers
) -> None:
    known = await guesses(client, *["ada"] * 4)
    unknown = await guesses(client, *["bob"] * 4)

    assert [each.status_code for each in known] == [403, 403, 403, 429]
    assert [each.status_code for each in unknown] == [403, 403, 403, 429]
    assert without_seconds(known[-1]).replace("ada", "bob") == without_seconds(unknown[-1])


async def test_an_account_that_is_closed_for_a_while_takes_as_long_as_a_wrong_password(
    client: httpx2.AsyncClient, token: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await guesses(client, EMAIL, "ada", EMAIL)
    verified: list[str | None] = []

    async def note(hashed: str | None, _text: str) -> bool:
        verified.append(hashed)
        return False

    monkeypatch.setattr("hublet.login.service.verify_password", note)
    await log_in(client)

    assert verified == [None]


async def test_a_right_password_is_not_counted(client: httpx2.AsyncClient, token: Headers) -> None:
    """Neither at the login, nor where another one is refused or set."""
    weak = [(await change(client, token, PASSWORD, "short")).status_code for _ in range(5)]
    entered = [(await log_in(client, EMAIL)).status_code for _ in range(5)]

    assert weak == [400] * 5
    assert entered == [303] * 5
    assert (await change(client, token, PASSWORD)).status_code == 200


async def test_tokens_of_many_accounts_share_what_an_address_has(
    client: httpx2.AsyncClient, database: Database
) -> None:
    codes = []
    for name in ("ada", "bob", "eve"):
        await a_person(database, name)
        headers = await sign_in(database, name)
        codes += [(await change(client, headers, "wrong")).status_code for _ in range(3)]

    assert codes == [403] * 8 + [429]
