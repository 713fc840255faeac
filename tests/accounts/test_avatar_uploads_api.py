"""Pictures of users and organizations."""

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.avatars import MAX_AVATAR_BYTES, default_avatar
from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import OrganizationUpdated, UserUpdated
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in

OWN = "/api/settings/avatar"
OF_ORGANIZATION = "/api/organizations/engines/avatar"

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
GIF = b"GIF89a" + bytes(40)
POLICY = "default-src 'none'; sandbox"


async def test_without_an_upload_a_picture_is_drawn(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_user(database, "Ada")

    response = await client.get(f"/avatars/{user.id}")

    assert response.status_code == 200
    assert response.content == default_avatar(user.id, "Ada")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "public, max-age=300"


async def test_an_uploaded_picture_is_served_as_what_it_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")

    # What the sender calls it does not count.
    named_wrongly = {**ada, "Content-Type": "text/html"}
    stored = await client.put(OWN, headers=named_wrongly, content=PNG)
    served = await client.get(f"/avatars/{user.id}")

    assert (stored.status_code, stored.json()) == (
        200,
        {"avatarUrl": f"http://hub.test/avatars/{user.id}"},
    )
    assert (served.content, served.headers["content-type"]) == (PNG, "image/png")
    assert served.headers["content-security-policy"] == POLICY
    assert await published_events(database, UserUpdated) == [{"user_id": user.id}]


async def test_a_picture_that_the_client_has_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    first = await client.get(f"/avatars/{user.id}")
    known = {"If-None-Match": first.headers["etag"]}

    same = await client.get(f"/avatars/{user.id}", headers=known)
    await client.put(OWN, headers=ada, content=GIF)
    other = await client.get(f"/avatars/{user.id}", headers=known)

    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == first.headers["etag"]
    assert (other.status_code, other.content) == (200, GIF)


async def test_removing_an_upload_brings_the_drawing_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    await client.put(OWN, headers=ada, content=PNG)
    await client.put(OWN, headers=ada, content=GIF)

    for _ in range(2):
        response = await client.delete(OWN, headers=ada)
        assert response.json() == {"avatarUrl": f"http://hub.test/avatars/{user.id}"}

    served = await client.get(f"/avatars/{user.id}")
    assert served.headers["content-type"] == "image/svg+xml"
    # Twice set, once removed; removing nothing is no news.
    assert len(await published_events(database, UserUpdated)) == 3


async def test_an_upload_of_a_disabled_user_is_not_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    await client.put(OWN, headers=ada, content=PNG)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)

    response = await client.get(f"/avatars/{user.id}")

    assert response.headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize("account_id", ["0" * 24, "ada", "x"])
async def test_an_unknown_account_has_no_picture(
    client: httpx2.AsyncClient, ada: Headers, account_id: str
) -> None:
    response = await client.get(f"/avatars/{account_id}")

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no account {account_id}."}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", id="SVG can carry scripts"),
        pytest.param(b"<html></html>", id="a page"),
        pytest.param(b"x" * MAX_AVATAR_BYTES, id="many bytes of nothing known"),
    ],
)
async def test_what_is_no_picture_is_refused(
    client: httpx2.AsyncClient, ada: Headers, content: bytes
) -> None:
    response = await client.put(OWN, headers={**ada, "Content-Type": "image/png"}, content=content)

    assert response.status_code == 400
    assert response.json() == {"error": "The body must be a PNG, JPEG, GIF or WebP image."}


async def test_a_picture_has_a_largest_size(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    largest = PNG.ljust(MAX_AVATAR_BYTES, b"\x00")

    fits = await client.put(OWN, headers=ada, content=largest)
    too_large = await client.put(OWN, headers=ada, content=largest + b"\x00")

    assert fits.status_code == 200
    assert too_large.status_code == 413
    assert too_large.json() == {"error": "A picture must have at most 524288 bytes."}
    served = await client.get(f"/avatars/{(await a_user(database, 'ada')).id}")
    assert served.content == largest


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("path", [OWN, OF_ORGANIZATION])
async def test_changing_a_picture_needs_a_write_token(
    client: httpx2.AsyncClient, database: Database, method: str, path: str
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["manage-repos"])

    statuses = [
        (await client.request(method, path, headers=headers)).status_code
        for headers in ({}, reading, scoped)
    ]

    assert statuses == [401, 403, 403]


async def test_an_administrator_sets_the_picture_of_an_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    where = {"avatarUrl": f"http://hub.test/avatars/{organization.id}"}

    stored = await client.put(OF_ORGANIZATION, headers=ada, content=GIF)
    served = await client.get(f"/avatars/{organization.id}")
    told = await client.get("/api/organizations/Engines/avatar")
    removed = await client.delete(OF_ORGANIZATION, headers=ada)
    drawn = await client.get(f"/avatars/{organization.id}")

    assert [answer.json() for answer in (stored, told, removed)] == [where] * 3
    assert (served.content, served.headers["content-type"]) == (GIF, "image/gif")
    assert drawn.content == default_avatar(organization.id, "engines")
    fact = {"organization_id": organization.id}
    assert await published_events(database, OrganizationUpdated) == [fact, fact]
    assert await audit_lines(client, ada) == [
        ("organization.update", "engines", {"picture": "set"}),
        ("organization.update", "engines", {"picture": "removed"}),
    ]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_others_may_not_change_an_organizations_picture(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str
) -> None:
    await an_organization(database, "engines", members={"bob": Role.write})
    bob = await sign_in(database, "bob")

    for headers in (ada, bob):
        response = await client.request(method, OF_ORGANIZATION, headers=headers, content=PNG)
        assert response.status_code == 403
        assert response.json() == {
            "error": "This needs the role admin in the organization engines."
        }
