"""Pull requests in a browser: commits, files, conflicts, the merge, and the editor for conflicts."""

import asyncio
import re
from typing import Any

import httpx2
import pytest

from community.discussions import PATH, a_discussion, commit, get_discussion, post_commit, sha_of
from hublet.community.discussions import conflicts
from hublet.community.discussions.conflicts import WrittenSolution
from hublet.core.database import Database
from hublet.repos.git import bare_repos, history, trees
from hublet.repos.records import MAIN
from people import Headers, sign_in
from repositories import a_repo
from statements import Statements
from web.parsed_pages import HTML, Element, parse
from web.thread_scenes import (
    PAGES,
    a_conflict,
    enter,
    events_of,
    open_page,
    problem_of,
    send,
    token_of,
)
from workers import drain

SOLVED = "one\ntwo and 2\nfour\n"


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
async def change(client: httpx2.AsyncClient, repo_id: str, bob: Headers) -> str:
    """The page of a pull request by bob that adds a file."""
    await post_commit(client, bob, {"new.txt": "new\n"}, summary="Add a file", create_pr="1")
    return f"{PAGES}/1"


@pytest.fixture
async def clash(client: httpx2.AsyncClient, repo_id: str, ada: Headers, bob: Headers) -> str:
    """The page of a pull request by bob that conflicts with main."""
    return await a_conflict(client, ada, bob)


async def read_file(database: Database, repo_id: str, ref: str, path: str) -> bytes:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    sha = await sha_of(database, repo_id, ref)
    assert sha is not None
    return trees.read_blob(folder, trees.get_entry(folder, sha, path).oid)


async def test_a_pull_request_has_its_commits_and_files(
    client: httpx2.AsyncClient, change: str
) -> None:
    page = await open_page(client, change)
    tabs = [each.text for each in page.one("nav", **{"aria-label": "Pull request"}).all("a")]
    assert tabs == ["Conversation 1", "Commits 1", "Files changed 1"]

    commits = await open_page(client, f"{change}/commits")
    files = await open_page(client, f"{change}/files")

    assert (
        commits.one("ol", class_="commits")
        .one("a", class_="mono")
        .attributes["href"]
        .startswith("/ada/engine/commit/")
    )
    assert [each.text for each in files.all("td", class_="code")] == ["new"]


async def test_the_files_of_a_discussion_are_none(
    client: httpx2.AsyncClient, repo_id: str, bob: Headers
) -> None:
    await a_discussion(client, bob)

    await open_page(client, f"{PAGES}/1/files", status=409)


async def test_a_gated_repository_shows_no_files_to_strangers(
    client: httpx2.AsyncClient, change: str, ada: Headers
) -> None:
    settings = "/api/models/ada/engine/settings"
    assert (await client.put(settings, headers=ada, json={"gated": "manual"})).status_code == 200

    page = await open_page(client, change)

    assert "new.txt" not in page.text
    await open_page(client, f"{change}/files", status=403)


async def test_the_owner_merges_and_the_timeline_says_which_commit(
    client: httpx2.AsyncClient, database: Database, repo_id: str, change: str
) -> None:
    await enter(client, database, "ada")
    page = await open_page(client, change)
    head = page.one("input", name="head").attributes["value"]

    response = await send(client, "merge", head=head)

    assert (response.status_code, response.headers["location"]) == (303, f"{change}#timeline")
    merged = await sha_of(database, repo_id, MAIN)
    assert merged is not None
    page = await open_page(client, change)
    assert events_of(page)[-1].startswith(f"ada merged this as {merged[:7]} into main")
    assert page.one("div", id="thread-state").all("span", class_="badge")[0].text == "Merged"
    assert page.all("form", action=f"{change}/merge") == []


async def test_who_cannot_write_reads_who_can_merge(
    client: httpx2.AsyncClient, database: Database, change: str
) -> None:
    await enter(client, database, "bob")

    box = (await open_page(client, change)).one("section", id="merge-box")

    assert "Those who may write to ada/engine can merge it." in box.text
    assert box.all("form", action=f"{change}/merge") == []


