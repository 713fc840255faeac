"""Content of repositories for tests, put there without the commit endpoint."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hublet.core.database import Database
from hublet.events import UpdatedRef
from hublet.repos import blobs_store as blobs
from hublet.repos import store as repos
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import pointer_to
from hublet.repos.records import MAIN, Card, RefTransaction
from hublet.repos.refs import service as refs
from hublet.repos.refs import store as ref_store
from hublet.storage import contents
from hublet.storage.object_store import blob_key, open_store
from hublet.storage.records import Blob
from hublet.storage.store import add_blobs
from repos.git_objects import commit_files


async def put(
    database: Database,
    repo_id: str,
    files: Mapping[str, bytes],
    *,
    ref: str = MAIN,
    at: int = 0,
    message: str = "Add files.",
) -> str:
    """Make a commit on top of the ref that holds exactly these files; return its id."""
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    async with database.transaction() as conn:
        repo = await repos.find(conn, repo_id)
        assert repo is not None
        old = await ref_store.find(conn, repo_id, ref)
        parents = () if old is None else (old,)
        new = commit_files(folder, files, parents=parents, at=at, message=message)
        update = UpdatedRef(ref=ref, old_sha=old, new_sha=new)
        card = Card() if ref == MAIN else None
        await refs.update_refs(
            conn, repo, RefTransaction(updates=(update,), actor_id=repo.owner_id, card=card)
        )
    return new


async def put_blob(database: Database, repo_id: str | None, content: bytes) -> Blob:
    """Keep content in the storage, and let a repository point to it."""
    store = open_store(database.hub.settings)
    with store.new_spool() as spool:
        spool.write(content)
        blob = contents.put_blob(store, spool)
    async with database.transaction() as conn:
        await add_blobs(conn, [blob])
        if repo_id is not None:
            await blobs.link(conn, repo_id, [blob])
    return blob


def object_path(database: Database, content: bytes) -> Path:
    """Return where a blob lies that is stored whole."""
    path = open_store(database.hub.settings).local_path(blob_key(sha256(content)))
    assert path is not None
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pointer(content: bytes) -> bytes:
    """What git holds in place of this content."""
    return pointer_to(sha256(content), len(content))
