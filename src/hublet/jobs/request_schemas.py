"""Schemas of job requests, and of the job that a webhook starts."""

import re
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    MISSING,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from hublet.core.schema import Flag, Schema
from hublet.jobs.records import Arch, Flavor, VolumeType

# Of an argument, a variable or a secret: enough for any key file, and still less than a kernel
# hands to a program.
MAX_TEXT = 65_536

_ENVIRONMENT = r"^[a-zA-Z][_a-zA-Z0-9]+$"
_SECRET = r"^[a-zA-Z][_a-zA-Z0-9]*$"  # noqa: S105 - what the name of one looks like
_LABEL = r"^[a-zA-Z0-9_-]+$"
_LABEL_VALUE = r"^[a-zA-Z0-9_-]*$"
_NETWORK_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_MAX_LABEL = 100
_MAX_NAME = 256


def _check_names(pattern: str, *, longest: int = _MAX_NAME) -> BeforeValidator:
    """Check the keys of an object first: a key in a sentence may be a secret in the wrong place."""

    def check(value: Any) -> Any:
        if isinstance(value, dict):
            names = [name for name in value if isinstance(name, str)]
            if not all(re.fullmatch(pattern, name) for name in names):
                raise ValueError(f"each name must match {pattern}")
            if max(map(len, names), default=0) > longest:
                raise ValueError(f"each name must have at most {longest} characters")
        return value

    return BeforeValidator(check)


T = TypeVar("T")


def or_none(value: T | MISSING) -> T | None:
    """Return a field that may be left out; None when it was."""
    return None if value is MISSING else value


# For the description, which would else allow any other name too.
_CLOSED = Field(json_schema_extra={"additionalProperties": False})

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Word = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
# Of a space or an image.
Name = Annotated[str, Field(max_length=512)]
NonEmptyName = Annotated[str, Field(min_length=1, max_length=512)]
Port = Annotated[int, Field(strict=True, ge=1, le=65535)]
TimeoutSeconds = Annotated[int, Field(strict=True, gt=0)]
Ports = Annotated[list[Port], Field(max_length=20)]
Environment = Annotated[
    dict[Annotated[str, StringConstraints(pattern=_ENVIRONMENT)], Text],
    _check_names(_ENVIRONMENT),
    _CLOSED,
]
Secrets = Annotated[
    dict[Annotated[str, StringConstraints(pattern=_SECRET)], Text],
    _check_names(_SECRET),
    _CLOSED,
]
Labels = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=_LABEL, max_length=_MAX_LABEL)],
        Annotated[str, StringConstraints(pattern=_LABEL_VALUE, max_length=_MAX_LABEL)],
    ],
    _check_names(_LABEL, longest=_MAX_LABEL),
    _CLOSED,
]


class Volume(Schema):
    type: VolumeType
    source: Annotated[str, Field(pattern=r"^[^/\s]+/[^/\s]+$", max_length=200)]
    mountPath: Annotated[str, Field(pattern=r"^/", max_length=4096)]
    # Of repositories only; without it they are mounted as `main` is.
    revision: Annotated[str, Field(max_length=256)] | MISSING = MISSING
    # Repositories are always mounted read-only, buckets only when this says so.
    readOnly: Flag | MISSING = MISSING
    path: Annotated[str, Field(max_length=4096)] | MISSING = MISSING

    @model_validator(mode="after")
    def _keep_to_its_type(self) -> Self:
        if self.type is VolumeType.bucket and self.revision is not MISSING:
            raise ValueError("a bucket has no revision")
        if self.type is not VolumeType.bucket and self.readOnly is False:
            raise ValueError("a repository is mounted read-only, so readOnly must be true")
        return self


class Expose(Schema):
    ports: Ports
    # Those of the ports that anybody reaches without a token.
    portsPublic: Ports | MISSING = MISSING

    @model_validator(mode="after")
    def _open_only_what_is_exposed(self) -> Self:
        if len(set(self.ports)) < len(self.ports):
            raise ValueError("each of ports must stand there once")
        if self.portsPublic is not MISSING and not set(self.portsPublic) <= set(self.ports):
            raise ValueError("each of portsPublic must also be one of ports")
        if self.portsPublic is not MISSING and len(set(self.portsPublic)) < len(self.portsPublic):
            raise ValueError("each of portsPublic must stand there once")
        return self


class Ssh(Schema):
    enabled: Flag = False


class Network(Schema):
    group: Annotated[str, Field(pattern=_NETWORK_NAME, max_length=46)]
    aliases: Annotated[
        list[Annotated[str, Field(pattern=_NETWORK_NAME, max_length=34)]], Field(max_length=20)
    ] = Field(default=[])


class _JobFields(Schema):
    arguments: list[Text] | MISSING = MISSING
    command: Annotated[list[Word], Field(min_length=1)] | MISSING = MISSING
    flavor: Flavor
    labels: Labels | MISSING = MISSING


class _JobRequest(_JobFields):
    environment: Environment = Field(default={})
    timeoutSeconds: TimeoutSeconds | None = None
    # Never shown again, but for their names.
    secrets: Annotated[Secrets | MISSING, Field(repr=False)] = MISSING
    arch: Arch | MISSING = MISSING
    # The most attempts: 3 means up to 2 retries.
    attempts: Annotated[int, Field(strict=True, ge=1)] = 1
    volumes: Annotated[list[Volume], Field(min_length=1)] | MISSING = MISSING
    expose: Expose | MISSING = MISSING
    ssh: Ssh | MISSING = MISSING
    network: Network | MISSING = MISSING
    resourceGroupId: (
        Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{24}$", to_lower=True)] | MISSING
    ) = MISSING


class SpaceJobRequest(_JobRequest):
    """A job that runs what a space runs."""

    spaceId: NonEmptyName
    dockerImage: Name | MISSING = MISSING


class ImageJobRequest(_JobRequest):
    """A job that runs a container image."""

    dockerImage: NonEmptyName
    spaceId: Name | MISSING = MISSING


def _pick_variant(value: Any, _: ValidatorFunctionWrapHandler) -> Any:
    """Hold a job to the variant it means, so that a sentence is about that one alone."""
    if not isinstance(value, dict):
        return value if isinstance(value, _JobRequest) else SpaceJobRequest.model_validate(value)
    if "spaceId" not in value and "dockerImage" not in value:
        raise ValueError("a job needs spaceId or dockerImage")
    of_image = "dockerImage" in value and not value.get("spaceId")
    return (ImageJobRequest if of_image else SpaceJobRequest).model_validate(value)


JobRequest = Annotated[SpaceJobRequest | ImageJobRequest, WrapValidator(_pick_variant)]


class _WebhookJob(_JobFields):
    environment: Environment
    timeoutSeconds: TimeoutSeconds | None
    # Names only.
    secrets: list[str] | MISSING = MISSING


class SpaceJob(_WebhookJob):
    """A job of a space, as a webhook shows it."""

    spaceId: NonEmptyName
    dockerImage: Name | MISSING = MISSING


class ImageJob(_WebhookJob):
    """A job of an image, as a webhook shows it."""

    dockerImage: NonEmptyName
    spaceId: Name | MISSING = MISSING


WebhookJob = SpaceJob | ImageJob
