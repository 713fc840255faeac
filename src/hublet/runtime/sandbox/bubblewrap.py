"""Options of bubblewrap that give an attempt its own view of the machine."""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import rootfs
from hublet.runtime.records import BindMount

# User id and home of the job inside the sandbox.
USER = 1000
HOME = rootfs.HOME
CONTENT = "/app"
# Mounted anew for each job, so never taken from the image.
OWN_FOLDERS = ("/proc", "/dev", "/sys", "/tmp")  # noqa: S108 - inside of the sandbox.
# A mount in a folder with more entries than this is refused: each entry is an option.
_MAX_ENTRIES = 500
_READABLE = 0o005
# How many combinations of an image and mounts are cached.
_CACHE_SIZE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxView:
    """File system of an attempt: a read-only root, and mounts on top of it."""

    root: Path
    # Path of the root for bubblewrap, which may differ from the hub's.
    root_source: Path
    # Paths of the root that the job does not see.
    hidden: tuple[Path, ...]
    binds: tuple[BindMount, ...]
    hostname: str
    network: bool
    devices: tuple[str, ...] = ()
    cwd: str = HOME
    # Entries of a root that has a folder or file for every mount, and where those lead that are
    # links; None: the root is read.
    entries: tuple[tuple[str, str | None], ...] | None = None


def options(view: SandboxView) -> list[str]:
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", *([] if view.network else ["--unshare-net"])]
    words += ["--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--uid", str(USER), "--gid", str(USER), "--hostname", view.hostname]
    words += [word for part in _root_options(view) for word in part]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for device in view.devices:
        words += ["--dev-bind", device, device]
    for bind in sorted(view.binds, key=lambda bind: bind.target):
        words += ["--ro-bind" if bind.read_only else "--bind", str(bind.source), bind.target]
    return [*words, "--chdir", view.cwd]


def _root_options(view: SandboxView) -> Iterator[tuple[str, ...]]:
    """Mount the root entry by entry, so that mounts are possible where it has no folder for them."""
    if view.entries is not None:
        yield from _known_entries(view.entries, os.fspath(view.root_source))
        return
    root = os.fspath(view.root)
    missing = tuple(bind.target for bind in view.binds if not _has_mount_point(root, bind.target))
    hidden = tuple(map(os.fspath, view.hidden))
    folders = _split_folders(root, hidden, missing)
    root_source = os.fspath(view.root_source).rstrip("/")
    stamp = tuple(map(_changed_at, folders))
    for kind, place, link in root_entries(root, hidden, missing, stamp):
        if kind == "--dir":
            yield (kind, place)
        else:
            yield (kind, link or f"{root_source}{place}", place)


def _known_entries(
    entries: Sequence[tuple[str, str | None]], root_source: str
) -> Iterator[tuple[str, ...]]:
    for name, link in entries:
        if link is not None:
            yield ("--symlink", link, f"/{name}")
        elif f"/{name}" not in OWN_FOLDERS:
            yield ("--ro-bind", f"{root_source}/{name}", f"/{name}")


def _has_mount_point(root: str, target: str) -> bool:
    """Tell whether the root has a mount point for a target, without links on its path."""
    place = Path(root, target.lstrip("/"))
    on_the_way = [step for step in (place, *place.parents) if step.is_relative_to(root)]
    return not any(step.is_symlink() for step in on_the_way) and place.exists()


@lru_cache(maxsize=_CACHE_SIZE)
def _split_folders(
    root: str, hidden: tuple[str, ...], missing: tuple[str, ...]
) -> tuple[Path, ...]:
    """Return the folders that are mounted entry by entry: something in them differs from the image."""
    inside = [Path(path) for path in hidden] + [Path(root, path.lstrip("/")) for path in missing]
    own = [Path(root, path.lstrip("/")) for path in OWN_FOLDERS]
    around = {parent for path in (*inside, *own) for parent in path.parents}
    # What lies in a folder that the image does not give is not looked at: others may change it.
    return tuple(
        folder
        for folder in around
        if folder.is_relative_to(root) and not any(map(folder.is_relative_to, own))
    )


def _changed_at(folder: Path) -> int:
    """Return the change time of a folder, which is the key of its cached entries."""
    try:
        return folder.stat().st_ctime_ns
    except OSError:
        return 0


@lru_cache(maxsize=_CACHE_SIZE)
def root_entries(
    root: str, hidden: tuple[str, ...], missing: tuple[str, ...], _stamp: tuple[int, ...]
) -> tuple[tuple[str, str, str], ...]:
    """Return option, target and link of each entry of a root."""
    targets = [PurePosixPath(target) for target in missing]
    left_out = {*map(Path, hidden), *(Path(root, own.lstrip("/")) for own in OWN_FOLDERS)}
    return tuple(
        (kind, place, str(path.readlink()) if kind == "--symlink" else "")
        for kind, path, place in _folder_entries(
            Path(root), targets=targets, hidden=left_out, root=Path(root)
        )
    )


def _folder_entries(
    folder: Path, *, targets: Sequence[PurePosixPath], hidden: set[Path], root: Path
) -> Iterator[tuple[str, Path, str]]:
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if len(entries) > _MAX_ENTRIES:
        raise CannotRun(f"Nothing can be mounted in /{folder.relative_to(root)}: it is too full.")
    for entry in entries:
        path = Path(entry.path)
        place = PurePosixPath("/", path.relative_to(root))
        mounted = any(place in target.parents for target in targets)
        if mounted and entry.is_symlink():
            raise CannotRun(f"Nothing can be mounted in {place}: it is a link in the image.")
        is_split = mounted or any(path in other.parents for other in hidden)
        # A link at a mount point would redirect the mount.
        is_left_out = path in hidden or place in targets
        kind = None if is_left_out else _entry_option(entry, is_split=is_split)
        if kind:
            yield (kind, path, str(place))
        if kind == "--dir":
            yield from _folder_entries(path, targets=targets, hidden=hidden, root=root)


def _entry_option(entry: os.DirEntry[str], *, is_split: bool) -> str | None:
    """Return the option that mounts an entry; None: it is left out."""
    if entry.is_symlink():
        return "--symlink"
    if is_split and entry.is_dir():
        # A folder that is closed to other users would be closed to the job and to bubblewrap.
        return "--dir" if entry.stat().st_mode & _READABLE == _READABLE else None
    return "--ro-bind-try" if entry.is_dir() or entry.is_file() else None
