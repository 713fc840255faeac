"""Arguments and options of the commands for jobs, and their parsers."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.options import read_variables

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.jobs import Jobs, ScheduledJobs

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
# A volume as the public command line writes it, and the names of its types.
_VOLUME = re.compile(
    r"hf://(?:(model|dataset|space|bucket)s/)?([^:@]+)(?:@([^:]+))?:(/[^:]*)(:r[ow])?"
)
_SPACE = re.compile(r"(?:https?://[^/]+/)?spaces/([^/]+/[^/]+)/?")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, also written OWNER/ID.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Of this organization instead of your own."),
]
Image = Annotated[
    str, typer.Argument(metavar="IMAGE", help="The image, or spaces/OWNER/NAME for a space.")
]
Command = Annotated[
    list[str] | None, typer.Argument(metavar="COMMAND", help="What to run in it; -- goes before.")
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME[=VALUE]", help="A variable; may be repeated."),
]
EnvFile = Annotated[
    Path | None, typer.Option("--env-file", metavar="FILE", help="Lines of NAME=VALUE.")
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secrets",
        "-s",
        metavar="NAME[=VALUE]",
        help="A secret; may be repeated. A name alone is taken from the environment.",
    ),
]
SecretsFile = Annotated[
    Path | None, typer.Option("--secrets-file", metavar="FILE", help="Lines of NAME=VALUE.")
]
Flavor = Annotated[
    str, typer.Option(metavar="NAME", help="How large: `hublet jobs hardware` lists them.")
]
Timeout = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long an attempt may take: 90, 10m, 2h, 1d.")
]
Attempts = Annotated[
    int | None, typer.Option(metavar="COUNT", min=1, help="How often it is tried at most.")
]
Name = Annotated[str | None, typer.Option(metavar="TEXT", help="Kept as the label `name`.")]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="NAME[=VALUE]", help="A label; may be repeated."),
]
Volume = Annotated[
    list[str] | None,
    typer.Option(
        "--volume",
        "-v",
        metavar="SOURCE:PATH",
        help="hf://[models|datasets|spaces|buckets/]OWNER/NAME[@REVISION]:/PATH[:ro|:rw].",
    ),
]
Expose = Annotated[
    list[int] | None,
    typer.Option("--expose", metavar="PORT", help="A port to reach it at; may be repeated."),
]
ExposePublic = Annotated[
    list[int] | None,
    typer.Option("--expose-public", metavar="PORT", help="The same, for everybody."),
]
Ssh = Annotated[bool, typer.Option("--ssh", help="Let its owner in by SSH.")]
NetworkGroup = Annotated[
    str | None, typer.Option(metavar="NAME", help="Jobs of one group reach each other.")
]
NetworkAlias = Annotated[
    list[str] | None,
    typer.Option("--network-alias", metavar="NAME", help="A name there; may be repeated."),
]


def client_of(hub: "Hub", namespace: str | None) -> "Jobs":
    from hublet.client.jobs import Jobs

    return Jobs(hub=hub, owner=namespace or _own_name(hub))


def find_client(hub: "Hub", job_id: str, namespace: str | None) -> tuple["Jobs", str]:
    """Return the client of the job's owner, and the id without the owner."""
    owner, _, plain_id = job_id.rpartition("/")
    return client_of(hub, owner or namespace), plain_id


def schedules_client_of(hub: "Hub", namespace: str | None) -> "ScheduledJobs":
    from hublet.client.jobs import ScheduledJobs

    return ScheduledJobs(hub=hub, owner=namespace or _own_name(hub))


def _own_name(hub: "Hub") -> str:
    name: str = hub.get("/api/whoami-v2")["name"]
    return name


def parse_job(
    *,
    image: str,
    command: list[str] | None,
    flavor: str,
    env: list[str] | None,
    env_file: Path | None,
    secrets: list[str] | None,
    secrets_file: Path | None,
    timeout: str | None,
    attempts: int | None,
    name: str | None,
    label: list[str] | None,
    volume: list[str] | None,
) -> dict[str, object]:
    """Return the request for a job, without the fields that were not given."""
    space = _SPACE.fullmatch(image)
    fields = {
        "dockerImage": None if space else image,
        "spaceId": space[1] if space else None,
        "command": command or None,
        "flavor": flavor,
        "environment": read_variables(env, env_file, option="--env"),
        "secrets": read_variables(secrets, secrets_file, option="--secrets") or None,
        "timeoutSeconds": None if timeout is None else _parse_seconds(timeout),
        "attempts": attempts,
        "labels": parse_labels(label, name=name) or None,
        "volumes": [parse_volume(each) for each in volume or []] or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def parse_access(
    *,
    expose: list[int] | None,
    expose_public: list[int] | None,
    ssh: bool,
    network_group: str | None,
    network_alias: list[str] | None,
) -> dict[str, object]:
    """Return the fields of a request that say how a job is reached."""
    fields: dict[str, object] = {}
    if expose or expose_public:
        fields["expose"] = parse_ports(expose, expose_public)
    if ssh:
        fields["ssh"] = {"enabled": True}
    if network_group is not None:
        fields["network"] = {"group": network_group, "aliases": network_alias or []}
    elif network_alias:
        raise typer.BadParameter("It needs a --network-group.", param_hint="--network-alias")
    return fields


def parse_ports(expose: list[int] | None, public: list[int] | None) -> dict[str, list[int]]:
    public_ports = dict.fromkeys(public or [])
    return {
        "ports": list(dict.fromkeys(expose or []) | public_ports),
        "portsPublic": list(public_ports),
    }


def parse_labels(given: list[str] | None, *, name: str | None) -> dict[str, str]:
    labels: dict[str, str] = {}
    for each in given or []:
        key, _, value = each.partition("=")
        labels[key] = value
    return labels if name is None else labels | {"name": name}


def _parse_seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if match is None:
        raise typer.BadParameter(
            f"{text} is no length of time such as 90, 10m, 2h or 1d.", param_hint="--timeout"
        )
    return int(match[1]) * _UNITS[match[2]]


def parse_volume(text: str) -> dict[str, object]:
    match = _VOLUME.fullmatch(text)
    parts = match[2].split("/", 2) if match else []
    if match is None or len(parts) == 1:
        raise typer.BadParameter(
            f"{text} is not of the form hf://datasets/OWNER/NAME:/PATH.", param_hint="--volume"
        )
    owner, name, *inside = parts
    fields = {
        "type": match[1] or "model",
        "source": f"{owner}/{name}",
        "path": inside[0] if inside else None,
        "revision": match[3],
        "mountPath": match[4],
        "readOnly": match[5] == ":ro" if match[5] else None,
    }
    return {key: value for key, value in fields.items() if value is not None}
