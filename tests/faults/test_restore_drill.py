"""Restore drill: a hub with everything is saved while people write to it, and lives on elsewhere."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import snapshot_download

from faults.bare_repos import check_whole, folder_in, git
from faults.content import KnownRepo, branches_of, commit, create_repo, paths_of
from hublet.core.config import Settings
from hublet.serving import open_hub
from hublet.webhooks import sealed_secrets
from hublet.webhooks import store as webhooks
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving

SECRET = "only the receiver knows it"
LARGE = bytes(range(256)) * 50_000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ada:
    token: str
    password: str


@pytest.fixture
def ada(place: Place) -> Ada:
    """Who owns most of a hub that the demo has filled with something of everything."""
    place.folder.mkdir(exist_ok=True)
    filled = run_hublet("demo", "--json", *place.flags, folder=place.folder)
    assert filled.returncode == 0, filled.stderr
    secrets = {
        each["what"]: each["secret"]
        for each in json.loads(filled.stdout)["added"]
        if each["name"] == "ada" and each["secret"]
    }
    return Ada(token=secrets["token"], password=secrets["user"])


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


def add_content(client: httpx2.Client) -> None:
    body = {
        "url": "https://example.com/hook",
        "watched": [{"type": "user", "name": "ada"}],
        "domains": ["repo"],
        "secret": SECRET,
    }
    assert client.post("/api/settings/webhooks", json=body).status_code == 200
    commit(client, create_repo(client, "large"), "main", {"weights.bin": LARGE})


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


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_hub_that_was_saved_while_it_ran_lives_on_elsewhere(
    place: Place, ada: Ada, target: str, fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    file = tmp_path / "hub.tar"
    with serving(place) as server, server.client(ada.token) as client:
        add_content(client)
        stream = create_repo(client, "stream")
        before, inbox = state_of(client), inbox_of(client)
        with writing(client, stream) as begun:
            assert begun.wait(SOON_SECONDS)
            saved = run_hublet("backup", str(file), "--verify", *place.flags, folder=place.folder)
            assert saved.returncode == 0, saved.stderr

    elsewhere = Place(
        folder=tmp_path / "elsewhere", database_url=fresh_url() if target == "postgresql" else None
    )
    elsewhere.folder.mkdir()
    restored = run_hublet("restore", str(file), *elsewhere.flags, folder=elsewhere.folder)
    assert restored.returncode == 0, restored.stderr

    assert SECRET in asyncio.run(open_secrets(elsewhere.settings))
    with serving(elsewhere) as server, server.client(ada.token) as client:
        assert state_of(client) == before
        assert inbox_of(client) == inbox
        assert len(inbox) > 3
        _check_content(elsewhere, server, client, ada, stream)
        answer = client.post("/login", data={"name": "ada", "password": ada.password})
        assert (answer.status_code, answer.headers["location"]) == (303, "/settings/sessions")
    verified = run_hublet("storage", "verify", "--all", *elsewhere.flags, folder=tmp_path)
    assert verified.returncode == 0, verified.stdout


def _check_content(
    place: Place, server: Server, client: httpx2.Client, ada: Ada, stream: KnownRepo
) -> None:
    """Every repository is whole, the client gets its files, and more can be committed."""
    for folder in (place.data_dir / "repos").glob("??/*.git"):
        git(folder, "fsck", "--full", "--no-dangling")
    files = set(paths_of(client, stream, "main")) - {".gitattributes"}
    # It was saved between two commits: all before that moment, none after it.
    assert files == {f"{number}.txt" for number in range(len(files))}
    for branch, sha in branches_of(client, stream).items():
        assert branch == "main"
        check_whole(folder_in(place, stream.id), [sha])
    commit(client, stream, "main", {"after.txt": b"after"})
    download = snapshot_download(
        "ada/large", endpoint=server.address, token=ada.token, local_dir=place.folder / "copy"
    )
    assert Path(download, "weights.bin").read_bytes() == LARGE
