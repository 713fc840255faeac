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
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            # Those who come at the same time wait here, and find what this one has written.
            fcntl.flock(file, fcntl.LOCK_EX)
            if (found := _id_in(file.read())) is None:
                found = ids.random_bytes(16).hex()
                # What stands there is no id: half of a file, from a disk that was full.
                file.seek(0)
                file.truncate()
                file.write(f"{found}\n".encode())
                file.flush()
                os.fsync(file.fileno())
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
        return _id_in(path.read_bytes())
    except FileNotFoundError:
        return None


def _id_in(content: bytes) -> str | None:
    text = content.decode("ascii", errors="replace").strip()
    return text if _ID.fullmatch(text) else None
