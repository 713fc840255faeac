"""An image that has uv and a Python, made of what this machine has: the jobs of `hf jobs uv run`."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from acceptance.client_versions import ENVIRONMENTS

# The image that the client names when it is not told another.
IMAGES = "ghcr.io/astral-sh/uv:*"
_UV = ENVIRONMENTS / "uv" / "bin" / "uv"
_NOT_NEEDED = shutil.ignore_patterns("site-packages", "dist-packages", "test", "config-*")


def make_uv_image(root: Path) -> None:
    """Make the root file system of the image; everything lies where it lies on this machine."""
    python, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, _below(root, library), symlinks=True, ignore=_NOT_NEEDED)
    for file in {python, *_shared_libraries(_UV, python, *library.glob("lib-dynload/*.so"))}:
        _copy(file, _below(root, file))
    programs = root / "usr/local/bin"
    _copy(_UV, programs / "uv")
    if not (programs / "python3").exists():
        (programs / "python3").symlink_to(python)


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


def _shared_libraries(*programs: Path) -> set[Path]:
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed.stdout)}
