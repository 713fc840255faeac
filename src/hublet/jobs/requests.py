"""Requests for jobs: what is refused, the volumes and their commits, the spec, and reruns."""

import asyncio
import platform
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import MISSING, TypeAdapter

from hublet.core.config import Settings
from hublet.core.database import Database, Reader
from hublet.jobs import hardware
from hublet.jobs.access import get_mounted
from hublet.jobs.addresses import why_no_ssh
from hublet.jobs.errors import (
    ArchNotOffered,
    FlavorNotOffered,
    InvalidVolume,
    OneSourceNeeded,
    SshNotOffered,
    TextTooLong,
    TimeoutTooLong,
    TooManyVolumes,
    VolumeRevisionNotFound,
)
from hublet.jobs.records import (
    MAX_VARIABLE_BYTES,
    Arch,
    JobRecord,
    Mount,
    NetworkGroup,
    Ports,
    Spec,
    VolumeType,
)
from hublet.jobs.request_schemas import Expose, JobRequest, Network, Volume, or_none
from hublet.repos.git import history
from hublet.repos.records import Repo
from hublet.repos.refs import service as refs
from hublet.repos.service import open_folder
from hublet.tokens.records import Caller

REQUEST_ADAPTER: TypeAdapter[JobRequest] = TypeAdapter(JobRequest)

MAX_VOLUMES = 100
# Filled by the kernel; a job could not begin without them.
_RESERVED = ("/proc", "/sys", "/dev")
_MAIN = "main"
_ARCHS = {"x86_64": Arch.amd64, "amd64": Arch.amd64, "aarch64": Arch.arm64, "arm64": Arch.arm64}


def check_request(request: JobRequest, settings: Settings) -> None:
    """Refuse a request that this hub can never run."""
    if bool(or_none(request.spaceId)) == bool(or_none(request.dockerImage)):
        raise OneSourceNeeded
    offered = hardware.offered_flavors(settings)
    if request.flavor not in offered:
        raise FlavorNotOffered(request.flavor, offered)
    machine = machine_arch()
    if request.arch is not MISSING and machine is not None and request.arch is not machine:
        raise ArchNotOffered(request.arch, machine)
    limit = settings.jobs.max_timeout_seconds
    if (request.timeoutSeconds or 0) > limit:
        raise TimeoutTooLong(limit)
    if _wants_ssh(request) and (reason := why_no_ssh(settings)) is not None:
        raise SshNotOffered(reason)
    for field, text in _texts(request):
        if len(text.encode()) > MAX_VARIABLE_BYTES:
            raise TextTooLong(field, MAX_VARIABLE_BYTES)


def machine_arch() -> Arch | None:
    return _ARCHS.get(platform.machine().lower())


def _texts(request: JobRequest) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(or_none(request.command) or ()):
        yield f"command[{place}]", text
    for place, text in enumerate(or_none(request.arguments) or ()):
        yield f"arguments[{place}]", text
    for name, value in request.environment.items():
        yield f"environment.{name}", f"{name}={value}"
    for name, value in secrets_of(request).items():
        yield f"secrets.{name}", f"{name}={value}"


def spec_of(
    request: JobRequest, mounts: tuple[Mount, ...], *, added: Mapping[str, str] | None = None
) -> Spec:
    """Return the spec of a request; `added` are variables over those of the request."""
    command, arguments = or_none(request.command), or_none(request.arguments)
    return Spec(
        space=or_none(request.spaceId) or None,
        image=or_none(request.dockerImage) or None,
        command=None if command is None else tuple(command),
        arguments=None if arguments is None else tuple(arguments),
        environment=request.environment | dict(added or {}),
        flavor=request.flavor,
        arch=or_none(request.arch),
        timeout_seconds=request.timeoutSeconds,
        attempts=request.attempts,
        mounts=mounts,
        ssh=_wants_ssh(request),
        network=_network_group(or_none(request.network)),
    )


