"""OCI image layouts, and archives of `docker save`: manifest, layers and defaults.

See the OCI image specification 1.1: image-layout, image-index, manifest, config and layer.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Generator
from dataclasses import field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun

INDEX_TYPES = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    }
)
MANIFEST_TYPES = frozenset(
    {
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }
)
_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "i686": "386",
    "i386": "386",
    "armv7l": "arm",
    "armv6l": "arm",
    "armv8l": "arm",
}
# Variants of an architecture, the best first; others come last, except for ARM of 32 bits.
_VARIANTS = {
    "amd64": ("", "v1", "v2", "v3"),
    "arm64": ("", "v8"),
    "arm": ("v7", "", "v6", "v5"),
}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
# Names of variables; others are dropped, because a name may become a file name.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_DOCKER = "manifest.json"
# Limit for an index, a manifest or a configuration.
DOCUMENT_BYTES = 4 * 2**20
# The rank of an entry without a platform: after all that name this one.
_UNNAMED = 100
# Limits for indexes that name further indexes, and for what is read to choose one image.
_DEPTH = 3
_MOST_DOCUMENTS = 50
# Limit of the overlay file system.
_MOST_LAYERS = 500
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDefaults:
    """Defaults of an image for running it; its user is ignored, a job has one of its own."""

    environment: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageManifest:
    """An image that this machine can run; its layers are files of this machine."""

    digest: str
    # Path and digest of each.
    layers: tuple[tuple[Path, str], ...]
    # As stored in the layout; see `defaults_of`.
    config: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What an index or a manifest says of a document or a layer."""

    digest: str
    # None: it is not said, as by a reference alone.
    size: int | None
    media_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedImage:
    """The image that was chosen for this machine, and what of it is still to be fetched."""

    digest: str
    layers: tuple[Descriptor, ...]
    config: bytes = field(repr=False)


# Yields each document that it needs, is sent its verified content, and returns the image.
Selection = Generator[Descriptor, bytes, SelectedImage]


def select_image(top: Descriptor, document: bytes) -> Selection:
    """Choose the image for this machine from an index or a manifest. Raises CannotRun.

    It reads nothing itself, so that it serves folders and registries alike.
    """
    selector = _Selector(system="linux", architecture=machine(), best=_best_variants())
    found = yield from selector.select(top, document, _DEPTH)
    if found is None:
        raise CannotRun(selector.explain())
    return found


def is_layout(folder: Path) -> bool:
    return (folder / "oci-layout").is_file()


def read_manifest(layout: Path) -> ImageManifest:
    """Return the manifest for this machine. Raises CannotRun and UNREADABLE."""
    with _open(layout / "index.json") as file:
        index = _read_document(file)
    top = Descriptor(digest=digest_of(index), size=len(index))
    image = drive(select_image(top, index), lambda entry: _blob(layout, entry.digest))
    places = tuple((_blob_path(layout, layer.digest), layer.digest) for layer in image.layers)
    return ImageManifest(digest=image.digest, layers=places, config=image.config)


def drive(selection: Selection, read: Callable[[Descriptor], bytes]) -> SelectedImage:
    """Run a selection with a function that reads documents."""
    try:
        wanted = next(selection)
        while True:
            wanted = selection.send(read(wanted))
    except StopIteration as done:
        return cast("SelectedImage", done.value)


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


class DamagedImage(CannotRun):
    def __init__(self, digest: str) -> None:
        super().__init__(f"The image is damaged: {digest} has other content.")


class _MalformedImage(CannotRun):
    def __init__(self) -> None:
        super().__init__("The image does not keep to the OCI image specification.")


