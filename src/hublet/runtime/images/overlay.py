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


@lru_cache(maxsize=8)
def is_usable(cache: Path) -> bool:
    """Tell whether layers in a folder can be mounted by this user. Blocks.

    The kernel, a container around the hub, or the file system of the folder may forbid it.
    """
    with tempfile.TemporaryDirectory(prefix="probe-", suffix=".partial", dir=cache) as name:
        probe = Path(name)
        try:
            _write_layers(probe)
        except OSError as error:
            log.info("images are merged: their folder cannot hold layers", error=str(error))
            return False
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
        if tried.returncode:
            reason = tried.stderr.strip().rpartition("\n")[2]
            log.info("images are merged: layers cannot be mounted", error=reason)
        return not tried.returncode


def _write_layers(probe: Path) -> None:
    """Write two layers: the upper one hides a file and all in a folder of the lower one."""
    for place in ("0/d", "1/d", "m"):
        add_folder(probe, place)
    for place in ("0/f", "0/d/a"):
        (probe / place).touch()
    mark(Layer(root=probe / "1", notes=LayerNotes(whiteouts=["f"], opaque=["d"])))
