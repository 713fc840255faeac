"""What each machine sweeps in its own data folder."""

import asyncio
import os
from pathlib import Path

from hublet.core.database import Database
from hublet.worker import sweep_folder

LONG_AGO = 1_000_000_000


def an_old_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "file").touch()
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


async def test_a_machine_removes_from_its_folder_what_was_deleted_elsewhere(
    database: Database,
) -> None:
    data_dir = database.hub.settings.database.data_dir
    repo = an_old_folder(data_dir / "repos" / "bb" / f"{'b' * 24}.git")

    assert await sweep_folder(database)

    assert not await asyncio.to_thread(repo.exists)


async def test_of_several_workers_with_one_folder_one_sweeps_it_in_a_day(
    database: Database,
) -> None:
    swept = await asyncio.gather(*(sweep_folder(database) for _ in range(4)))

    assert sorted(swept) == [False, False, False, True]
    os.utime(database.hub.settings.database.data_dir / "upkeep", (LONG_AGO, LONG_AGO))
    assert await sweep_folder(database)