def _wants_ssh(request: JobRequest) -> bool:
    ssh = or_none(request.ssh)
    return ssh is not None and ssh.enabled


def secrets_of(request: JobRequest) -> dict[str, str]:
    return or_none(request.secrets) or {}


def labels_of(request: JobRequest) -> dict[str, str]:
    return or_none(request.labels) or {}


def ports_of(expose: Expose | None) -> Ports | None:
    """Return the ports to open; None when there are none."""
    if expose is None or not expose.ports:
        return None
    return Ports(ports=tuple(expose.ports), public=tuple(or_none(expose.portsPublic) or ()))


def _network_group(network: Network | None) -> NetworkGroup | None:
    if network is None:
        return None
    return NetworkGroup(group=network.group, aliases=tuple(network.aliases))


def _place_volumes(volumes: Sequence[Volume]) -> tuple[Mount, ...]:
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
    conn: Reader, creator: Caller, volumes: Sequence[Volume]
) -> tuple[Mount, ...]:
    """Return the mount of each volume with its commit; refuse what the creator may not mount.

    Only git knows whether a commit named by its id exists: see `check_commits`.
    """
    resolved = list[Mount]()
    for place, mount in enumerate(_place_volumes(volumes)):
        repo = await get_mounted(conn, creator, place, mount)
        resolved.append(replace(mount, commit=await _get_commit(conn, repo, place, mount)))
    return tuple(resolved)


async def _get_commit(conn: Reader, repo: Repo, place: int, mount: Mount) -> str | None:
    if mount.revision is None:
        return None
    commit = await refs.find_sha(conn, repo, mount.revision)
    if commit is None:
        raise VolumeRevisionNotFound(place, mount.source, mount.revision)
    return commit


async def check_commits(database: Database, creator: Caller, volumes: Sequence[Volume]) -> None:
    """Refuse a revision that is the id of a commit which the repository lacks.

    Git is read, so no transaction may be open; all other rules are left to `resolve_mounts`.
    """
    for place, mount in enumerate(_place_volumes(volumes)):
        if mount.revision is None or refs.COMMIT_ID.fullmatch(mount.revision) is None:
            continue
        async with database.read() as conn:
            repo = await get_mounted(conn, creator, place, mount)
        folder = await open_folder(database, repo.id)
        if not await asyncio.to_thread(history.commit_exists, folder, mount.revision):
            raise VolumeRevisionNotFound(place, mount.source, mount.revision)


def request_from(job: JobRecord, *, with_volumes: bool) -> JobRequest:
    """Return the request for a job like this one, without secrets; a revision keeps its name."""
    spec = job.spec
    fields = {
        "spaceId": spec.space,
        "dockerImage": spec.image,
        "command": None if spec.command is None else list(spec.command),
        "arguments": None if spec.arguments is None else list(spec.arguments),
        "environment": spec.environment,
        "flavor": spec.flavor,
        "arch": spec.arch,
        "timeoutSeconds": spec.timeout_seconds,
        "attempts": spec.attempts,
        "labels": job.labels,
        "volumes": [_volume_fields(mount) for mount in spec.mounts if with_volumes] or None,
        "expose": job.expose
        and {"ports": list(job.expose.ports), "portsPublic": list(job.expose.public)},
        "ssh": {"enabled": spec.ssh},
        "network": spec.network
        and {"group": spec.network.group, "aliases": list(spec.network.aliases)},
        "resourceGroupId": job.resource_group_id,
    }
    return REQUEST_ADAPTER.validate_python(
        {name: value for name, value in fields.items() if value is not None}
    )


def _volume_fields(mount: Mount) -> dict[str, object]:
    volume = {
        "type": mount.type,
        "source": mount.source,
        "mountPath": mount.mount_path,
        "revision": mount.revision,
        "readOnly": mount.read_only,
        "path": mount.path,
    }
    return {name: value for name, value in volume.items() if value is not None}
