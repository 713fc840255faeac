"""Restore drill: a hub with everything is saved while people write to it, and lives on elsewhere."""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import HfApi, snapshot_download

from faults.bare_repos import clone_url, git
from faults.content import KnownRepo, branches_of, commit, create_repo, paths_of
from hublet.core.config import Settings
from hublet.jobs.logs import store as log_store
from hublet.jobs.logs.reader import log_path
from hublet.serving import open_hub
from hublet.storage.object_store import open_store_at
from hublet.webhooks import sealed_secrets
from hublet.webhooks import store as webhooks
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until

SECRET = "only the receiver knows it"
LARGE = bytes(range(256)) * 50_000
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(40)
# What a person sees of a hub: it must be the same in both.
PAGES = (
    "/api/whoami-v2",
    "/api/settings/notifications",
    "/api/scheduled-jobs/ada",
    "/api/organizations/analytical-engines/members",
    "/api/models/ada/engine-7b/refs",
    "/api/models/ada/engine-7b/tree/main?recursive=true",
    "/api/models/ada/engine-7b/discussions",
    "/api/buckets/analytical-engines/checkpoints/tree",
)

StoreVariables = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ada:
    token: str
    password: str


@pytest.fixture
def ada(place: Place, stores: tuple[StoreVariables, StoreVariables]) -> Ada:
    """Who owns most of a hub that the demo has filled with something of everything."""
    place.folder.mkdir(exist_ok=True)
    filled = hublet(place, "demo", "--json", variables=stores[0])
    secrets = {
        each["what"]: each["secret"]
        for each in json.loads(filled)["added"]
        if each["name"] == "ada" and each["secret"]
    }
    return Ada(token=secrets["token"], password=secrets["user"])


@pytest.fixture
def stores(store: str, request: pytest.FixtureRequest) -> tuple[StoreVariables, StoreVariables]:
    """Variables that say where the content of the hub lies, and that of the one made of its backup."""
    if store == "folder":
        return {}, {}
    url: str = request.getfixturevalue("bucket_url")
    old, new = ({"HUBLET_STORAGE_URL": each} for each in (url, url.replace("?", "-new?")))
    return old, new


@contextmanager
def writing(client: httpx2.Client, repo: KnownRepo) -> Iterator[threading.Event]:
    """Commit one file after the other until the end; the event says that the first is there."""
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        for number in range(10_000):
            commit(client, repo, "main", {f"{number}.txt": b"%d" % number})
            begun.set()
            if done.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield begun
    finally:
        done.set()
        writer.join()


def add_content(server: Server, client: httpx2.Client, ada: Ada) -> list[str]:
    """Add a webhook with a secret, large files whole and by Xet, and pictures: return their paths."""
    body = {
        "url": "https://example.com/hook",
        "watched": [{"type": "user", "name": "ada"}],
        "domains": ["repo"],
        "secret": SECRET,
    }
    assert client.post("/api/settings/webhooks", json=body).status_code == 200
    # Too much of what cannot be compressed for a pack that lies in a row.
    files = {"weights.bin": LARGE, "notes.txt": os.urandom(100_000).hex().encode()}
    commit(client, create_repo(client, "large"), "main", files)
    api = HfApi(endpoint=server.address, token=ada.token)
    api.upload_file(path_or_fileobj=LARGE[1:], path_in_repo="xet.bin", repo_id="ada/large")
    assert client.put("/api/settings/avatar", content=PICTURE).status_code == 200
    attached = client.post("/uploads", content=PICTURE, headers={"Content-Type": "image/png"})
    assert attached.status_code == 200, attached.text
    avatar = read(client, "/api/users/ada/avatar").json()["avatarUrl"]
    return [httpx2.URL(address).path for address in (attached.text, avatar)]


