"""Pushes whose content is refused, and that such a push leaves nothing behind."""

from pathlib import Path

import httpx2
import pygit2
import pytest

from hublet.core.database import Database
from hublet.repos import blobs_store as blobs
from hublet.repos.git import bare_repos, trees
from hublet.repos.push import validate
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from people import Headers
from repos.pushes import MAIN, Pusher, a_pusher

DIGEST = "ab" * 32


@pytest.fixture
async def pusher(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> Pusher:
    return await a_pusher(client, database, ada, tmp_path)


async def test_a_file_of_ten_mebibytes_is_taken_and_a_larger_one_belongs_into_lfs(
    pusher: Pusher,
) -> None:
    largest = pusher.clone.commit({"model.dat": bytes(10 << 20)}, pusher.head)
    too_large = pusher.clone.commit({"sub/model.dat": bytes(12 << 20), "a": b"a"}, largest)

    taken = await pusher.push((MAIN, pusher.head, largest), pack=pusher.clone.pack(largest))
    refused = await pusher.push((MAIN, largest, too_large), pack=pusher.clone.pack(too_large))

    assert taken == ["unpack ok", f"ok {MAIN}"]
    assert refused == [
        "unpack ok",
        (
            f"ng {MAIN} files over 10 MiB belong into git-lfs: sub/model.dat (12.0 MiB); "
            "see `git lfs migrate import`"
        ),
    ]
    assert await pusher.refs() == {MAIN: largest}
    assert too_large not in bare_repos.open_repository(pusher.folder)


async def test_a_large_file_counts_also_when_a_later_commit_removes_it(pusher: Pusher) -> None:
    with_it = pusher.clone.commit({"model.dat": bytes(11 << 20)}, pusher.head)
    without = pusher.clone.commit({"a": b"a"}, with_it)

    report = await pusher.push(
        (MAIN, pusher.head, without), pack=pusher.clone.pack(with_it, without)
    )

    assert "model.dat (11.0 MiB)" in report[1]


async def test_many_large_files_are_told_in_one_sentence(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "LARGEST_FILE", 1)
    new = pusher.clone.commit(
        {f"{number}.bin": b"%d!" % number for number in range(8)}, pusher.head
    )

    report = await pusher.push((MAIN, pusher.head, new), pack=pusher.clone.pack(new))

    assert "4.bin (0.0 MiB) and 3 more; see" in report[1]


async def test_content_in_lfs_must_have_arrived_before_what_points_to_it(pusher: Pusher) -> None:
    new = pusher.clone.commit({"model.bin": trees.pointer_to(DIGEST, 5)}, pusher.head)
    wrong = pusher.clone.commit({"model.bin": trees.pointer_to(DIGEST, 6)}, pusher.head)

    async def attempt(sha: str) -> str:
        return await pusher.push_main(sha)

    before = await attempt(new)
    async with pusher.database.transaction() as conn:
        await add_blobs(conn, [Blob(sha256=DIGEST, size=5)])
    unlinked = await attempt(new)
    async with pusher.database.transaction() as conn:
        await blobs.link(conn, pusher.repo.id, [Blob(sha256=DIGEST, size=5)])
    lying = await attempt(wrong)
    linked = await attempt(new)

    refusal = f"ng {MAIN} the content of model.bin is missing; send it with `git lfs push` first"
    assert [before, unlinked, lying, linked] == [refusal, refusal, refusal, f"ok {MAIN}"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(b".git", "contains '.git'", id="git's own folder"),
        pytest.param(b".GiT", "contains '.git'", id="git's own folder in another case"),
        pytest.param(b"..", "contains '..'", id="the folder above"),
        pytest.param(b"a\nb", "it has no control characters", id="a line break"),
        pytest.param(b"a\\b", "it has no backslash", id="a backslash"),
        pytest.param(b"\xff", "it is valid Unicode text", id="not UTF-8"),
    ],
)
async def test_names_that_cannot_be_committed_cannot_be_pushed(
    pusher: Pusher, name: bytes, reason: str
) -> None:
    blob = pusher.clone.repository.create_blob(b"x")
    inner = pusher.clone.repository.odb.write(
        pygit2.enums.ObjectType.TREE, b"100644 %b\0%b" % (name, blob.raw)
    )
    outer = pusher.clone.repository.odb.write(
        pygit2.enums.ObjectType.TREE, b"40000 sub\0%b" % inner.raw
    )
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    new = str(pusher.clone.repository.create_commit(None, who, who, "x", outer, [pusher.head]))
    pack = pusher.clone.pack(new)

    report = await pusher.push((MAIN, pusher.head, new), pack=pack)

    assert report[1].startswith(f"ng {MAIN} ")
    assert reason in " ".join(report)
    assert await pusher.refs() == {MAIN: pusher.head}


