"""Mounts of a requested job: their paths, the creator's rights to them, and their commits."""

import asyncio
import posixpath
from collections.abc import Sequence
from dataclasses import replace

from hublet.core.database import Database, Reader
from hublet.jobs.errors import (
    InvalidVolume,
    SpaceNotFound,
    TooManyVolumes,
    VolumeNotFound,
    VolumeNotWritable,
    VolumeRevisionNotFound,
)
from hublet.jobs.records import Mount, VolumeType
from hublet.jobs.request_schemas import Volume, or_none
from hublet.repos import service as repos
from hublet.repos.errors import AccessNotGranted, RepoMoved, RepoNotFound, RightNeeded
from hublet.repos.git import bare_repos, history
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

MAX_VOLUMES = 100

# Filled by the kernel; a job could not begin without them.
_RESERVED = ("/proc", "/sys", "/dev")
_MAIN = "main"


def place_volumes(volumes: Sequence[Volume]) -> tuple[Mount, ...]:
    """Return the mount of each volume, before it is checked whether there is such a volume."""
    if len(volumes) > MAX_VOLUMES:
        raise TooManyVolumes(MAX_VOLUMES)
    mounts = tuple(_mount(place, volume) for place, volume in enumerate(volumes))
    seen = set[str]()
    for place, mount in enumerate(mounts):
        if mount.mount_path in seen:
            raise InvalidVolume(place, "mountPath is that of another volume")
        seen.add(mount.mount_path)
    return mounts


def _mount(place: int, volume: Volume) -> Mount:
    is_bucket = volume.type is VolumeType.bucket
    read_only = or_none(volume.readOnly)
    return Mount(
        type=volume.type,
        source=volume.source,
        mount_path=_mount_path(place, volume.mountPath),
        revision=None if is_bucket else or_none(volume.revision) or _MAIN,
        read_only=bool(read_only) if is_bucket else True,
        path=_inner_path(place, or_none(volume.path) or ""),
    )


def _mount_path(place: int, path: str) -> str:
    if ".." in path.split("/") or not path.isprintable():
        raise InvalidVolume(place, "mountPath must have no '..' and no control characters")
    # Two slashes at the start would stay two.
    normal = posixpath.normpath("/" + path.lstrip("/"))
    if normal == "/" or any(
        normal == taken or normal.startswith(f"{taken}/") for taken in _RESERVED
    ):
        raise InvalidVolume(place, "mountPath must not be /, nor /proc, /sys, /dev or below them")
    return normal


def _inner_path(place: int, path: str) -> str | None:
    if path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        rule = "path must be a folder inside the volume, without '..' and no '/' at its start"
        raise InvalidVolume(place, rule)
    normal = posixpath.normpath(path)
    return None if normal == "." else normal


async def resolve_mounts(
    conn: Reader, creator: Caller, mounts: Sequence[Mount]
) -> tuple[Mount, ...]:
    """Return the mounts with the commit of each revision; refuse what the creator may not read.

    Only git knows whether a commit named by its id exists: see `check_commits`.
    """
    resolved = list[Mount]()
    for place, mount in enumerate(mounts):
        repo = await _get_volume(conn, creator, place, mount)
        resolved.append(replace(mount, commit=await _get_commit(conn, repo, place, mount)))
    return tuple(resolved)


async def _get_volume(conn: Reader, creator: Caller, place: int, mount: Mount) -> Repo:
    repo = await find_mounted(conn, creator, mount)
    if repo is None:
        raise VolumeNotFound(place, mount.type, mount.source)
    if not mount.read_only and not await repos.may(conn, creator, repo, Right.write):
        raise VolumeNotWritable(place, mount.source)
    return repo


async def find_mounted(conn: Reader, creator: Caller, mount: Mount) -> Repo | None:
    """Return the mounted repository if the creator of the job may read it."""
    return await _find_readable(conn, creator, RepoType(mount.type), mount.source)


async def _find_readable(conn: Reader, creator: Caller, kind: RepoType, source: str) -> Repo | None:
    namespace, _, name = source.partition("/")
    address = RepoAddress(type=kind, namespace=namespace, name=name)
    try:
        return await repos.get(conn, creator, address, Right.read)
    except (RepoNotFound, RepoMoved, AccessNotGranted, RightNeeded):
        return None


async def _get_commit(conn: Reader, repo: Repo, place: int, mount: Mount) -> str | None:
    if mount.revision is None:
        return None
    commit = await refs.find_sha(conn, repo, mount.revision)
    if commit is None:
        raise VolumeRevisionNotFound(place, mount.source, mount.revision)
    return commit


async def check_space(conn: Reader, creator: Caller, name: str) -> None:
    if await _find_readable(conn, creator, RepoType.space, name) is None:
        raise SpaceNotFound(name)


async def check_commits(database: Database, creator: Caller, volumes: Sequence[Volume]) -> None:
    """Refuse a revision that is the id of a commit which the repository lacks.

    Git is read, so no transaction may be open; all other rules are left to `resolve_mounts`.
    """
    data_dir = database.hub.settings.database.data_dir
    for place, mount in enumerate(place_volumes(volumes)):
        if mount.revision is None or refs.SHA.fullmatch(mount.revision) is None:
            continue
        async with database.read() as conn:
            repo = await _get_volume(conn, creator, place, mount)
        folder = bare_repos.folder_of(data_dir, repo.id)
        if not await asyncio.to_thread(history.commit_exists, folder, mount.revision):
            raise VolumeRevisionNotFound(place, mount.source, mount.revision)
