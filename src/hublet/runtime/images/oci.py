"""OCI image layouts, and archives of `docker save`: manifest, layers and defaults.

See the OCI image specification 1.1: image-layout, image-index, manifest, config and layer.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun

_INDEXES = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Names of variables; others are dropped, because a name may become a file name.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_DOCKER = "manifest.json"
# Limit for an index, a manifest or a configuration.
_DOCUMENT_BYTES = 4 * 2**20
# Limit for indexes that name further indexes.
_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDefaults:
    """Defaults of an image for running it; its user is ignored, a job has one of its own."""

    environment: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageManifest:
    """The one image of a layout that this machine can run."""

    digest: str
    # Path and digest of each.
    layers: tuple[tuple[Path, str], ...]
    # As stored in the layout; see `defaults_of`.
    config: bytes = field(repr=False)


def is_layout(folder: Path) -> bool:
    return (folder / "oci-layout").is_file()


def read_manifest(layout: Path) -> ImageManifest:
    """Return the manifest for this machine. Raises CannotRun and UNREADABLE."""
    with _open(layout / "index.json") as file:
        index = _parse(_read_document(file))
    this_machine = ("linux", machine())
    found = {
        _digest(entry) for entry in _manifests(layout, index, _DEPTH) if _fits(entry, *this_machine)
    }
    if len(found) != 1:
        number = "several images" if found else "no image"
        raise CannotRun(
            f"The image file has {number} for {'/'.join(this_machine)}; it needs exactly one."
        )
    digest = found.pop()
    document = _parse(_blob(layout, digest))
    config = _blob(layout, _digest(_object(document.get("config"))))
    _check_platform(_parse(config), *this_machine)
    layers = [_digest(layer) for layer in _objects(document.get("layers"))]
    places = tuple((_blob_path(layout, layer), layer) for layer in layers)
    return ImageManifest(digest=digest, layers=places, config=config)


def is_docker_archive(folder: Path) -> bool:
    """Tell whether a folder is an unpacked archive of `docker save`, before it wrote layouts."""
    if not (folder / _DOCKER).is_file() or (folder / "usr").is_dir():
        return False
    return not (folder / "bin").exists()


def read_docker_manifest(folder: Path) -> ImageManifest:
    """Return the one image of such an archive; its digest is that of its configuration.

    Raises CannotRun and UNREADABLE.
    """
    with _open(folder / _DOCKER) as file:
        found = _objects(json.loads(_read_document(file)))
    if len(found) != 1:
        raise CannotRun(f"The image file has {len(found)} images; it needs exactly one.")
    with _open(_path_inside(folder, found[0].get("Config"))) as file:
        config = _read_document(file)
    document = _parse(config)
    _check_platform(document, "linux", machine())
    places = [_path_inside(folder, name) for name in _strings(found[0], "Layers")]
    digests = _strings(_object(document.get("rootfs")), "diff_ids")
    layers = tuple(zip(places, digests, strict=True))
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    return ImageManifest(digest=digest, layers=layers, config=config)


def defaults_of(config: bytes) -> ImageDefaults:
    document = _object(_parse(config).get("config") or {})
    pairs = [text.partition("=") for text in _strings(document, "Env")]
    return ImageDefaults(
        environment={name: value for name, _, value in pairs if _VARIABLE.fullmatch(name)},
        cwd=_check_folder(document.get("WorkingDir") or None),
        entrypoint=_strings(document, "Entrypoint"),
        command=_strings(document, "Cmd"),
    )


def machine() -> str:
    name = platform.machine().lower()
    return _ARCHITECTURES.get(name, name)


class _MalformedImage(CannotRun):
    def __init__(self) -> None:
        super().__init__("The image does not keep to the OCI image specification.")


def _manifests(layout: Path, index: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    for entry in _objects(index.get("manifests")):
        if entry.get("mediaType") not in _INDEXES:
            yield entry
        elif depth:
            yield from _manifests(layout, _parse(_blob(layout, _digest(entry))), depth - 1)
        else:
            raise _MalformedImage


def _fits(entry: dict[str, Any], system: str, architecture: str) -> bool:
    """Tell whether an entry may be for this machine; one without a platform may be."""
    named = _object(entry.get("platform") or {})
    return not named or (named.get("os"), named.get("architecture")) == (
        system,
        architecture,
    )


def _check_platform(config: dict[str, Any], system: str, architecture: str) -> None:
    named = (config.get("os"), config.get("architecture"))
    if named != (system, architecture):
        raise CannotRun(
            f"The image is for {named[0]}/{named[1]}, and this machine is {system}/{architecture}."
        )


def _blob(layout: Path, digest: str) -> bytes:
    with _open(_blob_path(layout, digest)) as file:
        content = _read_document(file)
    _check_digest(hashlib.sha256(content).hexdigest(), digest)
    return content


def _check_digest(found: str, digest: str) -> None:
    if f"sha256:{found}" != digest:
        raise CannotRun(f"The image is damaged: {digest} has other content.")


def _blob_path(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def _path_inside(folder: Path, name: object) -> Path:
    # A layer that is there twice may be a link to the first.
    place = Path(os.path.realpath(folder / str(name)))
    if not place.is_relative_to(os.path.realpath(folder)):
        raise CannotRun(f"The image has a file that lies outside of it: {name}.")
    return place


def _open(path: Path) -> BufferedReader:
    # A layout that came in an archive may hold links to anywhere.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _read_document(file: BinaryIO) -> bytes:
    content = file.read(_DOCUMENT_BYTES + 1)
    if len(content) > _DOCUMENT_BYTES:
        raise CannotRun("The image describes itself at too great a length.")
    return content


def _parse(content: bytes) -> dict[str, Any]:
    return _object(json.loads(content))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _MalformedImage
    return value


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise _MalformedImage
    return [_object(each) for each in value]


def _digest(entry: dict[str, Any]) -> str:
    digest = entry.get("digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _MalformedImage
    return digest


def _check_folder(path: object) -> str | None:
    if path is None:
        return None
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise _MalformedImage
    return path


def _strings(document: dict[str, Any], name: str) -> tuple[str, ...]:
    words = document.get(name) or []
    if not isinstance(words, list):
        raise _MalformedImage
    if not all(isinstance(word, str) and "\0" not in word for word in words):
        raise _MalformedImage
    return tuple(words)
