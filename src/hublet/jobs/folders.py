"""Where things of a job lie on the disk: its log, and a folder for each attempt."""

import shutil
from pathlib import Path


def folder_of(data_dir: Path, job_id: str) -> Path:
    return data_dir / "jobs" / job_id[:2] / job_id


def remove(folder: Path) -> None:
    """Remove all of it; what is gone already is fine."""
    if folder.exists():
        shutil.rmtree(folder)
