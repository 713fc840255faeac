"""Where the volumes of an attempt lie inside its folder."""

from pathlib import Path

FILES = "files"
NOTE = "handed.json"


def content_of(folder: Path) -> Path:
    """Where the files of a space lie."""
    return folder.absolute() / "app"


def bucket_of(folder: Path, place: int) -> Path:
    """Where a bucket lies that is the volume in this place.

    It has the files, which the job sees, and beside them a note of what they were, which it
    cannot write to.
    """
    return folder.absolute() / "volumes" / str(place)


def frame_of(folder: Path, place: int) -> Path:
    """Where the frame of a commit lies that is the volume in this place."""
    return bucket_of(folder, place)
