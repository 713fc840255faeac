"""Reading commits: trees page by page, entries, pointers."""

import gc
from contextlib import suppress
from pathlib import Path

import pygit2
import pytest

from hublet.repos.errors import EntryNotFound, RevisionNotFound
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.trees import GitEntry, LfsPointer
from repos.git_objects import commit_files, git_sha1

DIGEST = "ab" * 32
POINTER = trees.pointer_to(DIGEST, 12_000_000)

FILES = {
    "README.md": b"# Engine\n",
    # Git sorts the folder a behind the file a.txt and before the file a0.
    "a.txt": b"one",
    "a/b/c.txt": b"three",
    "a/b.txt": b"two",
    "a0": b"four",
    "model.bin": POINTER,
    "über/straße.txt": b"five",
}
IN_ORDER = [
    "README.md",
    "a.txt",
    "a",
    "a/b.txt",
    "a/b",
    "a/b/c.txt",
    "a0",
    "model.bin",
    "über",
    "über/straße.txt",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "x.git")
    return tmp_path / "x.git"


@pytest.fixture
def commit(folder: Path) -> str:
    return commit_files(folder, FILES)


def test_a_repository_closes_its_packs_once_nobody_has_it(folder: Path, commit: str) -> None:
    packer = pygit2.PackBuilder(bare_repos.open_repository(folder))
    packer.add_recur(pygit2.Oid(hex=commit))
    packer.write(str(folder / "objects/pack"))
    gc.disable()
    try:
        # Garbage is not collected: only nobody's repository may be closed.
        for file in folder.glob("objects/??/*"):
            file.unlink()
        repository = bare_repos.open_repository(folder)
        assert repository[commit].type == pygit2.enums.ObjectType.COMMIT
        assert open_files(folder)

        del repository

        assert open_files(folder) == []
    finally:
        gc.enable()


def open_files(folder: Path) -> list[Path]:
    found = list[Path]()
    for descriptor in Path("/proc/self/fd").iterdir():
        # That of the listing is closed by now, and a thread may close its own at any time.
        with suppress(FileNotFoundError):
            found.append(descriptor.readlink())
    return [each for each in found if each.is_relative_to(folder)]


def test_a_folder_comes_before_what_is_in_it(folder: Path, commit: str) -> None:
    found = trees.list_tree(folder, commit, recursive=True)

    assert [entry.path for entry in found] == IN_ORDER
    assert found[0] == GitEntry(
        path="README.md", type="file", oid=git_sha1(FILES["README.md"]), size=9
    )
    assert found[2].type == "directory"


def test_a_pointer_stands_for_its_content(folder: Path, commit: str) -> None:
    assert trees.get_entry(folder, commit, "model.bin") == GitEntry(
        path="model.bin",
        type="file",
        oid=git_sha1(POINTER),
        size=12_000_000,
        lfs=LfsPointer(sha256=DIGEST, size=12_000_000, pointer_size=len(POINTER)),
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(
            "", ["README.md", "a.txt", "a", "a0", "model.bin", "über"], id="the root alone"
        ),
        pytest.param("a", ["a/b.txt", "a/b"], id="one folder alone"),
        pytest.param("a/b", ["a/b/c.txt"], id="a folder in a folder"),
    ],
)
def test_one_level_is_listed(folder: Path, commit: str, path: str, expected: list[str]) -> None:
    found = trees.list_tree(folder, commit, path=path, recursive=False)

    assert [entry.path for entry in found] == expected


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("path", ["", "a"])
@pytest.mark.parametrize("recursive", [True, False])
def test_pages_put_together_are_the_whole(
    folder: Path, commit: str, size: int, path: str, *, recursive: bool
) -> None:
    whole = trees.list_tree(folder, commit, path=path, recursive=recursive)

    pages: list[GitEntry] = []
    after = ""
    while page := trees.list_tree(
        folder, commit, path=path, recursive=recursive, after=after, limit=size
    ):
        pages += page
        after = page[-1].path

    assert pages == whole


def test_a_page_does_not_read_what_lies_before_it(folder: Path) -> None:
    commit = commit_files(folder, {f"f{number}/x": b"%d" % number for number in range(10)})
    first = trees.get_entry(folder, commit, "f0")
    (folder / "objects" / first.oid[:2] / first.oid[2:]).unlink()

    page = trees.list_tree(folder, commit, recursive=True, after="f8/x")

    assert [entry.path for entry in page] == ["f9", "f9/x"]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param("a.zip", id="a name that would stand behind a.txt"),
        pytest.param("a.txt/x", id="a file taken for a folder"),
    ],
)
def test_a_cursor_that_names_nothing_goes_on_behind_it(
    folder: Path, commit: str, after: str
) -> None:
    page = trees.list_tree(folder, commit, recursive=True, after=after, limit=1)

    assert [entry.path for entry in page] == ["a"]


