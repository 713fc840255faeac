"""A bucket as a store: the same promises as a folder's, kept by a real server."""

import hashlib
import pickle
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from hublet.core.clock import now
from hublet.core.startup import CannotStart
from hublet.storage import s3_store
from hublet.storage.contents import put_blob
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import NEVER, ObjectKey, blob_key, part_key
from hublet.storage.s3_store import S3Store
from object_storage import ObjectStorage

pytestmark = pytest.mark.full

CONTENT = bytes(range(256)) * 40_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(bucket_url: str, tmp_path: Path) -> S3Store:
    return S3Store(bucket_url, tmp_path / "incoming")


def put(store: S3Store) -> ObjectKey:
    with store.new_spool() as spool:
        spool.write(CONTENT)
        return blob_key(put_blob(store, spool).sha256)


def test_what_was_put_comes_back_whole_and_in_ranges(store: S3Store) -> None:
    key = put(store)

    assert b"".join(store.pieces(key, 0, len(CONTENT))) == CONTENT
    assert b"".join(store.pieces(key, 9_999_990, 10_000_010)) == CONTENT[9_999_990:10_000_010]
    assert list(store.pieces(key, 5, 5)) == []
    assert store.read(key) == CONTENT
    found = store.stat(key)
    assert found is not None
    assert (found.key, found.size) == (blob_key(DIGEST), len(CONTENT))
    assert list(store.incoming.iterdir()) == []


def test_a_spool_that_was_put_is_gone(store: S3Store) -> None:
    spool = store.new_spool()
    spool.write(CONTENT)
    put_blob(store, spool)

    assert list(store.incoming.iterdir()) == []


def test_an_object_is_copied_there(store: S3Store) -> None:
    key = put(store)
    store.copy(key, blob_key("a" * 64), size=len(CONTENT))

    assert store.read(blob_key("a" * 64)) == CONTENT


def test_what_is_not_there_is_not_found(store: S3Store) -> None:
    assert store.stat(blob_key("a" * 64)) is None
    assert list(store.list("blobs")) == []
    with pytest.raises(FileNotFoundError):
        store.read(blob_key("a" * 64))
    with pytest.raises(FileNotFoundError):
        list(store.pieces(blob_key("a" * 64), 0, 1))


def test_an_object_that_is_shorter_than_said_is_told(store: S3Store) -> None:
    store.put_bytes(blob_key("a" * 64), b"abc")

    with pytest.raises(EOFError):
        list(store.pieces(blob_key("a" * 64), 0, 10))


def test_names_with_a_prefix_are_listed(store: S3Store) -> None:
    keys = [ObjectKey("packs", f"{repo}/{name}") for repo in ("1", "12") for name in ("a", "b")]
    for key in keys:
        store.put_bytes(key, b"pack")

    assert {each.key for each in store.list("packs")} == set(keys)
    assert {each.key for each in store.list("packs", "1/")} == set(keys[:2])
    assert {each.key for each in store.list("packs", "12/b")} == {keys[3]}


def test_only_what_is_older_is_deleted(store: S3Store) -> None:
    keys = [part_key(str(number)) for number in range(3)]
    for key in keys:
        store.put_bytes(key, b"part")

    store.delete(keys, before=now() - timedelta(hours=1))
    assert len(list(store.list("parts"))) == 3
    store.delete([*keys[:2], part_key("unknown")], before=now() + timedelta(hours=1))
    assert [each.key for each in store.list("parts")] == [keys[2]]


def test_what_uploads_left_is_removed(store: S3Store) -> None:
    store.put_bytes(part_key("1"), b"part")
    spool = store.new_spool()
    spool.write(b"half a file")
    spool.flush()

    assert store.remove_interrupted(before=now() - timedelta(hours=1)) == 0
    store.put_bytes(part_key("2"), b"kept")
    kept = {part_key("2")}
    assert store.remove_interrupted(before=now() + timedelta(hours=1), kept=kept) == 15
    assert [each.key for each in store.list("parts")] == [part_key("2")]
    store.delete(kept, before=NEVER)
    assert list(store.list("parts")) == []
    assert list(store.incoming.iterdir()) == []
    spool.close()


def test_a_signed_address_needs_no_key(store: S3Store) -> None:
    key = put(store)
    address = store.presigned_url(key, life=timedelta(minutes=5))

    assert address is not None
    with urlopen(address) as answer:
        assert answer.read() == CONTENT


def test_a_worker_process_gets_a_store_of_its_own(store: S3Store) -> None:
    key = put(store)

    copy: S3Store = pickle.loads(pickle.dumps(store))
    assert copy.read(key) == CONTENT


def test_a_refusal_of_the_server_is_unavailable(
    bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = S3Store(bucket_url, tmp_path / "incoming")

    with pytest.raises(StoreUnavailable, match="The object storage does not answer"):
        store.put_bytes(blob_key("a" * 64), b"abc")


def test_a_signed_address_has_a_type_and_a_name(store: S3Store) -> None:
    key = put(store)
    address = store.presigned_url(
        key,
        life=timedelta(minutes=5),
        media_type="text/plain; charset=utf-8",
        disposition="attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20%C3%A9.txt",
    )

    assert address is not None
    with urlopen(address) as answer:
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    with pytest.raises(HTTPError, match="403"):
        urlopen(address.replace("a%20b", "b"))


def test_a_server_that_is_restarted_fails_no_upload(
    store: S3Store, object_storage: ObjectStorage
) -> None:
    object_storage.stop()
    with ThreadPoolExecutor() as threads:
        upload = threads.submit(store.put_bytes, blob_key("a" * 64), b"abc")
        object_storage.start()
        upload.result()

    assert store.read(blob_key("a" * 64)) == b"abc"


def test_a_server_that_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch, bucket_url: str, tmp_path: Path
) -> None:
    monkeypatch.setattr(s3_store, "_PATIENCE_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        store = S3Store(f"s3://bucket?endpoint={endpoint}", tmp_path)

        with pytest.raises(StoreUnavailable):
            store.put_bytes(blob_key("a" * 64), b"abc")


def test_a_probe_leaves_nothing(store: S3Store) -> None:
    assert abs(store.probe()) < timedelta(minutes=1)
    assert list(store.list("probes")) == []


def test_a_probe_says_what_is_wrong(
    bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_store, "_PROBE_SECONDS", 1)
    away = S3Store("s3://bucket?endpoint=http://127.0.0.1:9", tmp_path)
    with pytest.raises(CannotStart, match=r"127\.0\.0\.1:9 does not answer as it should"):
        away.probe()

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(CannotStart, match=r"does not let these credentials write to .* hublet"):
        S3Store(bucket_url, tmp_path).probe()


def test_programs_that_end_right_after_a_call_end_well(bucket_url: str, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from hublet.storage.object_store import blob_key\n"
        "from hublet.storage.s3_store import S3Store\n"
        "store = S3Store(sys.argv[1], Path(sys.argv[2]))\n"
        "store.put_bytes(blob_key('a' * 64), b'abc'); list(store.list('blobs'))\n"
    )
    command = [sys.executable, "-c", program, bucket_url, str(tmp_path)]

    assert [subprocess.run(command, check=False).returncode for _ in range(10)] == [0] * 10
