"""Cache of a node: bare repositories whose packs are fetched from the shared store, and evicted again.

Whoever uses a folder holds a shared lock on it until its task ends; what is removed from a folder, or
the folder itself, goes under an exclusive lock. So nothing vanishes that somebody reads. What comes
into a folder comes under its final name when it is complete, and readers find it or do not.
"""

import asyncio
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary, WeakValueDictionary

from hublet.core.clock import now, offset
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.repos.errors import StorageUnavailable
from hublet.repos.git import bare_repos
from hublet.repos.git.bare_repos import FolderLock, try_lock
from hublet.repos.packs import store
from hublet.repos.packs.metrics import usage_of
from hublet.repos.packs.store import ListedPack
from hublet.storage.object_store import ObjectKey, ObjectStore, has_shared_store, open_store

log = get_logger("packs")

# How often the list is read again because packs of it were replaced and removed meanwhile.
ATTEMPTS = 3
# A folder is marked as used this often at most.
USED_SECONDS = 60.0
_FETCHED_AT_ONCE = 8
_WAIT_SECONDS = 0.01
_STATE = "packs.json"
_USED = "used"
# A folder with this file is no cache: its objects are nowhere else.
_KEPT = "kept"
# How the name of a pack in a workspace begins after its upload.
UPLOADED = "uploaded-"
_SHARE_BEFORE_EVICTION = 100


def pack_key(repo_id: str, name: str, suffix: str) -> ObjectKey:
    return ObjectKey("packs", f"{repo_id}/{name}{suffix}")


_held: WeakKeyDictionary[asyncio.Task[object], dict[Path, FolderLock]] = WeakKeyDictionary()
_fetch_locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()


async def hold(folder: Path) -> None:
    """Keep a folder from eviction until the current task ends."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - this is a coroutine
    if task not in _held:
        _held[task] = {}
        task.add_done_callback(_release)
    held = _held[task]
    if folder in held:
        return
    if _read_state(folder).stale and (lock := try_lock(folder, exclusive=True)) is not None:
        _remove_stale(folder)
        lock.share()
        held[folder] = lock
        return
    while (lock := try_lock(folder, exclusive=False)) is None:  # noqa: ASYNC110 - other processes too
        # Somebody removes it, which takes a moment.
        await asyncio.sleep(_WAIT_SECONDS)
    held.setdefault(folder, lock)


def _release(task: asyncio.Task[object]) -> None:
    for lock in _held.pop(task, {}).values():
        lock.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _FolderState:
    """The version of the list that a folder has all packs of, and its packs that are on no list now."""

    version: int = 0
    stale: tuple[str, ...] = ()


@cache
def _boot() -> str:
    """Return what differs after a restart of the machine, in which files may have been lost."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read_state(folder: Path) -> _FolderState:
    try:
        found = json.loads((folder / _STATE).read_bytes())
    except (OSError, ValueError):
        return _FolderState()
    if found.get("boot") != _boot():
        return _FolderState()
    return _FolderState(version=found["version"], stale=tuple(found["stale"]))


def _write_state(folder: Path, state: _FolderState) -> None:
    text = json.dumps({"version": state.version, "stale": state.stale, "boot": _boot()})
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="packs-", delete=False) as file:
        file.write(text)
    Path(file.name).replace(folder / _STATE)


def _remove_stale(folder: Path) -> None:
    """Remove what is on no list; others must not use the folder."""
    if (folder / _KEPT).exists():
        return
    state = _read_state(folder)
    for name in state.stale:
        for suffix in (".idx", ".pack", ".rev"):
            (folder / "objects" / "pack" / f"{name}{suffix}").unlink(missing_ok=True)
    # Objects of before the packs were in the store; all of them are in packs now.
    for loose in (folder / "objects").glob("[0-9a-f][0-9a-f]"):
        shutil.rmtree(loose, ignore_errors=True)
    _write_state(folder, _FolderState(version=state.version))


def path_of(database: Database, repo_id: str) -> Path:
    """Return where the folder of a repository is or would be; what is in it may be old, or missing."""
    return bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)


async def open_folder(database: Database, repo_id: str) -> Path:
    """Return the folder of a bare repository that has all its objects of this moment.

    It stays as it is, or grows, until the current task ends. Refs that were read before can be found
    in it; call it after them, and with no transaction open.
    """
    folder = path_of(database, repo_id)
    if not has_shared_store(database.hub.settings):
        return folder
    await hold(folder)
    async with database.read() as conn:
        version = await store.version_of(conn, repo_id)
    if version is not None and version > 0:
        await _update(database, repo_id, folder, version)
    return folder


