"""Overlay file system: whether this machine shows the layers of an image as one folder."""

import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from hublet.core.logs import get_logger
from hublet.runtime.images.layer_stack import Layer, add_folder, mark
from hublet.runtime.images.layers import LayerNotes

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
    return find_obstacle(cache) is None


@lru_cache(maxsize=8)
def find_obstacle(cache: Path) -> str | None:
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
