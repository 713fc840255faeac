"""Root file system of a job: the image that its name stands for, unpacked on this machine; and whether this
machine shows the layers of an image as one folder (overlay file system).
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from hublet.core.config.kinds import ImageSource
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, oci
from hublet.runtime.images.layer_archive import UNREADABLE
from hublet.runtime.images.layer_cache import (
    get_layers,
    load_layer,
    make_once,
    mark_layers,
)
from hublet.runtime.images.layer_stack import Layer, LayerStack, add_folder, mark, merge
from hublet.runtime.images.layers import LayerNotes
from hublet.runtime.images.unpacker import explain
from hublet.runtime.records import LaunchOrder

log = get_logger("jobs")

# The kernel stacks no more (OVL_MAX_STACK); two of them are ours.
MAX_LAYERS = 498
# The mount that a shim makes for an attempt; the folder of `shim` comes last in sys.path.
_PROGRAM = """
import os, sys
sys.path.append(sys.argv[1])
from shim.child import mount_layers
target = sys.argv[3]
mount_layers([sys.argv[2], "1:0", "", target], is_root=os.geteuid() == 0)
sys.exit(os.listdir(target) != ["d"] or os.listdir(f"{target}/d") != [])
"""


def is_usable(cache: Path) -> bool:
    """Tell whether layers in a folder can be mounted by this user. Blocks."""
    return find_overlay_obstacle(cache) is None


@lru_cache(maxsize=8)
def find_overlay_obstacle(cache: Path) -> str | None:
    """Return why layers in a folder cannot be mounted by this user; None: they can. Blocks.

    The kernel, a container around the hub, or the file system of the folder may forbid it.
    """
    with tempfile.TemporaryDirectory(prefix="probe-", suffix=".partial", dir=cache) as name:
        probe = Path(name)
        try:
            _write_layers(probe)
        except OSError as error:
            log.info("images are merged: their folder cannot hold layers", error=str(error))
            return f"its file system cannot hold them: {error.strerror or error}"
        tried = subprocess.run(  # noqa: S603 - this very interpreter, with a program of ours.
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _PROGRAM,
                Path(__file__).parents[1],
                name,
                f"{name}/m",
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if not tried.returncode:
            return None
        reason = tried.stderr.strip().rpartition("\n")[2] or "what is mounted is not what was to be"
        log.info("images are merged: layers cannot be mounted", error=reason)
        return f"they cannot be mounted: {reason}"


def _write_layers(probe: Path) -> None:
    """Write two layers: the upper one hides a file and all in a folder of the lower one."""
    for place in ("0/d", "1/d", "m"):
        add_folder(probe, place)
    for place in ("0/f", "0/d/a"):
        (probe / place).touch()
    mark(Layer(root=probe / "1", notes=LayerNotes(whiteouts=["f"], opaque=["d"])))


HOST = "host"
# Ending of the folder of an image that has layers.
LAYERED = ".layers"
# In the folder of an image: the layer that we add, and all layers merged into one root.
TOP, _MERGED = "top", "root"
# Mounted anew for each job, so they must be folders in every image.
_MOUNT_FOLDERS = ("proc", "dev", "sys", "tmp")
# Home of every job, and the files that say which hosts it knows: all are mounted.
HOME = "/home/job"
_NAME_FILES = ("/etc/hosts", "/etc/resolv.conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    # Its files, or what is to be mounted where it has layers.
    root: Path
    # From the lowest; none where the files lie in one folder.
    layers: tuple[Layer, ...] = ()
    # What an attempt holds so that it stays; None: it does not belong to the cache.
    folder: Path | None = None
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
    except UNREADABLE as error:
        raise explain(error) from error


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
        with suppress(CannotRun, *UNREADABLE):
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
    with make_once(place) as partial:
        if partial is not None:
            with archive.open("rb") as file:
                notes = layers.unpack(file, into=partial, budget=layers.UnpackBudget())
            layers.refuse_links(notes)
            if (manifest := _find_manifest(partial)) is None:
                size_path(place).write_text(str(notes.size))
                partial.rename(place)
            else:
                unpack_manifest(manifest, cache=cache)
                place.unlink(missing_ok=True)
                place.symlink_to(_manifest_root(manifest, cache=cache).name)
    if place.is_symlink():
        return _load_image(place.resolve())
    return Image(root=place, folder=place)


def _find_manifest(folder: Path) -> oci.ImageManifest | None:
    """Return the manifest in an unpacked archive; None: it is a plain root file system."""
    if oci.is_layout(folder):
        return oci.read_manifest(folder)
    return oci.read_docker_manifest(folder) if oci.is_docker_archive(folder) else None


def _manifest_root(manifest: oci.ImageManifest, *, cache: Path) -> Path:
    return cache / f"{manifest.digest.replace(':', '-')}{LAYERED}"


def unpack_manifest(manifest: oci.ImageManifest, *, cache: Path) -> Image:
    """Return the image of a manifest, unpacking those of its layers that are not there yet.

    The files of layers for which `has_layer` is true may be missing; those below the folder
    `blobs` of the cache are removed when they are unpacked. Blocks. Raises CannotRun.
    """
    place = _manifest_root(manifest, cache=cache)
    try:
        with make_once(place) as partial:
            if partial is not None:
                # Before anything is unpacked: it may be no configuration at all.
                cwd = oci.defaults_of(manifest.config).cwd
                found = get_layers(manifest.layers, cache=cache)
                for number, layer in enumerate(found):
                    (partial / str(number)).symlink_to(os.path.relpath(layer.root, partial))
                _write_top(partial / TOP, LayerStack(found), cwd=cwd)
                _config_path(place).write_bytes(manifest.config)
                partial.rename(place)
        return _load_image(place)
    except UNREADABLE as error:
        raise explain(error) from error


def _write_top(top: Path, stack: LayerStack, *, cwd: str | None) -> None:
    """Write the uppermost layer: mount points and the working directory, as far as they are missing."""
    add_folder(top.parent, top.name)
    for name in _MOUNT_FOLDERS:
        found = stack.find(name)
        if found is None or found.is_symlink() or not found.is_dir():
            add_folder(top, name)
    for path in (HOME, *_NAME_FILES, *([cwd] if cwd else [])):
        add_mount_point(top, stack, path, is_folder=path not in _NAME_FILES)


def add_mount_point(top: Path, stack: LayerStack, path: str, *, is_folder: bool) -> str:
    """Make a folder or a file in a layer unless those below have it; return where it really lies."""
    place = stack.resolve(path)
    found = stack.find(place)
    if place and (found is None or found.is_dir() != is_folder):
        add_folder(top, place if is_folder else place.rpartition("/")[0])
        if not is_folder:
            (top / place).touch()
            (top / place).chmod(0o644)
    return f"/{place}"


def stack_of(image: Image) -> LayerStack:
    """Return the layers of an image with the one that we add."""
    return LayerStack([*image.layers, Layer(root=image.root / TOP, notes=layers.LayerNotes())])


def _load_image(folder: Path) -> Image:
    defaults = oci.defaults_of(_config_path(folder).read_bytes())
    found = load_layers(folder)
    if len(found) <= MAX_LAYERS and is_usable(folder.parent):
        mark_layers(found)
        return Image(root=folder, layers=found, folder=folder, defaults=defaults)
    with make_once(folder / _MERGED) as partial:
        if partial is not None:
            top = Layer(root=folder / TOP, notes=layers.LayerNotes())
            merge([*found, top], into=partial)
            partial.rename(folder / _MERGED)
    return Image(root=folder / _MERGED, folder=folder, defaults=defaults)


@lru_cache(maxsize=64)
def load_layers(folder: Path) -> tuple[Layer, ...]:
    """Return the layers of an image's folder, from the lowest."""
    count = len([entry for entry in os.scandir(folder) if entry.name.isdigit()])
    places = [(folder / str(number)).resolve().parent for number in range(count)]
    return tuple(layer for place in places if (layer := load_layer(place)))


def size_path(root: Path) -> Path:
    """Return where the size of an unpacked archive is noted."""
    return root.with_name(f"{root.name}.size")


def _config_path(root: Path) -> Path:
    return root.with_name(f"{root.name}.json")