async def is_listed(database: Database, repo_id: str) -> bool:
    """Tell whether the objects of a repository are in packs of a shared store."""
    if not has_shared_store(database.hub.settings):
        return False
    async with database.read() as conn:
        return (await store.version_of(conn, repo_id) or 0) > 0


async def _update(database: Database, repo_id: str, folder: Path, version: int) -> None:
    usage = usage_of(database.hub.settings.database.data_dir)
    if _read_state(folder).version == version:
        usage.hits += 1
    else:
        usage.misses += 1
        async with _fetch_locks.setdefault(folder, asyncio.Lock()):
            if _read_state(folder).version != version:
                await _fetch(database, repo_id, folder)
    _mark_used(folder)


async def _fetch(database: Database, repo_id: str, folder: Path) -> None:
    objects = open_store(database.hub.settings)
    for _ in range(ATTEMPTS):
        async with database.read() as conn:
            # The version is read first: packs that come in between are then merely more than it says.
            version = await store.version_of(conn, repo_id) or 0
            listed = await store.list_of(conn, repo_id)
            missing = _missing(folder, listed)
            small = [pack.name for pack in missing if pack.is_inline]
            data = await store.find_data(conn, repo_id, small) if small else {}
        try:
            await asyncio.to_thread(_bring, objects, folder, listed, data)
        except FileNotFoundError:
            continue
        await asyncio.to_thread(_record, folder, version, listed)
        _consider_eviction(database, sum(pack.size for pack in missing))
        return
    log.error("packs of a repository are missing in the store", repo=repo_id)
    raise StorageUnavailable


def _missing(folder: Path, listed: Iterable[ListedPack]) -> list[ListedPack]:
    if not _read_state(folder).version and _is_doubtful(folder):
        return list(listed)
    packs = folder / "objects" / "pack"
    return [pack for pack in listed if not (packs / f"{pack.name}.idx").exists()]


def _is_doubtful(folder: Path) -> bool:
    """Tell whether the machine has been restarted since the packs were written."""
    try:
        return bool(json.loads((folder / _STATE).read_bytes()).get("boot") != _boot())
    except (OSError, ValueError):
        return False


def _bring(
    objects: ObjectStore, folder: Path, listed: Collection[ListedPack], data: Mapping[str, bytes]
) -> None:
    """Fetch what a folder lacks; raise FileNotFoundError when something of it is gone."""
    _prepare(folder)
    with _only_fetcher(folder), ThreadPoolExecutor(_FETCHED_AT_ONCE) as threads:
        # Another process may have fetched some of them by now.
        missing = _missing(folder, listed)
        for _ in threads.map(lambda pack: _bring_pack(objects, folder, pack, data), missing):
            pass


@contextmanager
def _only_fetcher(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "fetch.lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _bring_pack(
    objects: ObjectStore, folder: Path, pack: ListedPack, data: Mapping[str, bytes]
) -> None:
    target = folder / "objects" / "pack" / f"{pack.name}.pack"
    if pack.is_inline:
        whole = data.get(pack.name)
        if whole is None:
            raise FileNotFoundError(pack.name)
        pieces: Iterable[bytes] = (whole[: pack.size],)
        index = whole[pack.size :]
    else:
        repo_id = folder.stem
        pieces = objects.pieces(pack_key(repo_id, pack.name, ".pack"), 0, pack.size)
        index = objects.read(pack_key(repo_id, pack.name, ".idx"))
    _write(target, pieces)
    # An index makes its pack visible, so it comes last.
    _write(target.with_suffix(".idx"), (index,))


def _write(target: Path, pieces: Iterable[bytes]) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix="tmp_pack_", delete=False) as file:
        try:
            file.writelines(pieces)
            file.flush()
            os.fchmod(file.fileno(), 0o444)
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _record(folder: Path, version: int, listed: Iterable[ListedPack]) -> None:
    names = {pack.name for pack in listed}
    present = {path.stem for path in (folder / "objects" / "pack").glob("*.idx")}
    if any((folder / "objects").glob("[0-9a-f][0-9a-f]")):
        present.add("loose objects")
    _write_state(folder, _FolderState(version=version, stale=tuple(sorted(present - names))))