async def test_what_came_after_somebody_looked_is_not_merged(
    client: httpx2.AsyncClient, database: Database, repo_id: str, change: str, bob: Headers
) -> None:
    await enter(client, database, "ada")
    head = (await open_page(client, change)).one("input", name="head").attributes["value"]
    await commit(client, bob, {"evil.txt": "evil"}, to="refs/pr/1")
    before = await sha_of(database, repo_id, MAIN)

    response = await send(client, "merge", head=head)

    assert response.status_code == 422
    assert problem_of(parse(response)).startswith("The pull request or the branch")
    assert await sha_of(database, repo_id, MAIN) == before


async def test_two_who_merge_at_once_merge_once(
    client: httpx2.AsyncClient, database: Database, change: str
) -> None:
    await enter(client, database, "ada")
    head = (await open_page(client, change)).one("input", name="head").attributes["value"]

    responses = [await send(client, "merge", head=head) for _ in range(2)]

    assert [each.status_code for each in responses] == [303, 422]
    assert problem_of(parse(responses[1])) == "This pull request is merged already."


async def test_a_conflict_names_files_and_lines_and_the_way_out(
    client: httpx2.AsyncClient, database: Database, clash: str
) -> None:
    await enter(client, database, "ada")

    box = (await open_page(client, clash)).one("section", id="merge-box")

    assert "1 file changed on both sides" in box.one("h2").text
    assert box.one("li").text == "notes.txt lines 2 \N{EN DASH} 3"
    assert "git push origin pr/1:refs/pr/1" in box.one("pre").text
    assert "disabled" in box.one("form", action=f"{clash}/merge").one("button").attributes
    files = await open_page(client, f"{clash}/files")
    assert files.one("details", class_="diff").one("span", class_="warn").text == "conflict"
    response = await send(client, "merge")
    assert problem_of(parse(response)) == "This pull request conflicts with its base in notes.txt."


async def test_the_editor_shows_both_sides_between_marks(
    client: httpx2.AsyncClient, database: Database, clash: str
) -> None:
    await enter(client, database, "bob")

    response = await client.get(f"{clash}/conflicts", headers=HTML)

    page = parse(response)
    assert "".join(page.one("textarea").texts) == (
        "\none\n<<<<<<< base\n2\n3\n=======\nTWO\nTHREE\n>>>>>>> pull request\nfour\n"
    )
    assert [each.text for each in page.all("pre")] == ["one 2 3 four", "one TWO THREE four"]


async def solve(client: httpx2.AsyncClient, page: str, **fields: str) -> httpx2.Response:
    """Send the editor's form as a browser does."""
    form = (await open_page(client, f"{page}/conflicts")).one("form", class_="solve")
    hidden = {
        each.attributes["name"]: each.attributes["value"]
        for each in form.all("input", type="hidden")
    }
    chosen = {"take:notes.txt": "text", "text:notes.txt": SOLVED.replace("\n", "\r\n")}
    return await client.post(f"{page}/conflicts", data=hidden | chosen | fields, headers=HTML)


async def test_a_solution_becomes_a_merge_commit_on_the_pull_request(
    client: httpx2.AsyncClient, database: Database, repo_id: str, clash: str
) -> None:
    await enter(client, database, "bob")
    base = await sha_of(database, repo_id, MAIN)
    head = await sha_of(database, repo_id, "refs/pr/1")

    response = await solve(client, clash)

    assert (response.status_code, response.headers["location"]) == (303, clash)
    assert await read_file(database, repo_id, "refs/pr/1", "notes.txt") == SOLVED.encode()
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    merged = await sha_of(database, repo_id, "refs/pr/1")
    assert merged is not None
    [info] = history.list_commits(folder, merged, limit=1)
    assert (info.parents, info.title) == ((head, base), "Merge main into refs/pr/1")
    await drain(database)
    details = await get_discussion(client, f"{PATH}/1")
    assert details["filesWithConflicts"] == []
    assert details["events"][-1]["data"]["oid"] == merged
    await enter(client, database, "ada")
    now = (await open_page(client, clash)).one("input", name="head").attributes["value"]
    assert (await send(client, "merge", head=now)).status_code == 303


