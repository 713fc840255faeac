"""Cache of unpacked images: attempts hold those that they use, the others are pruned."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from hublet.core.config.kinds import ImageSource
from hublet.runtime.images import oci, rootfs
from hublet.runtime.images.layer_cache import (
    BLOBS,
    LAYERS,
    LOCK,
    PARTIAL,
    USED,
    discard,
    load_layer,
    note_use,
    now,
)

# Name of the link to the image in the folder of an attempt.
LINK = "image"
# An image that no setting names is kept for a day: the operator may name it again.
_MAX_AGE_UNNAMED = timedelta(days=1)
_MAX_AGE_NAMED = timedelta(days=7)
# Somebody who was told that a layer is there has so much time to use it.
_MIN_AGE = timedelta(hours=1)
_GONE = ".gone"


def acquire_image(target: str, *, cache: Path, attempt: Path) -> rootfs.Image:
    """Return the image of a target; it is not pruned as long as the attempt's folder exists.

    Blocks. Raises CannotRun.
    """
    if target == rootfs.HOST:
        return rootfs.get_image(target, cache=cache)
    return _acquire(lambda: rootfs.get_image(target, cache=cache), cache=cache, attempt=attempt)


def acquire_manifest(manifest: oci.ImageManifest, *, cache: Path, attempt: Path) -> rootfs.Image:
    """Return an image that was pulled, in the same way. Blocks. Raises CannotRun."""
    return _acquire(
        lambda: rootfs.unpack_manifest(manifest, cache=cache), cache=cache, attempt=attempt
    )


def prepare_manifest(manifest: oci.ImageManifest, *, cache: Path) -> None:
    """Unpack an image that was pulled, for whoever acquires it next. Blocks. Raises CannotRun."""
    _acquire(lambda: rootfs.unpack_manifest(manifest, cache=cache), cache=cache, attempt=None)


def _acquire(get: Callable[[], rootfs.Image], *, cache: Path, attempt: Path | None) -> rootfs.Image:
    with _locked(cache, fcntl.LOCK_SH):
        image = get()
        if image.folder is not None:
            if attempt is not None:
                with suppress(FileExistsError):
                    (attempt / LINK).symlink_to(image.folder)
            note_use(image.folder)
    return image


def prune(
    cache: Path,
    *,
    image_map: Sequence[ImageSource],
    attempts: Iterable[Path],
    max_bytes: int | None = None,
) -> None:
    """Remove images that no attempt uses and that were not used for a while. Blocks.

    As long as the rest has more than `max_bytes`, those that were not used for the longest time
    are removed as well.
    """
    if not cache.exists():
        return
    _discard(cache)
    with _locked(cache, fcntl.LOCK_EX):
        _retire_leftovers(cache)
        in_use = {root for root in map(_linked_image, attempts) if root is not None}
        named = rootfs.named_roots(image_map, cache=cache) | _pulled_roots(cache)
        for root in _roots(cache):
            if root not in in_use and _age(root) > (
                _MAX_AGE_NAMED if root in named else _MAX_AGE_UNNAMED
            ):
                _retire(root)
        _retire_layers(cache, _MAX_AGE_UNNAMED)
        if max_bytes is not None:
            _shrink(cache, in_use=in_use, max_bytes=max_bytes)
        for link in cache.iterdir():
            if link.is_symlink() and not link.exists():
                link.unlink()
                _sibling(link, LOCK).unlink(missing_ok=True)
    _discard(cache)


def _pulled_roots(cache: Path) -> set[Path]:
    """Return the images of which the pulls know; see `pulled_files`."""
    return {root for root in _roots(cache) if (cache / BLOBS / "images" / root.stem).exists()}


def _retire_leftovers(cache: Path) -> None:
    """Retire what a hub left that was killed: the lock excludes unpacking now."""
    for folder in (cache, cache / LAYERS):
        for half in folder.glob(f"*{PARTIAL}"):
            half.rename(half.with_suffix(_GONE))


def _shrink(cache: Path, *, in_use: set[Path], max_bytes: int) -> None:
    """Retire the images that were not used for the longest time, until the rest is small enough."""
    removable = sorted(
        (root for root in _roots(cache) if root not in in_use and _age(root) > _MIN_AGE),
        key=_age,
        reverse=True,
    )
    while _total_size(cache) > max_bytes:
        _retire_layers(cache, _MIN_AGE)
        if _total_size(cache) <= max_bytes or not removable:
            return
        _retire(removable.pop(0))
        _retire_layers(cache, _MIN_AGE)


def _total_size(cache: Path) -> int:
    layers = (load_layer(place) for place in _folders(cache / LAYERS))
    plain = (root for root in _roots(cache) if root.suffix != rootfs.LAYERED)
    return sum(layer.notes.size for layer in layers if layer) + sum(map(_read_size, plain))


def _read_size(root: Path) -> int:
    """Return the size that was noted when an archive was unpacked; nothing for older ones."""
    try:
        return int(rootfs.size_path(root).read_text())
    except (OSError, ValueError):
        return 0


def _retire_layers(cache: Path, max_age: timedelta) -> None:
    """Retire layers of no image that were not used for some time."""
    used = {
        link.resolve().parent
        for root in _roots(cache)
        if root.suffix == rootfs.LAYERED
        for link in root.iterdir()
        if link.is_symlink()
    }
    for place in _folders(cache / LAYERS):
        if place.resolve() not in used and _age(place) > max_age:
            _retire(place)


def _discard(cache: Path) -> None:
    for folder in (cache, cache / LAYERS):
        for gone in folder.glob(f"*{_GONE}"):
            discard(gone)


@contextmanager
def _locked(cache: Path, how: int) -> Iterator[None]:
    """Lock the cache: shared to use images, exclusive to remove some."""
    cache.mkdir(parents=True, exist_ok=True)
    fd = os.open(cache / LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def _roots(cache: Path) -> list[Path]:
    return [path for path in _folders(cache) if path.name not in {LAYERS, BLOBS}]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.is_symlink() and path.suffix != _GONE
    ]


def _linked_image(attempt: Path) -> Path | None:
    try:
        return (attempt / LINK).readlink()
    except OSError:
        return None


def _age(root: Path) -> timedelta:
    note = _sibling(root, USED)
    if not note.exists():
        note_use(root)
    return timedelta(seconds=_seconds_since(note))


def _seconds_since(path: Path) -> float:
    return now() - path.stat().st_mtime


def _retire(root: Path) -> None:
    root.rename(_sibling(root, _GONE))
    for suffix in (USED, ".size", ".json", LOCK):
        _sibling(root, suffix).unlink(missing_ok=True)


def _sibling(root: Path, suffix: str) -> Path:
    return root.with_name(f"{root.name}{suffix}")
