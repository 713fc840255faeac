"""Organizations: creating, showing, changing and following them."""

import httpx2
import pytest

from account_responses import audit_lines, pages_of, user_card
from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.events import (
    MemberAdded,
    OrganizationCreated,
    OrganizationUpdated,
    UserFollowed,
)
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/organizations"


async def test_who_creates_an_organization_administers_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    response = await client.post(
        PATH, headers=ada, json={"name": "Engines", "fullname": "Analytical Engines"}
    )

    assert response.status_code == 200
    created = response.json()
    assert created == {
        "_id": created["_id"],
        "name": "Engines",
        "fullname": "Analytical Engines",
        "avatarUrl": f"http://hub.test/avatars/{created['_id']}",
        "type": "org",
        "isVerified": False,
        "createdAt": created["createdAt"],
        "numUsers": 1,
        "numFollowers": 0,
        "numModels": 0,
        "numDatasets": 0,
        "numSpaces": 0,
        "isFollowing": False,
        "defaultVisibility": "public",
    }
    user = await a_user(database, "ada")
    members = (await client.get(f"{PATH}/engines/members")).json()
    assert members == [user_card(user, role="admin")]
    assert await published_events(database, OrganizationCreated, MemberAdded) == [
        {"organization_id": created["_id"], "name": "Engines"},
        {
            "organization_id": created["_id"],
            "user_id": user.id,
            "role": "admin",
            "actor_id": user.id,
        },
    ]


async def test_without_a_full_name_the_name_is_shown(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.post(PATH, headers=ada, json={"name": "engines"})

    assert response.json()["fullname"] == "engines"


@pytest.mark.parametrize("taken", ["ada", "ADA", "engines", "Engines"])
async def test_users_and_organizations_share_their_names(
    client: httpx2.AsyncClient, database: Database, ada: Headers, taken: str
) -> None:
    await an_organization(database, "engines")

    response = await client.post(PATH, headers=ada, json={"name": taken})

    assert (response.status_code, response.json()) == (
        409,
        {"error": f"The name {taken} is taken."},
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"name": "x"}, "A name has 2 to 42 characters."),
        ({"name": "settings"}, "The name settings is reserved."),
        ({}, "name is required."),
        ({"name": "engines", "fullname": ""}, "fullname must have at least 1 character(s)."),
        ({"name": "engines", "plan": "team"}, "plan is not a known field."),
        ({"name": "eng\x00ines"}, "The body: text must not contain the NUL character."),
    ],
)
async def test_an_organization_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], sentence: str
) -> None:
    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_service_account_founds_no_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )
    account = (
        await client.post(
            f"{PATH}/engines/service-accounts", headers=ada, json={"name": "bot", "role": "write"}
        )
    ).json()
    token = await client.post(
        f"{PATH}/engines/service-accounts/{account['id']}/tokens",
        headers=ada,
        json={"name": "ci", "role": "write"},
    )
    bot = {"Authorization": f"Bearer {token.json()['value']}"}

    response = await client.post(PATH, headers=bot, json={"name": "bots"})

    assert response.status_code == 400
    assert response.json() == {
        "error": "bot is a service account: it belongs to no organization but its own."
    }
    assert (await client.get(f"{PATH}/bots/overview")).status_code == 404


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        (OrganizationPlan.free, {}),
        (OrganizationPlan.team, {"plan": "team"}),
        (OrganizationPlan.enterprise, {"plan": "enterprise"}),
        (OrganizationPlan.enterprise_plus, {"plan": "plus"}),
    ],
)
async def test_anybody_sees_an_overview(
    client: httpx2.AsyncClient, database: Database, plan: OrganizationPlan, shown: dict[str, str]
) -> None:
    organization = await an_organization(
        database, "engines", plan=plan, members={"ada": Role.read, "bob": Role.write}
    )

    response = await client.get(f"{PATH}/ENGINES/overview")

    assert response.status_code == 200
    assert response.json() == shown | {
        "_id": organization.id,
        "name": "engines",
        "fullname": "engines",
        "avatarUrl": f"http://hub.test/avatars/{organization.id}",
        "type": "org",
        "isVerified": False,
        "createdAt": wire(organization.created_at),
        "numUsers": 2,
        "numFollowers": 0,
        "numModels": 0,
        "numDatasets": 0,
        "numSpaces": 0,
    }


@pytest.mark.parametrize("what", ["overview", "members", "followers", "avatar"])
async def test_an_unknown_organization_is_not_found(
    client: httpx2.AsyncClient, database: Database, what: str
) -> None:
    await a_user(database, "ada")

    # A user of that name is no organization.
    response = await client.get(f"{PATH}/ada/{what}")

    assert response.status_code == 404
    assert response.json() == {"error": "There is no organization ada."}


