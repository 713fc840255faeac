"""Blobs on the disk: spooled and kept."""

from pathlib import Path

from hublet.repos.blobs import Spool, blob_path
from hublet.repos.records import Blob
from repos.content import sha256
from repos.git_objects import git_sha1

CONTENT = b"0123456789"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_spool_is_kept_under_its_digest(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.write(CONTENT[:4])
        spool.write(CONTENT[4:])
        git_name = spool.git_sha1()
        blob = spool.store()

    assert blob == Blob(sha256=sha256(CONTENT), size=10)
    assert git_name == git_sha1(CONTENT)
    assert blob_path(tmp_path, blob.sha256).read_bytes() == CONTENT
    assert names_in(tmp_path) == [blob.sha256]


def test_with_the_size_known_gits_name_is_found_on_the_way(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    with Spool(tmp_path, size=20) as spool:
        spool.write(CONTENT)
        spool.write_file(source)
        blob = spool.store()

    assert blob == Blob(sha256=sha256(CONTENT * 2), size=20, git_sha1=git_sha1(CONTENT * 2))


def test_what_is_not_kept_vanishes(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.write(CONTENT)

    assert names_in(tmp_path) == []
