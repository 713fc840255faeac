"""The webhooks of an organization: its administrators manage them, its audit log tells of it."""

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Organization, Role
from hublet.core.database import Database
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo
from webhooks.webhook_calls import JOB_ID, URL, create, refusal
from webhooks.webhook_calls import PATH as OWN

PATH = "/api/organizations/engines/settings/webhooks"
WATCHED = [{"type": "org", "name": "engines"}]
BODY = {"watched": WATCHED, "domains": ["repo", "discussion"], "url": URL}


@pytest.fixture
async def engines(database: Database) -> Organization:
    return await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": Role.write, "eve": Role.admin}
    )


async def narrow(
    database: Database, name: str, on: Organization, scopes: Sequence[Scope] = (Scope.webhooks,)
) -> Headers:
    """Sign in with a token whose scopes hold only on what one organization owns."""
    user = await a_user(database, name)
    grant = ScopedGrant(
        entity_id=on.id, entity_type="org", entity_name=on.name, scopes=frozenset(scopes)
    )
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="narrow",
            role=TokenRole.fine_grained,
            grants=Grants(scoped=(grant,)),
        )
    return {"Authorization": f"Bearer {value}"}


async def test_an_organizations_webhook_from_its_creation_to_its_end(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    webhook = await create(client, ada, path=PATH, watched=WATCHED, secret="s")
    picture = f"http://hub.test/avatars/{engines.id}"
    assert webhook == {
        "id": webhook["id"],
        "url": URL,
        "disabled": False,
        "watched": [{"name": "engines", "type": "org", "avatarUrl": picture}],
        "hasSecret": True,
        "domains": ["repo", "discussion"],
    }
    one = f"{PATH}/{webhook['id']}"

    # Every administrator manages it, whoever created it.
    eve = await sign_in(database, "eve")
    answers = [
        await client.get(one, headers=eve),
        await client.post(one, headers=eve, json={"watched": [], "domains": ["repo"]}),
        await client.post(f"{one}/disable", headers=eve),
        await client.post(f"{one}/enable", headers=eve),
    ]

    changed = webhook | {"domains": ["repo"]}
    assert [answer.json() for answer in answers] == [
        {"webhook": webhook},
        {"webhook": changed},
        {"webhook": changed | {"disabled": True}},
        {"webhook": changed},
    ]
    assert (await client.get(PATH, headers=ada)).json() == [changed]
    assert (await client.delete(one, headers=eve)).json() == {}
    assert (await client.get(PATH, headers=ada)).json() == []


async def test_own_webhooks_and_those_of_an_organization_do_not_meet(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: Organization
) -> None:
    await an_organization(database, "boats", members={"ada": Role.admin})
    boats = PATH.replace("engines", "boats")
    theirs = await create(client, ada, path=PATH, watched=WATCHED)
    own = await create(client, ada, watched=WATCHED)

    for path in (
        f"{OWN}/{theirs['id']}",
        f"{PATH}/{own['id']}",
        f"{boats}/{theirs['id']}",
        f"{boats}/{own['id']}",
    ):
        answer = await client.get(path, headers=ada)
        assert answer.status_code == 404, path
    for path, listed in ((OWN, [own]), (PATH, [theirs]), (boats, [])):
        assert (await client.get(path, headers=ada)).json() == listed
    assert engines.id != (await a_user(database, "ada")).id


ALL = [
    ("GET", ""),
    ("POST", ""),
    ("GET", "/{id}"),
    ("POST", "/{id}"),
    ("DELETE", "/{id}"),
    ("POST", "/{id}/enable"),
    ("POST", "/{id}/disable"),
]


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize(("method", "place"), ALL)
async def test_only_administrators_with_the_scope_there_are_let_in(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, place: str
) -> None:
    boats = await an_organization(database, "boats", members={"ada": Role.admin})
    webhook = await create(client, ada, path=PATH, watched=WATCHED)
    path = PATH + place.format(id=webhook["id"])
    needs_role = (403, {"error": "This needs the role admin in the organization engines."})
    needs_scope = (403, {"error": "The token lacks the scope webhooks."})
    expected = [
        (await sign_in(database, "bob"), needs_role),
        (await sign_in(database, "stranger"), needs_role),
        (await sign_in(database, "ada", scopes=["manage-repos"]), needs_scope),
        (await narrow(database, "ada", boats), needs_scope),
    ]

    for headers, refused in expected:
        answer = await client.request(method, path, headers=headers, json=BODY)
        assert (answer.status_code, answer.json()) == refused
    assert (await client.request(method, path, json=BODY)).status_code == 401
    assert (await client.get(PATH, headers=ada)).json() == [webhook]


@pytest.mark.parametrize(("method", "place"), ALL)
async def test_there_are_no_webhooks_of_no_organization(
    client: httpx2.AsyncClient, ada: Headers, method: str, place: str
) -> None:
    path = PATH + place.format(id=JOB_ID)

    answer = await client.request(method, path, headers=ada, json=BODY)

    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "There is no organization engines."},
    )


