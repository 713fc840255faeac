"""Buckets through the public client, as far as it does not insist on Xet; and attachments."""

import os
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import BucketFile, HfApi, HfFileSystem
from huggingface_hub.errors import BucketBatchError, BucketNotFoundError, HfHubHTTPError

NewName = Callable[[], str]


@pytest.fixture
def bucket(api: HfApi, new_name: NewName) -> Iterator[str]:
    """A public bucket of ada's."""
    name = new_name()
    api.create_bucket(name)
    yield name
    api.delete_bucket(name, missing_ok=True)


def put(bucket: str, path: str, content: bytes) -> None:
    """The client itself has no way to upload without Xet."""
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

    top = list(api.list_bucket_tree(bucket))
    below = list(api.list_bucket_tree(bucket, prefix="sub/"))
    every = list(api.list_bucket_tree(bucket, recursive=True))
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
    put(bucket, "kept", b"one")

    with pytest.raises(BucketBatchError) as refused:
        api.batch_bucket_files(bucket, copy=[("bucket", bucket, "0" * 64, "new")], delete=["kept"])

    assert [failure["path"] for failure in refused.value.failures] == ["new"]
    assert "This hub has no Xet storage" in str(refused.value)
    assert [file.path for file in api.list_bucket_tree(bucket)] == ["kept"]


def test_a_file_system_reads_a_bucket(bucket: str) -> None:
    put(bucket, "sub/a.bin", bytes(range(256)) * 100)
    files = HfFileSystem(use_listings_cache=False)

    assert files.ls(f"buckets/{bucket}/sub", detail=False) == [f"buckets/{bucket}/sub/a.bin"]
    with files.open(f"buckets/{bucket}/sub/a.bin", "rb") as file:
        file.seek(256)
        assert file.read(3) == bytes(range(3))


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
