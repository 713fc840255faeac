"""What every page has: the theme, the head, one answer per version, packed where it can be."""

import httpx2
import pytest

from hublet.core.database import Database
from login.login_pages import a_person, log_in

PACKED = {"Accept-Encoding": "gzip"}


async def test_the_start_page_tells_what_to_put_in_hf_endpoint(client: httpx2.AsyncClient) -> None:
    page = await client.get("/")

    assert "<code>export HF_ENDPOINT=http://hub.test</code>" in page.text


async def test_a_page_that_has_not_changed_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "ada")
    await log_in(client, "ada")
    first = await client.get("/")

    again = await client.get("/", headers={"If-None-Match": first.headers["etag"]})

    # The tokens of its forms differ each time all the same.
    assert (await client.get("/")).text != first.text
    assert again.status_code == 304
    assert again.headers["cache-control"] == "private, no-cache"


async def test_a_page_is_another_for_another_person(
    client: httpx2.AsyncClient, database: Database
) -> None:
    anonymous = (await client.get("/")).headers["etag"]
    await a_person(database, "ada")
    await log_in(client, "ada")

    assert (await client.get("/")).headers["etag"] != anonymous


async def test_a_page_is_packed(client: httpx2.AsyncClient) -> None:
    packed = await client.get("/", headers=PACKED)
    plain = await client.get("/", headers={"Accept-Encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert "Accept-Encoding" in packed.headers["vary"]


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_theme_is_kept_by_the_browser(client: httpx2.AsyncClient, theme: str) -> None:
    response = await client.post("/settings/theme", data={"theme": theme, "next": "/docs"})

    assert (response.status_code, response.headers["location"]) == (303, "/docs")
    assert f'data-theme="{theme}"' in (await client.get("/")).text


async def test_without_a_choice_the_system_decides(client: httpx2.AsyncClient) -> None:
    await client.post("/settings/theme", data={"theme": "dark"})
    await client.post("/settings/theme", data={"theme": "as the system says"})

    assert "data-theme" not in (await client.get("/")).text


async def test_another_site_cannot_choose_the_theme(client: httpx2.AsyncClient) -> None:
    response = await client.post(
        "/settings/theme", data={"theme": "dark"}, headers={"Sec-Fetch-Site": "cross-site"}
    )

    assert response.status_code == 403


async def test_a_forged_theme_is_not_printed(client: httpx2.AsyncClient) -> None:
    client.cookies.set("hublet_theme", '"onclick=x')

    assert "onclick" not in (await client.get("/")).text
