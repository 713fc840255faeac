"""Cards, gates and file names that try to become part of a page, or of what people copy from it."""

import httpx2

from hublet.core.database import Database
from hublet.repos import cards
from hublet.repos.records import RepoType
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repositories import a_push, a_repo
from web.parsed_pages import HTML, Element, parse

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)


def check_inert(page: Element) -> None:
    """Assert that a page has no script but its own, no handler, no style and no foreign address."""
    scripts = [each.attributes.get("src", "") for each in page.all("script")]
    assert all(each.startswith("/static/") for each in scripts)
    for element in elements_of(page):
        assert not any(name.startswith("on") for name in element.attributes), element
        assert "style" not in element.attributes
        for name in ("href", "src", "action"):
            assert not element.attributes.get(name, "").lower().startswith("javascript:")


def elements_of(root: Element) -> list[Element]:
    return [root, *(each for child in root.children for each in elements_of(child))]


async def show(client: httpx2.AsyncClient, path: str) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    page = parse(response)
    check_inert(page)
    return page


async def test_nothing_of_a_card_becomes_part_of_the_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    card = {
        "tags": list(ATTACKS),
        "pipeline_tag": ATTACKS[0],
        "extra_gated_heading": ATTACKS[0],
        "extra_gated_prompt": ATTACKS[1],
        "extra_gated_description": ATTACKS[2],
        "extra_gated_button_content": ATTACKS[1],
        "extra_gated_fields": dict.fromkeys(ATTACKS, "text")
        | {"choice": {"type": "select", "options": list(ATTACKS)}},
    }
    tags = cards.tags_of(card, RepoType.model)
    await a_push(database, repo_id, {"README.md": b"# Hi", "a": b""}, card=card, tags=tags)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})
    await a_person(database, "bob")

    stranger = await show(client, "/ada/engine")
    await log_in(client, "bob")
    reader = await show(client, "/ada/engine")

    assert [each.text for each in stranger.all("a", class_="chip")] == list(ATTACKS)
    assert reader.one("section", id="gate").one("h2").text == ATTACKS[0]
    labels = [each.text for each in reader.one("section", id="gate").all("label")]
    assert labels == [*ATTACKS, "choice"]


async def test_a_task_cannot_put_code_into_what_people_copy(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    task = 'x"); __import__("os").system("id"); ("'
    card = {"library_name": "transformers", "pipeline_tag": task}
    await a_push(database, repo_id, {"README.md": b"# Hi", "a": b""}, card=card)

    page = await show(client, "/ada/engine")

    code = [each.text for each in page.all("code")]
    assert code
    assert not any("system" in each for each in code)


async def test_names_of_files_stay_text(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)
    ada = await sign_in(database, "ada")
    await a_repo(client, ada, "ada/box", type="bucket")
    names = [each.replace("/", "-") for each in ATTACKS]
    for name in names:
        url = httpx2.URL("http://hub.test", path=f"/api/buckets/ada/box/files/{name}")
        assert (await client.put(url, headers=ada, content=b"x")).status_code == 200
    await log_in(client)

    folder = await show(client, "/buckets/ada/box")

    links = [each.one("a") for each in folder.one("tbody").all("tr")]
    assert sorted(each.text for each in links) == sorted(names)
    for link in links:
        file = await show(client, link.attributes["href"])
        assert file.one("nav", class_="crumbs").one("b").text == link.text
