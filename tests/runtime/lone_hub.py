"""A hub in a process of its own that launches one attempt, says so, and waits to be killed."""

import asyncio
import sys
import time
from pathlib import Path

from runtime.attempts import a_runner, an_order


def main(name: str, data_dir: str, job_id: str, *argv: str) -> None:
    order = an_order(Path(data_dir), *argv, job_id=job_id)
    print(asyncio.run(a_runner(name, Path(data_dir)).launch(order)), flush=True)  # noqa: T201
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
