"""Pages of containers: tags, images with layers, deletion of a tag, retention, lists."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import RepoImagesUpdated
from login.login_pages import a_person, log_in
from outbox_events import published_events
from people import sign_in
from registry.stored_images import (
    a_config,
    a_manifest,
    an_index,
    store_image,
    store_manifest,
)
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse

TOOL = "/containers/ada/tool"


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, database: Database) -> str:
    await a_person(database)
    return await a_repo(client, await sign_in(database, "ada"), "ada/tool", type="container")


async def open_page(client: httpx2.AsyncClient, path: str, *, status: int = 200) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == status, response.text
    return parse(response)


async def send(
    client: httpx2.AsyncClient, page: str, action: str, **fields: str
) -> httpx2.Response:
    form = (await open_page(client, page)).one("form", action=action)
    token = form.one("input", name="form_token").attributes["value"]
    return await client.post(action, data=fields | {"form_token": token}, headers=HTML)


def rows_of(page: Element) -> list[tuple[str, str, str]]:
    """Return the tag, the address and the platforms of each row."""
    return [
        (row.one("a").text, row.one("a").attributes["href"], row.all("td")[1].text)
        for row in page.one("tbody").all("tr")
    ]


async def test_a_container_shows_its_tags_and_how_to_pull_them(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1.0")
    await store_image(database, repo_id, "cuda", image="gpu", layers=[b"x"])

    page = await open_page(client, TOOL)
    own = await open_page(client, f"{TOOL}?image=&search=1")

    assert rows_of(page) == [
        ("gpu:cuda", f"{TOOL}/tags/gpu/cuda", "linux/amd64"),
        ("1.0", f"{TOOL}/tags/1.0", "linux/amd64"),
    ]
    assert [row[0] for row in rows_of(own)] == ["1.0"]
    aside = page.one("aside").text
    assert "docker pull hub.test/ada/tool/gpu:cuda" in aside
    assert "podman pull --tls-verify=false hub.test/ada/tool/gpu:cuda" in aside
    assert "hf jobs run hub.test/ada/tool/gpu:cuda" in aside
    assert "2 tags in 2 images" in aside


async def test_a_tag_shows_layers_with_the_commands_that_made_them(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    config = a_config("ADD <rootfs>", "RUN make", Entrypoint=["tool"], Cmd=["--help me"])
    await store_image(database, repo_id, "1", layers=[b"base", b"made"], config=config)

    page = await open_page(client, f"{TOOL}/tags/1")

    layers = page.one("ol", class_="layers").all("li")
    assert [layer.one("pre").text for layer in layers] == ["ADD <rootfs>", "RUN make"]
    assert all("4 B" in layer.text for layer in layers)
    assert "tool '--help me'" in page.one("aside").text
    assert page.all("a", href=f"{TOOL}/delete-tag/1") == []


async def test_an_index_leads_to_the_image_of_each_platform(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    config = a_config("RUN make", architecture="arm64")
    child = await store_image(database, repo_id, config=config)
    manifests = {"linux/arm64": a_manifest(config, [b"layer"]), "linux/s390x": b"never pushed"}
    await store_manifest(database, repo_id, an_index(manifests), "1")

    page = await open_page(client, f"{TOOL}/tags/1")
    link = page.one("tbody").one("a")

    assert (link.text, link.attributes["href"]) == ("linux/arm64", f"{TOOL}/tags/{child}")
    assert "linux/s390x was not pushed" in page.one("tbody").text
    image = await open_page(client, link.attributes["href"])
    assert f"docker pull hub.test/ada/tool@{child}" in image.one("aside").text
    assert image.one("ol", class_="layers").one("pre").text == "RUN make"


async def test_an_empty_container_says_how_to_push(
    client: httpx2.AsyncClient, repo_id: str
) -> None:
    stranger = await open_page(client, TOOL)
    await log_in(client)
    owner = await open_page(client, TOOL)

    assert stranger.one("div", class_="empty").text == "No images here yet."
    text = owner.one("div", class_="empty").text
    assert "docker login hub.test -u ada" in text
    assert "docker push hub.test/ada/tool:latest" in text


async def test_a_tag_is_deleted_after_a_question(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    digest = await store_image(database, repo_id, "old", "new")
    await log_in(client)
    tag = await open_page(client, f"{TOOL}/tags/old")
    assert tag.one("a", href=f"{TOOL}/delete-tag/old").text == "Delete this tag"

    path = f"{TOOL}/delete-tag/old"
    response = await send(client, path, path)

    assert response.headers["location"] == TOOL
    assert [row[0] for row in rows_of(await open_page(client, TOOL))] == ["new"]
    await open_page(client, f"{TOOL}/tags/old", status=404)
    [event] = await published_events(database, RepoImagesUpdated)
    assert event["updated_images"] == [
        {"path": "", "tag": "old", "old_digest": digest, "new_digest": None}
    ]


async def test_retention_is_set_in_the_settings(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await log_in(client)
    path = f"{TOOL}/settings/retention"
    assert (await open_page(client, f"{TOOL}/settings")).all("a", href=path)

    saved = await send(client, path, path, keep_tags="10", untagged_days="")
    wrong = await send(client, path, path, keep_tags="many", untagged_days="7")

    assert saved.headers["location"] == path
    page = await open_page(client, path)
    assert page.one("input", id="keep_tags").attributes["value"] == "10"
    assert page.one("input", id="untagged_days").attributes["value"] == ""
    assert wrong.status_code == 422
    assert parse(wrong).one("p", role="alert").text.startswith("Tags must be a whole number")
    assert parse(wrong).one("input", id="keep_tags").attributes["value"] == "many"


async def test_strangers_find_neither_the_deletion_nor_the_retention(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await store_image(database, repo_id, "1")
    await a_person(database, "grace")
    await log_in(client, "grace")

    for end in ("delete-tag/1", "settings/retention"):
        await open_page(client, f"{TOOL}/{end}", status=403)


async def test_containers_are_listed_for_all_and_for_their_owner(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    grace = await sign_in(database, "grace")
    await a_repo(client, grace, "grace/loom", type="container")

    page = await open_page(client, "/containers?sort=createdAt")
    filtered = await open_page(client, "/containers?search=too&author=ada")
    profile = await open_page(client, "/ada")

    assert [row.one("a").text for row in page.one("ul", class_="found").all("li")] == [
        "grace/loom",
        "ada/tool",
    ]
    assert filtered.one("ul", class_="found").one("a").text == "ada/tool"
    assert profile.one("a", href="/containers?author=ada").text == "Containers"


@pytest.mark.parametrize("end", ["/tags/nothing", f"/tags/sha256:{'0' * 64}", "?after=x:y"])
async def test_what_is_not_there_is_a_page_too(
    client: httpx2.AsyncClient, repo_id: str, end: str
) -> None:
    response = await client.get(TOOL + end, headers=HTML)

    assert response.status_code in {400, 404, 422}
    assert parse(response).one("h1").text
