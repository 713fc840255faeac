"""Buckets through the public client and its command; and attachments."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import BucketFile, HfApi, HfFileSystem
from huggingface_hub.errors import BucketBatchError, BucketNotFoundError, HfHubHTTPError

NewName = Callable[[], str]
HF = Path(sys.executable).parent / "hf"


def hf(*arguments: str) -> str:
    ended = subprocess.run(
        [HF, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def bucket(api: HfApi, new_name: NewName) -> Iterator[str]:
    """A public bucket of ada's."""
    name = new_name()
    api.create_bucket(name)
    yield name
    api.delete_bucket(name, missing_ok=True)


def put(bucket: str, path: str, content: bytes) -> None:
    """Upload by plain HTTP, as the client never does."""
    request = urllib.request.Request(
        f"{os.environ['HF_ENDPOINT']}/api/buckets/{bucket}/files/{path}",
        data=content,
        method="PUT",
        headers={"Authorization": f"Bearer {os.environ['HF_TOKEN']}"},
    )
    urllib.request.urlopen(request, timeout=30).close()


def test_a_bucket_from_its_creation_to_its_end(
    api: HfApi, stranger: HfApi, new_name: NewName
) -> None:
    name = new_name()

    url = api.create_bucket(name.removeprefix("ada/"), private=True)
    again = api.create_bucket(name, exist_ok=True)
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_bucket(name)

    assert (url.bucket_id, again.bucket_id) == (name, name)
    info = api.bucket_info(name)
    assert (info.id, info.private, info.size, info.total_files) == (name, True, 0, 0)
    with pytest.raises(BucketNotFoundError):
        stranger.bucket_info(name)
    api.update_bucket_settings(name, private=False)
    assert stranger.bucket_info(name).private is False
    assert name in [found.id for found in api.list_buckets()]
    last = name.partition("/")[2]
    assert [found.id for found in stranger.list_buckets("ada", search=last)] == [name]
    api.delete_bucket(name)
    with pytest.raises(BucketNotFoundError):
        api.delete_bucket(name)
    api.delete_bucket(name, missing_ok=True)


def test_a_bucket_moves(api: HfApi, bucket: str, new_name: NewName) -> None:
    put(bucket, "a", b"one")
    moved = new_name()

    api.move_bucket(bucket, moved)

    assert api.bucket_info(moved).total_files == 1
    assert api.bucket_info(bucket).id == moved
    api.delete_bucket(moved)


def test_what_is_in_a_bucket(api: HfApi, bucket: str) -> None:
    for path in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "sub.txt"):
        put(bucket, path, path.encode())

    top = list(api.list_bucket_tree(bucket, recursive=False))
    below = list(api.list_bucket_tree(bucket, prefix="sub/", recursive=False))
    every = list(api.list_bucket_tree(bucket))
    [info] = api.get_bucket_paths_info(bucket, ["sub/b.txt", "sub", "nothing"])

    assert [found.path for found in top] == ["a.txt", "sub.txt", "sub"]
    assert [found.path for found in below] == ["sub/b.txt", "sub/deep"]
    assert [found.path for found in every] == ["a.txt", "sub.txt", "sub/b.txt", "sub/deep/c.txt"]
    assert isinstance(top[0], BucketFile)
    assert (info.path, info.size) == ("sub/b.txt", 9)
    assert info.mtime is not None
    assert info.uploaded_at is not None


def test_files_are_copied_and_deleted(api: HfApi, bucket: str, new_name: NewName) -> None:
    put(bucket, "sub/a.bin", b"one")
    put(bucket, "sub/b.bin", b"two")
    target = new_name()
    api.create_bucket(target, private=True)

    api.copy_files(f"hf://buckets/{bucket}/sub/", f"hf://buckets/{target}/copy/")
    api.batch_bucket_files(target, delete=["copy/b.bin"])

    assert [file.path for file in api.list_bucket_tree(target, recursive=True)] == ["copy/a.bin"]
    api.delete_bucket(target)


def test_what_a_batch_cannot_do_is_told_file_by_file(api: HfApi, bucket: str) -> None:
    put(bucket, "gone", b"one")
    put(bucket, "kept/a", b"two")

    with pytest.raises(BucketBatchError) as partly:
        api.batch_bucket_files(bucket, add=[(b"x", "kept"), (b"y", "new")], delete=["gone"])
    with pytest.raises(BucketBatchError) as wholly:
        api.batch_bucket_files(bucket, copy=[("bucket", bucket, "1" * 64, "other")])

    assert [failure["path"] for failure in partly.value.failures] == ["kept"]
    assert "cannot be a file and a folder" in str(partly.value)
    assert [failure["path"] for failure in wholly.value.failures] == ["other"]
    assert "has no content" in str(wholly.value)
    assert [file.path for file in api.list_bucket_tree(bucket, recursive=True)] == ["kept/a", "new"]


