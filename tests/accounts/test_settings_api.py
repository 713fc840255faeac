"""The caller's own profile and password."""

import httpx2
import pytest

from hublet.accounts.users import service as accounts
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.events import PasswordChanged, UserUpdated
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, sign_in

PROFILE = "/api/settings/profile"
PASSWORD = "/api/settings/password"


async def with_password(database: Database, name: str, password: str) -> None:
    user = await a_user(database, name)
    async with database.transaction() as conn:
        await accounts.set_password(conn, user, password)


async def fits(database: Database, name: str, password: str) -> bool:
    async with database.read() as conn:
        return await accounts.find_by_password(conn, name, password) is not None


async def test_a_profile_shows_the_caller(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")

    response = await client.get(PROFILE, headers=ada)

    assert response.status_code == 200
    assert response.json() == {
        "id": user.id,
        "name": "ada",
        "fullname": "ada",
        "avatarUrl": f"http://hub.test/avatars/{user.id}",
        "type": "user",
        "isAdmin": False,
        "createdAt": wire(user.created_at),
    }


async def test_the_full_name_can_be_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")

    changed = await client.patch(PROFILE, headers=ada, json={"fullname": "  Ada Lovelace "})
    again = await client.patch(PROFILE, headers=ada, json={"fullname": "Ada Lovelace"})
    kept = await client.patch(PROFILE, headers=ada, json={})

    assert [r.json()["fullname"] for r in (changed, again, kept)] == ["Ada Lovelace"] * 3
    assert (await client.get(PROFILE, headers=ada)).json() == changed.json()
    assert await published_events(database, UserUpdated) == [{"user_id": user.id}]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"fullname": " "}, "fullname must have at least 1 character(s)."),
        ({"fullname": "x" * 201}, "fullname must have at most 200 characters."),
        ({"fullname": None}, "fullname must be a string."),
        ({"name": "eve"}, "name is not a known field."),
        ({"isAdmin": True}, "isAdmin is not a known field."),
    ],
)
async def test_a_profile_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], sentence: str
) -> None:
    response = await client.patch(PROFILE, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_password_is_changed_by_somebody_who_knows_the_present_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_password(database, "ada", "the old one")

    response = await client.put(
        PASSWORD,
        headers=ada,
        json={"currentPassword": "the old one", "newPassword": "the new one"},
    )

    assert (response.status_code, response.json()) == (200, {})
    assert await fits(database, "ada", "the new one")
    assert not await fits(database, "ada", "the old one")
    assert len(await published_events(database, PasswordChanged)) == 2


async def test_a_wrong_present_password_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_password(database, "ada", "the old one")

    response = await client.put(
        PASSWORD, headers=ada, json={"currentPassword": "a guess", "newPassword": "the new one"}
    )

    assert response.status_code == 403
    assert response.json() == {"error": "currentPassword is not the password of this account."}
    assert await fits(database, "ada", "the old one")


async def test_a_weak_password_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_password(database, "ada", "the old one")

    response = await client.put(
        PASSWORD, headers=ada, json={"currentPassword": "the old one", "newPassword": "short"}
    )

    assert response.status_code == 400
    assert response.json() == {"error": "A password has at least 8 characters."}
    assert await fits(database, "ada", "the old one")


async def test_who_has_no_password_cannot_set_one_with_a_token(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    response = await client.put(
        PASSWORD, headers=ada, json={"currentPassword": "", "newPassword": "the new one"}
    )

    assert response.status_code == 403
    assert response.json() == {
        "error": "This account has no password; only a hub administrator can set one."
    }
    assert await published_events(database, PasswordChanged) == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PROFILE),
        ("PATCH", PROFILE),
        ("PUT", PASSWORD),
        ("GET", "/api/settings/emails"),
        ("POST", "/api/settings/emails"),
        ("DELETE", "/api/settings/emails/1"),
        ("POST", "/api/settings/emails/1/primary"),
        ("GET", "/api/settings/ssh-keys"),
        ("POST", "/api/settings/ssh-keys"),
        ("DELETE", "/api/settings/ssh-keys/1"),
    ],
)
async def test_ones_own_settings_need_a_write_token(
    client: httpx2.AsyncClient, database: Database, method: str, path: str
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["profile", "email"])
    body = {
        "fullname": "x", "currentPassword": "x", "newPassword": "x", "email": "a@b.c",
        "title": "x", "key": "x",
    }  # fmt: skip
    wanted = {
        PROFILE: ["fullname"], PASSWORD: ["currentPassword", "newPassword"],
        "/api/settings/emails": ["email"], "/api/settings/ssh-keys": ["title", "key"],
    }  # fmt: skip
    content = {key: body[key] for key in wanted.get(path, [])}

    answers = [
        await client.request(method, path, headers=headers, json=content)
        for headers in ({}, reading, scoped)
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403]
    assert answers[1].json() == {"error": "This needs a token with the role write."}
