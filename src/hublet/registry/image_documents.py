"""Documents of images, read leniently: manifests, indexes and configurations of any producer.

A registry keeps what it was given, so every field may be absent or of another type; what cannot be
read is left out.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hublet.core.dataclasses import dataclass

# Of attestations that BuildKit puts beside an image.
_UNKNOWN = "unknown"
_LONGEST_COMMAND = 4000
_NOP = re.compile(r"^/bin/sh -c #\(nop\)\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDescriptor:
    media_type: str
    digest: str
    size: int
    # As in linux/arm64/v8; None: it does not say.
    platform: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDocument:
    """What a manifest or an index names."""

    config: ImageDescriptor | None = None
    layers: Sequence[ImageDescriptor] = ()
    # Of an index: the manifests of the platforms, and others.
    manifests: Sequence[ImageDescriptor] = ()
    artifact_type: str | None = None

    @property
    def is_index(self) -> bool:
        return bool(self.manifests)

    @property
    def blob_bytes(self) -> int:
        """The bytes of its layers and its configuration, each content once."""
        sizes = {each.digest: each.size for each in (*self.layers, self.config) if each}
        return sum(sizes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCommand:
    """A step of the build, from the history in the configuration."""

    text: str
    makes_layer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    platform: str | None = None
    commands: Sequence[ImageCommand] = ()
    # What runs without a command of one's own.
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str | None = None
    working_directory: str | None = None
    ports: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLayer:
    digest: str
    media_type: str
    size: int
    # The step of the build that made it; None: the configuration does not say.
    command: str | None = None


def read_manifest(content: bytes) -> ImageDocument:
    document = _object(_parse(content))
    return ImageDocument(
        config=next(_descriptors([document.get("config")]), None),
        layers=tuple(_descriptors(document.get("layers"))),
        manifests=tuple(_descriptors(document.get("manifests"))),
        artifact_type=_text(document.get("artifactType")),
    )


def read_config(content: bytes) -> ImageConfig:
    document = _object(_parse(content))
    running = _object(document.get("config"))
    return ImageConfig(
        platform=_platform(document),
        commands=tuple(_commands(document.get("history"))),
        entrypoint=tuple(_texts(running.get("Entrypoint"))),
        command=tuple(_texts(running.get("Cmd"))),
        user=_text(running.get("User")) or None,
        working_directory=_text(running.get("WorkingDir")) or None,
        ports=tuple(sorted(_object(running.get("ExposedPorts")))),
    )


def layers_of(document: ImageDocument, config: ImageConfig | None) -> list[ImageLayer]:
    """Return the layers in the order in which they lie on each other, each with its command.

    Commands are told only where the history has as many steps with a layer as there are layers.
    """
    steps = [each.text for each in config.commands if each.makes_layer] if config else []
    commands = steps if len(steps) == len(document.layers) else [None] * len(document.layers)
    return [
        ImageLayer(
            digest=layer.digest, media_type=layer.media_type, size=layer.size, command=command
        )
        for layer, command in zip(document.layers, commands, strict=True)
    ]


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> Iterator[str]:
    return (each for each in _list(value) if isinstance(each, str))


def _descriptors(values: Any) -> Iterator[ImageDescriptor]:
    for value in _list(values):
        found = _object(value)
        digest, size = _text(found.get("digest")), found.get("size")
        if digest is None or not isinstance(size, int) or isinstance(size, bool):
            continue
        yield ImageDescriptor(
            media_type=_text(found.get("mediaType")) or "application/octet-stream",
            digest=digest,
            size=size,
            platform=_platform(_object(found.get("platform"))),
        )


def _platform(value: dict[str, Any]) -> str | None:
    system, architecture = _text(value.get("os")), _text(value.get("architecture"))
    if not system or not architecture or system == _UNKNOWN:
        return None
    variant = _text(value.get("variant"))
    return f"{system}/{architecture}/{variant}" if variant else f"{system}/{architecture}"


def _commands(values: Any) -> Iterator[ImageCommand]:
    for value in _list(values):
        step = _object(value)
        text = _text(step.get("created_by")) or _text(step.get("comment")) or ""
        yield ImageCommand(
            text=_shorten(_NOP.sub("", text)), makes_layer=step.get("empty_layer") is not True
        )


def _shorten(text: str) -> str:
    cleaned = text.replace("\x00", "").strip()
    return cleaned if len(cleaned) <= _LONGEST_COMMAND else cleaned[:_LONGEST_COMMAND] + "…"
