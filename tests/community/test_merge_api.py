"""Merging pull requests."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from community.discussions import (
    PATH,
    a_pull_request,
    commit,
    disable_discussions,
    get_discussion,
    history_of,
    post_commit,
    sha_of,
)
from hublet.accounts.records import Role
from hublet.community.discussions import comparison
from hublet.community.discussions.comparison import MergeRequest, Sides
from hublet.core.database import Database
from hublet.events import CommentCreated, RepoContentUpdated, ThreadUpdated
from hublet.repos.git import bare_repos, trees
from hublet.repos.records import MAIN
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from repos.content import put
from repositories import a_repo
from workers import drain

pytestmark = pytest.mark.usefixtures("repo_id")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
async def address(client: httpx2.AsyncClient, bob: Headers) -> str:
    """Where a pull request by bob is that adds a file."""
    await post_commit(client, bob, {"new.txt": "new\n"}, summary="Add a file", create_pr="1")
    return f"{PATH}/1"


async def files_of(database: Database, repo_id: str, ref: str = MAIN) -> dict[str, bytes]:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    sha = await sha_of(database, repo_id, ref)
    assert sha is not None
    entries = trees.list_tree(folder, sha, recursive=True)
    return {
        entry.path: trees.read_blob(folder, entry.oid)
        for entry in entries
        if entry.path != ".gitattributes"
    }


async def test_a_pull_request_becomes_part_of_main(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    head = await sha_of(database, repo_id, "refs/pr/1")
    before = await commit(client, ada, {"README.md": "---\nlicense: mit\n---\n"})
    diff = (await get_discussion(client, address, diff=1))["diff"]

    response = await client.post(f"{address}/merge", headers=ada)

    merged = await sha_of(database, repo_id, MAIN)
    assert (response.status_code, response.json()) == (200, {"mergeCommitId": merged})
    assert await files_of(database, repo_id) == {
        "README.md": b"---\nlicense: mit\n---\n",
        "new.txt": b"new\n",
    }
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    made = trees.get_commit(bare_repos.open_repository(folder), merged or "")
    assert [str(parent) for parent in made.parent_ids] == [before, head]
    assert (made.message, made.author.name) == ("Add a file (#1)", "ada")
    found = await get_discussion(client, address, diff=1)
    assert (found["status"], found["diff"], found["filesWithConflicts"]) == ("merged", diff, [])
    assert found["changes"] == {"base": MAIN, "mergeCommitId": merged}
    assert (await history_of(client, address))[1:] == [
        ("commit", {"oid": head, "subject": "Add a file"}),
        ("commit", {"oid": merged, "subject": "Add a file (#1)"}),
        ("status-change", {"status": "merged"}),
    ]


async def test_a_merge_is_told_as_a_push_and_as_a_change(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    before = await sha_of(database, repo_id, MAIN)

    await client.post(f"{address}/merge", headers=ada, json={"comment": "Thank you, @bob."})

    merged = await sha_of(database, repo_id, MAIN)
    adas_id, bobs_id = (await a_user(database, "ada")).id, (await a_user(database, "bob")).id
    push = (await published_events(database, RepoContentUpdated))[-1]
    assert push["updated_refs"] == [{"ref": MAIN, "old_sha": before, "new_sha": merged}]
    assert (push["actor_id"], push["repo"]["head_sha"]) == (adas_id, merged)
    [comment] = await published_events(database, CommentCreated)
    assert (comment["comment"]["content"], comment["mentioned_ids"]) == (
        "Thank you, @bob.",
        [bobs_id],
    )
    [change] = await published_events(database, ThreadUpdated)
    thread = change["thread"]
    assert (change["changed"], thread["status"], thread["merge_commit_id"]) == (
        ["status"],
        "merged",
        merged,
    )
    assert thread["repo"]["head_sha"] == merged


async def test_the_card_of_main_is_that_of_the_merge(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await a_pull_request(client, ada)
    await commit(client, ada, {"README.md": "---\nlicense: mit\n---\n"}, to="refs/pr/1")

    await client.post(f"{PATH}/1/merge", headers=ada)

    async with database.read() as conn:
        row = await conn.fetch_one("SELECT head_sha, tags FROM repos WHERE id = $1", repo_id)
    assert row is not None
    assert tuple(row) == (await sha_of(database, repo_id, MAIN), '["license:mit"]')


async def test_a_merged_one_is_done_with(
    client: httpx2.AsyncClient, ada: Headers, address: str
) -> None:
    await client.post(f"{address}/merge", headers=ada)
    before = await history_of(client, address)

    answers = [
        await client.post(f"{address}/merge", headers=ada),
        await client.post(f"{address}/status", headers=ada, json={"status": "open"}),
        await client.post(f"{address}/status", headers=ada, json={"status": "closed"}),
    ]

    refused = (409, {"error": "This pull request is merged already."})
    assert [(answer.status_code, answer.json()) for answer in answers] == [refused] * 3
    assert await history_of(client, address) == before


async def test_a_closed_one_is_not_merged(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})

    response = await client.post(f"{address}/merge", headers=ada)

    assert (response.status_code, response.json()) == (
        409,
        {"error": "This pull request is closed already."},
    )
    assert await files_of(database, repo_id) == {}


async def test_only_those_who_may_write_merge(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, address: str
) -> None:
    await an_organization(
        database, "works", members={"ada": Role.admin, "carol": Role.write, "dave": Role.read}
    )
    await a_repo(client, ada, "works/loom")
    elsewhere = await a_pull_request(client, ada, "/api/models/works/loom/discussions")
    carol, dave = await sign_in(database, "carol"), await sign_in(database, "dave")
    narrow = await sign_in(database, "ada", scopes=["read-repos", "write-discussions"])

    statuses = [
        (await client.post(f"{where}/merge", headers=who)).status_code
        for where, who in [(address, bob), (address, narrow), (elsewhere, dave), (elsewhere, carol)]
    ]

    assert statuses == [403, 403, 403, 200]
    assert (await get_discussion(client, address))["status"] == "open"


async def test_a_draft_without_changes_is_merged_where_its_base_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    await client.post(f"{address}/merge", headers=ada)
    head = await sha_of(database, repo_id, MAIN)
    empty = await a_pull_request(client, ada)
    pushes = len(await published_events(database, RepoContentUpdated))

    response = await client.post(f"{empty}/merge", headers=ada)

    assert response.json() == {"mergeCommitId": head}
    assert await sha_of(database, repo_id, MAIN) == head
    found = await get_discussion(client, empty, diff=1)
    assert (found["status"], found["changes"]["mergeCommitId"], found["diff"]) == (
        "merged",
        head,
        "",
    )
    assert (await history_of(client, empty))[1:] == [("status-change", {"status": "merged"})]
    assert len(await published_events(database, RepoContentUpdated)) == pushes


async def test_files_that_conflict_are_named_and_nothing_changes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    await commit(client, ada, {"new.txt": "other\n", "more.txt": "more\n"})
    before = await sha_of(database, repo_id, MAIN)

    response = await client.post(f"{address}/merge", headers=ada, json={"comment": "Go!"})

    assert (response.status_code, response.json()) == (
        409,
        {"error": "This pull request conflicts with its base in new.txt."},
    )
    found = await get_discussion(client, address)
    assert (found["status"], found["filesWithConflicts"]) == ("open", ["new.txt"])
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})
    assert (await get_discussion(client, address))["filesWithConflicts"] == []
    assert await sha_of(database, repo_id, MAIN) == before
    assert await published_events(database, CommentCreated) == []


async def test_one_of_another_branch_is_merged_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put(database, repo_id, {"a.txt": b"1"}, ref="refs/heads/dev")
    main = await sha_of(database, repo_id, MAIN)
    await post_commit(client, ada, {"b.txt": "2"}, to="dev", create_pr="1")

    await client.post(f"{PATH}/1/merge", headers=ada)

    assert await files_of(database, repo_id, "refs/heads/dev") == {"a.txt": b"1", "b.txt": b"2"}
    assert await sha_of(database, repo_id, MAIN) == main
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT head_sha FROM repos") == main


async def test_the_ref_of_a_merged_one_is_deleted_and_its_diff_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    await client.post(f"{address}/merge", headers=ada)
    diff = (await get_discussion(client, address, diff=1))["diff"]
    # What comes too late changes nothing of what was merged.
    await put(database, repo_id, {"late.txt": b"late"}, ref="refs/pr/1")
    assert (await get_discussion(client, address, diff=1))["diff"] == diff != ""

    response = await client.delete(f"{address}/ref", headers=ada)

    assert response.status_code == 200
    assert await sha_of(database, repo_id, "refs/pr/1") is None
    assert (await get_discussion(client, address, diff=1))["diff"] == diff


async def test_a_comment_where_discussions_are_disabled_stops_a_merge(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    await disable_discussions(database, repo_id)

    refused = await client.post(f"{address}/merge", headers=ada, json={"comment": "Go!"})
    assert (refused.status_code, await files_of(database, repo_id)) == (403, {})

    assert (await client.post(f"{address}/merge", headers=ada)).status_code == 200


def _meanwhile(
    monkeypatch: pytest.MonkeyPatch, *happenings: Callable[[], Any]
) -> list[tuple[Sides, MergeRequest]]:
    """Let each of these happen after a merge was made and before its refs move."""
    loop = asyncio.get_running_loop()
    waiting, made = list(happenings), []
    really = comparison.merge

    def merge(folder: Path, sides: Sides, wanted: MergeRequest) -> str | None:
        made.append((sides, wanted))
        oid = really(folder, sides, wanted)
        if waiting:
            asyncio.run_coroutine_threadsafe(waiting.pop(0)(), loop).result()
        return oid

    monkeypatch.setattr(comparison, "merge", merge)
    return made


async def test_what_moves_meanwhile_is_merged_as_well(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    address: str,
    repo_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = _meanwhile(
        monkeypatch,
        lambda: commit(client, ada, {"main.txt": "m"}),
        lambda: commit(client, ada, {"late.txt": "l"}, to="refs/pr/1"),
    )

    response = await client.post(f"{address}/merge", headers=ada)

    assert (response.status_code, len(made)) == (200, 3)
    assert await files_of(database, repo_id) == {
        "late.txt": b"l",
        "main.txt": b"m",
        "new.txt": b"new\n",
    }


async def test_what_keeps_moving_is_given_up(
    client: httpx2.AsyncClient, ada: Headers, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(number: int) -> Callable[[], Any]:
        return lambda: commit(client, ada, {"main.txt": f"{number}"})

    made = _meanwhile(monkeypatch, *[another(number) for number in range(9)])

    response = await client.post(f"{address}/merge", headers=ada)

    assert (response.status_code, response.json()) == (
        409,
        {"error": "main has moved on since; read it again and repeat the change."},
    )
    assert len(made) == 6
    assert (await get_discussion(client, address))["status"] == "open"


async def test_one_that_is_closed_meanwhile_stays_closed(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    address: str,
    repo_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _meanwhile(
        monkeypatch,
        lambda: client.post(f"{address}/status", headers=ada, json={"status": "closed"}),
    )

    response = await client.post(f"{address}/merge", headers=ada)

    assert response.status_code == 409
    assert (await get_discussion(client, address))["status"] == "closed"
    assert await files_of(database, repo_id) == {}


async def test_of_several_merges_at_once_one_counts(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, repo_id: str
) -> None:
    answers = await asyncio.gather(
        *(client.post(f"{address}/merge", headers=ada) for _ in range(4))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    merges = [data for kind, data in await history_of(client, address) if kind == "status-change"]
    assert merges == [{"status": "merged"}]


async def test_different_ones_are_merged_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    for number in range(4):
        await post_commit(client, ada, {f"{number}.txt": "x"}, create_pr="1")

    answers = await asyncio.gather(
        *(client.post(f"{PATH}/{number}/merge", headers=ada) for number in range(1, 5))
    )

    assert [answer.status_code for answer in answers] == [200] * 4
    assert len(await files_of(database, repo_id)) == 4
    await drain(database)
    assert [kind for kind, _ in await history_of(client, f"{PATH}/1")] == [
        "comment",
        "commit",
        "commit",
        "status-change",
    ]
