"""Who may push, and where to."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from hublet.core.database import Database, Reader
from hublet.events import UpdatedRef
from hublet.repos.commits import pull_requests
from hublet.repos.commits.pull_requests import AuthorCheck
from hublet.repos.git import bare_repos
from hublet.repos.push import unpack
from hublet.repos.records import RefTransaction, Repo
from hublet.repos.refs import service as ref_service
from hublet.tokens.records import Caller, TokenRole
from people import Headers, revoke, sign_in
from repos.pushes import MAIN, Pusher, a_pusher, push_body


@pytest.fixture
async def pusher(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> Pusher:
    return await a_pusher(client, database, ada, tmp_path)


NO_WRITER = (
    "you have no write access to ada/engine; "
    "without it you can push to your own open pull requests only"
)


def answer_author_check(monkeypatch: pytest.MonkeyPatch, check: AuthorCheck) -> None:
    registered = pull_requests._Registered  # noqa: SLF001 - the seam itself
    monkeypatch.setattr(registered, "check", staticmethod(check))


async def a_pull_request(pusher: Pusher, ref: str) -> None:
    async with pusher.database.transaction() as conn:
        created = UpdatedRef(ref=ref, old_sha=None, new_sha=pusher.head)
        transaction = RefTransaction(updates=(created,), actor_id=pusher.repo.creator_id)
        await ref_service.update_refs(conn, pusher.repo, transaction)


async def test_pushing_needs_a_token_that_may_write(pusher: Pusher) -> None:
    body = push_body(("refs/heads/a", None, pusher.head))
    reader = await sign_in(pusher.database, "ada", role=TokenRole.read)

    answers = [await pusher.send(body, headers) for headers in ({}, reader)]

    assert [(answer.status_code, answer.text) for answer in answers] == [
        (
            401,
            (
                "There is no such repository, or it needs a token: "
                "give the token as the password, with any user name.\n"
            ),
        ),
        (403, "You cannot do this with ada/engine: the token lacks the scope write-repos.\n"),
    ]
    assert await pusher.refs() == {MAIN: pusher.head}


async def test_who_may_not_write_is_told_so_for_each_ref(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    bob = replace(pusher, headers=await sign_in(pusher.database, "bob"))

    report = await bob.push((MAIN, bob.head, new), pack=bob.clone.pack(new))

    assert report == ["unpack ok", f"ng {MAIN} {NO_WRITER}"]
    assert await pusher.refs() == {MAIN: pusher.head}
    assert new not in bare_repos.open_repository(pusher.folder)


async def test_a_large_push_of_a_stranger_is_not_even_listened_to(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "LARGEST_DRAINED", 10)
    bob = await sign_in(pusher.database, "bob")

    response = await pusher.send(push_body((MAIN, pusher.head, "1" * 40), pack=b"x" * 11), bob)

    assert response.status_code == 413


async def test_a_pull_request_is_pushed_to_by_its_author(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ref in ("refs/pr/1", "refs/pr/2"):
        await a_pull_request(pusher, ref)

    async def is_bobs_second(_conn: Reader, caller: Caller, _repo: Repo, number: int) -> bool:
        return (caller.user_name, number) == ("bob", 2)

    answer_author_check(monkeypatch, is_bobs_second)
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    bob = replace(pusher, headers=await sign_in(pusher.database, "bob"))
    reader = await sign_in(pusher.database, "bob", role=TokenRole.read)
    pack = pusher.clone.pack(new)

    others = await bob.push(("refs/pr/1", bob.head, new), pack=pack)
    mixed = await bob.push(("refs/pr/2", bob.head, new), (MAIN, bob.head, new), pack=pack)
    read_only = await bob.send(push_body(("refs/pr/2", bob.head, new), pack=pack), reader)
    own = await bob.push(("refs/pr/2", bob.head, new), pack=pack)
    writers = await pusher.push(("refs/pr/1", pusher.head, new))

    assert others == ["unpack ok", f"ng refs/pr/1 {NO_WRITER}"]
    assert mixed == ["unpack ok", f"ng refs/pr/2 {NO_WRITER}", f"ng {MAIN} {NO_WRITER}"]
    assert read_only.status_code == 403
    assert (own, writers) == (["unpack ok", "ok refs/pr/2"], ["unpack ok", "ok refs/pr/1"])
    assert await pusher.refs() == {MAIN: pusher.head, "refs/pr/1": new, "refs/pr/2": new}


async def test_who_may_not_write_any_more_when_all_has_arrived_moves_nothing(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_pull_request(pusher, "refs/pr/1")
    answers = iter([True, False])

    async def is_open_at_first(*_: object) -> bool:
        return next(answers)

    answer_author_check(monkeypatch, is_open_at_first)
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    bob = replace(pusher, headers=await sign_in(pusher.database, "bob"))

    report = await bob.push(("refs/pr/1", bob.head, new), pack=bob.clone.pack(new))

    assert report == ["unpack ok", f"ng refs/pr/1 {NO_WRITER}"]
    assert (await pusher.refs())["refs/pr/1"] == pusher.head


async def test_a_token_that_is_revoked_while_a_push_arrives_moves_nothing(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    commands, pack = push_body((MAIN, pusher.head, new)), pusher.clone.pack(new)

    async def body() -> AsyncIterator[bytes]:
        yield commands
        await revoke(pusher.database, pusher.headers)
        yield pack

    response = await pusher.send(body())

    assert response.status_code == 401
    assert await pusher.refs() == {MAIN: pusher.head}


async def test_an_author_who_cannot_read_the_repository_any_more_cannot_push(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_pull_request(pusher, "refs/pr/1")

    async def is_the_author(*_: object) -> bool:
        return True

    answer_author_check(monkeypatch, is_the_author)
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    body = push_body(("refs/pr/1", pusher.head, new), pack=pusher.clone.pack(new))
    async with pusher.database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = 'manual'")

    response = await pusher.send(body, await sign_in(pusher.database, "bob"))

    assert response.status_code == 403
    assert (await pusher.refs())["refs/pr/1"] == pusher.head
