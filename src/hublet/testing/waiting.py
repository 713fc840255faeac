"""Waiting until something is so, in the thread of a test."""

import threading
from collections.abc import Callable
from typing import TypeVar

from hublet.core.clock import monotonic
from hublet.testing.errors import WaitedInVain

T = TypeVar("T")

_PAUSE_SECONDS = 0.01


def wait_until(look: Callable[[], T], *, seconds: float, otherwise: Callable[[T], str]) -> T:
    """Look again and again until there is something, and return it; else fail with a sentence."""
    deadline = monotonic() + seconds
    pause = threading.Event()
    while not (found := look()):
        if monotonic() > deadline:
            raise WaitedInVain(otherwise(found))
        pause.wait(_PAUSE_SECONDS)
    return found