def _mark_used(folder: Path) -> None:
    used = folder / _USED
    moment = (now() - offset()).timestamp()
    try:
        if moment - used.stat().st_mtime < USED_SECONDS:
            return
    except FileNotFoundError:
        pass
    with suppress(FileNotFoundError):
        used.touch()


async def adopt(database: Database, repo_id: str, workspace: Path, names: Collection[str]) -> None:
    """Move packs that are listed now from a workspace to the cache."""
    folder = path_of(database, repo_id)
    _consider_eviction(database, await asyncio.to_thread(_adopt, folder, workspace, names))


def _adopt(folder: Path, workspace: Path, names: Collection[str]) -> int:
    _prepare(folder)
    size = 0
    for name in names:
        for suffix in (".pack", ".idx"):
            written = workspace / "objects" / "pack" / f"{UPLOADED}{name}{suffix}"
            size += written.stat().st_size
            written.replace(folder / "objects" / "pack" / f"{name}{suffix}")
    return size


def _prepare(folder: Path) -> None:
    """Make the folder of a repository, unless it is there; of several at once, the first counts."""
    if not (folder / "HEAD").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="evicted-", dir=folder.parent) as aside:
            bare_repos.create_empty(new := Path(aside, folder.name))
            (new / "objects" / "pack").mkdir(exist_ok=True)
            with suppress(OSError):
                new.rename(folder)
    if not (folder / _STATE).exists():
        _write_state(folder, _FolderState())


def _consider_eviction(database: Database, fetched: int) -> None:
    """Evict, beside the request, when enough was fetched since the last time; and once at first."""
    settings = database.hub.settings
    data_dir, room = settings.database.data_dir, settings.storage.cache_bytes
    usage = usage_of(data_dir)
    is_first = usage.fetched < 0
    usage.fetched = max(usage.fetched, 0) + fetched
    if usage.is_running or not (is_first or usage.fetched * _SHARE_BEFORE_EVICTION >= room):
        return
    usage.fetched, usage.is_running = 0, True
    running = asyncio.get_running_loop().run_in_executor(None, evict, data_dir, room)

    def end(done: asyncio.Future[int]) -> None:
        usage.is_running = False
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("the cache of packs could not be cleared", error=str(error))

    running.add_done_callback(end)


def evict(data_dir: Path, room: int) -> int:
    """Remove the folders that were used least recently, until the cache fits; return how many.

    Folders in use stay, and so do those whose objects are nowhere else.
    """
    sizes = cached_sizes(data_dir)
    usage, total, removed = usage_of(data_dir), sum(sizes.values()), 0
    for folder in sorted(sizes, key=_used_at):
        if total <= room:
            break
        if remove(folder):
            total -= sizes[folder]
            removed += 1
    usage.measured, usage.evictions = total, usage.evictions + removed
    # Files know the real time, which test mode does not move.
    bare_repos.clear_abandoned(data_dir, now=now() - offset())
    return removed


def cached_sizes(data_dir: Path) -> dict[Path, int]:
    """Return the folders of cached repositories with their bytes."""
    return {
        folder: size
        for folder in (data_dir / "repos").glob("??/*.git")
        if (size := _cached_size(folder)) is not None
    }


def _cached_size(folder: Path) -> int | None:
    """Return the bytes of a cached repository; None for one that is no cache."""
    try:
        if not (folder / _STATE).exists() or (folder / _KEPT).exists():
            return None
        return sum(path.stat().st_size for path in (folder / "objects" / "pack").iterdir())
    except FileNotFoundError:
        return None


def _used_at(folder: Path) -> float:
    try:
        return (folder / _USED).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def remove(folder: Path) -> bool:
    """Remove the folder of a cached repository, unless somebody uses it."""
    lock = try_lock(folder, exclusive=True)
    if lock is None:
        return False
    aside = Path(tempfile.mkdtemp(prefix="evicted-", dir=folder.parent))
    try:
        with suppress(FileNotFoundError):
            folder.rename(aside / folder.name)
        folder.with_suffix(".lock").unlink(missing_ok=True)
    finally:
        lock.close()
    shutil.rmtree(aside, ignore_errors=True)
    return True


def forbid_eviction(folder: Path) -> None:
    """Keep a folder whose objects are nowhere else, or will not be in a moment."""
    (folder / _KEPT).touch()


def allow_eviction(folder: Path) -> None:
    (folder / _KEPT).unlink(missing_ok=True)
