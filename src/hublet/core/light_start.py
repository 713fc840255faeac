"""A start without what takes long and is of no use to a hub. Imports nothing, to be first."""

import gc
import sys


def start_lightly() -> None:
    """Save a tenth of the start; to be called before anything else is imported.

    The server switches collections on again when it answers.
    """
    # What is made until then stays: there is no need to look through it again and again.
    gc.disable()
    # The library of the log would load it for tracebacks that we do not draw.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # what importing understands
