"""A bucket as a store: the same promises as a folder's, kept by a real server."""

import hashlib
import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from hublet.core.clock import now
from hublet.core.config import aws_environment
from hublet.core.ids import new_object_id
from hublet.core.startup import CannotStart
from hublet.storage import s3_store
from hublet.storage.contents import put_blob
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import NEVER, ObjectKey, blob_key, part_key
from hublet.storage.s3_store import S3Store
from object_storage import ACCESS_KEY, SECRET_KEY, ObjectStorage
from patience import SOON_SECONDS
from processes import wait_until

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


class RoleServer(ThreadingHTTPServer):
    """What gives a machine or a container the credentials of its role, for a while each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RoleHandler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.life = timedelta(hours=1)
        self.access_key = ACCESS_KEY
        self.given = 0

    def give(self) -> bytes:
        self.given += 1
        # It knows the real time, as the server of the bucket does.
        ends = datetime.now(UTC) + self.life
        return json.dumps({
            "Code": "Success",
            "LastUpdated": "2026-11-17T22:00:00Z",
            "Type": "AWS-HMAC",
            "AccessKeyId": self.access_key,
            "SecretAccessKey": SECRET_KEY,
            # SeaweedFS knows no token that it did not give itself.
            "Token": "",
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }).encode()  # fmt: skip


class _RoleHandler(BaseHTTPRequestHandler):
    server: RoleServer

    def do_PUT(self) -> None:
        known = self.path == "/latest/api/token"
        self._answer(b"of-this-machine" if known else None)

    def do_GET(self) -> None:
        roles = "/latest/meta-data/iam/security-credentials/"
        proof = self.headers["x-aws-ec2-metadata-token"] or self.headers["authorization"]
        answers = {
            (roles, "of-this-machine"): lambda: b"hublet",
            (f"{roles}hublet", "of-this-machine"): self.server.give,
            ("/container", "of-this-container"): self.server.give,
        }
        answer = answers.get((self.path, proof))
        self._answer(None if answer is None else answer())

    def _answer(self, body: bytes | None) -> None:
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(params=["machine", "container"])
def role(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RoleServer]:
    """The role of a machine without keys, or of a container."""
    for name in aws_environment():
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "nobody's"))
    with RoleServer() as server:
        # Both are set always, so that a test never asks where the machine that it runs on would.
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.address)
        if request.param == "container":
            (tmp_path / "token").write_text("of-this-container")
            monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.address}/container")
            monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_role_opens_the_bucket(
    role: RoleServer, object_storage: ObjectStorage, tmp_path: Path
) -> None:
    store = S3Store(object_storage.url(new_object_id()), tmp_path / "incoming")

    assert abs(store.probe()) < timedelta(minutes=1)
    key = put(store)
    assert store.read(key) == CONTENT
    address = store.presigned_url(key, life=timedelta(minutes=5))
    assert address is not None
    with urlopen(address) as answer:
        assert answer.read() == CONTENT
    # Clients would be given addresses that the hub cannot sign.
    assert store.multipart_uploads() is None
    # Once for the probe, which has a connection of its own, and once for all the rest.
    assert role.given == 2


def test_credentials_of_a_role_are_renewed_before_they_end(
    role: RoleServer, object_storage: ObjectStorage, tmp_path: Path
) -> None:
    store = S3Store(object_storage.url(new_object_id()), tmp_path / "incoming")
    role.life = timedelta(minutes=1)
    key = put(store)
    role.access_key = "renewed"

    def is_renewed() -> bool:
        address = store.presigned_url(key, life=timedelta(minutes=5))
        return "X-Amz-Credential=renewed%2F" in (address or "")

    # The library asks again at once, but not twice in a tenth of a second.
    wait_until(is_renewed, seconds=SOON_SECONDS)


def test_a_machine_without_a_role_is_told_which_credentials_to_set(
    role: RoleServer, object_storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_store, "_PROBE_SECONDS", 1)
    for name in ("AWS_METADATA_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.setenv(name, f"{role.address}/nothing")
    store = S3Store(object_storage.url(new_object_id()), tmp_path / "incoming")

    with pytest.raises(CannotStart, match="There are no credentials for the bucket hublet"):
        store.probe()
