"""A request becomes what is to run: the rules that need no database."""

import platform
from collections.abc import Iterator, Mapping

from pydantic import MISSING

from hublet.core.config import Settings
from hublet.jobs import hardware
from hublet.jobs.errors import (
    ArchNotOffered,
    FlavorNotOffered,
    OneSourceNeeded,
    SshNotOffered,
    TextTooLong,
    TimeoutTooLong,
)
from hublet.jobs.records import Arch, Mount, NetworkGroup, Ports, Spec
from hublet.jobs.runners.long_variables import MAX_BYTES
from hublet.jobs.schemas import Expose, JobRequest, Network, given
from hublet.jobs.ssh.offer import why_not

_ARCHS = {"x86_64": Arch.amd64, "amd64": Arch.amd64, "aarch64": Arch.arm64, "arm64": Arch.arm64}


def check(request: JobRequest, settings: Settings) -> None:
    """Refuse what this hub can never run, whoever asks for it."""
    if bool(given(request.spaceId)) == bool(given(request.dockerImage)):
        raise OneSourceNeeded
    offered = hardware.offered(settings)
    if request.flavor not in offered:
        raise FlavorNotOffered(request.flavor, offered)
    machine = machine_arch()
    if request.arch is not MISSING and machine is not None and request.arch is not machine:
        raise ArchNotOffered(request.arch, machine)
    limit = settings.jobs.max_timeout_seconds
    if (request.timeoutSeconds or 0) > limit:
        raise TimeoutTooLong(limit)
    if _wants_ssh(request) and (reason := why_not(settings)) is not None:
        raise SshNotOffered(reason)
    for field, text in _texts(request):
        if len(text.encode()) > MAX_BYTES:
            raise TextTooLong(field, MAX_BYTES)


def machine_arch() -> Arch | None:
    return _ARCHS.get(platform.machine().lower())


def _texts(request: JobRequest) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(given(request.command) or ()):
        yield f"command[{place}]", text
    for place, text in enumerate(given(request.arguments) or ()):
        yield f"arguments[{place}]", text
    for name, value in request.environment.items():
        yield f"environment.{name}", f"{name}={value}"
    for name, value in secrets_of(request).items():
        yield f"secrets.{name}", f"{name}={value}"


def spec_of(
    request: JobRequest, mounts: tuple[Mount, ...], *, added: Mapping[str, str] | None = None
) -> Spec:
    """Return what is to run; `added` are variables over those of the request."""
    command, arguments = given(request.command), given(request.arguments)
    return Spec(
        space=given(request.spaceId) or None,
        image=given(request.dockerImage) or None,
        command=None if command is None else tuple(command),
        arguments=None if arguments is None else tuple(arguments),
        environment=request.environment | dict(added or {}),
        flavor=request.flavor,
        arch=given(request.arch),
        timeout_seconds=request.timeoutSeconds,
        attempts=request.attempts,
        mounts=mounts,
        ssh=_wants_ssh(request),
        network=_network(given(request.network)),
    )


def _wants_ssh(request: JobRequest) -> bool:
    ssh = given(request.ssh)
    return ssh is not None and ssh.enabled


def secrets_of(request: JobRequest) -> dict[str, str]:
    return given(request.secrets) or {}


def labels_of(request: JobRequest) -> dict[str, str]:
    return given(request.labels) or {}


def ports_of(expose: Expose | None) -> Ports | None:
    """Return the ports to open; None when there are none."""
    if expose is None or not expose.ports:
        return None
    return Ports(ports=tuple(expose.ports), public=tuple(given(expose.portsPublic) or ()))


def _network(network: Network | None) -> NetworkGroup | None:
    if network is None:
        return None
    return NetworkGroup(group=network.group, aliases=tuple(network.aliases))