async def test_a_scope_for_the_organization_is_enough_there_and_only_there(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    headers = await narrow(database, "ada", engines)

    webhook = await create(client, headers, path=PATH, watched=WATCHED)

    assert (await client.get(PATH, headers=headers)).json() == [webhook]
    for answer in (
        await client.get(OWN, headers=headers),
        await client.post(OWN, headers=headers, json=BODY),
    ):
        assert (answer.status_code, answer.json()) == (
            403,
            {"error": "The token lacks the scope webhooks."},
        )


@pytest.mark.usefixtures("engines")
async def test_it_watches_its_own_private_repositories_and_no_others(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("engines/secret", "ada/secret"):
        await a_repo(client, ada, name, private=True)
    await a_repo(client, ada, "ada/open")
    allowed = [{"type": "model", "name": name} for name in ("engines/secret", "ada/open")]
    forbidden = [*allowed, {"type": "model", "name": "ada/secret"}]

    webhook = await create(client, ada, path=PATH, watched=allowed)
    refused = await refusal(client, ada, BODY | {"watched": forbidden}, path=PATH)
    changed = await refusal(client, ada, {"watched": forbidden}, path=f"{PATH}/{webhook['id']}")

    sentence = (
        "watched[2]: a webhook of engines cannot watch the model ada/secret, "
        "which is private to somebody else."
    )
    assert refused == changed == (400, sentence)
    assert [each["name"] for each in webhook["watched"]] == ["engines/secret", "ada/open"]
    assert (await client.get(PATH, headers=ada)).json() == [webhook]


@pytest.mark.usefixtures("engines")
async def test_the_audit_log_tells_what_was_changed_but_no_values(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, path=PATH, watched=WATCHED)
    one = f"{PATH}/{webhook['id']}"
    change = {"watched": [], "secret": "hidden", "url": f"{URL}/2"}
    await client.post(one, headers=ada, json=change)
    for word in ("disable", "disable", "enable", "enable"):
        await client.post(f"{one}/{word}", headers=ada)
    await client.delete(one, headers=ada)

    log = await client.get("/api/organizations/engines/audit-log", headers=ada)

    lines: list[dict[str, Any]] = [
        line for line in reversed(log.json()) if line["action"].startswith("webhook.")
    ]
    assert [(line["action"], line["target"], line["details"]) for line in lines] == [
        ("webhook.create", webhook["id"], {}),
        ("webhook.update", webhook["id"], {"fields": ["secret", "url"]}),
        ("webhook.disable", webhook["id"], {}),
        ("webhook.enable", webhook["id"], {}),
        ("webhook.delete", webhook["id"], {}),
    ]
    ada_id = (await a_user(database, "ada")).id
    assert [line["actor"] for line in lines] == [{"id": ada_id, "name": "ada"}] * 5
    assert {line["address"] for line in lines} == {"127.0.0.1"}


@pytest.mark.usefixtures("engines")
async def test_what_a_member_does_with_own_webhooks_is_not_the_organizations_business(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await create(client, ada, watched=WATCHED)

    log = await client.get("/api/organizations/engines/audit-log", headers=ada)

    assert [line for line in log.json() if line["action"].startswith("webhook.")] == []
