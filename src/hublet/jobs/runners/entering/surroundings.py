"""The variables that a job was started with, as far as the machine still tells them."""

import re

from hublet.jobs.runners.records import Inside
from hublet.jobs.runners.shim.system import read

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


def variables_of(inside: Inside, *, is_plain: bool) -> dict[str, str]:
    """Return what the job's first process began with: its image and its runner have a say in it.

    A program may have written over that, so nothing here is to be relied on. Blocks.
    """
    pid = inside.process.pid
    if not is_plain:
        # The first process of a sandbox only makes the place; the job is its child.
        children = read(f"/proc/{pid}/task/{pid}/children").split()
        pid = int(children[0]) if children else 0
    pairs = [line.partition(b"=") for line in read(f"/proc/{pid}/environ").split(b"\0")]
    found = {name: value for name, is_pair, value in pairs if is_pair and _NAME.fullmatch(name)}
    # The process may have ended, and its number be another's by now.
    if not inside.process.lives():
        return {}
    return {name.decode(): value.decode(errors="surrogateescape") for name, value in found.items()}
