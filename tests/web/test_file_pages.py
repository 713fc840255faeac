"""Pages of files: every kind of content, its links, its limits, and who may see it."""

import json
import struct
from urllib.parse import quote

import httpx2
import pygit2
import pytest

from hublet.core.database import Database
from hublet.repos.git import bare_repos
from hublet.repos.reactions import remove_folder
from hublet.web.rendering import code
from people import Headers
from repos.content import pointer, put, put_blob, sha256
from repositories import a_ref, a_repo
from web.file_pages import FilePage, a_repo_with, get_page, read_page
from web.parsed_pages import HTML

BLOB = "/ada/engine/blob/main"
RESOLVE = "/ada/engine/resolve/main"


def lines_of(page: FilePage) -> list[str]:
    return ["".join(cell.texts) for cell in page.root.all("td", class_="code")]


async def test_code_has_numbered_lines_that_can_be_linked(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"src/a.py": b"import os\n\nprint('<b>')\n"})

    page = await get_page(client, f"{BLOB}/src/a.py")

    assert lines_of(page) == ["import os", "", "print('<b>')"]
    assert [row.attributes["id"] for row in page.root.all("tr")] == ["L1", "L2", "L3"]
    assert page.links["2"] == "#L2"
    assert page.root.one("span", class_="k").text == "import"
    assert "3 lines" in page.text


LONG = b"".join(b"step = %d  # <next>\n" % number for number in range(1000))


async def test_long_code_comes_at_once_and_its_colours_later(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.py": LONG})

    first = await get_page(client, f"{BLOB}/a.py")
    part = await get_page(client, f"{BLOB}/a.py", Fragment="lines")
    again = await get_page(client, f"{BLOB}/a.py")

    assert "data-later" in first.root.one("div", id="lines").attributes
    assert not first.root.all("span", class_="c")
    assert len(part.root.all("span", class_="c")) == 1000
    assert "data-later" not in again.root.one("div", id="lines").attributes
    assert len(again.root.all("span", class_="c")) == 1000
    assert lines_of(first) == lines_of(part) == lines_of(again) == LONG.decode().splitlines()


async def test_colours_can_be_asked_for_without_a_script(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.py": LONG})
    first = await get_page(client, f"{BLOB}/a.py")

    page = await get_page(client, f"{BLOB}/a.py{first.links['Show colours']}")

    assert len(page.root.all("span", class_="c")) == 1000
    assert "Show colours" not in page.links


async def test_text_without_colours_waits_for_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.txt": LONG})

    page = await get_page(client, f"{BLOB}/a.txt")

    assert "data-later" not in page.root.one("div", id="lines").attributes


async def test_a_file_is_coloured_once_for_all_its_pages(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, commit = await a_repo_with(client, database, ada, {"a.py": LONG})
    await get_page(client, f"{BLOB}/a.py", Fragment="lines")
    monkeypatch.setattr(code, "highlight", lambda text, _: code.plain_lines(text))

    blame = await get_page(client, "/ada/engine/blame/main/a.py")
    diff = await get_page(client, f"/ada/engine/commit/{commit}")

    assert len(blame.root.all("span", class_="c")) == 1000
    assert diff.root.all("span", class_="c")


async def test_a_file_has_links_to_its_other_forms(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.py": b"1"})

    page = await get_page(client, f"{BLOB}/a.py")

    assert page.links["Raw"] == "/ada/engine/raw/main/a.py"
    assert page.links["Download"] == f"{RESOLVE}/a.py?download=true"
    assert page.links["History"] == "/ada/engine/commits/main/a.py"
    assert page.links["Blame"] == "/ada/engine/blame/main/a.py"


async def test_markdown_is_drawn_and_has_a_source(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"docs/a.md": b"# Title\n\n[b](b.md) ![p](p.png)"})

    drawn = await get_page(client, f"{BLOB}/docs/a.md")
    source = await get_page(client, drawn.links["Code"])

    assert drawn.links["b"] == f"{BLOB}/docs/b.md"
    assert drawn.root.all("img", src=f"{RESOLVE}/docs/p.png")
    assert lines_of(source)[0] == "# Title"
    assert source.links["Drawn"] == f"{BLOB}/docs/a.md"


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("p.png", "img"),
        ("p.svg", "img"),
        ("s.mp3", "audio"),
        ("s.flac", "audio"),
        ("v.mp4", "video"),
    ],
)
async def test_media_come_from_the_download(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str, tag: str
) -> None:
    await a_repo_with(client, database, ada, {name: b"<svg><script>alert(1)</script></svg>"})

    page = await get_page(client, f"{BLOB}/{name}")

    assert page.root.one(tag, src=f"{RESOLVE}/{name}")
    assert lines_of(page) == []
    assert "alert" not in page.text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        pytest.param("a.pdf", b"%PDF", "A PDF is not drawn here.", id="PDF"),
        pytest.param("a.xyz", b"\0\1", "there is no preview of it", id="binary"),
        pytest.param("a.txt", b"a\0b", "there is no preview of it", id="binary called text"),
        pytest.param("a.txt", b"", "This file is empty.", id="empty"),
        pytest.param("a.safetensors", b"xx", "The header of this file is damaged.", id="damaged"),
        pytest.param("a.gguf", b"GGUX", "The header of this file is damaged.", id="no GGUF"),
    ],
)
async def test_what_cannot_be_shown_says_so(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    name: str,
    content: bytes,
    sentence: str,
) -> None:
    await a_repo_with(client, database, ada, {name: content})

    page = await get_page(client, f"{BLOB}/{name}")

    assert sentence in page.text


