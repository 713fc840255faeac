"""One's own webhooks: created, listed, shown and changed, by their owner alone."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from people import Headers, a_user, sign_in
from repositories import a_repo
from webhooks.webhook_calls import (
    BODY,
    JOB_ID,
    PATH,
    URL,
    a_source_job,
    create,
    refusal,
    show,
    update,
)


@pytest.fixture(autouse=True)
async def _source_job(database: Database) -> None:
    await a_source_job(database)


async def test_a_created_webhook_is_shown_whole(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    watched = [{"type": "model", "name": "ada/engine"}, {"type": "user", "name": "ada"}]
    body = {"watched": watched, "url": URL, "domains": ["discussion"], "secret": "s3cret"}

    created = await client.post(PATH, headers=ada, json=body)

    picture = f"http://hub.test/avatars/{(await a_user(database, 'ada')).id}"
    webhook = created.json()["webhook"]
    assert (created.status_code, created.json()) == (
        200,
        {
            "webhook": {
                "id": webhook["id"],
                "url": URL,
                "disabled": False,
                "watched": [
                    {"name": "ada/engine", "type": "model", "avatarUrl": picture},
                    {"name": "ada", "type": "user", "avatarUrl": picture},
                ],
                "hasSecret": True,
                "domains": ["discussion"],
            }
        },
    )
    assert await show(client, ada, webhook["id"]) == webhook
    assert (await client.get(PATH, headers=ada)).json() == [webhook]


@pytest.mark.parametrize(
    ("domains", "stored"),
    [
        pytest.param({}, ["repo", "discussion"], id="left out, both"),
        pytest.param({"domains": ["repo"]}, ["repo"], id="one"),
        pytest.param({"domains": ["discussions"]}, ["discussion"], id="the older client's plural"),
        pytest.param(
            {"domains": ["discussion", "discussions", "repo", "repo"]},
            ["repo", "discussion"],
            id="each is kept once",
        ),
    ],
)
async def test_domains(
    client: httpx2.AsyncClient, ada: Headers, domains: dict[str, Any], stored: list[str]
) -> None:
    webhook = await create(client, ada, **domains)

    assert webhook["domains"] == stored
    assert (await show(client, ada, webhook["id"]))["domains"] == stored


async def test_webhooks_are_listed_oldest_first(client: httpx2.AsyncClient, ada: Headers) -> None:
    assert (await client.get(PATH, headers=ada)).json() == []

    created = [await create(client, ada, url=f"{URL}/{number}") for number in range(3)]

    assert (await client.get(PATH, headers=ada)).json() == created


async def test_the_list_shows_each_kind_of_target(client: httpx2.AsyncClient, ada: Headers) -> None:
    job = {"spaceId": "ada/app", "flavor": "cpu-basic", "secrets": {"KEY": "v"}}
    await a_repo(client, ada, "ada/app", type="space")

    created = [
        await create(client, ada),
        await create(client, ada, job=job),
        await create(client, ada, jobSourceId=JOB_ID),
    ]

    assert (await client.get(PATH, headers=ada)).json() == created
    shown: dict[str, Any] = {
        "environment": {},
        "flavor": "cpu-basic",
        "timeoutSeconds": None,
        "spaceId": "ada/app",
    }
    assert [each.get("job") for each in created] == [None, shown | {"secrets": ["KEY"]}, None]
    assert [each.get("jobSourceId") for each in created] == [None, None, JOB_ID]
    assert [each.get("url") for each in created] == [URL, None, None]


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        pytest.param({"watched": [], "url": f"{URL}/2"}, {"url": f"{URL}/2"}, id="the url alone"),
        pytest.param({"watched": [], "secret": "zz"}, {"hasSecret": True}, id="the secret alone"),
        pytest.param({"watched": [], "domains": ["repo"]}, {"domains": ["repo"]}, id="the domains"),
        pytest.param({"watched": []}, {}, id="nothing, as the clients say it"),
        pytest.param({}, {}, id="nothing at all"),
        pytest.param(
            {"watched": [], "jobSourceId": JOB_ID, "secrets": {"K": "v"}},
            {"url": None, "jobSourceId": JOB_ID},
            id="a job in the place of the url",
        ),
    ],
)
async def test_an_update_changes_what_it_names(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], changes: dict[str, Any]
) -> None:
    before = await create(client, ada)

    updated = await client.post(f"{PATH}/{before['id']}", headers=ada, json=body)

    after = {key: value for key, value in (before | changes).items() if value is not None}
    assert (updated.status_code, updated.json()) == (200, {"webhook": after})
    assert await show(client, ada, before["id"]) == after


async def test_another_list_takes_the_place_of_what_was_watched(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_user(database, "bob")
    before = await create(client, ada)

    after = await update(client, ada, before["id"], watched=[{"type": "user", "name": "bob"}])

    assert [each["name"] for each in after["watched"]] == ["bob"]
    assert after == before | {"watched": after["watched"]}


ON_ONE = [("GET", ""), ("POST", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable")]


@pytest.mark.parametrize(("method", "word"), ON_ONE)
async def test_another_users_webhook_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, word: str
) -> None:
    webhook = await create(client, ada)
    bob = await sign_in(database, "bob")

    body = {"domains": ["repo"]} if word == "" and method == "POST" else None
    answer = await client.request(method, f"{PATH}/{webhook['id']}{word}", headers=bob, json=body)

    assert (answer.status_code, answer.json()) == (
        404,
        {"error": f"There is no webhook {webhook['id']}."},
    )
    assert (await client.get(PATH, headers=bob)).json() == []
    assert await show(client, ada, webhook["id"]) == webhook


@pytest.mark.parametrize(("method", "word"), [*ON_ONE, ("GET", None), ("POST", None)])
async def test_each_operation_needs_the_scope(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, word: str | None
) -> None:
    webhook = await create(client, ada)
    path = PATH if word is None else f"{PATH}/{webhook['id']}{word}"
    reading = await sign_in(database, "ada", role=TokenRole.read)
    elsewhere = await sign_in(database, "ada", scopes=["manage-repos"])

    strange = await client.request(method, path)
    answers = [await client.request(method, path, headers=each) for each in (reading, elsewhere)]

    assert strange.status_code == 401
    for answer in answers:
        assert (answer.status_code, answer.json()) == (
            403,
            {"error": "The token lacks the scope webhooks."},
        )


async def test_the_scope_alone_is_enough(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    manager = await sign_in(database, "ada", scopes=["webhooks"])

    webhook = await create(client, manager)
    await update(client, manager, webhook["id"], domains=["repo"])
    deleted = await client.delete(f"{PATH}/{webhook['id']}", headers=manager)

    assert deleted.status_code == 200


async def test_a_webhook_keeps_its_place_in_the_list_when_it_changes(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    first, second = await create(client, ada), await create(client, ada)
    clock.move(timedelta(days=1))

    await update(client, ada, first["id"], domains=["repo"])

    listed = (await client.get(PATH, headers=ada)).json()
    assert [each["id"] for each in listed] == [first["id"], second["id"]]


async def test_what_is_not_a_webhook_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    assert await refusal(client, ada, BODY | {"color": "red"}) == (
        400,
        "color is not a known field.",
    )
