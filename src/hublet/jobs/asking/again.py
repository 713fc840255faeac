"""A job as it could be asked for once more."""

from pydantic import TypeAdapter

from hublet.jobs.records import Job, Mount
from hublet.jobs.schemas import JobRequest

REQUEST: TypeAdapter[JobRequest] = TypeAdapter(JobRequest)


def request_from(job: Job, *, with_volumes: bool) -> JobRequest:
    """Return what was asked for, without the secrets; a revision keeps its name."""
    spec = job.spec
    asked = {
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
        "volumes": [_volume(mount) for mount in spec.mounts if with_volumes] or None,
        "expose": job.expose
        and {"ports": list(job.expose.ports), "portsPublic": list(job.expose.public)},
        "ssh": {"enabled": spec.ssh},
        "network": spec.network
        and {"group": spec.network.group, "aliases": list(spec.network.aliases)},
        "resourceGroupId": job.resource_group_id,
    }
    return REQUEST.validate_python(
        {name: value for name, value in asked.items() if value is not None}
    )


def _volume(mount: Mount) -> dict[str, object]:
    volume = {
        "type": mount.type,
        "source": mount.source,
        "mountPath": mount.mount_path,
        "revision": mount.revision,
        "readOnly": mount.read_only,
        "path": mount.path,
    }
    return {name: value for name, value in volume.items() if value is not None}
