"""What jobs print, for tests: into the log, as a runner writes it."""

import json
from pathlib import Path
from typing import Any

from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.records import JOBS


def log_path(database: Database, job_id: str) -> Path:
    return job_folder(database.hub.settings.database.data_dir, job_id) / "log"


def write(log: Path, content: bytes) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        file.write(content)


def say(database: Database, job_id: str, *lines: str, seconds_ago: int = 0) -> list[dict[str, Any]]:
    """Let a job print lines; return the events that tell of them."""
    stamp = micros() - seconds_ago * 1_000_000
    write(log_path(database, job_id), "".join(f"{stamp} {line}\n" for line in lines).encode())
    moment = wire(stamp)[:-4] + f"{stamp % 1_000_000:06d}Z"
    return [{"data": line, "timestamp": moment} for line in lines]


async def set_stage(database: Database, job_id: str, stage: str) -> None:
    """Let a job be as far as the one who looks after it would bring it, and tell."""
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE jobs SET stage = $2, message = NULL WHERE id = $1", job_id, stage
        )
        conn.wake(JOBS)


def events_in(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream, which has nothing else but comments."""
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    told = [block for block in blocks if not block.startswith(":")]
    assert all(block.startswith('data: {"data":') for block in told), told
    return [json.loads(block.removeprefix("data: ")) for block in told]
