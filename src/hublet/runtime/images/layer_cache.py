"""Layers of the cache: each is unpacked once, whichever images share it."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from hublet.core import clock
from hublet.core.folders import FOLDER_MODE, remove_tree
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.layer_stack import Layer, LayerStack, Rebase, mark
from hublet.runtime.images.layers import LayerNotes, UnpackBudget
from hublet.runtime.images.unpacker import UnpackerPool, UnpackOrder

LAYERS, BLOBS = "layers", "blobs"
ROOT, NOTES, _MARKED = "fs", "layer.json", "marked"
PARTIAL, LOCK, USED = ".partial", ".lock", ".used"
_MAX_LAYERS = 2000


def has_layer(cache: Path, digest: str) -> bool:
    """Tell whether a layer is unpacked already, so that nobody needs to fetch it. Blocks.

    If so it stays for an hour at least.
    """
    place = _place_of(cache, digest)
    if not place.is_dir():
        return False
    note_use(place)
    # It may have been removed before the note was there.
    return place.is_dir()


def get_layers(files: Sequence[tuple[Path, str]], *, cache: Path) -> list[Layer]:
    """Return layers from the lowest, given by file and digest, each as it is above the others.

    Those that are not there are unpacked, several at a time. Blocks. Raises CannotRun.
    """
    if len(files) > _MAX_LAYERS:
        raise CannotRun(f"The image has more than {_MAX_LAYERS} layers.")
    found = [load_layer(_place_of(cache, digest)) for _, digest in files]
    missing = {
        digest: path for (path, digest), layer in zip(files, found, strict=True) if not layer
    }
    if missing:
        # The largest first, so that none of them is left alone at the end.
        order = sorted(missing, key=lambda digest: _size_of(missing[digest]), reverse=True)
        works = [partial(_unpack, missing[digest], digest, cache) for digest in order]
        made = dict(zip(order, UnpackerPool().run(works), strict=True))
        found = [
            layer or Layer(root=_place_of(cache, digest) / ROOT, notes=made[digest])
            for layer, (_, digest) in zip(found, files, strict=True)
        ]
    layers = [layer for layer in found if layer]
    budget = UnpackBudget()
    for layer in layers:
        note_use(layer.root.parent)
        budget.spend(entries=layer.notes.entries, size=layer.notes.size)
    return _rebase(layers)


def load_layer(place: Path) -> Layer | None:
    try:
        notes = LayerNotes.from_json((place / NOTES).read_text())
    except FileNotFoundError:
        return None
    return Layer(root=place / ROOT, notes=notes)


def mark_layers(layers: Sequence[Layer]) -> None:
    """Make sure that an overlay file system hides what each layer hides. Blocks. Raises OSError."""
    for layer in layers:
        place = layer.root.parent
        if not (place / _MARKED).exists():
            with locked(place):
                mark(layer)
                (place / _MARKED).touch()


def _place_of(cache: Path, digest: str) -> Path:
    return cache / LAYERS / digest.replace(":", "-")


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _unpack(archive: Path, digest: str, cache: Path, pool: UnpackerPool) -> LayerNotes:
    place = _place_of(cache, digest)
    with make_once(place) as half:
        if half is not None:
            _open_folder(half / ROOT)
            order = UnpackOrder(archive=archive, digest=digest, folder=half / ROOT)
            notes = pool.unpack(order)
            (half / NOTES).write_text(notes.to_json())
            half.rename(place)
        elif (layer := load_layer(place)) is not None:
            notes = layer.notes
        else:
            raise CannotRun("The image was removed while it was unpacked: run the job again.")
    if archive.is_relative_to(cache / BLOBS):
        with suppress(OSError):
            archive.unlink()
    return notes


def _rebase(layers: list[Layer]) -> list[Layer]:
    """Return the layers with others in the place of those that need the ones below them."""
    done = list[Layer]()
    for layer in layers:
        rebase = Rebase(layer, LayerStack(done)) if _may_need_others(layer) else None
        if rebase is None or not rebase.is_needed():
            done.append(layer)
            continue
        chain = hashlib.sha256("\n".join(below.root.parent.name for below in done).encode())
        own = layer.root.parent
        place = own.with_name(f"{own.name}+{chain.hexdigest()[:16]}")
        with make_once(place) as half:
            if half is not None:
                _open_folder(half / ROOT)
                (half / NOTES).write_text(rebase.write(half / ROOT).to_json())
                half.rename(place)
        if (made := load_layer(place)) is None:
            raise CannotRun("The image was removed while it was unpacked: run the job again.")
        note_use(place)
        done.append(made)
    return done


def _may_need_others(layer: Layer) -> bool:
    return bool(layer.notes.implied or layer.notes.links)


def _open_folder(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(FOLDER_MODE)


@contextmanager
def make_once(place: Path) -> Iterator[Path | None]:
    """Yield a partial folder to fill and rename to the place; None when the place exists already."""
    if place.is_dir():
        yield None
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place):
        if place.is_dir():
            yield None
            return
        # Left by a hub that was killed.
        for half in place.parent.glob(f"{place.name}.*{PARTIAL}"):
            discard(half)
        half = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=PARTIAL, dir=place.parent))
        half.chmod(FOLDER_MODE)
        try:
            yield half
        finally:
            discard(half)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Lock a folder that may not be there yet, against other threads and other hubs."""
    with place.with_name(f"{place.name}{LOCK}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def discard(folder: Path) -> None:
    with suppress(OSError):
        remove_tree(folder)


def note_use(place: Path) -> None:
    note = place.with_name(f"{place.name}{USED}")
    moment = now()
    try:
        note.touch()
        os.utime(note, (moment, moment))
    except FileNotFoundError:
        return


def now() -> float:
    # File times are real, without the offset of test mode.
    return (clock.now() - clock.offset()).timestamp()
