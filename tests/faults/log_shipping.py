"""A worker that does nothing but ship the log of one job, and says each time that it did."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from hublet.core.config import load
from hublet.core.startup import open_hub
from hublet.runtime.supervisor.log_shipper import LogShipper


async def main(data_dir: str, database_url: str, job_id: str) -> None:
    settings = load({"database.data_dir": Path(data_dir), "database.url": database_url}, environ={})
    storage = replace(settings.storage, url=os.environ["HUBLET_STORAGE_URL"])
    async with open_hub(replace(settings, storage=storage)) as database:
        shipper = LogShipper(database)
        await shipper.begin(job_id, 1)
        while True:
            shipper.follow(job_id, 1)
            await shipper.ship_all(at_once=True)
            sys.stdout.write("shipped\n")
            sys.stdout.flush()


asyncio.run(main(*sys.argv[1:]))
