"""How often somebody may try to sign in."""

from dataclasses import replace

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.config import Settings
from hublet.core.database import Database
from login.login_pages import PASSWORD, a_person, form_token_of, log_in, notices_in


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Three attempts for a name, five for an address."""
    login = replace(settings.login, account_attempts=3, address_attempts=5, window_seconds=600)
    return replace(settings, login=login)


def is_refused_for_a_while(response: httpx2.Response) -> bool:
    seconds = response.headers.get("retry-after", "")
    told = [f"Too many attempts to sign in. Try again in {seconds} seconds."]
    return response.status_code == 429 and 0 < int(seconds) <= 600 and notices_in(response) == told


async def try_in_vain(client: httpx2.AsyncClient, *names: str) -> list[int]:
    return [(await log_in(client, name, "wrong")).status_code for name in names]


async def test_a_name_has_so_many_attempts_whatever_the_password(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    failed = await try_in_vain(client, "ada", "ADA", " ada")

    assert failed == [403, 403, 403]
    assert is_refused_for_a_while(await log_in(client))


async def test_an_unknown_name_is_refused_just_as_one_that_exists(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await try_in_vain(client, "nobody", "nobody", "nobody")

    assert is_refused_for_a_while(await log_in(client, "nobody"))


async def test_another_name_still_has_its_own(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await try_in_vain(client, "grace", "grace", "grace")

    assert (await log_in(client)).status_code == 303


async def test_an_address_has_so_many_attempts_for_all_names(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    failed = await try_in_vain(client, "a", "b", "c", "d", "e")

    assert failed == [403] * 5
    assert is_refused_for_a_while(await log_in(client))


async def test_what_succeeds_is_not_counted(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)

    codes = [(await log_in(client)).status_code for _ in range(7)]

    assert codes == [303] * 7


async def test_in_test_mode_nothing_is_refused(
    client: httpx2.AsyncClient, database: Database, app: FastAPI
) -> None:
    await a_person(database)
    app.state.limiter._quiet = True  # noqa: SLF001 - as test mode makes it

    failed = await try_in_vain(client, *["ada"] * 6)

    assert failed == [403] * 6
    assert (await log_in(client)).status_code == 303


async def test_whoever_finds_an_open_browser_cannot_guess_the_password_either(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    path = "/settings/password"
    token = form_token_of(await client.get(path), path)

    async def change(current: str) -> httpx2.Response:
        fields = {
            "form_token": token,
            "current": current,
            "new": "another one",
            "repeated": "another one",
        }
        return await client.post(path, data=fields)

    failed = [(await change(guess)).status_code for guess in ("one", "two", "three")]

    assert failed == [403, 403, 403]
    assert is_refused_for_a_while(await change(PASSWORD))