@pytest.mark.parametrize(
    ("side", "content"),
    [("base", b"one\n2\n3\nfour\n"), ("head", b"one\nTWO\nTHREE\nfour\n")],
)
async def test_one_side_can_be_taken_as_it_is(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    clash: str,
    side: str,
    content: bytes,
) -> None:
    await enter(client, database, "bob")

    response = await solve(client, clash, **{"take:notes.txt": side})

    assert response.status_code == 303
    assert await read_file(database, repo_id, "refs/pr/1", "notes.txt") == content


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "one\n<<<<<<< base\n2\n",
            "notes.txt: there is still a line that begins with <<<<<<< or >>>>>>>.",
            id="a mark is left",
        ),
        pytest.param(
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n",
            "notes.txt: a pointer of Git LFS has to be pushed with git.",
            id="a pointer to what somebody else uploaded",
        ),
        pytest.param(
            "x" * (512 * 1024 + 1),
            "notes.txt: it must have at most 524,288 bytes.",
            id="too long",
        ),
    ],
)
async def test_a_wrong_solution_is_shown_again_and_nothing_is_saved(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    clash: str,
    text: str,
    problem: str,
) -> None:
    await enter(client, database, "bob")
    before = await sha_of(database, repo_id, "refs/pr/1")

    response = await solve(client, clash, **{"text:notes.txt": text})

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page) == problem
    assert "".join(page.one("textarea").texts) == f"\n{text}"
    assert await sha_of(database, repo_id, "refs/pr/1") == before


@pytest.mark.parametrize(("ref", "who"), [("main", "ada"), ("refs/pr/1", "bob")])
async def test_what_was_typed_is_not_lost_when_a_side_moves(
    client: httpx2.AsyncClient, database: Database, repo_id: str, clash: str, ref: str, who: str
) -> None:
    await enter(client, database, "bob")
    editor = await open_page(client, f"{clash}/conflicts")
    sides = {name: editor.one("input", name=name).attributes["value"] for name in ("base", "head")}
    await commit(client, await sign_in(database, who), {"other.txt": "other"}, to=ref)
    before = await sha_of(database, repo_id, "refs/pr/1")

    response = await solve(client, clash, **sides)

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page).endswith("Nothing was saved: look at it again.")
    [field, typed] = page.all("textarea")
    assert "<<<<<<< base" in field.text
    assert (typed.text, "readonly" in typed.attributes) == ("one two and 2 four", True)
    assert await sha_of(database, repo_id, "refs/pr/1") == before


async def test_a_side_that_moves_while_git_works_is_noticed(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    clash: str,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await enter(client, database, "bob")
    before = await sha_of(database, repo_id, "refs/pr/1")
    loop, write = asyncio.get_running_loop(), conflicts.write_solution

    def write_late(*arguments: Any) -> WrittenSolution:
        moving = commit(client, ada, {"other.txt": "other"})
        asyncio.run_coroutine_threadsafe(moving, loop).result()
        return write(*arguments)

    monkeypatch.setattr(conflicts, "write_solution", write_late)

    response = await solve(client, clash)

    assert response.status_code == 422
    assert page_text(parse(response).all("textarea")[-1]) == SOLVED
    assert await sha_of(database, repo_id, "refs/pr/1") == before


def page_text(field: Element) -> str:
    """Return what stands in a field; the first line break belongs to the page."""
    return "".join(field.texts).removeprefix("\n")


async def test_a_pull_request_that_was_closed_meanwhile_keeps_the_text(
    client: httpx2.AsyncClient, database: Database, clash: str, ada: Headers
) -> None:
    await enter(client, database, "bob")
    token = await token_of(client)
    await client.post(f"{PATH}/1/status", headers=ada, json={"status": "closed"})

    response = await client.post(
        f"{clash}/conflicts",
        data={"form_token": token, "take:notes.txt": "text", "text:notes.txt": "mine"},
        headers=HTML,
    )

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page) == "This pull request is closed already."
    assert page.one("textarea").text == "mine"


async def test_only_who_may_push_to_it_solves_its_conflicts(
    client: httpx2.AsyncClient, database: Database, repo_id: str, clash: str
) -> None:
    before = await sha_of(database, repo_id, "refs/pr/1")
    await enter(client, database, "carol")
    await open_page(client, f"{clash}/conflicts", status=403)
    token = await token_of(client, clash)

    response = await client.post(
        f"{clash}/conflicts", data={"form_token": token, "take:notes.txt": "base"}, headers=HTML
    )

    assert response.status_code == 403
    assert await sha_of(database, repo_id, "refs/pr/1") == before


