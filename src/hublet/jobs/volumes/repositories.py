"""Repositories as volumes: a commit is written out when the first job mounts it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from hublet.core.database import Database
from hublet.jobs.launch_threads import in_launch_thread
from hublet.jobs.volumes import checkouts
from hublet.jobs.volumes.checkouts import Checkout
from hublet.repos.blobs import folder as blob_folder
from hublet.repos.blobs import store as blobs
from hublet.repos.records import Repo

_T = TypeVar("_T")


async def checkout(database: Database, repo: Repo, commit: str) -> Path:
    """Return the folder with the files of a commit; nobody may write to it."""
    data_dir = database.hub.settings.database.data_dir
    wanted = checkouts.checkout_of(data_dir, repo_id=repo.id, commit=commit)
    if not await in_launch_thread(checkouts.is_there, wanted):
        contents = await _large_files(database, repo, wanted)
        await _unless_given_up(checkouts.write, wanted, contents)
    return wanted.folder


async def _large_files(database: Database, repo: Repo, checkout: Checkout) -> dict[str, Path]:
    large = await _unless_given_up(checkouts.list_large, checkout)
    # A pointer can be written by anybody who knows a digest; that is no right to the content.
    async with database.read() as conn:
        held = await blobs.find_in_repo(conn, repo.id, {lfs.sha256 for lfs in large.values()})
    data_dir = database.hub.settings.database.data_dir
    return {
        path: blob_folder.path_of(data_dir, lfs.sha256)
        for path, lfs in large.items()
        if lfs.sha256 in held and held[lfs.sha256].size == lfs.size
    }


async def _unless_given_up(work: Callable[..., _T], *about: Any) -> _T:
    """Do what takes long; whoever is cancelled meanwhile has it end at the next file."""
    given_up = Event()
    working = asyncio.ensure_future(in_launch_thread(work, *about, given_up))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        given_up.set()
        # It is awaited, and its last word heard, for nobody else will.
        await asyncio.gather(working, return_exceptions=True)
        raise
