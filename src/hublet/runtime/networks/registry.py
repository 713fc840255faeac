"""Registry of the members of each network: a file for each, a lock, and a liveness check."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Self

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Phase
from hublet.runtime.attempt_folder import ProcessIdentity, boot_id, identity_of, read_status
from hublet.runtime.errors import NetworkFailed
from hublet.runtime.networks.records import NetworkMember
from hublet.runtime.shim.system import start_time

_LOCK, _SUFFIX = "lock", ".member"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRegistry:
    """A folder with a folder for each network; whoever looks or changes holds the lock."""

    root: Path

    @classmethod
    def of(cls, data_dir: Path) -> Self:
        return cls(root=data_dir.absolute() / "jobs" / "networks")

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.root / _LOCK).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    def home_of(self, key: str) -> Path:
        return self.root / hashlib.sha256(key.encode()).hexdigest()[:32]

    def homes(self) -> list[Path]:
        if not self.root.exists():
            return []
        return [path for path in self.root.iterdir() if path.is_dir()]

    def members(self, home: Path) -> list[NetworkMember]:
        found = [_read_member(path) for path in home.glob(f"*{_SUFFIX}")]
        return [member for member in found if member is not None]

    def add(self, home: Path, member: NetworkMember) -> None:
        path = self._path(home, member.folder)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(_to_json(member)))
        new.rename(path)

    def drop(self, home: Path, folder: Path) -> None:
        self._path(home, folder).unlink(missing_ok=True)

    def forget(self, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)

    def has(self, home: Path, folder: Path) -> bool:
        return self._path(home, folder).exists()

    def _path(self, home: Path, folder: Path) -> Path:
        return home / (hashlib.sha256(os.fsencode(folder)).hexdigest()[:32] + _SUFFIX)


def _read_member(path: Path) -> NetworkMember | None:
    """Read a member; what a power cut left half written is of nobody who still runs."""
    try:
        return _from_json(json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError):
        path.unlink()
        return None


def _to_json(member: NetworkMember) -> dict[str, Any]:
    texts = {name: str(getattr(member, name)) for name in ("folder", "block", "address")}
    return asdict(member) | texts


def _from_json(facts: dict[str, Any]) -> NetworkMember:
    read = {
        "folder": Path(facts["folder"]),
        "block": IPv4Network(facts["block"]),
        "address": IPv4Address(facts["address"]),
        "names": tuple(facts["names"]),
        "maker": ProcessIdentity(**facts["maker"]),
    }
    return NetworkMember(**(facts | read))


def this_process() -> ProcessIdentity:
    return ProcessIdentity(pid=os.getpid(), start=start_time(os.getpid()), boot=boot_id())


def is_alive(member: NetworkMember) -> bool:
    """Tell whether an attempt goes on; before its shim says anything its maker stands for it."""
    status = read_status(member.folder)
    if status is None:
        return member.maker.lives()
    return status["phase"] != Phase.exited and identity_of(status).lives()


def open_switch(members: Sequence[NetworkMember]) -> int | None:
    """Return a descriptor of the switch of a group; None: all have ended in the meantime."""
    # Twice, because the maker may let go of it while its shim takes hold of it.
    for member in (*members, *members):
        for path in _switch_paths(member):
            if (found := _open_namespace(path, member.switch)) is not None:
                return found
    if any(map(is_alive, members)):
        raise NetworkFailed("the network of its group cannot be found")
    return None


def _switch_paths(member: NetworkMember) -> Iterator[str]:
    status = read_status(member.folder)
    if status is not None and identity_of(status).lives():
        yield f"/proc/{status['pid']}/ns/net"
    if member.maker.lives():
        yield f"/proc/{member.maker.pid}/fd/{member.descriptor}"


def _open_namespace(path: str, number: int) -> int | None:
    """Open a namespace, if it is the one: a process or descriptor may be another's by now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(descriptor).st_ino == number:
        return descriptor
    os.close(descriptor)
    return None
