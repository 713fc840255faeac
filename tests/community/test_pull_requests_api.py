"""Pull requests: opening them, their refs and what is pushed to them."""

from datetime import timedelta
from functools import partial

import httpx2
import pytest

from community.discussions import (
    PATH,
    a_discussion,
    a_pull_request,
    commit,
    disable_discussions,
    get_discussion,
    history_of,
    post_commit,
    sha_of,
)
from community.public_threads import author_card
from hublet.community.discussions import comparison
from hublet.community.reactions import NOTE_COMMITS, PullRequestPush, note_commits
from hublet.community.threads import store as threads
from hublet.core.clock import now
from hublet.core.database import Database
from hublet.events import RepoContentUpdated, ThreadCreated, ThreadUpdated
from hublet.repos import store as repos
from hublet.repos.git import bare_repos
from hublet.repos.records import MAIN
from hublet.repos.service import snapshot
from outbox_events import published_events
from people import Headers, a_user, sign_in
from repos.content import pointer, put, put_blob
from repositories import a_repo
from workers import drain

pytestmark = pytest.mark.usefixtures("repo_id")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


async def test_one_starts_as_a_draft_where_main_is(
    client: httpx2.AsyncClient, database: Database, bob: Headers, repo_id: str
) -> None:
    body = {"title": "Faster", "description": "Much.", "pullRequest": True}

    response = await client.post(PATH, headers=bob, json=body)

    assert (response.status_code, response.json()) == (
        200,
        {
            "num": 1,
            "url": "http://hub.test/ada/engine/discussions/1",
            "pullRequest": True,
        },
    )
    found = await get_discussion(client, f"{PATH}/1", diff=1)
    assert found == {
        "id": found["id"],
        "num": 1,
        "title": "Faster",
        "status": "draft",
        "createdAt": found["createdAt"],
        "updatedAt": found["updatedAt"],
        "isPullRequest": True,
        "pinned": False,
        "numComments": 1,
        "author": author_card(await a_user(database, "bob")),
        "repo": {"name": "ada/engine", "type": "model"},
        "events": found["events"],
        "changes": {"base": "refs/heads/main"},
        "filesWithConflicts": [],
        "diff": "",
    }
    head = await sha_of(database, repo_id, MAIN)
    assert await sha_of(database, repo_id, "refs/pr/1") == head
    [opened] = await published_events(database, ThreadCreated)
    assert (opened["thread"]["status"], opened["thread"]["base"]) == ("draft", MAIN)
    moved = (await published_events(database, RepoContentUpdated))[-1]
    assert moved["updated_refs"] == [{"ref": "refs/pr/1", "old_sha": None, "new_sha": head}]
    assert moved["actor_id"] == (await a_user(database, "bob")).id


async def test_it_shows_its_diff_only_when_asked(client: httpx2.AsyncClient, bob: Headers) -> None:
    address = await a_pull_request(client, bob)
    await commit(client, bob, {"a.txt": "one\n"}, to="refs/pr/1")

    found = await get_discussion(client, address, diff=1)

    assert found["diff"] == (
        "diff --git a/a.txt b/a.txt\n"
        "new file mode 100644\n"
        "index 0000000..5626abf\n"
        "--- /dev/null\n"
        "+++ b/a.txt\n"
        "@@ -0,0 +1 @@\n"
        "+one\n"
    )
    assert "diff" not in await get_discussion(client, address)


