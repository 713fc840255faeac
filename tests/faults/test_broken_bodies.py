"""A client goes away in the middle of an upload: nothing changes, and nothing is left behind."""

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from faults.bare_repos import folder_in
from faults.broken_bodies import (
    Ending,
    Upload,
    break_off,
    break_off_between_chunks,
    resident_megabytes,
    wait_until_nothing_is_left,
)
from faults.content import (
    NDJSON,
    KnownRepo,
    branches_of,
    commit_body,
    create_repo,
    files_of,
    first_person,
    history_of,
    paths_of,
    post_commit,
)
from faults.content_events import IDLE_HUBLET, repos_with_waiting_events
from hublet.events import RepoContentUpdated, RepoFilesUpdated
from processes import Place, Server, serving

# More than git takes, so that the bytes go to a spool.
LARGE = bytes(range(256)) * (12 << 12)
WHOLE = commit_body({"small.txt": b"1\n", "large.bin": LARGE, "end.txt": b"2\n"}, summary="Add")
LINES = [len(line) for line in WHOLE.splitlines(keepends=True)]
# Broken off so often that a megabyte of each would show.
TIMES = 40
GROWTH_MEGABYTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    place: Place
    server: Server
    client: httpx2.Client
    headers: dict[str, str]


@pytest.fixture(scope="module")
def hub(shared_place: Place) -> Iterator[Hub]:
    with serving(shared_place, program=IDLE_HUBLET) as server:
        ada = first_person(server)
        headers = {"Authorization": f"Bearer {ada.token}"}
        with ada.client(server) as client:
            yield Hub(place=shared_place, server=server, client=client, headers=headers)


def _commit_to(hub: Hub, repo: KnownRepo) -> Upload:
    path = f"{repo.api}/commit/main"
    return Upload(method="POST", path=path, headers=hub.headers | NDJSON)


