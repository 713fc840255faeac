"""Files of pulled images: layers on their way, what a tag is, and which image was chosen of it.

All of it lies in the folder `blobs` of the cache of images, and can be removed at any time: the next
pull fetches it again. A layer has its name only once it is verified.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun
from hublet.runtime.images import oci

if TYPE_CHECKING:
    from hashlib import _Hash

_FOLDER = "blobs"
_IMAGES, _TAGS, _FETCHED = "images", "tags", "fetched"
_PARTIAL = ".partial"
_LOCK_SECONDS = 0.1
# Layers are removed when they are unpacked; these were never unpacked.
_LAYER_AGE_SECONDS = 86_400.0
_RECORD_AGE_SECONDS = 30 * 86_400.0
# Left free on the disk, for everything else of the machine.
_SPARE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTag:
    """What a reference was when it was pulled last."""

    # Of the index or manifest that the registry has under it.
    top: str
    # Of the image for this machine.
    image: str


def images_folder(data_dir: Path) -> Path:
    """Return the cache of images: unpacked ones, and those on their way."""
    return data_dir.resolve() / "jobs" / "images"


class PulledFiles:
    """The folder of one cache. Methods that are not async block, but not for long."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._folder = cache / _FOLDER

    def layer_path(self, digest: str) -> Path:
        algorithm, _, name = digest.partition(":")
        return self._folder / algorithm / name

    def keep_image(self, image: oci.SelectedImage) -> None:
        record = {
            "layers": [layer.digest for layer in image.layers],
            "config": image.config.decode(errors="replace"),
        }
        _write(self._image_path(image.digest), record)

    def load_image(self, digest: str) -> oci.ImageManifest | None:
        """Return an image that was pulled; its layers may be unpacked and not be there any more."""
        record = _read(self._image_path(digest))
        if record is None:
            return None
        layers = tuple((self.layer_path(each), each) for each in record["layers"])
        return oci.ImageManifest(digest=digest, layers=layers, config=record["config"].encode())

    def _image_path(self, digest: str) -> Path:
        return self._folder / _IMAGES / digest.replace(":", "-")

    def keep_tag(self, scope: str, reference: str, tag: KnownTag) -> None:
        _write(self._tag_path(scope, reference), {"top": tag.top, "image": tag.image})

    def find_tag(self, scope: str, reference: str) -> KnownTag | None:
        record = _read(self._tag_path(scope, reference))
        return None if record is None else KnownTag(top=record["top"], image=record["image"])

    def _tag_path(self, scope: str, reference: str) -> Path:
        # Machines of several architectures may share the folder.
        words = f"{oci.machine()} {reference}"
        return self._folder / _TAGS / scope / hashlib.sha256(words.encode()).hexdigest()

    def note_fetched(self, scope: str, digest: str) -> None:
        """Note that whoever has this scope was given the layer by a registry."""
        _write(self._folder / _FETCHED / scope / digest.replace(":", "-"), {})

    def was_fetched(self, scope: str, digest: str) -> bool:
        return _read(self._folder / _FETCHED / scope / digest.replace(":", "-")) is not None

    def check_room(self, needed: int) -> None:
        """Refuse a pull that would fill the disk."""
        self._folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._folder).free - _SPARE_BYTES
        if needed > free:
            raise NoRoomForImage(needed, max(free, 0))

    @asynccontextmanager
    async def locked_layer(
        self, digest: str, scope: str, *, is_done: Callable[[], bool]
    ) -> AsyncIterator["PartialFile | None"]:
        """Yield the file to fill; None: it is done by now. Others of the scope wait meanwhile.

        The lock is on the file itself, so that it ends with a process that is killed.
        """
        path = self.layer_path(digest)
        partial = path.with_name(f"{path.name}.{scope}{_PARTIAL}")
        path.parent.mkdir(parents=True, exist_ok=True)
        while not is_done():
            fd = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if await _lock(fd, partial):
                    yield PartialFile(fd, partial, path)
                    return
            finally:
                os.close(fd)
        yield None

    def remove_layer(self, digest: str) -> None:
        self.layer_path(digest).unlink(missing_ok=True)

    def prune(self) -> None:
        """Remove what was not used for long."""
        now = time.time()
        for path in self._folder.rglob("*"):
            is_record = path.relative_to(self._folder).parts[0] in {_IMAGES, _TAGS, _FETCHED}
            age = _RECORD_AGE_SECONDS if is_record else _LAYER_AGE_SECONDS
            with suppress(OSError):
                if path.is_file() and now - path.stat().st_mtime > age:
                    path.unlink()


class PartialFile:
    """A layer that is being fetched, locked for one."""

    def __init__(self, fd: int, path: Path, target: Path) -> None:
        self._fd = fd
        self._path = path
        self._target = target
        self._hash: _Hash | None = None
        self.size = 0

    def resume(self, algorithm: str) -> None:
        """Go on after what is there. Blocks."""
        self._hash = hashlib.new(algorithm)
        self.size = 0
        while piece := os.pread(self._fd, 2**20, self.size):
            self._hash.update(piece)
            self.size += len(piece)

    def restart(self, algorithm: str) -> None:
        os.ftruncate(self._fd, 0)
        self._hash, self.size = hashlib.new(algorithm), 0

    def append(self, data: bytes) -> None:
        """Write some bytes at the end. Blocks."""
        assert self._hash is not None  # noqa: S101 - set by `resume`.
        written = 0
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], self.size + written)
        self._hash.update(data)
        self.size += len(data)

    def adopt(self, source: Path) -> bool:
        """Let a file of the same disk be the layer; False where that is not possible."""
        try:
            self._target.hardlink_to(source)
        except FileExistsError:
            pass
        except OSError:
            return False
        self._path.unlink()
        return True

    def complete(self, digest: str) -> bool:
        """Give the file its name if it has the digest; else discard it."""
        assert self._hash is not None  # noqa: S101 - as above.
        if self._hash.hexdigest() != digest.partition(":")[2]:
            self._path.unlink(missing_ok=True)
            return False
        self._path.rename(self._target)
        return True


class NoRoomForImage(CannotRun):
    def __init__(self, needed: int, free: int) -> None:
        super().__init__(
            f"The disk of the hub's machine has no room for the image: it needs {needed:,} bytes, and "
            f"{free:,} are free. Use a smaller image, or ask an administrator to make room."
        )


async def _lock(fd: int, path: Path) -> bool:
    """Lock a file; False: it has lost its name meanwhile."""
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(_LOCK_SECONDS)
        else:
            break
    return _is_named(fd, path)


def _is_named(fd: int, path: Path) -> bool:
    try:
        return os.fstat(fd).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(json.dumps(record))
    new.rename(path)


def _read(path: Path) -> dict[str, Any] | None:
    """Return a record, and note that it is used; None: there is none, or it is broken."""
    try:
        record = json.loads(path.read_text())
        os.utime(path)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
