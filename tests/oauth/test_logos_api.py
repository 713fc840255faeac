"""Logos of apps."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.oauth.apps.logos import MAX_LOGO_BYTES
from hublet.oauth.apps.service import find_app
from hublet.oauth.records import OAuthApp
from oauth.app_requests import PATH, PNG, create_app, show_app
from people import Headers


async def known(database: Database, client_id: str) -> OAuthApp:
    async with database.read() as conn:
        app = await find_app(conn, client_id)
    assert app is not None
    return app


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff" + bytes(9), "image/jpeg"),
        (b"GIF89a" + bytes(9), "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP" + bytes(9), "image/webp"),
    ],
)
async def test_a_logo_is_served_as_what_it_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers, content: bytes, media_type: str
) -> None:
    created = await create_app(client, ada)
    path = f"{PATH}/{created['clientId']}/logo"

    # What the sender calls it does not count.
    stored = await client.put(
        path, headers=ada | {"Content-Type": "image/svg+xml"}, content=content
    )

    app = await known(database, created["clientId"])
    url = f"http://hub.test/oauth/logos/{app.id}"
    assert (stored.status_code, stored.json()) == (
        200,
        created | {"logoUrl": url, "updatedAt": stored.json()["updatedAt"]},
    )
    assert app.logo_uri == url
    served = await client.get(url)
    assert (served.content, served.headers["content-type"]) == (content, media_type)
    assert served.headers["content-security-policy"].startswith("default-src 'none'")
    assert served.headers["cache-control"] == "public, max-age=300"
    again = await client.get(url, headers={"If-None-Match": served.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_people_are_asked_again_when_the_logo_changes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    path = f"{PATH}/{client_id}/logo"
    revisions = []
    for content in (PNG, PNG, b"GIF89a"):
        await client.put(path, headers=ada, content=content)
        revisions.append((await known(database, client_id)).revision)
    for _ in range(2):
        await client.delete(path, headers=ada)
        revisions.append((await known(database, client_id)).revision)

    assert revisions == [2, 2, 3, 4, 4]


async def test_a_logo_can_be_taken_away(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)
    path = f"{PATH}/{created['clientId']}/logo"
    await client.put(path, headers=ada, content=PNG)

    removed = await client.delete(path, headers=ada)

    app = await known(database, created["clientId"])
    assert (removed.status_code, removed.json()) == (
        200,
        created | {"updatedAt": removed.json()["updatedAt"]},
    )
    gone = await client.get(f"/oauth/logos/{app.id}")
    assert (gone.status_code, gone.json()) == (
        404,
        {"error": f"There is no logo of an app {app.id}."},
    )


async def test_what_is_no_picture_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    created = await create_app(client, ada)
    path = f"{PATH}/{created['clientId']}/logo"

    drawing = await client.put(path, headers=ada, content=b"<svg xmlns='x'/>")
    nothing = await client.put(path, headers=ada, content=b"")

    sentence = "The body must be a PNG, JPEG, GIF or WebP image."
    assert (drawing.status_code, drawing.json()) == (400, {"error": sentence})
    assert (nothing.status_code, nothing.json()) == (400, {"error": sentence})
    assert await show_app(client, ada, created["clientId"]) == created


async def test_a_logo_has_at_most_256_kib(client: httpx2.AsyncClient, ada: Headers) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    path = f"{PATH}/{client_id}/logo"
    whole = PNG + bytes(MAX_LOGO_BYTES - len(PNG))

    fits = await client.put(path, headers=ada, content=whole)
    too_large = await client.put(path, headers=ada, content=whole + b"x")

    assert MAX_LOGO_BYTES == 256 * 1024
    assert fits.status_code == 200
    assert (too_large.status_code, too_large.json()) == (
        413,
        {"error": "A logo must have at most 262144 bytes."},
    )


async def test_a_logo_goes_with_its_app(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    await client.put(f"{PATH}/{client_id}/logo", headers=ada, content=PNG)
    app = await known(database, client_id)

    await client.delete(f"{PATH}/{client_id}", headers=ada)

    assert (await client.get(f"/oauth/logos/{app.id}")).status_code == 404
