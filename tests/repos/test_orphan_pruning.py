"""Folders that belong to no repository go, and no others."""

import os
from pathlib import Path

import httpx2

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.first_start import prepare
from hublet.repos import pruning
from hublet.repos.git import bare_repos
from people import Headers
from repositories import a_repo
from workers import drain

HOUR = 3600


def a_folder(database: Database, repo_id: str, *, seconds_old: int) -> Path:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    if not folder.exists():
        bare_repos.create_empty(folder)
    moment = micros() / 1e6 - seconds_old
    os.utime(folder, (moment, moment))
    return folder


async def test_only_an_old_folder_without_a_row_is_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    own = a_folder(database, repo_id, seconds_old=9 * HOUR)
    orphan = a_folder(database, "a" * 24, seconds_old=HOUR + 60)
    # Somebody may just be creating it.
    young = a_folder(database, "b" * 24, seconds_old=HOUR - 60)

    await pruning.remove_orphans(database)

    assert (own.exists(), orphan.exists(), young.exists()) == (True, False, True)


async def test_a_start_looks_for_orphans(database: Database) -> None:
    orphan = a_folder(database, "a" * 24, seconds_old=2 * HOUR)

    await prepare(database)
    await prepare(database)
    await drain(database)

    assert not orphan.exists()


async def test_a_hub_without_repositories_has_nothing_to_sweep(database: Database) -> None:
    await pruning.remove_orphans(database)