def hublet(place: Place, *arguments: str, variables: StoreVariables) -> str:
    """Run a command on a hub, and insist that it ends well."""
    done = run_hublet(*arguments, *place.flags, folder=place.folder, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wait_for_logs(place: Place, jobs: Iterable[str]) -> None:
    """Wait until the logs of those jobs which have one here lie in the shared store."""
    with_logs = [
        each for each in jobs if "/" not in each and log_path(place.data_dir, each).exists()
    ]
    assert with_logs
    wait_until(lambda: asyncio.run(_are_shipped(place.settings, with_logs)), seconds=SOON_SECONDS)


async def _are_shipped(settings: Settings, jobs: Sequence[str]) -> bool:
    async with open_hub(settings) as database, database.read() as conn:
        parts = [await log_store.list_parts(conn, job) for job in jobs]
    return all(each and each[-1].ended_at is not None for each in parts)


def state_of(client: httpx2.Client) -> dict[str, Any]:
    """Return what a person sees, with jobs that have ended and their logs."""
    seen: dict[str, Any] = {path: read(client, path).json() for path in PAGES}
    for job in read(client, "/api/jobs/ada").json():
        if job["status"]["stage"] in {"COMPLETED", "ERROR", "CANCELED"}:
            seen[job["id"]] = job
            path = f"/api/jobs/ada/{job['id']}/logs"
            seen[path] = read(client, path).text
    # When a webhook was triggered last changes with every commit.
    hooks = read(client, "/api/settings/webhooks").json()
    seen["webhooks"] = [
        {key: hook.get(key) for key in ("id", "url", "hasSecret")} for hook in hooks
    ]
    found: dict[str, Any] = json.loads(_without_port(json.dumps(seen), client))
    return found


def _without_port(text: str, client: httpx2.Client) -> str:
    # Each hub has a port of its own, which is in its addresses and in those of ports of jobs.
    return text.replace(f":{client.base_url.port}", ":80")


def read(client: httpx2.Client, path: str) -> httpx2.Response:
    answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer


def inbox_of(client: httpx2.Client) -> set[str]:
    """Return the items about threads; jobs that were running end in both hubs, at their time."""
    items = read(client, "/api/notifications").json()["notifications"]
    return {
        _without_port(json.dumps(each, sort_keys=True), client)
        for each in items
        if "discussion" in each
    }


async def open_secrets(settings: Settings) -> set[str | None]:
    async with open_hub(settings) as database, database.read() as conn:
        rows = await conn.fetch_all("SELECT id FROM webhooks WHERE sealed_secret IS NOT NULL")
        found = [(row["id"], await webhooks.find_sealed(conn, row["id"])) for row in rows]
    keys = database.hub.keys
    return {sealed_secrets.unseal(keys, key, sealed).current for key, sealed in found if sealed}


@pytest.mark.parametrize(
    ("target", "store"), [("sqlite", "folder"), ("postgresql", "folder"), ("other", "bucket")]
)
def test_a_hub_that_was_saved_while_it_ran_lives_on_elsewhere(
    place: Place,
    ada: Ada,
    target: str,
    stores: tuple[StoreVariables, StoreVariables],
    fresh_url: Callable[[], str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "hub.tar"
    old, new = stores
    with serving(place, variables=old) as server, server.client(ada.token) as client:
        pictures = add_content(server, client, ada)
        stream = create_repo(client, "stream")
        before, inbox = state_of(client), inbox_of(client)
        if old:
            wait_for_logs(place, before)
        with writing(client, stream) as begun:
            assert begun.wait(SOON_SECONDS)
            hublet(place, "backup", str(file), "--verify", variables=old)

    is_on_postgresql = target == "postgresql" or (target == "other" and place.database_url is None)
    elsewhere = Place(
        folder=tmp_path / "elsewhere", database_url=fresh_url() if is_on_postgresql else None
    )
    elsewhere.folder.mkdir()
    hublet(elsewhere, "restore", str(file), variables=new)
    if new:
        content = open_store_at(new["HUBLET_STORAGE_URL"], elsewhere.data_dir)
        kinds = ["blobs", "xorbs", "packs", "logs"]
        assert [kind for kind in kinds if any(content.list(kind))] == kinds
        # Logs lie here too for a while, and are to be read from the store.
        for path in (elsewhere.data_dir / "jobs").glob("*/*/log*"):
            path.unlink()

    assert SECRET in asyncio.run(open_secrets(elsewhere.settings))
    with serving(elsewhere, variables=new) as server, server.client(ada.token) as client:
        assert state_of(client) == before
        assert inbox_of(client) == inbox
        assert len(inbox) > 3
        assert [read(client, path).content for path in pictures] == [PICTURE, PICTURE]
        _check_content(elsewhere, server, client, ada, stream)
        answer = client.post("/login", data={"name": "ada", "password": ada.password})
        assert (answer.status_code, answer.headers["location"]) == (303, "/settings/sessions")
    hublet(elsewhere, "storage", "verify", "--all", variables=new)


def _check_content(
    place: Place, server: Server, client: httpx2.Client, ada: Ada, stream: KnownRepo
) -> None:
    """Every repository is whole, the client gets its files, and more can be committed."""
    for folder in (place.data_dir / "repos").glob("??/*.git"):
        git(folder, "fsck", "--full", "--no-dangling")
    # With a shared store that folder has only what was asked for, so what is served counts.
    for name in ("ada/engine-7b", "ada/large", stream.name):
        copy = place.folder / f"{name.replace('/', '-')}.git"
        git(place.folder, "clone", "--mirror", clone_url(server, name, token=ada.token), str(copy))
        git(copy, "fsck", "--full", "--no-dangling")
    files = set(paths_of(client, stream, "main")) - {".gitattributes"}
    # It was saved between two commits: all before that moment, none after it.
    assert files == {f"{number}.txt" for number in range(len(files))}
    assert set(branches_of(client, stream)) == {"main"}
    commit(client, stream, "main", {"after.txt": b"after"})
    download = snapshot_download(
        "ada/large", endpoint=server.address, token=ada.token, local_dir=place.folder / "copy"
    )
    assert Path(download, "weights.bin").read_bytes() == LARGE
    assert Path(download, "xet.bin").read_bytes() == LARGE[1:]
