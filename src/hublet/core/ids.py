"""Ids and randomness: object ids, request ids, random bytes and text."""

import os
import re
import secrets
from threading import Lock

from hublet.core import clock

_COUNTER_BITS = 24
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1
_MICROS_PER_SECOND = 1_000_000

# The first four bytes of an id.
_LAST_SECOND = (1 << 32) - 1

_OBJECT_ID = re.compile(r"[0-9a-f]{24}")


class ObjectIds:
    """A growing row of ids: 4 bytes of seconds, 5 of the process, 3 of a counter."""

    __slots__ = ("_lock", "_position", "_process")

    def __init__(self, *, process: bytes, counter: int) -> None:
        self.restart(process=process, counter=counter)

    def restart(self, *, process: bytes, counter: int) -> None:
        # A fork may happen while another thread holds the lock, so the child needs a new one.
        self._lock = Lock()
        self._process = process.hex()
        # Seconds above, counter below: one integer that only grows.
        self._position = counter

    def next(self) -> str:
        second = clock.micros() // _MICROS_PER_SECOND
        with self._lock:
            position = self._position + 1
            # A full counter carries into the second, and a clock that was turned back
            # is not followed: either way the next id is the greater one.
            if second > position >> _COUNTER_BITS:
                position = (second << _COUNTER_BITS) | (position & _COUNTER_MASK)
            self._position = position
        return f"{position >> _COUNTER_BITS:08x}{self._process}{position & _COUNTER_MASK:06x}"


_object_ids = ObjectIds(process=os.urandom(5), counter=secrets.randbits(_COUNTER_BITS))


def restart() -> None:
    """Forget how far ids have grown: in a child, and in test mode when a moved clock comes back."""
    _object_ids.restart(process=os.urandom(5), counter=secrets.randbits(_COUNTER_BITS))


os.register_at_fork(after_in_child=restart)


def new_object_id() -> str:
    """Return an id that sorts after every earlier one of this process."""
    return _object_ids.next()


def is_object_id(text: str) -> bool:
    return _OBJECT_ID.fullmatch(text) is not None


def id_at(micros: int) -> str:
    """Return a prefix that sorts before every id that is made from this moment on."""
    seconds = micros // _MICROS_PER_SECOND
    return "g" if seconds > _LAST_SECOND else f"{max(seconds, 0):08x}"


def new_request_id() -> str:
    return os.urandom(16).hex()


def random_bytes(count: int) -> bytes:
    return os.urandom(count)


def random_text(count: int, alphabet: str) -> str:
    """Return characters drawn evenly from the alphabet, fit for secrets."""
    return "".join(secrets.choice(alphabet) for _ in range(count))
