"""Clients are remembered for a moment, and not for longer than what they showed is good."""

import ast
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.clock import to_micros
from hublet.core.database import Connection, Database, Reader
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store
from hublet.oauth.apps.records import Logo
from hublet.oauth.clients import ClientCache, ClientCredentials
from hublet.oauth.errors import InvalidClient
from hublet.tokens import service as tokens
from oauth.token_flows import TestApp, an_app
from scratch_database import wait_until_listening


@pytest.fixture
async def app(database: Database) -> TestApp:
    return await an_app(database, secret=True)


@pytest.fixture
async def cache(
    database: Database,
    app: TestApp,
    monkeypatch: pytest.MonkeyPatch,
) -> ClientCache:
    """Return a cache that forgets nothing by itself."""
    await wait_until_listening(database)
    cache = ClientCache(database)
    monkeypatch.setattr(cache, "_seconds", 3600.0)
    return cache


def credentials_of(app: TestApp) -> ClientCredentials:
    return ClientCredentials(client_id=app.client_id, secret=app.secret, by_header=True)


@pytest.fixture
def reads(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the client ids that were looked up in the database."""
    looked_up: list[str] = []
    find = apps.find_app

    async def noted(conn: Reader, client_id: str) -> object:
        looked_up.append(client_id)
        return await find(conn, client_id)

    monkeypatch.setattr(apps, "find_app", noted)
    return looked_up


async def test_a_client_that_proved_itself_is_looked_up_once(
    cache: ClientCache, app: TestApp, reads: list[str]
) -> None:
    first = await cache.authenticate(credentials_of(app))
    second = await cache.authenticate(credentials_of(app))

    assert first is second
    assert first.client_id == app.client_id
    assert reads == [app.client_id]


async def test_a_refusal_is_never_remembered(
    cache: ClientCache, app: TestApp, reads: list[str]
) -> None:
    await cache.authenticate(credentials_of(app))
    for wrong in ("wrong", None):
        for client_id in (app.client_id, "nobody"):
            for _ in range(2):
                with pytest.raises(InvalidClient):
                    await cache.authenticate(ClientCredentials(client_id=client_id, secret=wrong))

    assert reads == [app.client_id] + ([app.client_id] * 2 + ["nobody"] * 2) * 2


async def _report(conn: Connection, app: TestApp) -> None:
    digests = tokens.digests_of(conn.hub.keys, app.secret or "")
    await store.expire_reported_secrets(conn, digests)


async def _expire(conn: Connection, app: TestApp) -> None:
    await store.expire_secrets(conn, app.app.id, at=to_micros(clock.now()))


async def _remove_one(conn: Connection, app: TestApp) -> None:
    managed = await store.find_managed(conn, app.client_id)
    assert managed is not None
    await store.remove_secret(conn, app.app.id, managed.secrets[0].id)


async def _remove_app(conn: Connection, app: TestApp) -> None:
    await store.remove(conn, [app.app.id])


async def _remove_secrets(conn: Connection, app: TestApp) -> None:
    await store.remove_secrets(conn, app.app.id)


@pytest.mark.parametrize("change", [_report, _expire, _remove_one, _remove_secrets, _remove_app])
async def test_a_secret_that_ends_is_refused_at_once(
    database: Database,
    cache: ClientCache,
    app: TestApp,
    change: Callable[[Connection, TestApp], Awaitable[None]],
) -> None:
    await cache.authenticate(credentials_of(app))

    async with database.transaction() as conn:
        await change(conn, app)

    with pytest.raises(InvalidClient):
        await cache.authenticate(credentials_of(app))


async def test_a_secret_that_expires_later_is_refused_then(
    database: Database, cache: ClientCache, app: TestApp
) -> None:
    async with database.transaction() as conn:
        end = to_micros(clock.now() + timedelta(hours=1))
        await store.expire_secrets(conn, app.app.id, at=end)
    await cache.authenticate(credentials_of(app))

    clock.move(timedelta(hours=1, seconds=1))

    with pytest.raises(InvalidClient):
        await cache.authenticate(credentials_of(app))


async def test_a_public_app_that_gets_a_secret_must_prove_it_at_once(
    database: Database, cache: ClientCache
) -> None:
    app = await an_app(database)
    await cache.authenticate(ClientCredentials(client_id=app.client_id))

    async with database.transaction() as conn:
        await secrets.issue(conn, app.app.id)

    with pytest.raises(InvalidClient):
        await cache.authenticate(ClientCredentials(client_id=app.client_id))


async def test_an_app_that_changes_is_read_anew(
    database: Database, cache: ClientCache, app: TestApp
) -> None:
    await cache.authenticate(credentials_of(app))

    async with database.transaction() as conn:
        await store.update(conn, replace(app.app, name="Difference engine"))
    assert (await cache.authenticate(credentials_of(app))).name == "Difference engine"

    async with database.transaction() as conn:
        await store.put_logo(conn, app.app.id, Logo(media_type="image/png", content=b"png"))
    assert (await cache.authenticate(credentials_of(app))).logo_uri is not None


async def test_what_was_read_before_a_change_is_not_remembered_after_it(
    database: Database, cache: ClientCache, app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = apps.find_secret_of

    async def overtaken(conn: Reader, *about: object) -> object:
        found = await find(conn, *about)  # type: ignore[arg-type]
        async with database.transaction() as changing:
            await store.remove_secrets(changing, app.app.id)
        return found

    monkeypatch.setattr(apps, "find_secret_of", overtaken)
    await cache.authenticate(credentials_of(app))
    monkeypatch.setattr(apps, "find_secret_of", find)

    with pytest.raises(InvalidClient):
        await cache.authenticate(credentials_of(app))


def test_everything_that_changes_an_app_or_a_secret_wakes_those_who_remember() -> None:
    tree = ast.parse(inspect.getsource(store))
    changing = ("UPDATE oauth_apps", "DELETE FROM oauth_apps", "UPDATE oauth_secrets",
                "INSERT INTO oauth_secrets", "DELETE FROM oauth_secrets",
                "INSERT INTO oauth_logos", "DELETE FROM oauth_logos")  # fmt: skip
    functions = [
        ast.unparse(each)
        for each in tree.body
        if isinstance(each, ast.AsyncFunctionDef)
        and any(statement in ast.unparse(each) for statement in changing)
    ]

    assert len(functions) == 11
    assert all("conn.wake(CREDENTIALS_CHANNEL)" in each for each in functions)
