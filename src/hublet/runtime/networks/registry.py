"""Registry of the members of each network: a file for each member, a lock, and a liveness check."""

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

from hublet.core.dataclasses import dataclass
from hublet.jobs.records import Phase
from hublet.runtime.attempt_folder import ProcessIdentity, boot_id, identity_of, read_status
from hublet.runtime.errors import NetworkFailed
from hublet.runtime.networks.records import NetworkMember
from hublet.runtime.shim.system import start_time

_LOCK, _SUFFIX = "lock", ".member"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRegistry:
    """A folder with a subfolder for each network; readers and writers hold the lock."""

    root: Path

    @classmethod
    def of(cls, data_dir: Path) -> Self:
        return cls(root=data_dir.absolute() / "jobs" / "networks")

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.root / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def dir_of(self, key: str) -> Path:
        return self.root / hashlib.sha256(key.encode()).hexdigest()[:32]

    def network_dirs(self) -> list[Path]:
        if not self.root.exists():
            return []
        return [path for path in self.root.iterdir() if path.is_dir()]

    def members(self, network_dir: Path) -> list[NetworkMember]:
        found = [_read_member(path) for path in network_dir.glob(f"*{_SUFFIX}")]
        return [member for member in found if member is not None]

    def add(self, network_dir: Path, member: NetworkMember) -> None:
        path = self._path(network_dir, member.folder)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(_to_json(member)))
        new.rename(path)

    def remove(self, network_dir: Path, folder: Path) -> None:
        self._path(network_dir, folder).unlink(missing_ok=True)

    def remove_network(self, network_dir: Path) -> None:
        shutil.rmtree(network_dir, ignore_errors=True)

    def has(self, network_dir: Path, folder: Path) -> bool:
        return self._path(network_dir, folder).exists()

    def _path(self, network_dir: Path, folder: Path) -> Path:
        return network_dir / (hashlib.sha256(os.fsencode(folder)).hexdigest()[:32] + _SUFFIX)


def _read_member(path: Path) -> NetworkMember | None:
    """Read a member; a file that a power cut left half written is of an attempt that ended."""
    try:
        return _from_json(json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError):
        path.unlink()
        return None


def _to_json(member: NetworkMember) -> dict[str, Any]:
    texts = {name: str(getattr(member, name)) for name in ("folder", "block", "address")}
    return asdict(member) | texts


def _from_json(fields: dict[str, Any]) -> NetworkMember:
    read = {
        "folder": Path(fields["folder"]),
        "block": IPv4Network(fields["block"]),
        "address": IPv4Address(fields["address"]),
        "names": tuple(fields["names"]),
        "maker": ProcessIdentity(**fields["maker"]),
    }
    return NetworkMember(**(fields | read))


def current_process() -> ProcessIdentity:
    return ProcessIdentity(pid=os.getpid(), start=start_time(os.getpid()), boot=boot_id())


def is_alive(member: NetworkMember) -> bool:
    """Tell whether an attempt runs; until its shim has written a status, whether its maker does."""
    status = read_status(member.folder)
    if status is None:
        return member.maker.lives()
    return status["phase"] != Phase.exited and identity_of(status).lives()


def open_switch(members: Sequence[NetworkMember]) -> int | None:
    """Return a descriptor of the switch of a group; None: all members have ended meanwhile."""
    # Twice, because the maker may close its descriptor just when the shim opens one.
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
    """Open a namespace by its number: the pid or descriptor may have been reused meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if os.fstat(descriptor).st_ino == number:
        return descriptor
    os.close(descriptor)
    return None