def test_a_name_is_not_taken_for_the_bytes_of_an_id(folder: Path) -> None:
    repository = bare_repos.open_repository(folder)
    # An id in which an entry of the name "x" seems to lie, for which nobody has an object.
    forged = pygit2.Oid(raw=b"12345678100644 x\0" + b"1" * 3)
    builder = repository.TreeBuilder()
    builder.insert("a", forged, pygit2.enums.FileMode.COMMIT)
    builder.insert("x", repository.create_blob(b"x"), pygit2.enums.FileMode.BLOB)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    commit = str(repository.create_commit(None, who, who, "m", builder.write(), []))

    assert trees.get_entry(folder, commit, "x").oid == git_sha1(b"x")


def test_a_large_folder_is_unpacked_once(folder: Path) -> None:
    commit = commit_files(folder, {f"{number:05}-{'x' * 40}": b"" for number in range(5000)})
    whole = trees.list_tree(folder, commit, recursive=False)
    tree = bare_repos.open_repository(folder)[commit].peel(pygit2.Tree).id
    (folder / "objects" / str(tree)[:2] / str(tree)[2:]).unlink()

    page = trees.list_tree(folder, commit, recursive=False, after=whole[2499].path, limit=10)

    assert page == whole[2500:2510]
    assert trees.get_entry(folder, commit, whole[4000].path) == whole[4000]


def test_large_folders_are_let_go_when_there_are_too_many() -> None:
    held = trees.LargeFolders()
    third = bytes(held.MOST_BYTES // 3)
    for number in range(3):
        held.put(("repo", b"%d" % number), third)
    held.get(("repo", b"0"))
    held.put(("repo", b"3"), third)
    held.put(("repo", b"small"), b"x")

    found = [key for key in (b"0", b"1", b"2", b"3", b"small") if held.get(("repo", key))]
    assert found == [b"0", b"2", b"3"]


def test_entries_are_found_by_path_and_the_missing_left_out(folder: Path, commit: str) -> None:
    found = trees.find_entries(
        folder,
        commit,
        ["a/b", "nothing", "a.txt", "", "/a.txt", "a//b.txt", "a.txt/b", "a\0", "\udc80", "a.txt"],
    )

    assert [(entry.path, entry.type) for entry in found] == [
        ("a/b", "directory"),
        ("a.txt", "file"),
    ]


def test_a_tag_object_leads_to_its_commit(folder: Path, commit: str) -> None:
    repository = bare_repos.open_repository(folder)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    tag = repository.create_tag(
        "v1", pygit2.Oid(hex=commit), pygit2.enums.ObjectType.COMMIT, who, "One."
    )

    assert trees.list_tree(folder, str(tag), recursive=True) == trees.list_tree(
        folder, commit, recursive=True
    )


def test_a_submodule_is_no_content(folder: Path) -> None:
    repository = bare_repos.open_repository(folder)
    builder = repository.TreeBuilder()
    builder.insert("other", pygit2.Oid(hex="1" * 40), pygit2.enums.FileMode.COMMIT)
    builder.insert("x", repository.create_blob(b"x"), pygit2.enums.FileMode.BLOB)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    commit = str(repository.create_commit(None, who, who, "m", builder.write(), []))

    assert [entry.path for entry in trees.list_tree(folder, commit, recursive=True)] == ["x"]
    assert trees.find_entries(folder, commit, ["other"]) == []


def test_an_unknown_commit_is_no_revision(folder: Path, commit: str) -> None:
    with pytest.raises(RevisionNotFound):
        trees.list_tree(folder, "1" * 40, recursive=False)


def test_the_id_of_a_file_is_no_revision(folder: Path, commit: str) -> None:
    with pytest.raises(RevisionNotFound):
        trees.list_tree(folder, git_sha1(b"one"), recursive=False)


def test_a_repository_that_is_gone_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(RevisionNotFound):
        trees.list_tree(tmp_path / "gone.git", "1" * 40, recursive=False)


@pytest.mark.parametrize("path", ["nothing", "a.txt", "a/", "/a"])
def test_what_is_no_folder_has_no_tree(folder: Path, commit: str, path: str) -> None:
    with pytest.raises(EntryNotFound) as refused:
        trees.list_tree(folder, commit, path=path, recursive=False)

    assert refused.value.headers == {"X-Repo-Commit": commit}


def test_a_file_is_read(folder: Path, commit: str) -> None:
    assert trees.read_blob(folder, git_sha1(b"one")) == b"one"
    with pytest.raises(TypeError):
        trees.read_blob(folder, commit)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(POINTER + b"\n", id="more behind it"),
        pytest.param(POINTER.replace(b"ab", b"AB"), id="capital letters in the digest"),
        pytest.param(POINTER.replace(b"sha256", b"sha512"), id="another digest"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_only_looks_like_a_pointer_is_a_file(data: bytes) -> None:
    assert trees.parse_pointer(data) is None


@pytest.mark.parametrize("size", [0, 9, 10**18])
def test_a_pointer_of_any_size_is_recognized_in_a_tree(folder: Path, size: int) -> None:
    commit = commit_files(folder, {"x": trees.pointer_to(DIGEST, size)})

    lfs = trees.get_entry(folder, commit, "x").lfs
    assert lfs is not None
    assert lfs.size == size