async def test_a_diff_that_is_too_long_says_so(
    client: httpx2.AsyncClient, bob: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MAX_DIFF_BYTES", 10)
    address = await a_pull_request(client, bob)
    await commit(client, bob, {"a.txt": "one\n"}, to="refs/pr/1")

    found = await get_discussion(client, address, diff=1)

    assert (found["diff"], found["diffTruncated"]) == ("", True)


async def test_commits_become_part_of_its_history(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    address = await a_pull_request(client, bob)
    one = await commit(client, bob, {"a.txt": "1"}, to="refs/pr/1", summary="One")
    two = await commit(client, ada, {"a.txt": "2"}, to="refs/pr/1", summary="Two")

    await drain(database)

    assert (await history_of(client, address))[1:] == [
        ("commit", {"oid": one, "subject": "One"}),
        ("commit", {"oid": two, "subject": "Two"}),
    ]
    found = await get_discussion(client, address)
    assert [event["author"]["name"] for event in found["events"]] == ["bob", "bob", "ada"]
    async with database.read() as conn:
        parts = await threads.list_participants(conn, found["id"])
    names = {(await a_user(database, name)).id: name for name in ("ada", "bob")}
    assert {names[part.user_id]: set(part.parts) for part in parts} == {
        "ada": {"changed"},
        "bob": {"opened", "changed"},
    }


async def test_a_push_is_told_once_as_a_change_of_its_content(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, ada)
    one = await put(database, repo_id, {"a.txt": b"1"}, ref="refs/pr/1", message="One")
    two = await put(database, repo_id, {"a.txt": b"2"}, ref="refs/pr/1", message="Two")
    async with database.read() as conn:
        repo = await repos.find(conn, repo_id)
    assert repo is not None
    head = repo.head_sha or ""
    push = partial(PullRequestPush, repo=snapshot(repo), number=1, actor_id=repo.owner_id)

    # As it is when a worker dies, and when one is faster than another.
    later = push(old_sha=one, new_sha=two, at=now())
    for each in (later, push(old_sha=head, new_sha=one, at=later.at - timedelta(seconds=1)), later):
        await note_commits(database, each)

    facts = await published_events(database, ThreadUpdated)
    assert [(fact["changed"], fact["thread"]["number"]) for fact in facts] == [(["content"], 1)] * 2
    commits = [
        data["subject"] for kind, data in await history_of(client, address) if kind == "commit"
    ]
    assert commits == ["One", "Two"]
    events = {
        event["data"]["subject"]: event["id"]
        for event in (await get_discussion(client, address))["events"]
        if event["type"] == "commit"
    }
    assert [fact["event_id"] for fact in facts] == [events["Two"], events["One"]]


async def test_a_push_to_what_is_deleted_since_is_forgotten(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await a_pull_request(client, ada)
    await commit(client, ada, {"a.txt": "1"}, to="refs/pr/1")
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "engine"})
    bare_repos.remove(bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id))

    await drain(database)

    assert await waiting_for_commits(database) == 0


async def waiting_for_commits(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT count(*) FROM tasks WHERE kind = $1", NOTE_COMMITS
        )
    return count


