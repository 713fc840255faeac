"""The cache on the disk: what it keeps, what it drops first, and what it survives."""

import os
from pathlib import Path

import pytest

from hublet.core.file_cache import FileCache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*"))


def test_what_was_put_is_found_by_group_and_key(folder: Path) -> None:
    cache = FileCache(folder)

    cache.put("repo", "a", b"content")

    assert cache.find("repo", "a") == b"content"
    assert cache.find("repo", "b") is None
    assert cache.find("other", "a") is None


def test_a_group_is_removed_as_a_whole(folder: Path) -> None:
    cache = FileCache(folder)
    cache.put("repo", "a", b"content")
    cache.put("other", "a", b"content")

    cache.remove("repo")

    assert cache.find("repo", "a") is None
    assert cache.find("other", "a") == b"content"


def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
    cache = FileCache(folder, max_bytes=3000)
    for number in range(4):
        cache.put("repo", str(number), os.urandom(1000))
    for path in files_in(folder):
        os.utime(path, (1, 1))
    cache.find("repo", "2")

    cache.sweep()

    assert cache.find("repo", "2") is not None
    assert sum(path.stat().st_size for path in files_in(folder)) <= 3000


def test_enough_writing_sweeps_by_itself(folder: Path) -> None:
    cache = FileCache(folder, max_bytes=3000, sweep_bytes=2000)

    for number in range(20):
        cache.put("repo", str(number), os.urandom(1000))

    assert sum(path.stat().st_size for path in files_in(folder)) <= 5000


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\0broken"])
def test_a_damaged_entry_is_computed_again(folder: Path, content: bytes) -> None:
    cache = FileCache(folder)
    cache.put("repo", "a", b"content")
    [path] = files_in(folder)

    path.write_bytes(content)

    assert cache.find("repo", "a") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file in its place")
    cache = FileCache(tmp_path / "cache")

    cache.put("repo", "a", b"content")

    assert cache.find("repo", "a") is None


def test_other_users_of_the_machine_cannot_read_it(folder: Path) -> None:
    FileCache(folder).put("repo", "a", b"content")

    assert [path.stat().st_mode & 0o077 for path in files_in(folder)] == [0]