async def test_following_an_organization_is_told_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines")
    user = await a_user(database, "ada")

    for _ in range(2):
        response = await client.post(f"{PATH}/Engines/follow", headers=ada)
        assert (response.status_code, response.json()) == (200, {})

    overview = (await client.get(f"{PATH}/engines/overview", headers=ada)).json()
    assert (overview["numFollowers"], overview["isFollowing"]) == (1, True)
    assert (await client.get(f"{PATH}/engines/followers")).json() == [user_card(user)]
    assert await published_events(database, UserFollowed) == [
        {"follower_id": user.id, "account_id": organization.id}
    ]


async def test_unfollowing_an_organization_can_be_repeated(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines")
    await client.post(f"{PATH}/engines/follow", headers=ada)

    for _ in range(2):
        response = await client.delete(f"{PATH}/engines/follow", headers=ada)
        assert (response.status_code, response.json()) == (200, {})

    assert (await client.get(f"{PATH}/engines/followers")).json() == []


async def test_followers_come_page_by_page(client: httpx2.AsyncClient, database: Database) -> None:
    await an_organization(database, "engines")
    for name in ("ada", "bob", "eve"):
        await client.post(f"{PATH}/engines/follow", headers=await sign_in(database, name))

    pages = await pages_of(client, f"{PATH}/engines/followers?limit=2", "user")

    assert pages == [["ada", "bob"], ["eve"]]


async def test_an_administrator_changes_the_full_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})

    changed = await client.patch(f"{PATH}/engines", headers=ada, json={"fullname": "Engines!"})
    again = await client.patch(f"{PATH}/engines", headers=ada, json={"fullname": "Engines!"})
    kept = await client.patch(f"{PATH}/engines", headers=ada, json={})

    assert [a.json()["fullname"] for a in (changed, again, kept)] == ["Engines!"] * 3
    overview = await client.get(f"{PATH}/engines/overview", headers=ada)
    assert changed.json() == overview.json()
    assert await published_events(database, OrganizationUpdated) == [
        {"organization_id": organization.id}
    ]
    assert await audit_lines(client, ada) == [
        ("organization.update", "engines", {"fullname": "Engines!"})
    ]


async def test_an_administrator_sets_who_sees_new_repositories_and_members_see_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    body = {"defaultVisibility": "private"}
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")

    changed = await client.patch(f"{PATH}/engines", headers=ada, json=body)
    again = await client.patch(f"{PATH}/engines", headers=ada, json=body)

    assert [each.json()["defaultVisibility"] for each in (changed, again)] == ["private"] * 2
    seen = [
        (await client.get(f"{PATH}/engines/overview", headers=headers)).json()
        for headers in (bob, eve, {})
    ]
    assert [overview.get("defaultVisibility") for overview in seen] == ["private", None, None]
    assert await audit_lines(client, ada) == [
        ("organization.update", "engines", {"defaultVisibility": "private"})
    ]


async def test_new_repositories_are_protected_by_no_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})

    refused = await client.patch(
        f"{PATH}/engines", headers=ada, json={"defaultVisibility": "protected"}
    )

    assert refused.status_code == 400
    assert refused.json() == {"error": "defaultVisibility must be one of 'public' or 'private'."}


@pytest.mark.parametrize("body", [{"fullname": "Mine"}, {"defaultVisibility": "private"}])
async def test_others_may_not_change_an_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers, body: dict[str, str]
) -> None:
    await an_organization(database, "engines", members={"bob": Role.write, "eve": Role.admin})
    bob = await sign_in(database, "bob")
    reading = await sign_in(database, "eve", role=TokenRole.read)
    scoped = await sign_in(database, "eve", scopes=["manage-repos", "read-memberships"])

    answers = [
        await client.patch(f"{PATH}/engines", headers=headers, json=body)
        for headers in ({}, ada, bob, reading, scoped)
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403, 403]
    role = {"error": "This needs the role admin in the organization engines."}
    token = {"error": "This needs a token with the role write."}
    assert [answer.json() for answer in answers[1:]] == [role, role, token, token]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", PATH, {"name": "more"}),
        ("POST", f"{PATH}/engines/follow", None),
        ("DELETE", f"{PATH}/engines/follow", None),
    ],
)
async def test_a_read_token_changes_nothing(
    client: httpx2.AsyncClient, database: Database, method: str, path: str, body: object
) -> None:
    await an_organization(database, "engines")
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["manage-repos"])

    statuses = [
        (await client.request(method, path, headers=headers, json=body)).status_code
        for headers in ({}, reading, scoped)
    ]

    assert statuses == [401, 403, 403]


async def test_disabled_members_neither_count_nor_show(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.read})
    bob = await a_user(database, "bob")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, bob)

    overview = (await client.get(f"{PATH}/engines/overview")).json()
    members = (await client.get(f"{PATH}/engines/members")).json()

    assert overview["numUsers"] == 1
    assert [member["user"] for member in members] == ["ada"]
