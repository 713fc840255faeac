"""Pictures of other sites in what people wrote: links, or pictures where the hub's settings say so."""

from dataclasses import replace

import httpx2
import pytest

from community.discussions import a_discussion
from hublet.core.config import Settings
from hublet.core.database import Database
from people import Headers
from repositories import a_push, a_repo
from web.parsed_pages import HTML, Element, parse

PICTURE = "https://other.example/loss.png"
TEXT = f"![Loss]({PICTURE}) ![Plain](http://other.example/p.png)\n\n<video src={PICTURE}></video>"
PAGES = ["/ada/engine", "/ada/engine/blob/main/README.md", "/ada/engine/discussions/1"]


@pytest.fixture(params=[False, True], ids=["off", "on"])
def remote_images(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def settings(settings: Settings, *, remote_images: bool) -> Settings:
    return replace(settings, pages=replace(settings.pages, remote_images=remote_images))


@pytest.mark.parametrize("path", PAGES)
async def test_pictures_of_other_sites_load_only_where_the_settings_say_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str, *, remote_images: bool
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo_id, {"README.md": TEXT.encode()})
    await a_discussion(client, ada, description=TEXT)

    response = await client.get(path, headers=HTML)
    page = parse(response)

    policy = dict(
        part.strip().split(" ", 1)
        for part in response.headers["content-security-policy"].split(";")
    )
    assert policy["img-src"] == ("'self' data: https:" if remote_images else "'self' data:")
    assert policy["media-src"] == "'self'"
    assert sources_of(page) == ([PICTURE] if remote_images else [])
    # What the policy does not allow is a link with its text, not a broken picture.
    links = {each.text: each.attributes["href"] for each in page.all("a", class_="pic")}
    assert links["Plain"] == "http://other.example/p.png"
    assert links.get("Loss") == (None if remote_images else PICTURE)


def sources_of(page: Element) -> list[str]:
    media = [each for tag in ("img", "video") for each in page.all(tag)]
    return [each.attributes["src"] for each in media if "src" in each.attributes]


async def test_pages_without_texts_of_others_load_no_pictures_of_other_sites(
    client: httpx2.AsyncClient, *, remote_images: bool
) -> None:
    for path in ("/login", "/docs", "/nobody/nothing"):
        policy = (await client.get(path, headers=HTML)).headers["content-security-policy"]
        assert "img-src 'self' data:;" in policy, remote_images