async def test_commits_to_branches_and_other_refs_are_nobodys_history(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_discussion(client, ada)
    await commit(client, ada, {"a.txt": "1"})
    await put(database, repo_id, {"a.txt": b"1"}, ref="refs/pr/7")
    await put(database, repo_id, {"a.txt": b"2"}, ref="refs/pr/7")

    await drain(database)

    assert await history_of(client, address) == [("comment", "It should.")]
    assert await waiting_for_commits(database) == 0


async def test_a_commit_opens_one_that_is_ready(
    client: httpx2.AsyncClient, database: Database, bob: Headers, repo_id: str
) -> None:
    response = await post_commit(
        client, bob, {"a.txt": "1"}, summary="  Add a \tfile", create_pr="1"
    )

    oid = response.json()["commitOid"]
    assert response.json()["pullRequestUrl"] == "http://hub.test/ada/engine/discussions/1"
    await drain(database)
    found = await get_discussion(client, f"{PATH}/1")
    assert (found["title"], found["status"], found["changes"]) == (
        "Add a file",
        "open",
        {"base": MAIN},
    )
    assert await history_of(client, f"{PATH}/1") == [
        ("comment", ""),
        ("commit", {"oid": oid, "subject": "Add a file"}),
    ]
    assert await waiting_for_commits(database) == 0
    assert await sha_of(database, repo_id, "refs/pr/1") == oid
    assert await sha_of(database, repo_id, MAIN) != oid


async def test_a_commit_opens_none_where_discussions_are_disabled(
    client: httpx2.AsyncClient, database: Database, bob: Headers, repo_id: str
) -> None:
    await disable_discussions(database, repo_id)

    response = await post_commit(client, bob, {"a.txt": "1"}, create_pr="1")

    assert (response.status_code, response.json()) == (
        403,
        {"error": "Discussions are disabled in ada/engine."},
    )
    assert await sha_of(database, repo_id, "refs/pr/1") is None


async def test_its_author_commits_to_it_while_it_is_open(
    client: httpx2.AsyncClient, database: Database, bob: Headers, repo_id: str
) -> None:
    carol = await sign_in(database, "carol")
    address = await a_pull_request(client, bob)
    await a_discussion(client, bob)

    stranger = await post_commit(client, carol, {"a.txt": "1"}, to="refs/pr/1")
    author = await post_commit(client, bob, {"a.txt": "1"}, to="refs/pr/1")
    await client.post(f"{address}/status", headers=bob, json={"status": "closed"})
    late = await post_commit(client, bob, {"a.txt": "2"}, to="refs/pr/1")
    mere_talk = await post_commit(client, bob, {"a.txt": "2"}, to="refs/pr/2")

    answers = (stranger, author, late, mere_talk)
    assert [answer.status_code for answer in answers] == [403, 200, 403, 403]
    assert await sha_of(database, repo_id, "refs/pr/1") == author.json()["commitOid"]


async def test_a_draft_is_made_ready_closed_and_opened_again(
    client: httpx2.AsyncClient, bob: Headers
) -> None:
    address = await a_pull_request(client, bob)

    for status in ("open", "closed", "open"):
        response = await client.post(f"{address}/status", headers=bob, json={"status": status})

        assert response.json()["newStatus"]["data"] == {"status": status}
        assert (await get_discussion(client, address))["status"] == status


async def test_one_in_a_gated_repository_shows_no_content_to_those_outside(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, ada)
    await commit(client, ada, {"a.txt": "1\n"}, to="refs/pr/1")
    await commit(client, ada, {"a.txt": "2\n"})
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = 'manual' WHERE id = $1", repo_id)

    outside = await get_discussion(client, address, bob, diff=1)
    inside = await get_discussion(client, address, ada, diff=1)
    opening = await client.post(
        PATH, headers=bob, json={"title": "Mine", "description": "", "pullRequest": True}
    )

    assert ("diff" in outside, outside["filesWithConflicts"]) == (False, True)
    assert ("diff" in inside, inside["filesWithConflicts"]) == (True, ["a.txt"])
    assert (opening.status_code, opening.headers["x-error-code"]) == (403, "GatedRepo")


async def test_the_ref_of_a_closed_one_is_deleted_and_its_diff_stays(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, bob)
    pushed = await commit(client, bob, {"a.txt": "1\n"}, to="refs/pr/1")
    too_early = await client.delete(f"{address}/ref", headers=ada)
    await client.post(f"{address}/status", headers=bob, json={"status": "closed"})
    before = (await get_discussion(client, address, diff=1))["diff"]

    theirs = await client.delete(f"{address}/ref", headers=bob)
    deleted = await client.delete(f"{address}/ref", headers=ada)
    again = await client.delete(f"{address}/ref", headers=ada)
    reopened = await client.post(f"{address}/status", headers=bob, json={"status": "open"})

    assert (too_early.status_code, too_early.json()) == (
        409,
        {"error": "Close this pull request before its ref is deleted."},
    )
    assert (theirs.status_code, deleted.status_code, deleted.json()) == (403, 200, {})
    gone = {"error": "The ref of this pull request was deleted: its commits cannot be reached."}
    assert [(r.status_code, r.json()) for r in (again, reopened)] == [(409, gone)] * 2
    assert await sha_of(database, repo_id, "refs/pr/1") is None
    assert (await get_discussion(client, address, diff=1))["diff"] == before != ""
    fact = (await published_events(database, RepoContentUpdated))[-1]
    assert fact["updated_refs"] == [{"ref": "refs/pr/1", "old_sha": pushed, "new_sha": None}]


async def test_one_whose_commits_are_gone_is_still_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, ada)
    pushed = await commit(client, ada, {"a.txt": "1\n"}, to="refs/pr/1")
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})
    await client.delete(f"{address}/ref", headers=ada)
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    (folder / "objects" / pushed[:2] / pushed[2:]).unlink()

    found = await get_discussion(client, address, diff=1)

    assert ("diff" in found, found["filesWithConflicts"]) == (False, [])


