"""Pages of buckets and containers: folders, files, and who may see them."""

import httpx2
import pytest

from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse

FILES = ("notes.txt", "data/a b.csv", "data/deep/c.csv")


async def fill(
    client: httpx2.AsyncClient, headers: Headers, *paths: str, kind: str = "bucket", **body: object
) -> None:
    """Make ada/box with these files, each of five bytes."""
    await a_repo(client, headers, "ada/box", type=kind, **body)
    for path in paths:
        url = f"/api/{kind}s/ada/box/files/{path}"
        response = await client.put(url, headers=headers, content=b"12345")
        assert response.status_code == 200, response.text


async def open_page(client: httpx2.AsyncClient, path: str) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


def rows_of(page: Element) -> list[tuple[str, str, str]]:
    """Return the name, the address and the size of each row."""
    return [
        (row.one("a").text, row.one("a").attributes["href"], row.all("td")[1].text)
        for row in page.one("tbody").all("tr")
    ]


@pytest.mark.parametrize("kind", ["bucket", "container"])
async def test_a_page_shows_files_by_folder(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    await fill(client, ada, *FILES, kind=kind)
    start = f"/{kind}s/ada/box"
    # The page of a container shows its tags.
    top = f"{start}/tree" if kind == "container" else start

    root = await open_page(client, top)
    folder = await open_page(client, f"{start}/tree/data")

    assert rows_of(root) == [
        ("data", f"{start}/tree/data", ""),
        ("notes.txt", f"{start}/tree/notes.txt", "5 B"),
    ]
    assert rows_of(folder) == [
        ("a b.csv", f"{start}/tree/data/a%20b.csv", "5 B"),
        ("deep", f"{start}/tree/data/deep", ""),
    ]
    assert rows_of(await open_page(client, f"{start}/tree")) == rows_of(root)
    assert root.one("dl", class_="facts").all("dd")[0].text == "15 B in 3 files"
    crumbs = folder.one("nav", class_="crumbs")
    assert (crumbs.text, crumbs.one("a").attributes["href"]) == ("box/data", top)


async def test_a_file_has_a_page_at_the_address_that_the_client_prints(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await fill(client, ada, *FILES)

    page = await open_page(client, "/buckets/ada/box/tree/data/a%20b.csv")
    download = page.one("a", download="a b.csv").attributes["href"]

    assert page.one("nav", class_="crumbs").text == "box/data/a b.csv"
    assert (await client.get(download)).content == b"12345"


async def test_a_picture_is_shown(client: httpx2.AsyncClient, ada: Headers) -> None:
    await fill(client, ada, "wheel.png", "page.html")

    picture = await open_page(client, "/buckets/ada/box/tree/wheel.png")
    other = await open_page(client, "/buckets/ada/box/tree/page.html")

    assert picture.one("img").attributes["src"] == "/buckets/ada/box/resolve/wheel.png"
    assert other.all("img") == []


async def test_a_text_is_shown_with_its_lines(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(client, ada, "notes.txt", "weights.bin")
    for path, content in (("a.py", b"# <b>\nimport os\n"), ("zero.txt", b"a\0b"), ("no.txt", b"")):
        await client.put(f"/api/buckets/ada/box/files/{path}", headers=ada, content=content)

    # The second time from the cache.
    for _ in range(2):
        page = await open_page(client, "/buckets/ada/box/tree/a.py")
        lines = [row.all("td")[1].text for row in page.one("table", class_="lines").all("tr")]
        assert lines == ["# <b>", "import os"]
    for path, sentence in (
        ("weights.bin", "Download it to see what is in it."),
        ("zero.txt", "Download it to see what is in it."),
        ("no.txt", "This file is empty."),
    ):
        other = await open_page(client, f"/buckets/ada/box/tree/{path}")
        assert other.all("table", class_="lines") == []
        assert sentence in other.text
    monkeypatch.setattr("hublet.web.code_cache.MAX_TEXT_BYTES", 3)
    cut = await open_page(client, "/buckets/ada/box/tree/notes.txt")
    assert "Only the first megabyte is shown." in cut.text


async def test_many_files_come_page_by_page(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/box", type="bucket")
    lines = "".join(
        f'{{"type": "addFile", "path": "f{number:03}/x", "content": ""}}\n' for number in range(205)
    )
    response = await client.post("/api/buckets/ada/box/batch", headers=ada, content=lines)
    assert response.status_code == 200, response.text

    first = await open_page(client, "/buckets/ada/box")
    link = first.one("nav", class_="pages").one("a").attributes["href"]
    second = await open_page(client, f"/buckets/ada/box{link}")

    assert [len(rows_of(each)) for each in (first, second)] == [200, 5]
    assert rows_of(second)[0][0] == "f200"
    assert second.all("nav", class_="pages") == []


async def test_an_empty_bucket_says_how_to_fill_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await fill(client, await sign_in(database, "ada"))

    stranger = await open_page(client, "/buckets/ada/box")
    await log_in(client)
    owner = await open_page(client, "/buckets/ada/box")

    assert stranger.one("div", class_="empty").text == "Nothing here yet."
    assert "hf buckets sync ./data hf://buckets/ada/box" in owner.one("div", class_="empty").text


async def test_a_private_bucket_looks_like_none_and_opens_with_a_session(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await fill(client, await sign_in(database, "ada"), "notes.txt", private=True)
    paths = ("/buckets/ada/{}", "/buckets/ada/{}/tree/notes.txt")

    for path in paths:
        private = await client.get(path.format("box"), headers=HTML)
        absent = await client.get(path.format("cat"), headers=HTML)
        assert (private.status_code, absent.status_code) == (404, 404)
        assert private.content.replace(b"box", b"cat") == absent.content.replace(b"box", b"cat")
    closed = await client.get("/buckets/ada/box/resolve/notes.txt")
    await log_in(client)
    open_ = await client.get("/buckets/ada/box/resolve/notes.txt")
    below_api = await client.get("/api/buckets/ada/box/files/notes.txt")

    assert (closed.status_code, open_.content, below_api.status_code) == (404, b"12345", 404)
    assert rows_of(await open_page(client, "/buckets/ada/box"))


@pytest.mark.parametrize("path", ["tree/ghost", "tree/notes", "tree?after=" + "x" * 5000])
async def test_what_is_not_there_is_a_page_too(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    await fill(client, ada, "notes.txt")

    response = await client.get(f"/buckets/ada/box/{path}", headers=HTML)

    assert response.status_code in {400, 404, 422}
    assert parse(response).one("h1").text


async def test_a_bucket_can_be_liked(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)
    await fill(client, await sign_in(database, "ada"), "notes.txt")
    await log_in(client)
    form = (await open_page(client, "/buckets/ada/box")).one("form", action="/buckets/ada/box/like")

    data = {"form_token": form.one("input").attributes["value"]}
    response = await client.post("/buckets/ada/box/like", data=data)

    assert response.headers["location"] == "/buckets/ada/box"
    assert "Liked 1" in (await open_page(client, "/buckets/ada/box")).one("div", id="acts").text