async def test_a_deletion_on_one_side_is_a_choice(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers, bob: Headers
) -> None:
    await commit(client, ada, {"notes.txt": "one\n"})
    await post_commit(client, bob, {"notes.txt": "two\n"}, summary="Change", create_pr="1")
    lines = (
        '{"key": "header", "value": {"summary": "Remove"}}\n'
        '{"key": "deletedFile", "value": {"path": "notes.txt"}}\n'
    )
    removed = await client.post(
        "/api/models/ada/engine/commit/main",
        headers=ada | {"Content-Type": "application/x-ndjson"},
        content=lines,
    )
    assert removed.status_code == 200, removed.text
    await enter(client, database, "bob")
    page = await open_page(client, f"{PAGES}/1/conflicts")
    assert "Deleted, as in main" in page.one("fieldset").text
    assert page.all("textarea") == []

    response = await solve(client, f"{PAGES}/1", **{"take:notes.txt": "base"})

    assert response.status_code == 303
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    head = await sha_of(database, repo_id, "refs/pr/1")
    assert head is not None
    assert "notes.txt" not in [each.path for each in trees.list_tree(folder, head, recursive=True)]


async def test_line_ends_stay_as_they_were(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers, bob: Headers
) -> None:
    await commit(client, ada, {"notes.txt": "one\r\ntwo\r\n"})
    await post_commit(client, bob, {"notes.txt": "one\r\nTWO\r\n"}, summary="Change", create_pr="1")
    await commit(client, ada, {"notes.txt": "one\r\n2\r\n"})
    await enter(client, database, "bob")

    await solve(client, f"{PAGES}/1")

    solved = await read_file(database, repo_id, "refs/pr/1", "notes.txt")
    assert solved == SOLVED.replace("\n", "\r\n").encode()


async def test_a_draft_becomes_ready(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers, bob: Headers
) -> None:
    await commit(client, ada, {"a.txt": "a"})
    await a_discussion(client, bob, pullRequest=True)
    await commit(client, bob, {"b.txt": "b"}, to="refs/pr/1")
    await enter(client, database, "bob")
    box = (await open_page(client, f"{PAGES}/1")).one("section", id="merge-box")
    assert "This is a draft" in box.text

    await send(client, "status", status="open")

    page = await open_page(client, f"{PAGES}/1")
    assert re.sub(r" just now$", "", events_of(page)[-1]) == "bob marked this as ready"


async def test_the_ref_of_a_closed_one_is_deleted_and_its_page_stays(
    client: httpx2.AsyncClient, database: Database, repo_id: str, change: str
) -> None:
    await enter(client, database, "ada")
    early = await send(client, "delete-ref")
    await send(client, "status", status="close")
    assert "delete-ref" in (await client.get(change, headers=HTML)).text

    done = await send(client, "delete-ref")

    assert early.status_code == 422
    assert done.status_code == 303
    assert await sha_of(database, repo_id, "refs/pr/1") is None
    page = (await client.get(change, headers=HTML)).text
    assert "Add a file" in page
    assert "delete-ref" not in page


@pytest.mark.parametrize(("name", "most"), [("bob", 9), ("ada", 9), ("carol", 9), (None, 6)])
async def test_a_page_takes_few_statements_however_long_the_thread_is(
    client: httpx2.AsyncClient,
    database: Database,
    statements: Statements,
    clash: str,
    name: str | None,
    most: int,
) -> None:
    for who in ("ada", "bob", "carol", "dora"):
        await enter(client, database, who)
        await send(client, "comment", comment=f"{who} was here, @ada")
        comment_id = (await get_discussion(client, f"{PATH}/1"))["events"][-1]["id"]
        await send(client, f"comment/{comment_id}/edit", content="Edited")
        await send(client, f"comment/{comment_id}/react", add="heart")
    client.cookies.clear()
    await enter(client, database, name)

    statements.begin()
    await open_page(client, clash)

    # One of them finds the session.
    assert len(statements.noted) == most, "\n".join(statements.noted)