def digest_of(content: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def is_document(content: bytes, digest: str) -> bool:
    """Tell whether content has a digest, by the algorithm that the digest names."""
    return digest_of(content, digest.partition(":")[0]) == digest


@dataclass(slots=True, kw_only=True)
class _Selector:
    """Choice of one image: those that name this platform first, then those that name none."""

    system: str
    architecture: str
    best: tuple[str, ...]
    _read: int = 0
    # Platforms that were seen, for who has to be told that there is none for this machine.
    _seen: dict[str, None] = field(default_factory=dict)

    def select(
        self, entry: Descriptor, content: bytes, depth: int
    ) -> Generator[Descriptor, bytes, SelectedImage | None]:
        document = _parse(content)
        if "manifests" not in document:
            return (yield from self._try_manifest(entry, document))
        if not depth:
            raise _MalformedImage
        for each in self._candidates(document):
            self._read += 1
            if self._read > _MOST_DOCUMENTS:
                raise CannotRun("The image has too many variants without a platform.")
            found = yield from self.select(each, (yield each), depth - 1)
            if found is not None:
                return found
        return None

    def explain(self) -> str:
        seen = list(self._seen)
        others = f"; it is for {', '.join(seen[:_MOST_NAMED])}" if seen else ""
        return f"The image has nothing for this machine, {self.system}/{self.architecture}{others}."

    def _candidates(self, index: dict[str, Any]) -> list[Descriptor]:
        ranked = list[tuple[int, Descriptor]]()
        for entry in _objects(index.get("manifests")):
            platform_ = _object(entry.get("platform") or {})
            rank = self._rank(platform_) if platform_ else _UNNAMED
            if rank is not None:
                ranked.append((rank, _descriptor(entry)))
        return [each for _, each in sorted(ranked, key=lambda pair: pair[0])]

    def _rank(self, named: dict[str, Any]) -> int | None:
        """Return how well a platform fits, 0 is best; None: not at all."""
        system, architecture = str(named.get("os")), str(named.get("architecture"))
        variant = str(named.get("variant") or "")
        if (system, architecture) == ("unknown", "unknown"):
            # An attestation of BuildKit.
            return None
        if (system, architecture) == (self.system, self.architecture):
            if variant in self.best:
                return self.best.index(variant)
            if architecture != "arm":
                return len(self.best)
        self._seen["/".join(filter(None, (system, architecture, variant)))[:80]] = None
        return None

    def _try_manifest(
        self, entry: Descriptor, document: dict[str, Any]
    ) -> Generator[Descriptor, bytes, SelectedImage | None]:
        if document.get("schemaVersion") == 1:
            raise CannotRun("The image is of the old schema 1: push it again with a newer tool.")
        config = yield _descriptor(_object(document.get("config")))
        try:
            named = _parse(config)
        except ValueError:
            named = {}
        if not named.get("os") or not named.get("architecture"):
            raise CannotRun("It is not an image that can run, but something else in a registry.")
        if self._rank(named) is None:
            return None
        layers = tuple(_descriptor(layer) for layer in _objects(document.get("layers")))
        if len(layers) > _MOST_LAYERS:
            raise CannotRun(f"The image has more than {_MOST_LAYERS} layers.")
        return SelectedImage(digest=entry.digest, layers=layers, config=config)


def _best_variants() -> tuple[str, ...]:
    best = _VARIANTS.get(machine(), ("",))
    # An ARMv6 processor does not run programs for ARMv7.
    return best[1:] if platform.machine().lower() == "armv6l" else best


def _check_platform(config: dict[str, Any], system: str, architecture: str) -> None:
    named = (config.get("os"), config.get("architecture"))
    if named != (system, architecture):
        raise CannotRun(
            f"The image is for {named[0]}/{named[1]}, and this machine is {system}/{architecture}."
        )


def _blob(layout: Path, digest: str) -> bytes:
    with _open(_blob_path(layout, digest)) as file:
        content = _read_document(file)
    if not is_document(content, digest):
        raise DamagedImage(digest)
    return content


def _blob_path(layout: Path, digest: str) -> Path:
    algorithm, _, name = digest.partition(":")
    return layout / "blobs" / algorithm / name


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
    content = file.read(DOCUMENT_BYTES + 1)
    if len(content) > DOCUMENT_BYTES:
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


def _descriptor(entry: dict[str, Any]) -> Descriptor:
    digest, size = entry.get("digest"), entry.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _MalformedImage
    if size is not None and (not isinstance(size, int) or size < 0):
        raise _MalformedImage
    return Descriptor(digest=digest, size=size, media_type=str(entry.get("mediaType") or ""))


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
