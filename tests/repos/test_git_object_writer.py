"""Writing objects: git itself finds nothing wrong with them."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pygit2
import pytest

from hublet.repos.git import bare_repos, object_writer, packs, trees
from hublet.repos.git.history import list_commits
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import CommitDraft, commit_data, oid_of, parse_tree, tree_data
from hublet.repos.git.tree_changes import FilePut, TreeChanges, apply_changes

AT = datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "x.git")
    return tmp_path / "x.git"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", folder, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


def write(folder: Path, files: dict[str, bytes]) -> str:
    """Commit these files to an empty repository, all through the writer."""
    with ObjectWriter(folder) as writer:
        empty = writer.add("tree", b"")
        root = writer.add("commit", commit_data(draft("Root"), tree=empty, parents=()))
        writer.finish()
        puts = {
            path: FilePut(oid=writer.add("blob", data), size=len(data))
            for path, data in files.items()
        }
        repository = bare_repos.open_repository(folder)
        base = trees.get_commit(repository, root).tree
        applied = apply_changes(repository, base, TreeChanges(puts=puts), writer)
        data = commit_data(draft("Title\n\nMore."), tree=applied.tree, parents=(root,))
        commit = writer.add("commit", data)
        writer.finish()
    return commit


def draft(message: str) -> CommitDraft:
    return CommitDraft(author="ada", at=AT, message=message)


# One that becomes files, and one that becomes a pack.
FEW = {"a": b"1", "b/c": b"2", "b-c": b"", "b.c": b"3", "ü/ß": b"4"}
MANY = FEW | {f"f{number % 7}/{number}": b"%d" % number * 40 for number in range(500)}


@pytest.mark.parametrize("files", [FEW, MANY], ids=["few", "many"])
def test_git_finds_nothing_wrong(folder: Path, files: dict[str, bytes]) -> None:
    commit = write(folder, files)

    (folder / "packed-refs").write_text(f"{commit} refs/heads/main\n")
    assert git(folder, "fsck", "--strict", "--full") == ""
    assert len(list((folder / "objects" / "pack").glob("*.idx"))) == (files is MANY)
    found = trees.list_tree(folder, commit, recursive=True)
    read = {e.path: trees.read_blob(folder, e.oid) for e in found if e.type == "file"}
    assert read == files
    assert list(folder.rglob("tmp_*")) == []


def test_a_commit_reads_as_it_was_written(folder: Path) -> None:
    made = list_commits(folder, write(folder, FEW))[0]

    assert (made.title, made.message, made.date) == ("Title", "More.", AT)
    assert (made.author_name, made.author_email) == ("ada", "ada@users.noreply.invalid")


def test_large_content_becomes_a_pack_at_once(folder: Path) -> None:
    with ObjectWriter(folder) as writer:
        name = writer.add("blob", os.urandom(2 << 20))
        writer.finish()

    assert len(list((folder / "objects" / "pack").glob("*.pack"))) == 1
    assert len(trees.read_blob(folder, name)) == 2 << 20


def test_a_pack_that_is_full_is_followed_by_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_writer, "FULL_PACK", 3 << 20)
    with ObjectWriter(folder) as writer:
        names = [writer.add("blob", os.urandom(2 << 20)) for _ in range(4)]
        writer.finish()

    assert len(list((folder / "objects" / "pack").glob("*.pack"))) == 2
    assert all(len(trees.read_blob(folder, name)) == 2 << 20 for name in names)
    git(folder, "fsck", "--strict", "--full")


def test_what_is_discarded_leaves_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    with ObjectWriter(folder) as writer:
        for number in range(100):
            writer.add("blob", b"%d" % number)

    assert sorted(folder.rglob("*")) == before


def test_nothing_is_seen_before_the_end(folder: Path) -> None:
    with ObjectWriter(folder) as writer:
        names = [writer.add("blob", b"%d" % number) for number in range(100)]
        assert pygit2.Oid(hex=names[0]) not in bare_repos.open_repository(folder)
        writer.finish()

    assert pygit2.Oid(hex=names[0]) in bare_repos.open_repository(folder)


@pytest.mark.parametrize("count", [3, 100])
def test_everything_is_on_the_disk_at_the_end(
    folder: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with ObjectWriter(folder) as writer:
        names = [writer.add("blob", b"%d" % number) for number in range(count)]
        writer.finish()

    objects = folder / "objects"
    if count == 3:
        assert {str(objects / name[:2]) for name in names} | {str(objects)} <= synced
        assert sum("tmp_obj_" in path for path in synced) == 3
    else:
        assert str(objects / "pack") in synced
        assert sorted(Path(path).name[:8] for path in synced if "tmp_" in path) == [
            "tmp_idx_", "tmp_pack",
        ]  # fmt: skip


def test_an_object_that_is_written_again_is_new_again(folder: Path) -> None:
    with ObjectWriter(folder) as writer:
        name = writer.add("blob", b"x")
        writer.finish()
        path = folder / "objects" / name[:2] / name[2:]
        os.utime(path, (0, 0))
        writer.add("blob", b"x")
        writer.finish()

    assert path.stat().st_mtime > 0


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("lasts", [0, 1])
def test_a_write_that_fails_leaves_no_half_file(
    folder: Path, count: int, lasts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = 0

    def fail(_descriptor: int) -> None:
        nonlocal synced
        synced += 1
        if synced > lasts:
            raise OSError("No space left on device")

    with ObjectWriter(folder) as writer:
        for number in range(count):
            writer.add("blob", b"%d" % number)
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            writer.finish()

    assert list(folder.rglob("tmp_*")) == []


@pytest.mark.parametrize("size", [0, 15, 16, 2047, 2048, 300_000])
def test_sizes_of_all_lengths_are_packed(folder: Path, size: int) -> None:
    pack = packs.PackWriter(folder)
    data = b"x" * size
    pack.add("blob", oid_of("blob", data), data)
    pack.finish()

    assert trees.read_blob(folder, oid_of("blob", data)) == data


def test_a_tree_reads_as_it_was_written(folder: Path) -> None:
    commit = write(folder, MANY)
    repository = bare_repos.open_repository(folder)
    _, data = repository.odb.read(trees.get_commit(repository, commit).tree_id)

    assert tree_data(parse_tree(data)) == data


def test_the_first_commit_holds_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "repos" / "new.git"
    commit = bare_repos.create_with_first_commit(
        folder, author="ada", at=AT, files={"a.txt": b"one", ".b": b"two"}
    )

    entries = trees.list_tree(folder, commit, recursive=True)
    content = {entry.path: trees.read_blob(folder, entry.oid) for entry in entries}
    assert content == {".b": b"two", "a.txt": b"one"}
    git(folder, "fsck", "--strict", "--full")