async def test_a_deleted_one_takes_its_ref_along(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, ada)

    assert (await client.delete(address, headers=ada)).status_code == 200

    assert await sha_of(database, repo_id, "refs/pr/1") is None
    assert (await client.get(address)).status_code == 404


@pytest.mark.parametrize(("method", "rest"), [("POST", "merge"), ("DELETE", "ref")])
async def test_a_mere_discussion_has_nothing_of_a_pull_request(
    client: httpx2.AsyncClient, ada: Headers, method: str, rest: str
) -> None:
    address = await a_discussion(client, ada)

    response = await client.request(method, f"{address}/{rest}", headers=ada)

    assert (response.status_code, response.json()) == (
        409,
        {"error": "Discussion 1 is no pull request."},
    )
    found = await get_discussion(client, address, diff=1)
    assert not {"changes", "filesWithConflicts", "diff"} & found.keys()


async def test_one_whose_branch_is_gone_is_still_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put(database, repo_id, {"a.txt": b"1"}, ref="refs/heads/dev")
    await post_commit(client, ada, {"b.txt": "1"}, to="dev", create_pr="1")
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_refs WHERE name = 'refs/heads/dev'")

    found = await get_discussion(client, f"{PATH}/1", diff=1)
    merged = await client.post(f"{PATH}/1/merge", headers=ada)

    assert (found["changes"], found["filesWithConflicts"]) == ({"base": "refs/heads/dev"}, [])
    assert (merged.status_code, merged.headers["x-error-code"]) == (404, "RevisionNotFound")


async def test_what_its_commits_would_free_is_estimated(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    address = await a_pull_request(client, ada)
    shared, old, new = b"shared", b"old of the request", b"new of the request"
    for content in (shared, old, new):
        await put_blob(database, repo_id, content)
    await put(database, repo_id, {"s.bin": pointer(shared)})
    for content in (old, new):
        files = {"s.bin": pointer(shared), "a.bin": pointer(content)}
        await put(database, repo_id, files, ref="refs/pr/1")

    before = await client.get(f"{address}/storage", headers=ada)
    await client.post(f"{address}/status", headers=ada, json={"status": "closed"})
    await client.delete(f"{PATH}/1/ref", headers=ada)
    after = await client.get(f"{address}/storage", headers=ada)

    size = len(old) + len(new)
    assert before.json() == {"estimatedStorage": size, "refDeleted": False}
    assert after.json() == {"estimatedStorage": 0, "refDeleted": True}


async def test_only_pull_requests_have_commits_to_estimate(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers
) -> None:
    discussion = await a_discussion(client, ada)
    request = await a_pull_request(client, ada)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})

    responses = [
        await client.get(f"{discussion}/storage", headers=ada),
        await client.get(f"{request}/storage", headers=bob),
        await client.get(f"{request}/storage"),
        await client.get(f"{PATH}/99/storage", headers=ada),
    ]

    assert [each.status_code for each in responses] == [409, 403, 401, 404]