@pytest.mark.parametrize("content", [b"one\ntwo", b"one\r\ntwo\r\n", b"\xef\xbb\xbfone\ntwo\n"])
async def test_line_ends_do_not_change_the_lines(
    client: httpx2.AsyncClient, database: Database, ada: Headers, content: bytes
) -> None:
    await a_repo_with(client, database, ada, {"a.txt": content})

    assert lines_of(await get_page(client, f"{BLOB}/a.txt")) == ["one", "two"]


async def test_bytes_that_are_no_text_and_hidden_characters_are_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.txt": b"\xff\n" + "a\u202eb".encode()})

    assert lines_of(await get_page(client, f"{BLOB}/a.txt")) == ["\ufffd", "aU+202Eb"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"name,score\nada,<b>1</b>\n"),
        ("a.tsv", b"name\tscore\nada\t<b>1</b>\n"),
        ("a.jsonl", b'{"name": "ada", "score": "<b>1</b>"}\n'),
    ],
)
async def test_tables_are_drawn_and_have_a_source(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str, content: bytes
) -> None:
    await a_repo_with(client, database, ada, {name: content})

    page = await get_page(client, f"{BLOB}/{name}")
    source = await get_page(client, page.links["Code"])

    table = page.root.one("table", class_="data")
    assert [cell.text for cell in table.all("th") + table.all("td")] == [
        "name", "score", "ada", "<b>1</b>",
    ]  # fmt: skip
    assert lines_of(source)[0] == content.decode().splitlines()[0]


async def test_what_is_no_table_is_shown_as_text_with_the_reason(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.jsonl": b"{not json\n"})

    page = await get_page(client, f"{BLOB}/a.jsonl")

    assert "Row 1 is no JSON." in page.text
    assert lines_of(page) == ["{not json"]


async def test_a_notebook_is_drawn(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": ["42\n"]}
    code = {"cell_type": "code", "source": "6 * 7", "execution_count": 3, "outputs": [output]}
    cells = [{"cell_type": "markdown", "source": ["# Title"]}, code]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    await a_repo_with(client, database, ada, {"a.ipynb": json.dumps(notebook).encode()})

    page = await get_page(client, f"{BLOB}/a.ipynb")

    assert "Title" in page.root.one("div", class_="nb").text
    assert "[3]" in page.texts
    assert page.root.one("div", class_="out").text == "42"


async def test_tensors_of_a_file_in_the_storage_are_listed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [0, 24]}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(24)
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, content)
    await put(database, repo_id, {"w.safetensors": pointer(content)})

    page = await get_page(client, f"{BLOB}/w.safetensors")

    cells = [cell.text for cell in page.root.one("table", class_="data").all("td")]
    assert cells == ["w", "BF16", "3 \xd7 4", "12"]
    assert "12 parameters in 1 tensor" in page.text
    assert sha256(content) in page.texts


async def test_a_file_whose_content_never_came_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"w.safetensors": pointer(b"elsewhere")})

    page = await get_page(client, f"{BLOB}/w.safetensors")

    assert "Its content was not uploaded yet." in page.texts


