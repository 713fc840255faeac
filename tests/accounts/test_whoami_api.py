"""`GET /api/whoami-v2`, as the public clients read it."""

import httpx2

from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/whoami-v2"


async def test_a_write_token_sees_everything(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise_plus, members={"ada": Role.admin}
    )
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        await accounts.add_email(conn, user, "ada@example.com", verified=True)

    response = await client.get(PATH, headers=ada)

    assert response.status_code == 200
    answer = response.json()
    assert answer == {
        "type": "user",
        "id": user.id,
        "name": "ada",
        "fullname": "ada",
        "avatarUrl": f"http://hub.test/avatars/{user.id}",
        "isPro": False,
        "email": "ada@example.com",
        "emailVerified": True,
        "canPay": False,
        "orgs": [
            {
                "type": "org",
                "id": organization.id,
                "name": "engines",
                "fullname": "engines",
                "avatarUrl": f"http://hub.test/avatars/{organization.id}",
                "roleInOrg": "admin",
                "plan": "plus",
            }
        ],
        "auth": {
            "type": "access_token",
            "accessToken": {
                "displayName": "ada's token",
                "role": "write",
                "createdAt": answer["auth"]["accessToken"]["createdAt"],
            },
        },
    }


async def test_a_fine_grained_token_sees_only_what_its_scopes_reach(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "engines", members={"bob": Role.read})
    bob = await sign_in(database, "bob", scopes=["webhooks", "manage-repos"])

    answer = (await client.get(PATH, headers=bob)).json()

    assert not {"email", "emailVerified", "canPay"} & answer.keys()
    assert answer["orgs"] == []
    assert answer["auth"]["accessToken"]["fineGrained"] == {
        "global": ["manage-repos", "webhooks"],
        "scoped": [],
        "canReadGatedRepos": False,
    }


async def test_a_read_token_names_its_role(client: httpx2.AsyncClient, database: Database) -> None:
    bob = await sign_in(database, "bob", role=TokenRole.read)

    answer = (await client.get(PATH, headers=bob)).json()

    assert answer["auth"]["accessToken"]["role"] == "read"


async def test_without_a_token_the_answer_says_how_to_send_one(client: httpx2.AsyncClient) -> None:
    response = await client.get(PATH)

    assert response.status_code == 401
    assert response.json() == {
        "error": "A token is needed: send it as `Authorization: Bearer <token>`."
    }
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_wrong_token_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.get(PATH, headers={"Authorization": "Bearer hf_wrong"})

    assert response.status_code == 401
    assert response.headers["x-error-message"] == "Invalid credentials in Authorization header"


async def test_what_changed_is_shown_at_once_though_the_caller_is_remembered(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    before = (await client.get(PATH, headers=ada)).json()
    await an_organization(database, "engines", members={"ada": Role.admin})
    joined = (await client.get(PATH, headers=ada)).json()
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET fullname = $1 WHERE id = $2", "Ada L.", user.id)
    renamed = (await client.get(PATH, headers=ada)).json()

    assert [len(each["orgs"]) for each in (before, joined, renamed)] == [0, 1, 1]
    assert [each["fullname"] for each in (joined, renamed)] == ["ada", "Ada L."]