async def test_a_broken_pack_is_refused(pusher: Pusher) -> None:
    new = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    pack = pusher.clone.pack(new)
    broken = {
        "a wrong byte": pack[:-30] + bytes([pack[-30] ^ 255]) + pack[-29:],
        "an early end": pack[:-30],
        "something else": b"This is no pack at all.",
    }

    reports = {
        how: await pusher.push((MAIN, pusher.head, new), pack=data) for how, data in broken.items()
    }

    for report in reports.values():
        assert report[0].startswith("unpack git refused the objects of this push: ")
        assert report[1] == f"ng {MAIN} nothing of the push could be used"
    assert await pusher.refs() == {MAIN: pusher.head}
    assert list((pusher.folder / "objects").glob("incoming-*")) == []


async def test_a_push_must_bring_all_that_it_refers_to(pusher: Pusher) -> None:
    missing = pusher.clone.commit({"a.txt": b"one"}, pusher.head)
    child = pusher.clone.commit({"b.txt": b"two"}, missing)

    without_parent = await pusher.push((MAIN, pusher.head, child), pack=pusher.clone.pack(child))
    without_pack = await pusher.push((MAIN, pusher.head, missing))

    assert without_parent[1].startswith(f"ng {MAIN} ")
    assert without_pack == ["unpack ok", f"ng {MAIN} the push lacks {missing}"]
    assert await pusher.refs() == {MAIN: pusher.head}


async def test_what_lies_on_the_disk_in_parts_only_is_refused_too(pusher: Pusher) -> None:
    # A commit without its tree, as a crash or a careless hand may leave it.
    text = f"tree {'1' * 40}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\nx\n"
    odb = bare_repos.open_repository(pusher.folder).odb
    commit = str(odb.write(pygit2.enums.ObjectType.COMMIT, text.encode()))

    report = await pusher.push(("refs/heads/a", None, commit))

    assert report == [
        "unpack ok",
        ("ng refs/heads/a the push lacks objects that it refers to; a shallow clone may be why"),
    ]
    assert await pusher.refs() == {MAIN: pusher.head}


async def test_objects_of_a_refused_push_do_not_complete_a_later_one(pusher: Pusher) -> None:
    large = pusher.clone.commit({"model.dat": bytes(11 << 20)}, pusher.head)
    child = pusher.clone.commit({"b.txt": b"two"}, large)

    await pusher.push((MAIN, pusher.head, large), pack=pusher.clone.pack(large))
    report = await pusher.push((MAIN, pusher.head, child), pack=pusher.clone.pack(child))

    assert report[1].startswith(f"ng {MAIN} ")


async def test_refs_stand_for_commits_only(pusher: Pusher) -> None:
    blob = str(pusher.clone.repository.create_blob(b"x"))
    branch, tag = "refs/heads/blob", "refs/tags/blob"

    as_branch = await pusher.push((branch, None, blob), pack=pusher.clone.pack(blob))
    as_tag = await pusher.push((tag, None, blob), pack=pusher.clone.pack(blob))

    assert as_branch == ["unpack ok", f"ng {branch} {branch} can point to a commit only"]
    assert as_tag == ["unpack ok", f"ng {tag} {tag} can stand for a commit only"]
    assert await pusher.refs() == {MAIN: pusher.head}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param(b"zzzz", "a packet begins with four hexadecimal digits", id="no length"),
        pytest.param(b"0003", "no packet has the length 3", id="an impossible length"),
        pytest.param(b"0010abc", "it ends in the middle of a packet", id="an early end"),
        pytest.param(b"", "it ends in the middle of a packet", id="nothing"),
        pytest.param(
            b"0009hello0000", "a command is an old commit, a new one and a ref", id="no command"
        ),
        pytest.param(b"0005\xff0000", "names of refs are UTF-8", id="not UTF-8"),
    ],
)
async def test_what_git_would_not_send_is_refused(pusher: Pusher, body: bytes, rule: str) -> None:
    response = await pusher.send(body)

    assert response.status_code == 400
    assert response.text == f"This is no request of git's: {rule}.\n"
