"""What lies in the folder of blobs and may have to go. Everything here blocks on the disk."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hublet.repos.blobs.folder import blobs_folder, incoming_folder, parts_folder, path_of

# Blobs lie two folders deep, each named by two characters of the digest.
_FOLDER = "[0-9a-f][0-9a-f]"


def list_folders(data_dir: Path) -> list[Path]:
    """Return the folders in which blobs lie."""
    return sorted(blobs_folder(data_dir).glob(f"{_FOLDER}/{_FOLDER}"))


def list_old(folder: Path, *, since: float) -> list[str]:
    """Return the digests of the blobs in one folder that nobody wrote since then."""
    return sorted(path.name for path in folder.iterdir() if _is_old(path, since))


def remove(data_dir: Path, digests: Iterable[str], *, since: float) -> None:
    """Remove the files of these blobs, except those that were written since then."""
    for digest in digests:
        _remove(path_of(data_dir, digest), incoming_folder(data_dir), since)


def _remove(path: Path, incoming: Path, since: float) -> None:
    incoming.mkdir(parents=True, exist_ok=True)
    aside = incoming / f"{path.name}.leaving"
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    if not _is_old(aside, since):
        # The same bytes were uploaded again. Had this been asked before the file was put aside,
        # they could have arrived in between, and would be lost.
        with suppress(FileExistsError):
            path.hardlink_to(aside)
    aside.unlink()


def remove_interrupted(data_dir: Path, *, since: float) -> None:
    """Remove what uploads left that nobody went on with since then."""
    for path in _children(incoming_folder(data_dir)):
        if _is_old(path, since):
            path.unlink(missing_ok=True)
    for upload in _children(parts_folder(data_dir)):
        # The folder is as old as its youngest part.
        if _is_old(upload, since):
            shutil.rmtree(upload, ignore_errors=True)


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_old(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime < since
    except FileNotFoundError:
        # It went by itself, so it need not be removed.
        return False
