"""Commands of the storage, on a hub that does not run."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.users import service as accounts
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.serving import open_hub
from hublet.storage.epochs import get_epoch
from hublet.storage.object_store import blob_key, open_store
from repos.content import put_blob
from repos.xorbs import put_cut_blob

T = TypeVar("T")
DAY = 86_400_000_000


def in_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_hub(settings) as database:
            return await work(database)

    return asyncio.run(run())


async def add_repo(conn: Connection, name: str = "engine") -> str:
    user = await accounts.create_user(conn, f"ada-{name}")
    repo_id = new_object_id()
    await conn.execute(
        """
        INSERT INTO repos (id, type, owner_id, name, name_key, visibility, creator_id, tags,
            created_at, updated_at)
        VALUES ($1, 'model', $2, $3, $3, 'public', $2, '[]', 0, 0)
        """,
        repo_id, user.id, name,
    )  # fmt: skip
    return repo_id


@pytest.fixture
def repo_id(hublet: Hublet, settings: Settings) -> str:
    assert hublet("migrate").code == 0
    return in_hub(settings, add_repo)


def test_usage_is_listed_by_owner_and_by_repository(
    hublet: Hublet, settings: Settings, repo_id: str
) -> None:
    async def put(database: Database) -> Any:
        await put_blob(database, repo_id, b"12345")
        return (await put_cut_blob(database, repo_id, [b"one", b"two"]))[1]

    xorb = in_database(settings, put)

    usage = {"raw": 11, "stored": 5 + xorb.stored_size, "shared": 0}
    assert hublet("storage", "usage", "--json").json == [{"owner": "ada-engine"} | usage]
    assert hublet("storage", "usage", "ada-engine", "--json").json == [
        {"type": "model", "repository": "ada-engine/engine"} | usage
    ]
    assert hublet("storage", "usage", "nobody").err == "nobody has no repository.\n"


def test_pruning_tells_what_it_freed_and_a_dry_run_what_it_would(
    hublet: Hublet, settings: Settings, repo_id: str
) -> None:
    async def put(database: Database) -> None:
        await put_blob(database, None, b"12345")
        await put_blob(database, repo_id, b"kept")
        async with database.transaction() as conn:
            await conn.execute("UPDATE blobs SET created_at = $1", micros() - 2 * DAY)

    in_database(settings, put)

    dry = hublet("storage", "prune", "--dry-run")
    data = hublet("storage", "prune", "--dry-run", "--json").json
    pruned = hublet("storage", "prune")

    expected = (
        "5 bytes: 1 blobs, 0 xorbs, 0 objects without a row, 0 bytes of interrupted uploads; "
        "0 uploads that nothing took, 0 links.\n"
    )
    assert (dry.code, dry.err) == (0, f"Would free {expected}")
    assert (data["blobs"], data["freedBytes"]) == (1, 5)
    assert (pruned.code, pruned.err) == (0, f"Freed {expected}")
    assert hublet("storage", "prune", "--json").json == dict.fromkeys(data, 0)


def test_verify_names_what_is_damaged_and_doctor_does_too(
    hublet: Hublet, settings: Settings, repo_id: str
) -> None:
    digest = hashlib.sha256(b"12345").hexdigest()
    in_database(settings, lambda database: put_blob(database, repo_id, b"12345"))
    assert hublet("storage", "verify", "--all").err == (
        "Read 1 objects with 5 bytes; 0 were healed, 0 are damaged or missing.\n"
    )
    path = open_store(settings).local_path(blob_key(digest))
    assert path is not None
    path.write_bytes(b"12346")

    # It was read a moment ago.
    assert hublet("storage", "verify").code == 0
    found = hublet("storage", "verify", "--all")
    listed = hublet("storage", "verify", "--json")
    doctor = hublet("doctor")

    assert (found.code, found.out) == (1, f"blobs/{digest} damaged: ada-engine/engine\n")
    [damaged] = listed.json["damaged"]
    assert damaged.pop("foundAt")
    assert damaged == {
        "kind": "blobs",
        "digest": digest,
        "problem": "damaged",
        "repositories": ["ada-engine/engine"],
    }
    sentence = f"1 objects are damaged or missing (blobs/{digest} damaged, of ada-engine/engine)."
    assert (doctor.code, sentence in doctor.out) == (1, True)


def test_a_new_epoch_begins(hublet: Hublet, settings: Settings, repo_id: str) -> None:
    assert repo_id
    began = hublet("storage", "new-epoch")

    assert (began.code, began.err) == (
        0,
        "The storage is in epoch 1: clients know nothing of what was uploaded before.\n",
    )
    assert hublet("storage", "new-epoch", "--json").json == {"epoch": 2}
    assert in_hub(settings, get_epoch) == 2
