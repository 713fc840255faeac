"""Machine: the identity of the host and the data folder that a process of the hub runs with.

What lies in the data folder is known by the id of the folder, which moves with it. Processes and
network namespaces are of one host: the id of the machine is made from the folder and the host's name.
"""

import fcntl
import hashlib
import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

from hublet.core import ids
from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass

FOLDER_ID_FILE = "machine.id"
_UPKEEP_FILE = "upkeep"
_ID = re.compile(r"[0-9a-f]{32}")
_MACHINE_ID_LENGTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIdentity:
    """One host with one data folder; all processes there have the same."""

    id: str
    name: str
    folder_id: str


def identify(settings: Settings) -> MachineIdentity:
    """Return the identity of this machine; the first process makes the id of the folder. Blocks."""
    name = settings.server.node_name or socket.gethostname()
    folder_id = load_folder_id(settings.database.data_dir)
    digest = hashlib.sha256(f"{folder_id} {name}".encode()).hexdigest()
    return MachineIdentity(id=digest[:_MACHINE_ID_LENGTH], name=name, folder_id=folder_id)


def load_folder_id(folder: Path) -> str:
    """Return the id of a data folder; the first of several processes makes it for all. Blocks."""
    path = folder / FOLDER_ID_FILE
    if (found := _read_id(path)) is None:
        folder.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{FOLDER_ID_FILE}.{ids.random_bytes(8).hex()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{ids.random_bytes(16).hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            # What stands there is no id: half of a file, from a disk that was full.
            path.unlink()
        # A link never replaces, as a rename would: the id of a faster process stays.
        with suppress(FileExistsError):
            path.hardlink_to(new)
        new.unlink()
        found = _read_id(path)
    assert found is not None  # noqa: S101 - the file was written a moment ago.
    return found


def claim_upkeep(folder: Path, *, every_seconds: float) -> bool:
    """Claim the upkeep of a data folder; False: a process on it did it lately. Blocks."""
    with (folder / _UPKEEP_FILE).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        status = os.fstat(file.fileno())
        # Files know the real time, which test mode does not move.
        if status.st_size and time.time() - status.st_mtime < every_seconds:
            return False
        file.truncate(0)
        file.write(b".")
    return True


def _read_id(path: Path) -> str | None:
    try:
        text = path.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    return text if _ID.fullmatch(text) else None
