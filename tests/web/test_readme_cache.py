"""The cache of rendered READMEs: what it keeps, what it drops, and what it never mixes."""

import struct
import sys

import httpx2
from markupsafe import Markup

from hublet.core.database import Database
from hublet.web.readme_cache import MarkupCache, render_readme
from hublet.web.rendering.links import MarkdownPlace, place_in_repo
from people import Headers
from repos.content import pointer, put_blob
from repositories import a_push, a_repo
from web.parsed_pages import HTML, parse


def png(width: int, height: int) -> bytes:
    """Return the head of a picture, which is all that its size needs."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08" * 5


def test_what_was_not_used_for_longest_goes_first() -> None:
    values = [Markup(f"{number}" * 1000) for number in range(4)]
    cache = MarkupCache(3 * sys.getsizeof(values[0]))

    for number, value in enumerate(values[:3]):
        cache.keep(number, value)
    cache.find(0)
    cache.keep(3, values[3])

    assert [cache.find(number) for number in range(4)] == [values[0], None, values[2], values[3]]
    assert cache.held_bytes == 3 * sys.getsizeof(values[0])


def test_a_value_beyond_the_limit_is_not_kept() -> None:
    cache = MarkupCache(1000)

    cache.keep("long", Markup("x" * 2000))

    assert (cache.find("long"), cache.held_bytes) == (None, 0)


def test_to_keep_a_value_twice_counts_it_once() -> None:
    cache = MarkupCache(10_000)

    for _ in range(3):
        cache.keep("one", Markup("x"))

    assert cache.held_bytes == sys.getsizeof(Markup("x"))


async def test_the_same_content_is_read_once_and_rendered_for_each_place() -> None:
    readings = []

    async def read() -> str:
        readings.append(1)
        return "![wheel](w.png)"

    async def shown(place: MarkdownPlace) -> str:
        return str(await render_readme(place, "b" * 40, read))

    first = [await shown(place_in_repo("/ada/cached")) for _ in range(2)]
    other = await shown(place_in_repo("/bob/cached"))

    assert len(readings) == 2
    assert "/ada/cached/resolve/main/w.png" in first[0] == first[1]
    assert "/bob/cached/resolve/main/w.png" in other


async def test_a_changed_picture_gets_its_new_size_without_a_changed_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/sized")
    readme = b"![a](plot.png) ![b](img/large.png) ![c](gone.png) ![d](broken.png)"
    await put_blob(database, repo_id, png(900, 300))
    files = {
        "README.md": readme,
        "plot.png": png(640, 320),
        "img/large.png": pointer(png(900, 300)),
        "broken.png": b"\x89PNG",
    }

    async def sizes_after(changes: dict[str, bytes]) -> list[tuple[str | None, str | None]]:
        await a_push(database, repo_id, files | changes)
        page = parse(await client.get("/ada/sized", headers=HTML))
        pictures = [each.attributes for each in page.one("article").all("img")]
        return [(each.get("width"), each.get("height")) for each in pictures]

    assert await sizes_after({}) == [("640", "320"), ("900", "300"), (None, None), (None, None)]
    assert (await sizes_after({"plot.png": png(64, 32)}))[0] == ("64", "32")


async def test_the_pictures_of_a_gated_repository_are_guarded_with_their_sizes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/gated-picture")
    await a_push(database, repo_id, {"README.md": b"![a](plot.png)", "plot.png": png(640, 320)})
    gate = await client.put(
        "/api/models/ada/gated-picture/settings", headers=ada, json={"gated": "manual"}
    )
    assert gate.status_code == 200, gate.text

    page = parse(await client.get("/ada/gated-picture", headers=HTML))

    assert "width" not in page.one("article").one("img").attributes


async def test_an_attached_picture_has_its_size_in_a_comment(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/talk")
    sent = await client.post(
        "/uploads", content=png(640, 320), headers=ada | {"Content-Type": "image/png"}
    )
    opened = await client.post(
        "/api/models/ada/talk/discussions",
        headers=ada,
        json={"title": "See", "description": f"![plot]({sent.text})\n\n![x](/uploads/gone.png)"},
    )

    page = parse(await client.get(f"/ada/talk/discussions/{opened.json()['num']}", headers=HTML))

    first, second = (
        each.attributes for each in page.all("img") if "uploads" in each.attributes["src"]
    )
    assert (first["width"], first["height"]) == ("640", "320")
    assert "width" not in second
