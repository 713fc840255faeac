"""Cache of unpacked images: attempts hold those that they use, the others are pruned."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.config.kinds import ImageSource
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import layers, oci, rootfs

# Name of the link to the image in the folder of an attempt.
LINK = "image"
# An image that no setting names is kept for a day: the operator may name it again.
_MAX_AGE_UNNAMED = timedelta(days=1)
_MAX_AGE_NAMED = timedelta(days=7)
_USED, _GONE, _PARTIAL, _LOCK = ".used", ".gone", ".partial", ".lock"


def acquire_image(target: str, *, cache: Path, attempt: Path) -> rootfs.Image:
    """Return the image of a target; it is not pruned as long as the attempt's folder exists.

    Blocks. Raises CannotRun.
    """
    if target == rootfs.HOST:
        return rootfs.get_image(target, cache=cache)
    return _acquire(lambda: rootfs.get_image(target, cache=cache), cache, attempt)


def acquire_manifest(manifest: oci.ImageManifest, *, cache: Path, attempt: Path) -> rootfs.Image:
    """Return an image that was pulled; it is not pruned as long as the attempt's folder exists.

    Blocks. Raises CannotRun.
    """
    try:
        return _acquire(lambda: rootfs.unpack_manifest(manifest, cache=cache), cache, attempt)
    except layers.UNREADABLE as error:
        raise CannotRun(f"The image cannot be read: {error}.") from error


def _acquire(get: Callable[[], rootfs.Image], cache: Path, attempt: Path) -> rootfs.Image:
    with _locked(cache, fcntl.LOCK_SH):
        image = get()
        if image.root.parent == cache:
            with suppress(FileExistsError):
                (attempt / LINK).symlink_to(image.root)
            _note_use(image.root)
    return image


def prune(cache: Path, *, image_map: Sequence[ImageSource], attempts: Iterable[Path]) -> None:
    """Remove images that no attempt uses and that were not used for a while. Blocks."""
    if not cache.exists():
        return
    _discard(cache)
    with _locked(cache, fcntl.LOCK_EX):
        # The lock excludes unpacking: partial folders were left by a hub that was killed.
        for half in cache.glob(f"*{_PARTIAL}"):
            half.rename(half.with_suffix(_GONE))
        in_use = {root for root in map(_linked_image, attempts) if root is not None}
        named = rootfs.named_roots(image_map, cache=cache)
        for root in _roots(cache):
            if root not in in_use and _age(root) > (
                _MAX_AGE_NAMED if root in named else _MAX_AGE_UNNAMED
            ):
                _retire(root)
        for link in cache.iterdir():
            if link.is_symlink() and not link.exists():
                link.unlink()
                _sibling(link, _LOCK).unlink(missing_ok=True)
    _discard(cache)


def _discard(cache: Path) -> None:
    for gone in cache.glob(f"*{_GONE}"):
        shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def _locked(cache: Path, how: int) -> Iterator[None]:
    """Lock the cache: shared to use images, exclusive to remove some."""
    cache.mkdir(parents=True, exist_ok=True)
    fd = os.open(cache / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def _roots(cache: Path) -> list[Path]:
    return [
        path
        for path in cache.iterdir()
        if path.is_dir()
        and not path.is_symlink()
        and path.suffix != _GONE
        # Layers of pulled images; see `pulled_files`.
        and path.name != "blobs"
    ]


def _linked_image(attempt: Path) -> Path | None:
    try:
        return (attempt / LINK).readlink()
    except OSError:
        return None


def _note_use(root: Path) -> None:
    note = _sibling(root, _USED)
    moment = _now()
    note.touch()
    os.utime(note, (moment, moment))


def _age(root: Path) -> timedelta:
    note = _sibling(root, _USED)
    if not note.exists():
        _note_use(root)
    return timedelta(seconds=_now() - note.stat().st_mtime)


def _now() -> float:
    # File times are real, without the offset of test mode.
    return (clock.now() - clock.offset()).timestamp()


def _retire(root: Path) -> None:
    root.rename(_sibling(root, _GONE))
    for suffix in (_USED, ".json", _LOCK):
        _sibling(root, suffix).unlink(missing_ok=True)


def _sibling(root: Path, suffix: str) -> Path:
    return root.with_name(f"{root.name}{suffix}")
