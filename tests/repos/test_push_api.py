"""Pushes: what moves, what is told of it, and what happens when several come at once."""

import asyncio
import gzip
from pathlib import Path

import httpx2
import pygit2
import pytest

from hublet.core.database import Connection, Database
from hublet.events import RepoContentUpdated
from hublet.repos import blobs_store as blobs
from hublet.repos import store
from hublet.repos.errors import RefChanged
from hublet.repos.git import quarantine, trees
from hublet.repos.records import RefTransaction, Repo
from hublet.repos.refs import service as ref_service
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from outbox_events import published_events
from people import Headers
from repos.pushes import MAIN, Pusher, a_pusher, push_body

DIGEST = "ab" * 32


@pytest.fixture
async def pusher(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> Pusher:
    return await a_pusher(client, database, ada, tmp_path)


async def test_a_push_moves_main_and_tells_of_it_like_an_upload(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)

    report = await pusher.push((MAIN, pusher.head, new), pack=pusher.clone.pack(new))

    assert report == ["unpack ok", f"ok {MAIN}"]
    assert await pusher.refs() == {MAIN: new}
    [entry] = trees.list_tree(pusher.folder, new, recursive=True)
    assert entry.path == "a.txt"
    [event] = await published_events(pusher.database, RepoContentUpdated)
    assert event == {
        "repo": {
            "id": pusher.repo.id,
            "type": "model",
            "name": "ada/engine",
            "owner_id": pusher.repo.owner_id,
            "private": False,
            "resource_group_id": None,
            "head_sha": new,
            "tags": [],
        },
        "updated_refs": [{"ref": MAIN, "old_sha": pusher.head, "new_sha": new}],
        "actor_id": pusher.repo.creator_id,
        # What git sent is read later, by those whom it concerns.
        "changed_names": None,
        "may_leak": True,
    }


async def test_branches_and_tags_are_created_moved_and_deleted(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"})
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    tag = str(
        pusher.clone.repository.create_tag("v2", new, pygit2.enums.ObjectType.COMMIT, who, "Two")
    )
    feature, light, heavy = "refs/heads/feature/x", "refs/tags/v1", "refs/tags/v2"

    created = await pusher.push(
        (feature, None, pusher.head), (light, None, new), (heavy, None, tag),
        pack=pusher.clone.pack(new, tag),
    )  # fmt: skip
    after_creation = await pusher.refs()
    changed = await pusher.push((feature, pusher.head, new), (light, new, None))

    assert created == ["unpack ok", f"ok {feature}", f"ok {light}", f"ok {heavy}"]
    assert after_creation == {MAIN: pusher.head, feature: pusher.head, light: new, heavy: tag}
    assert changed == ["unpack ok", f"ok {feature}", f"ok {light}"]
    assert await pusher.refs() == {MAIN: pusher.head, feature: new, heavy: tag}
    [_, second] = await published_events(pusher.database, RepoContentUpdated)
    assert second["updated_refs"] == [
        {"ref": feature, "old_sha": pusher.head, "new_sha": new},
        {"ref": light, "old_sha": new, "new_sha": None},
    ]


async def test_main_can_be_moved_anywhere_but_not_deleted(pusher: Pusher) -> None:
    unrelated = pusher.clone.commit({"a.txt": b"one"})

    forced = await pusher.push((MAIN, pusher.head, unrelated), pack=pusher.clone.pack(unrelated))
    deleted = await pusher.push((MAIN, unrelated, None))

    assert forced == ["unpack ok", f"ok {MAIN}"]
    assert deleted == ["unpack ok", f"ng {MAIN} main cannot be deleted"]
    assert await pusher.refs() == {MAIN: unrelated}


async def test_what_is_allowed_moves_although_another_ref_is_refused(pusher: Pusher) -> None:
    report = await pusher.push(("refs/heads/a", None, pusher.head), (MAIN, pusher.head, None))

    assert report == ["unpack ok", "ok refs/heads/a", f"ng {MAIN} main cannot be deleted"]
    assert await pusher.refs() == {MAIN: pusher.head, "refs/heads/a": pusher.head}


async def test_an_atomic_push_moves_all_or_nothing(pusher: Pusher) -> None:
    report = await pusher.push(
        ("refs/heads/a", None, pusher.head), (MAIN, pusher.head, None),
        capabilities="report-status atomic",
    )  # fmt: skip

    assert report == [
        "unpack ok",
        "ng refs/heads/a the push is atomic, and another ref was refused",
        f"ng {MAIN} main cannot be deleted",
    ]
    assert await pusher.refs() == {MAIN: pusher.head}
    assert await published_events(pusher.database, RepoContentUpdated) == []


async def test_of_two_pushes_at_once_one_wins_and_the_other_is_told_to_fetch(
    pusher: Pusher,
) -> None:
    commits = [pusher.clone.commit({"a.txt": b"%d" % number}, pusher.head) for number in range(4)]

    reports = await asyncio.gather(
        *(pusher.push((MAIN, pusher.head, new), pack=pusher.clone.pack(new)) for new in commits)
    )

    won = [new for new, report in zip(commits, reports, strict=True) if report[1] == f"ok {MAIN}"]
    lost = [report[1] for report in reports if report[1] != f"ok {MAIN}"]
    assert lost == [f"ng {MAIN} fetch first: it has moved since"] * 3
    assert await pusher.refs() == {MAIN: won[0]}
    assert len(await published_events(pusher.database, RepoContentUpdated)) == 1


async def test_a_push_that_is_always_overtaken_gives_up(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def overtaken(_conn: Connection, _repo: Repo, _wanted: RefTransaction) -> Repo:
        nonlocal tries
        tries += 1
        raise RefChanged("main")

    monkeypatch.setattr(ref_service, "update_refs", overtaken)
    report = await pusher.push(("refs/heads/a", None, pusher.head))

    assert report[1] == "ng refs/heads/a fetch first: others are pushing at the same moment"
    assert tries == 3


async def test_a_ref_that_stays_where_it_is_is_no_change(pusher: Pusher) -> None:
    report = await pusher.push((MAIN, pusher.head, pusher.head))

    assert report == ["unpack ok", f"ok {MAIN}"]
    assert await published_events(pusher.database, RepoContentUpdated) == []


async def test_a_clone_that_is_not_whole_may_push_what_connects(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    shallow = f"shallow {pusher.head}".encode()
    body = b"%04x%b" % (len(shallow) + 4, shallow)
    body += push_body((MAIN, pusher.head, new), pack=pusher.clone.pack(new))

    response = await pusher.send(body)

    assert response.content == b"000eunpack ok\n0017ok refs/heads/main\n0000"


async def test_the_report_comes_in_the_form_that_was_asked_for(pusher: Pusher) -> None:
    def body(ref: str, capabilities: str) -> bytes:
        return push_body((ref, None, pusher.head), capabilities=capabilities)

    banded = await pusher.send(body("refs/heads/a", "report-status side-band-64k"))
    silent = await pusher.send(body("refs/heads/b", "quiet"))

    assert banded.content == b"002b\x01000eunpack ok\n0014ok refs/heads/a\n0000" + b"0000"
    assert silent.content == b""


async def test_git_may_ask_first_whether_it_is_let_in(pusher: Pusher) -> None:
    response = await pusher.send(b"0000")

    assert (response.status_code, response.content) == (200, b"")


async def test_a_body_may_be_packed(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    body = gzip.compress(push_body((MAIN, pusher.head, new), pack=pusher.clone.pack(new)))

    response = await pusher.send(body, pusher.headers | {"Content-Encoding": "gzip"})

    assert response.content == b"000eunpack ok\n0017ok refs/heads/main\n0000"


async def test_the_card_and_the_size_follow_what_was_pushed(pusher: Pusher) -> None:
    readme = b"---\nlicense: mit\ntags: [steam]\n---\n# Engine\n"
    new = pusher.clone.commit({"README.md": readme, "a.txt": b"12345"}, pusher.head)
    other = b"---\nlicense: other\n---\n"
    branch = pusher.clone.commit({"README.md": other}, new)

    await pusher.push_main(new)
    await pusher.push(("refs/heads/a", None, branch), pack=pusher.clone.pack(branch))

    async with pusher.database.read() as conn:
        repo = await store.find(conn, pusher.repo.id)
    assert repo is not None
    assert (repo.head_sha, repo.card) == (new, {"license": "mit", "tags": ["steam"]})
    assert repo.tags == ("steam", "license:mit")
    assert repo.size - pusher.repo.size == len(readme) + len(b"12345") + len(other)
    [first, _] = await published_events(pusher.database, RepoContentUpdated)
    assert first["repo"]["tags"] == ["steam", "license:mit"]


async def test_content_in_lfs_counts_with_its_own_size(pusher: Pusher) -> None:
    async with pusher.database.transaction() as conn:
        await add_blobs(conn, [Blob(sha256=DIGEST, size=5_000_000)])
        await blobs.link(conn, pusher.repo.id, [Blob(sha256=DIGEST, size=5_000_000)])
    pointer = trees.pointer_to(DIGEST, 5_000_000)

    await pusher.push_main(pusher.clone.commit({"a.bin": pointer, "b.bin": pointer}, pusher.head))

    async with pusher.database.read() as conn:
        repo = await store.find(conn, pusher.repo.id)
    assert repo is not None
    assert repo.size - pusher.repo.size == 5_000_000


async def test_a_repository_that_is_deleted_meanwhile_takes_nothing(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    loop = asyncio.get_running_loop()
    accept = quarantine.accept

    async def delete() -> None:
        body = {"name": "engine", "type": "model"}
        await pusher.client.request(
            "DELETE", "/api/repos/delete", headers=pusher.headers, json=body
        )

    def accept_too_late(folder: Path, objects: Path) -> None:
        accept(folder, objects)
        asyncio.run_coroutine_threadsafe(delete(), loop).result()

    monkeypatch.setattr(quarantine, "accept", accept_too_late)
    response = await pusher.send(push_body((MAIN, pusher.head, new), pack=pusher.clone.pack(new)))

    assert response.status_code == 404
    assert await published_events(pusher.database, RepoContentUpdated) == []
