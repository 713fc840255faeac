"""A start without what takes long and is of no use to a hub. Imports nothing, to be first."""

import gc
import sys

# The library of the log would load `rich` for tracebacks that we do not draw, the framework
# `email_validator` for an address that our description does not have.
_KEPT_OUT = ("rich", "email_validator")


def start_lightly() -> None:
    """Save a tenth of the start; to be called before anything else is imported."""
    # What is made until the end of the start stays: there is no need to look through it again
    # and again.
    gc.disable()
    for name in _KEPT_OUT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # what importing understands


def end_light_start() -> None:
    """From now on everything may be imported, and what is made may go again."""
    for name in _KEPT_OUT:
        if name in sys.modules and sys.modules[name] is None:
            del sys.modules[name]
    # What exists now stays until the end: no collection need look at it again. Collecting it
    # first would free some hundred kilobytes and take a tenth of the whole start.
    gc.freeze()
    gc.enable()
