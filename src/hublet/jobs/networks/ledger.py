"""Who is in which network: a small file for each member, and a lock for who changes anything."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Self

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.networks.records import Member
from hublet.jobs.runners.identity import Identity

_LOCK, _SUFFIX = "lock", ".member"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
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

    def members(self, home: Path) -> list[Member]:
        found = [_read(path) for path in home.glob(f"*{_SUFFIX}")]
        return [member for member in found if member is not None]

    def add(self, home: Path, member: Member) -> None:
        path = self._path(home, member.folder)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(_facts(member)))
        new.rename(path)

    def drop(self, home: Path, folder: Path) -> None:
        self._path(home, folder).unlink(missing_ok=True)

    def forget(self, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)

    def has(self, home: Path, folder: Path) -> bool:
        return self._path(home, folder).exists()

    def _path(self, home: Path, folder: Path) -> Path:
        return home / (hashlib.sha256(os.fsencode(folder)).hexdigest()[:32] + _SUFFIX)


def _read(path: Path) -> Member | None:
    """Read a member; what a power cut left half written is of nobody who still runs."""
    try:
        return _member(json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError):
        path.unlink()
        return None


def _facts(member: Member) -> dict[str, Any]:
    texts = {name: str(getattr(member, name)) for name in ("folder", "block", "address")}
    return asdict(member) | texts


def _member(facts: dict[str, Any]) -> Member:
    read = {
        "folder": Path(facts["folder"]),
        "block": IPv4Network(facts["block"]),
        "address": IPv4Address(facts["address"]),
        "names": tuple(facts["names"]),
        "maker": Identity(**facts["maker"]),
    }
    return Member(**(facts | read))
