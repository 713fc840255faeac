"""Root file system of a job: the folder or archive that the operator maps its image to."""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path

from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, oci
from hublet.runtime.records import LaunchOrder

HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    root: Path
    defaults: oci.ImageDefaults = field(default_factory=oci.ImageDefaults)


def target_of(images: Sequence[ImageSource], name: str) -> str:
    """Return the target of the first pattern that matches; raises CannotRun."""
    for image in images:
        if fnmatchcase(name, image.pattern):
            return image.target
    raise CannotRun(f"This hub has no image {name}.")


def get_image(target: str, *, cache: Path) -> Image:
    """Return the image of a target, unpacking it the first time it is needed.

    A target is a folder or an archive, of a root or of an OCI layout. Blocks. Raises CannotRun.
    """
    if target == HOST:
        return Image(root=Path("/"))
    path = Path(target)
    try:
        if oci.is_layout(path):
            return unpack_manifest(oci.read_manifest(path), cache=cache)
        return Image(root=path) if path.is_dir() else _unpack_archive(path, cache=cache)
    except layers.UNREADABLE as error:
        raise CannotRun(f"The image cannot be read: {error}.") from error


def argv_of(order: LaunchOrder, image: Image) -> tuple[str, ...]:
    """Return the command of an attempt: its own, or else the image's. Raises CannotRun."""
    argv, defaults = order.argv, image.defaults
    if order.after_entrypoint:
        argv = (*defaults.entrypoint, *(argv or defaults.command))
    if not argv:
        raise CannotRun("The image does not say what to run: give the job a command.")
    return argv


def named_roots(images: Sequence[ImageSource], *, cache: Path) -> set[Path]:
    """Return the roots of the images in the settings, as far as they can be read. Blocks."""
    found = set[Path]()
    for image in images:
        path = Path(image.target)
        with suppress(CannotRun, *layers.UNREADABLE):
            if oci.is_layout(path):
                found.add(_manifest_root(oci.read_manifest(path), cache=cache))
            elif path.is_file():
                found.add(_archive_root(path, cache=cache).resolve())
    return found


def _archive_root(archive: Path, *, cache: Path) -> Path:
    # A replaced archive is another image; running attempts keep the old one.
    status = archive.stat()
    words = f"{archive.resolve()} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
    return cache / hashlib.sha256(words.encode()).hexdigest()[:32]


def _unpack_archive(archive: Path, *, cache: Path) -> Image:
    place = _archive_root(archive, cache=cache)
    with _make_once(place) as partial:
        if partial is not None:
            with archive.open("rb") as file:
                layers.unpack(file, into=partial, budget=layers.UnpackBudget())
            if (manifest := _find_manifest(partial)) is None:
                partial.rename(place)
            else:
                image = unpack_manifest(manifest, cache=cache)
                place.unlink(missing_ok=True)
                place.symlink_to(image.root.name)
    return _load_image(place.resolve())


def _find_manifest(folder: Path) -> oci.ImageManifest | None:
    """Return the manifest in an unpacked archive; None: it is a plain root file system."""
    if oci.is_layout(folder):
        return oci.read_manifest(folder)
    return oci.read_docker_manifest(folder) if oci.is_docker_archive(folder) else None


def _manifest_root(manifest: oci.ImageManifest, *, cache: Path) -> Path:
    return cache / manifest.digest.replace(":", "-")


def has_layer(cache: Path, digest: str) -> bool:
    """Tell whether a layer is unpacked already, so that nobody needs to fetch it. Blocks.

    It stays for an hour at least from now on.
    """
    return (cache / "layers" / digest.replace(":", "-")).is_dir()


def unpack_manifest(manifest: oci.ImageManifest, *, cache: Path) -> Image:
    """Return the image of a manifest, unpacking those of its layers that are not there yet.

    The files of layers for which `has_layer` is true may be missing; those below the folder
    `blobs` of the cache are removed when they are unpacked. Blocks. Raises CannotRun and
    UNREADABLE.
    """
    place = _manifest_root(manifest, cache=cache)
    with _make_once(place) as partial:
        if partial is not None:
            cwd = oci.defaults_of(manifest.config).cwd
            oci.unpack_layers(manifest, into=partial)
            if cwd is not None:
                layers.make_folder(partial, cwd)
            _config_path(place).write_bytes(manifest.config)
            partial.rename(place)
    return _load_image(place)


def _load_image(root: Path) -> Image:
    config = _config_path(root)
    if not config.exists():
        return Image(root=root)
    return Image(root=root, defaults=oci.defaults_of(config.read_bytes()))


def _config_path(root: Path) -> Path:
    return root.with_name(f"{root.name}.json")


@contextmanager
def _make_once(place: Path) -> Iterator[Path | None]:
    """Yield a partial folder to fill and rename to the place; None when the place exists already."""
    if place.is_dir():
        yield None
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            yield None
            return
        partial = place.with_name(f"{place.name}.partial")
        # Left by a hub that was killed.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        partial.chmod(0o755)
        try:
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)
