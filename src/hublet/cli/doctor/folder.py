"""Checks of the data folder."""

import shutil
import stat
from pathlib import Path

from hublet.cli.doctor.findings import Finding, ok, problem, warning
from hublet.core.opening import CannotStart, open_folder

_CHECK = "data folder"
_MEGABYTE = 1_000_000
_TOO_LITTLE = 100 * _MEGABYTE
_LITTLE = 1000 * _MEGABYTE


def check(folder: Path) -> Finding:
    if not folder.exists():
        return warning(
            _CHECK, f"{folder} does not exist.", "The first hublet serve makes it; or is it a typo?"
        )
    try:
        open_folder(folder)
    except CannotStart as error:
        return problem(_CHECK, str(error), "Without it the hub does not start.")
    return _mode(folder) or _space(folder, free=shutil.disk_usage(folder).free)


def _mode(folder: Path) -> Finding | None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    return warning(
        _CHECK, f"{folder} is open to other users (mode {mode:04o}).", f"Run: chmod 700 {folder}"
    )


def _space(folder: Path, *, free: int) -> Finding:
    found = f"{folder} can be written and has {free // _MEGABYTE:,} MB left."
    if free < _TOO_LITTLE:
        return problem(_CHECK, found, "Make room: a full disk stops every change.")
    if free < _LITTLE:
        return warning(_CHECK, found, "Make room soon.")
    return ok(_CHECK, found)
