"""Pages of commits: history, one commit, comparisons, blame."""

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers
from repos.content import put
from repositories import a_ref
from web.file_pages import a_repo_with, get_page, read_page
from web.parsed_pages import HTML

FIRST = {"a.py": b"x = 1\ny = 2\n", "b.txt": b"b\n"}
SECOND = FIRST | {"a.py": b"x = 1\ny = 3\n"}


async def two_commits(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> tuple[str, str, str]:
    """Return the id of a repository, and its last two commits."""
    repo_id, first = await a_repo_with(client, database, ada, FIRST)
    message = "Better <y>\n\nIt was too small."
    second = await put(database, repo_id, SECOND, message=message, at=1_700_100_000)
    return repo_id, first, second


async def test_commits_are_listed_by_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, first, second = await two_commits(client, database, ada)

    page = await get_page(client, "/ada/engine/commits/main")

    assert page.links["Better <y>"] == f"/ada/engine/commit/{second}"
    assert page.links["Add files."] == f"/ada/engine/commit/{first}"
    days = [heading.text for heading in page.root.all("h2", class_="day")]
    assert days[:2] == ["16 November 2023", "14 November 2023"]


async def test_the_history_of_a_file_has_only_what_changed_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await two_commits(client, database, ada)

    page = await get_page(client, "/ada/engine/commits/main/b.txt")
    nothing = await client.get("/ada/engine/commits/main/c.txt", headers=HTML)

    assert "Add files." in page.links
    assert "Better <y>" not in page.links
    assert nothing.status_code == 404


async def test_a_path_is_no_pattern(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await two_commits(client, database, ada)

    for path in ("*", ":(glob)**", "--all"):
        response = await client.get(f"/ada/engine/commits/main/{path}", headers=HTML)
        assert response.status_code == 404


async def test_a_long_history_comes_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.web.files.commit_routes.COMMITS_ON_A_PAGE", 2)
    repo_id, _, _ = await two_commits(client, database, ada)

    first = await get_page(client, "/ada/engine/commits/main")
    await put(database, repo_id, FIRST, message="Later.")
    second = await get_page(client, first.links["Older"])

    assert "initial commit" in second.links
    assert "Later." not in second.links
    assert second.links["Newer"] == "/ada/engine/commits/main"
    assert "Older" not in second.links


async def test_a_commit_shows_its_message_parent_and_words_that_changed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, first, second = await two_commits(client, database, ada)

    page = await get_page(client, f"/ada/engine/commit/{second}")

    assert page.root.one("h1").text == "Better <y>"
    assert "It was too small." in page.texts
    assert page.links[first[:7]] == f"/ada/engine/commit/{first}"
    assert page.links["Browse files here"] == f"/ada/engine/tree/{second}"
    assert [mark.text for mark in page.root.all("mark")] == ["2", "3"]
    assert page.links["The whole file"] == f"/ada/engine/blob/{second}/a.py"


async def test_the_beginning_of_an_id_is_enough(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, _, second = await two_commits(client, database, ada)

    page = await get_page(client, f"/ada/engine/commit/{second[:8]}")
    nothing = await client.get("/ada/engine/commit/main", headers=HTML)

    assert second in page.texts
    assert nothing.status_code == 404


async def test_a_file_beyond_the_limit_is_loaded_when_it_is_opened(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.repos.git.diffs.MAX_FILES", 2)
    _, first = await a_repo_with(client, database, ada, {"a.txt": b"one\n", "b&c.txt": b"two\n"})
    address = f"/ada/engine/commit/{first}?file=b%26c.txt"

    page = await get_page(client, f"/ada/engine/commit/{first}")
    alone = await get_page(client, address)
    fragment = await client.get(address, headers=HTML | {"Fragment": "one-file"})

    assert "two" not in page.texts
    assert page.links["Show this file alone"] == address
    assert page.root.all("details", **{"data-load": address})
    assert "two" in alone.texts
    assert alone.links["All files"] == f"/ada/engine/commit/{first}"
    assert "two" in read_page(fragment).texts
    assert not read_page(fragment).root.all("h1")


async def test_two_revisions_are_compared(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, first, second = await two_commits(client, database, ada)
    await a_ref(database, repo_id, "refs/heads/feat/x", first)

    page = await get_page(client, "/ada/engine/compare/feat%2Fx...main")
    same = await get_page(client, "/ada/engine/compare/main...main")
    back = await get_page(client, "/ada/engine/compare/main...feat%2Fx")
    nothing = await client.get("/ada/engine/compare/main...nothing", headers=HTML)

    assert page.links["Better <y>"] == f"/ada/engine/commit/{second}"
    assert "1 commit ahead" in page.text
    assert [mark.text for mark in page.root.all("mark")] == ["2", "3"]
    assert "Nothing changed." in same.texts
    assert "1 commit behind" in back.text
    assert back.links["the other way round"] == "/ada/engine/compare/feat%2Fx...main"
    assert nothing.status_code == 404


async def test_changes_of_a_gated_repository_are_behind_its_gate(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, first, second = await two_commits(client, database, ada)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "auto"})

    for path in (f"commit/{second}", f"compare/{first}...{second}"):
        page = await get_page(client, f"/ada/engine/{path}")
        assert "The content of this repository is gated." in page.text
        assert not page.root.all("mark")


async def test_blame_names_the_commit_of_each_line(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    _, first, second = await two_commits(client, database, ada)

    page = await get_page(client, "/ada/engine/blame/main/a.py")

    rows = page.root.all("tr")
    hrefs = [row.one("td", class_="who").one("a").attributes["href"] for row in rows]
    assert hrefs == [f"/ada/engine/commit/{first}", f"/ada/engine/commit/{second}"]
    assert page.links["Code"] == "/ada/engine/blob/main/a.py"


async def test_a_commit_with_a_hostile_message_is_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, FIRST)
    message = "<script>alert(1)</script>\n\n</pre><img src=x onerror=alert(1)>"
    commit = await put(database, repo_id, SECOND, message=message)

    for path in ("commits/main", f"commit/{commit}", "tree/main?commits=true", "blame/main/a.py"):
        page = await get_page(client, f"/ada/engine/{path}")
        assert all("src" in script.attributes for script in page.root.all("script"))
        assert not page.root.all("img")
