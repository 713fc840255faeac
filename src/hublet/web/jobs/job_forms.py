"""Form of a job: what was typed becomes the API's request, and a request becomes the form again."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from pydantic import MISSING

from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.jobs.records import VolumeType
from hublet.jobs.request_schemas import (
    ImageJobRequest,
    JobRequest,
    SpaceJobRequest,
    Volume,
    or_none,
)
from hublet.login.auth import FormFields
from hublet.web.pages import read_as

# How the public client writes a space in the place of an image.
_SPACE = re.compile(r"(?:https?://[^/]+/|hf\.co/)?spaces/(?P<name>[^/\s]+/[^/\s]+)")
_TIME = re.compile(r"(?P<count>\d{1,9})\s*(?P<unit>[smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
# A form has at most 100 fields, and each volume up to six.
MOST_VOLUMES = 10
MOST_SECRETS = 10
_EMPTY_SECRETS = 2
# Stands in the place of a cron expression that was typed.
OWN_TIMES = "cron"

_TEXTS = (
    "image", "command", "script", "arguments", "flavor", "arch", "environment", "timeout",
    "attempts", "name", "labels", "ports", "public_ports", "network", "aliases", "group",
    "times", "schedule", "find", "from",
)  # fmt: skip
_CHECKBOXES = ("ssh", "concurrency", "suspend")


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRow:
    """A volume as it is typed: the repository or bucket, and where its files are to be."""

    type: str
    source: str
    mount_path: str
    revision: str = ""
    path: str = ""
    read_only: bool = True

    @property
    def is_bucket(self) -> bool:
        return self.type == VolumeType.bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForm:
    """What was typed, but the values of secrets: those stand in no page."""

    values: Mapping[str, str] = field(default_factory=dict)
    checked: frozenset[str] = frozenset()
    volumes: tuple[VolumeRow, ...] = ()
    secret_names: tuple[str, ...] = ()

    def text(self, name: str, otherwise: str = "") -> str:
        return self.values.get(name, otherwise)

    @property
    def schedule(self) -> str:
        """The cron expression; empty: the job runs once, now."""
        times = self.text("times")
        return self.text("schedule").strip() if times == OWN_TIMES else times

    @property
    def secret_rows(self) -> list[str]:
        """The names of the secrets, and rows for more."""
        more = min(_EMPTY_SECRETS, MOST_SECRETS - len(self.secret_names))
        return [*self.secret_names, *([""] * max(more, 0))]

    def with_volume(self, chosen: str) -> "JobForm":
        """Add the volume that was chosen, as `dataset:ada/numbers`, at a place of its own."""
        type_, _, source = chosen.partition(":")
        name = source.rpartition("/")[2]
        row = VolumeRow(type=type_, source=source, mount_path=f"/{name}" if name else "/data")
        return replace(self, volumes=(*self.volumes, row)[:MOST_VOLUMES])

    def without_volume(self, number: str) -> "JobForm":
        kept = [row for place, row in enumerate(self.volumes) if str(place) != number]
        return replace(self, volumes=tuple(kept))


def read_job_form(form: FormFields) -> JobForm:
    """Return what was typed into the form of a job."""
    return JobForm(
        values={name: form.get(name, "").replace("\r\n", "\n") for name in _TEXTS},
        checked=frozenset(name for name in _CHECKBOXES if name in form),
        volumes=_read_volumes(form),
        secret_names=tuple(dict.fromkeys(name for name, _ in _typed_secrets(form))),
    )


def _read_volumes(form: FormFields) -> tuple[VolumeRow, ...]:
    columns = (form.getlist(f"volume_{name}") for name in ("source", "mount", "revision", "path"))
    read_only = set(form.getlist("volume_read_only"))
    return tuple(
        VolumeRow(
            type=source.partition(":")[0],
            source=source.partition(":")[2],
            mount_path=mount.strip(),
            revision=revision.strip(),
            path=path.strip(),
            read_only=str(place) in read_only,
        )
        for place, (source, mount, revision, path) in enumerate(zip(*columns, strict=False))
    )


def _typed_secrets(form: FormFields) -> list[tuple[str, str]]:
    pairs = zip(form.getlist("secret_name"), form.getlist("secret_value"), strict=False)
    return [(name.strip(), value) for name, value in pairs if name.strip() or value]


def form_from(request: JobRequest, secret_names: Sequence[str], **more: str) -> JobForm:
    """Return the form that makes a request once more; `more` are further fields of it."""
    labels = dict(or_none(request.labels) or {})
    command, arguments = or_none(request.command), or_none(request.arguments)
    expose, network = or_none(request.expose), or_none(request.network)
    ssh = or_none(request.ssh)
    space = or_none(request.spaceId)
    values = {
        "image": f"hf.co/spaces/{space}" if space else or_none(request.dockerImage) or "",
        **_command_fields(command),
        "arguments": shlex.join(arguments or ()),
        "flavor": request.flavor,
        "arch": or_none(request.arch) or "",
        "environment": _environment_text(request.environment),
        "timeout": "" if request.timeoutSeconds is None else str(request.timeoutSeconds),
        "attempts": str(request.attempts),
        "name": labels.pop("name", ""),
        "labels": labels_text(labels),
        "ports": " ".join(map(str, expose.ports)) if expose else "",
        "public_ports": " ".join(map(str, or_none(expose.portsPublic) or ())) if expose else "",
        "network": network.group if network else "",
        "aliases": " ".join(network.aliases) if network else "",
        "group": or_none(request.resourceGroupId) or "",
    }
    return JobForm(
        values=values | more,
        checked=frozenset({"ssh"} if ssh is not None and ssh.enabled else ()),
        volumes=tuple(_volume_row(each) for each in or_none(request.volumes) or ()),
        secret_names=tuple(secret_names),
    )


def _command_fields(command: Sequence[str] | None) -> dict[str, str]:
    """Return a script for what a shell runs, else the command as one line."""
    if command and len(command) == 3 and list(command[:2]) == ["sh", "-c"]:  # noqa: PLR2004
        return {"command": "", "script": command[2]}
    return {"command": shlex.join(command or ()), "script": ""}


def _volume_row(volume: Volume) -> VolumeRow:
    return VolumeRow(
        type=volume.type,
        source=volume.source,
        mount_path=volume.mountPath,
        revision=or_none(volume.revision) or "",
        path=or_none(volume.path) or "",
        read_only=bool(or_none(volume.readOnly)),
    )


def request_of(form: JobForm, typed: FormFields) -> JobRequest:
    """Return the request that was typed, or refuse it as the API would."""
    image = form.text("image").strip()
    space = _SPACE.fullmatch(image)
    fields = {
        "flavor": form.text("flavor"),
        "command": _command_of(form),
        "arguments": _words(form, "arguments") or MISSING,
        "environment": _environment_from(form.text("environment")),
        "secrets": dict(_typed_secrets(typed)) or MISSING,
        "timeoutSeconds": _seconds_from(form.text("timeout").strip()),
        "attempts": _number(form.text("attempts").strip() or "1"),
        "arch": form.text("arch") or MISSING,
        "labels": _labels_of(form) or MISSING,
        "volumes": [_volume_fields(row) for row in form.volumes] or MISSING,
        "expose": _expose_of(form),
        "ssh": {"enabled": True} if "ssh" in form.checked else MISSING,
        "network": _network_of(form),
        "resourceGroupId": form.text("group") or MISSING,
    }
    if space is not None:
        return read_as(SpaceJobRequest, spaceId=space["name"], **fields)
    return read_as(ImageJobRequest, dockerImage=image, **fields)


def _command_of(form: JobForm) -> Any:
    script = form.text("script").strip()
    words = _words(form, "command")
    if script and words:
        raise InvalidRequest("command: write one line, or a script, not both.")
    return ["sh", "-c", script] if script else words or MISSING


def _words(form: JobForm, name: str) -> list[str]:
    try:
        return shlex.split(form.text(name))
    except ValueError as error:
        raise InvalidRequest(f"{name}: {str(error).lower()}.") from None


def _environment_from(text: str) -> dict[str, str]:
    """Read lines of `NAME=value`; a value in quotes is one of JSON, as it has line breaks."""
    found = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, equals, value = line.partition("=")
        if not equals:
            raise InvalidRequest("environment: each line must be written NAME=value.")
        found[name.strip()] = _unquoted(value)
    return found


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        read = None
    if not isinstance(read, str):
        raise InvalidRequest('environment: a value that begins with " must be a string of JSON.')
    return read


def _environment_text(environment: Mapping[str, str]) -> str:
    return "\n".join(
        f"{name}={json.dumps(value) if _needs_quotes(value) else value}"
        for name, value in environment.items()
    )


def _needs_quotes(value: str) -> bool:
    return value.startswith('"') or value != value.strip() or bool(re.search(r"[\r\n]", value))


def _seconds_from(text: str) -> int | None:
    if not text:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise InvalidRequest("timeoutSeconds must be seconds, or written as 30m, 2h or 7d.")
    return int(match["count"]) * _SECONDS[match["unit"]]


def _number(text: str) -> int | str:
    """Return a number; what is none is left to the rules of the API."""
    return int(text) if re.fullmatch(r"\d{1,9}", text) else text


def labels_from(text: str) -> dict[str, str]:
    """Read labels as they are typed: words, each `name=value` or a name alone."""
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


def labels_text(labels: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" if value else name for name, value in labels.items())


def _labels_of(form: JobForm) -> dict[str, str]:
    name = form.text("name").strip()
    return labels_from(form.text("labels")) | ({"name": name} if name else {})


def _volume_fields(row: VolumeRow) -> dict[str, object]:
    fields: dict[str, object] = {
        "type": row.type,
        "source": row.source,
        "mountPath": row.mount_path,
        "readOnly": row.read_only if row.is_bucket else True,
    }
    optional = {"revision": row.revision, "path": row.path}
    return fields | {name: value for name, value in optional.items() if value}


def _expose_of(form: JobForm) -> Any:
    public = [_number(word) for word in form.text("public_ports").split()]
    ports = [_number(word) for word in form.text("ports").split()]
    ports += [port for port in public if port not in ports]
    return {"ports": ports, "portsPublic": public} if ports else MISSING


def _network_of(form: JobForm) -> Any:
    group, aliases = form.text("network").strip(), form.text("aliases").split()
    return {"group": group, "aliases": aliases} if group or aliases else MISSING
