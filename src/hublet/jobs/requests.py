"""Requests for jobs: checks that need no database, the spec, and the request for a rerun."""

import platform
from collections.abc import Iterator, Mapping

from pydantic import MISSING, TypeAdapter

from hublet.core.config import Settings
from hublet.jobs import hardware
from hublet.jobs.addresses import why_no_ssh
from hublet.jobs.errors import (
    ArchNotOffered,
    FlavorNotOffered,
    OneSourceNeeded,
    SshNotOffered,
    TextTooLong,
    TimeoutTooLong,
)
from hublet.jobs.records import (
    MAX_VARIABLE_BYTES,
    Arch,
    JobRecord,
    Mount,
    NetworkGroup,
    Ports,
    Spec,
)
from hublet.jobs.request_schemas import Expose, JobRequest, Network, or_none

REQUEST_ADAPTER: TypeAdapter[JobRequest] = TypeAdapter(JobRequest)

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
