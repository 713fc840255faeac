"""Ids and randomness: object ids, request ids, random bytes and text."""

import os
import re
import secrets
from threading import Lock

from hublet.core import clock

# Of a microsecond: no process makes more ids in one.
_COUNTER_BITS = 8
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1
_MICROS_PER_SECOND = 1_000_000
_PROCESS_BITS = 36

# The first four bytes of an id.
_LAST_SECOND = (1 << 32) - 1

_OBJECT_ID = re.compile(r"[0-9a-f]{24}")


class ObjectIds:
    """A growing row of ids: 8 digits of seconds, 5 of microseconds, 9 of the process, 2 of a counter.

    Ids of several processes sort by the microsecond, as far as the clocks of their machines agree. So a
    list that is sorted by id shows what happened on two nodes in the order in which it happened.
    """

    __slots__ = ("_lock", "_position", "_process")

    def __init__(self, *, process: int) -> None:
        self.restart(process=process)

    def restart(self, *, process: int) -> None:
        # A fork may happen while another thread holds the lock, so the child needs a new one.
        self._lock = Lock()
        self._process = f"{process:09x}"
        # Microseconds above, counter below: one integer that only grows.
        self._position = 0

    def next(self) -> str:
        present = clock.micros() << _COUNTER_BITS
        with self._lock:
            # A full counter carries into the microsecond, and a clock that was turned back
            # is not followed: either way the next id is the greater one.
            position = self._position = max(self._position + 1, present)
        second, micros = divmod(position >> _COUNTER_BITS, _MICROS_PER_SECOND)
        return f"{second:08x}{micros:05x}{self._process}{position & _COUNTER_MASK:02x}"


_object_ids = ObjectIds(process=secrets.randbits(_PROCESS_BITS))


def restart() -> None:
    """Forget how far ids have grown: in a child, and in test mode when a moved clock comes back."""
    _object_ids.restart(process=secrets.randbits(_PROCESS_BITS))


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


_REQUEST_ID_DIGITS = 32
_REQUEST_IDS_AT_ONCE = 64
_request_ids: list[str] = []
# Two processes must not give the same ones away.
os.register_at_fork(after_in_child=_request_ids.clear)


def new_request_id() -> str:
    try:
        return _request_ids.pop()
    except IndexError:
        # To ask the system for each one would cost more than all the rest of it.
        digits = os.urandom(_REQUEST_IDS_AT_ONCE * _REQUEST_ID_DIGITS // 2).hex()
        starts = range(_REQUEST_ID_DIGITS, len(digits), _REQUEST_ID_DIGITS)
        _request_ids.extend(digits[at : at + _REQUEST_ID_DIGITS] for at in starts)
        return digits[:_REQUEST_ID_DIGITS]


def random_bytes(count: int) -> bytes:
    return os.urandom(count)


def random_text(count: int, alphabet: str) -> str:
    """Return characters drawn evenly from the alphabet, fit for secrets."""
    return "".join(secrets.choice(alphabet) for _ in range(count))