async def test_a_large_text_is_cut_and_leads_to_the_rest(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.web.code_cache.MAX_TEXT_BYTES", 12)
    monkeypatch.setattr("hublet.web.code_cache.MAX_LINES", 3)
    await a_repo_with(
        client,
        database,
        ada,
        {"a.txt": b"line\nline\nline\n", "b.txt": b"1\n2\n3\n4", "c.txt": b"1\n2\n3\n"},
    )

    by_size = await get_page(client, f"{BLOB}/a.txt")
    by_lines = await get_page(client, f"{BLOB}/b.txt")
    whole = await get_page(client, f"{BLOB}/c.txt")

    assert lines_of(by_size) == ["line", "line", "li"]
    assert "Only the first megabyte is shown." in by_size.text
    assert lines_of(by_lines) == ["1", "2", "3"]
    assert by_lines.links["The whole file"] == f"{RESOLVE}/b.txt"
    assert "The whole file" not in whole.links


async def test_the_last_commit_of_a_file_comes_later(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.py": b"1"})

    cold = await get_page(client, f"{BLOB}/a.py")
    fragment = await client.get(f"{BLOB}/a.py", headers=HTML | {"Fragment": "latest"})
    warm = await get_page(client, f"{BLOB}/a.py")

    assert cold.root.one("div", id="latest").attributes.keys() >= {"data-later"}
    assert "Add files." in read_page(fragment).links
    assert "Add files." in warm.links


async def test_a_symbolic_link_shows_where_it_leads_and_a_submodule_is_not_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    repository = bare_repos.open_repository(folder)
    builder = repository.TreeBuilder()
    builder.insert("link", repository.create_blob(b"/etc/passwd"), pygit2.enums.FileMode.LINK)
    builder.insert("module", pygit2.Oid(hex="1" * 40), pygit2.enums.FileMode.COMMIT)
    who = pygit2.Signature("ada", "ada@example.com", 1, 0)
    commit = repository.create_commit(None, who, who, "Links.", builder.write(), [])
    await a_ref(database, repo_id, "refs/heads/links", str(commit))

    page = await get_page(client, "/ada/engine/blob/links/link")
    folder_page = await get_page(client, "/ada/engine/tree/links")
    module = await client.get("/ada/engine/blob/links/module", headers=HTML)

    assert "A symbolic link" in page.text
    assert lines_of(page) == ["/etc/passwd"]
    assert "link" in folder_page.links
    assert module.status_code == 404


async def test_a_folder_leads_to_its_own_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"src/a.py": b"1"})

    response = await client.get(f"{BLOB}/src", headers=HTML)

    assert response.headers["location"] == "/ada/engine/tree/main/src"


@pytest.mark.parametrize("view", ["blob", "blame"])
async def test_the_content_of_a_gated_repository_is_behind_its_gate(
    client: httpx2.AsyncClient, database: Database, ada: Headers, view: str
) -> None:
    await a_repo_with(client, database, ada, {"a.py": b"inside"})
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})

    response = await client.get(f"/ada/engine/{view}/main/a.py", headers=HTML)

    assert response.status_code == 403
    assert read_page(response).links["Ask for access"] == "/ada/engine"
    assert "inside" not in response.text


@pytest.mark.parametrize(
    "page", ["blob/main/a.py", "blame/main/a.py", "commits/main", "compare/main...main"]
)
async def test_pages_of_a_private_repository_look_absent(
    client: httpx2.AsyncClient, database: Database, ada: Headers, page: str
) -> None:
    await a_repo_with(client, database, ada, {"a.py": b"1"}, name="ada/secret", private=True)

    hidden = await client.get(f"/ada/secret/{page}", headers=HTML)
    absent = await client.get(f"/ada/absent/{page}", headers=HTML)

    assert (hidden.status_code, absent.status_code) == (404, 404)
    assert hidden.text.replace("secret", "") == absent.text.replace("absent", "")


@pytest.mark.parametrize("name", ["a'b\".py", "<img src=x>.py", "ü ☃.py", "a%2Fb.py", "c#L1?x.py"])
async def test_a_file_with_a_hostile_name_has_a_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await a_repo_with(client, database, ada, {name: b"inside"})

    page = await get_page(client, f"{BLOB}/{quote(name)}")
    raw = await client.get(page.links["Raw"])

    assert lines_of(page) == ["inside"]
    assert raw.content == b"inside"
    assert not page.root.all("img")


async def test_a_page_of_a_file_is_sent_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, {"a.py": b"1"})
    first = await client.get(f"{BLOB}/a.py", headers=HTML)

    again = HTML | {"If-None-Match": first.headers["etag"]}
    assert (await client.get(f"{BLOB}/a.py", headers=again)).status_code == 304


async def test_what_pages_keep_of_a_repository_goes_with_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, {"a.py": b"secret = 1\n" * 100})
    await get_page(client, f"{BLOB}/a.py")
    kept = database.hub.settings.database.data_dir / "cache" / repo_id
    assert list(kept.iterdir())

    await remove_folder(database, {"repo_id": repo_id})

    assert not kept.exists()
