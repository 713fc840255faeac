"""Contents that lie in one object, for comparison: the hub cuts what it has into chunks by itself."""

import json
import time
from collections.abc import Iterable

from benchmarks.content import Account
from benchmarks.figures import Spoiled
from benchmarks.hubs import opened
from hublet.core.config import Settings
from hublet.storage.contents import put_blob
from hublet.storage.object_store import open_store

_LONGEST_SECONDS = 600.0
_PAUSE_SECONDS = 0.5


def wait_until_cut(account: Account, repo: str, path: str) -> None:
    """Wait until the hub has cut a file that came as a whole."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    asked = json.dumps({"paths": [path]}).encode()
    while "xetHash" not in account.send("POST", f"/api/models/{repo}/paths-info/main", asked)[0]:
        if time.monotonic() > deadline:
            raise Spoiled(f"{path} was not cut within {_LONGEST_SECONDS:.0f} seconds.")
        time.sleep(_PAUSE_SECONDS)


def put_whole(settings: Settings, pieces: Iterable[bytes]) -> str:
    """Store a content as one object, beside its chunks; return its SHA-256."""
    store = open_store(settings)
    with store.new_spool() as spool:
        spool.write_all(pieces)
        return put_blob(store, spool).sha256


async def set_whole(settings: Settings, sha256: str, *, is_whole: bool) -> None:
    """Let the hub read a content from its one object, or from its chunks; both are there."""
    async with opened(settings) as database, database.transaction() as conn:
        await conn.execute("UPDATE blobs SET is_whole = $1 WHERE sha256 = $2", is_whole, sha256)