def a_folder(path: Path) -> Path:
    """Files of several sizes, with times that no upload has."""
    (path / "sub" / "deep").mkdir(parents=True)
    (path / "a b é.txt").write_text("hello")
    (path / "sub" / "empty").touch()
    (path / "sub" / "deep" / "large.bin").write_bytes(os.urandom(3_000_000))
    for at, file in enumerate(sorted(path.rglob("*"))):
        os.utime(file, ns=(0, 1_700_000_000_123_000_000 + at * 1_001_000_000))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_are_copied_there_and_back(bucket: str, tmp_path: Path) -> None:
    source = tmp_path / "large.bin"
    source.write_bytes(os.urandom(1_000_000))

    hf("buckets", "cp", str(source), f"hf://buckets/{bucket}/sub/large.bin")
    hf("buckets", "cp", f"hf://buckets/{bucket}/sub/large.bin", str(tmp_path / "back.bin"))

    assert (tmp_path / "back.bin").read_bytes() == source.read_bytes()


def test_a_folder_is_synced_both_ways(api: HfApi, bucket: str, tmp_path: Path) -> None:
    source, target = a_folder(tmp_path / "source"), tmp_path / "target"
    there = f"hf://buckets/{bucket}/data"

    hf("buckets", "sync", str(source), there)
    times = {file.path: file.mtime for file in api.list_bucket_tree(bucket, recursive=True)}
    again = hf("buckets", "sync", str(source), there)
    hf("buckets", "sync", there, str(target))

    assert "Skips: 3" in again
    assert contents(target) == contents(source)
    for path, mtime in times.items():
        milliseconds = (source / path.removeprefix("data/")).stat().st_mtime_ns // 1_000_000
        assert round(mtime.timestamp() * 1000) == milliseconds, path


def test_a_sync_deletes_and_replaces(bucket: str, tmp_path: Path) -> None:
    source, target = a_folder(tmp_path / "source"), tmp_path / "target"
    hf("buckets", "sync", str(source), f"hf://buckets/{bucket}")
    (source / "sub" / "empty").unlink()
    (source / "a b é.txt").write_text("another text")

    hf("buckets", "sync", str(source), f"hf://buckets/{bucket}", "--delete")
    hf("buckets", "sync", f"hf://buckets/{bucket}", str(target))

    assert contents(target) == contents(source)


def test_files_are_removed_and_a_bucket_renamed(
    api: HfApi, bucket: str, new_name: NewName, tmp_path: Path
) -> None:
    hf("buckets", "sync", str(a_folder(tmp_path / "source")), f"hf://buckets/{bucket}")

    hf("buckets", "rm", f"hf://buckets/{bucket}/a b é.txt", "-y")
    hf("buckets", "rm", f"hf://buckets/{bucket}/sub/deep", "--recursive", "-y")
    moved = new_name()
    hf("buckets", "move", bucket, moved)

    assert "sub/empty" in hf("buckets", "ls", moved, "-R")
    assert [file.path for file in api.list_bucket_tree(moved, recursive=True)] == ["sub/empty"]
    api.delete_bucket(moved)


def test_a_repository_is_copied_into_a_bucket(
    api: HfApi, repo: str, bucket: str, tmp_path: Path
) -> None:
    source, target = a_folder(tmp_path / "source"), tmp_path / "target"
    api.upload_folder(repo_id=repo, folder_path=source)

    hf("buckets", "cp", f"hf://{repo}/", f"hf://buckets/{bucket}/model/")
    hf("buckets", "sync", f"hf://buckets/{bucket}/model", str(target))

    assert contents(target) == contents(source)


def test_a_file_system_reads_a_bucket(bucket: str) -> None:
    put(bucket, "sub/a.bin", bytes(range(256)) * 100)
    files = HfFileSystem(use_listings_cache=False)

    assert files.ls(f"buckets/{bucket}/sub", detail=False) == [f"buckets/{bucket}/sub/a.bin"]
    with files.open(f"buckets/{bucket}/sub/a.bin", "rb") as file:
        file.seek(256)
        assert file.read(3) == bytes(range(3))
    with files.open(f"buckets/{bucket}/sub/b.bin", "wb") as file:
        file.write(b"written")
    assert files.cat(f"buckets/{bucket}/sub/b.bin") == b"written"


def test_an_attachment_is_seen_at_its_address(api: HfApi, tmp_path: Path) -> None:
    if not hasattr(api, "upload_attachment"):
        pytest.skip("This version of the client has no attachments.")
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")

    url = api.upload_attachment(picture)

    assert url.startswith(f"{os.environ['HF_ENDPOINT']}/uploads/")
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert (answer.read(), answer.headers["content-type"]) == (
            picture.read_bytes(),
            "image/png",
        )