@pytest.mark.parametrize(
    ("length", "ending"),
    [
        pytest.param(10, "farewell", id="in the header line"),
        pytest.param(sum(LINES[:1]), "farewell", id="after the header"),
        pytest.param(sum(LINES[:2]), "farewell", id="between two files"),
        pytest.param(len(WHOLE) // 2, "farewell", id="in the middle of a large file"),
        pytest.param(len(WHOLE) // 2, "reset", id="in the middle, with a reset"),
        pytest.param(sum(LINES[:3]), "reset", id="after a large file, with a reset"),
        pytest.param(len(WHOLE) - 1, "farewell", id="before the last byte"),
    ],
)
def test_a_commit_that_breaks_off_changes_nothing(hub: Hub, length: int, ending: Ending) -> None:
    repo = create_repo(hub.client, f"broken-{length}-{ending}")
    break_off(
        hub.server, _commit_to(hub, repo), WHOLE[:length], announced=len(WHOLE), ending=ending
    )

    _check_only_what_follows_counts(hub, repo)


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_commit_without_its_last_chunk_changes_nothing(hub: Hub, lines: int) -> None:
    repo = create_repo(hub.client, f"chunks-{lines}")
    break_off_between_chunks(hub.server, _commit_to(hub, repo), WHOLE[: sum(LINES[:lines])])

    _check_only_what_follows_counts(hub, repo)


def _check_only_what_follows_counts(hub: Hub, repo: KnownRepo) -> None:
    wait_until_nothing_is_left(hub.place)
    before = branches_of(hub.client, repo)
    assert list(files_of(hub.client, repo, "main")) == [".gitattributes"]
    waiting = repos_with_waiting_events(hub.place, RepoContentUpdated)

    answer = post_commit(hub.client, repo, "main", WHOLE)

    assert answer.status_code == 200, answer.text
    assert history_of(hub.client, repo, "main") == [answer.json()["commitOid"], before["main"]]
    assert files_of(hub.client, repo, "main")["large.bin"] == LARGE
    assert repos_with_waiting_events(hub.place, RepoContentUpdated) == [*waiting, repo.id]
    wait_until_nothing_is_left(hub.place)


def _lfs_upload(hub: Hub, repo: KnownRepo, content: bytes) -> Upload | None:
    """Ask where a large file goes; None when the hub has it."""
    pointer = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
    body = {"operation": "upload", "transfers": ["basic"], "objects": [pointer]}
    answer = hub.client.post(f"/{repo.name}.git/info/lfs/objects/batch", json=body)
    assert answer.status_code == 200, answer.text
    actions = answer.json()["objects"][0].get("actions")
    if actions is None:
        return None
    where = urlsplit(actions["upload"]["href"])
    headers = actions["upload"].get("header", {})
    return Upload(method="PUT", path=f"{where.path}?{where.query}", headers=headers)


@pytest.mark.parametrize("ending", ["farewell", "reset"])
def test_a_large_file_that_breaks_off_is_not_there(hub: Hub, ending: Ending) -> None:
    repo = create_repo(hub.client, f"lfs-{ending}")
    content = LARGE + ending.encode()
    upload = _lfs_upload(hub, repo, content)
    assert upload is not None
    break_off(hub.server, upload, content[: 8 << 20], announced=len(content), ending=ending)

    wait_until_nothing_is_left(hub.place)
    assert _lfs_upload(hub, repo, content) is not None

    answer = hub.client.put(upload.path, content=content, headers=upload.headers)
    assert answer.is_success, answer.text
    assert _lfs_upload(hub, repo, content) is None


@pytest.mark.parametrize("ending", ["farewell", "reset"])
def test_a_file_of_a_bucket_that_breaks_off_is_not_there(hub: Hub, ending: Ending) -> None:
    bucket = create_repo(hub.client, f"bucket-{ending}", repo_type="bucket")
    path = f"/api/buckets/{bucket.name}/files/large.bin"
    upload = Upload(method="PUT", path=path, headers=hub.headers)
    waiting = repos_with_waiting_events(hub.place, RepoFilesUpdated)
    break_off(hub.server, upload, LARGE[: 8 << 20], announced=len(LARGE), ending=ending)

    wait_until_nothing_is_left(hub.place)
    assert hub.client.get(path).status_code == 404
    assert repos_with_waiting_events(hub.place, RepoFilesUpdated) == waiting

    assert hub.client.put(path, content=LARGE).is_success
    assert hub.client.get(path).content == LARGE


def _push_to(hub: Hub, repo: KnownRepo, *, head: str) -> tuple[Upload, bytes]:
    """Return a push that moves main, up to the middle of its pack."""
    command = f"{head} {'1' * 40} refs/heads/main\0report-status".encode()
    lines = b"%04x%b0000" % (len(command) + 4, command)
    upload = Upload(method="POST", path=f"/{repo.name}.git/git-receive-pack", headers=hub.headers)
    return upload, lines + b"PACK" + struct.pack(">II", 2, 3) + bytes(100_000)


@pytest.mark.parametrize("ending", ["farewell", "reset"])
def test_a_push_that_breaks_off_changes_nothing(hub: Hub, ending: Ending) -> None:
    repo = create_repo(hub.client, f"pushed-{ending}")
    before = branches_of(hub.client, repo)
    upload, sent = _push_to(hub, repo, head=before["main"])
    break_off(hub.server, upload, sent, announced=2 * len(sent), ending=ending)

    assert _logged_status(hub, upload.path) == 400
    objects = folder_in(hub.place, repo.id) / "objects"
    assert [path.name for path in objects.glob("incoming-*")] == []
    assert branches_of(hub.client, repo) == before
    assert paths_of(hub.client, repo, "main") == [".gitattributes"]


def test_broken_bodies_leave_no_memory_behind(hub: Hub) -> None:
    upload = _commit_to(hub, create_repo(hub.client, "memory"))
    half = WHOLE[: len(WHOLE) // 2]
    break_off(hub.server, upload, half, announced=len(WHOLE))
    before = resident_megabytes(hub.server)

    for number in range(TIMES):
        break_off(
            hub.server, upload, half, announced=len(WHOLE), ending=("farewell", "reset")[number % 2]
        )

    wait_until_nothing_is_left(hub.place)
    assert resident_megabytes(hub.server) < before + GROWTH_MEGABYTES


@pytest.mark.parametrize("ending", ["farewell", "reset"])
def test_a_client_that_goes_away_is_no_error_of_the_hub(hub: Hub, ending: Ending) -> None:
    repo = create_repo(hub.client, f"log-{ending}")
    break_off(
        hub.server,
        _commit_to(hub, repo),
        WHOLE[: len(WHOLE) // 2],
        announced=len(WHOLE),
        ending=ending,
    )
    assert _logged_status(hub, f"{repo.api}/commit/main") == 400
    assert [line for line in _log(hub) if line["level"] not in {"info", "warning"}] == []


def _logged_status(hub: Hub, path: str) -> int:
    """Wait until the request is over, and return how it ended."""
    hub.server.process.wait_for(path)
    (line,) = [line for line in _log(hub) if line.get("path") == path]
    status: int = line["status"]
    return status


def _log(hub: Hub) -> list[dict[str, Any]]:
    return [json.loads(line) for line in hub.server.process.stderr.read_text().splitlines()]
