"""`webhook_endpoint`: decorator that registers a function with one server for the whole script."""

import signal
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hublet.receiver.server import WebhooksServer
from hublet.receiver.threads import Threads

if TYPE_CHECKING:
    from hublet.receiver.launch import Launch

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def webhook_endpoint(path: _Function) -> _Function: ...


@overload
def webhook_endpoint(path: str | None = None) -> Callable[[_Function], _Function]: ...


def webhook_endpoint(path: Any = None) -> Any:
    """Register a function with the script's own server: `@webhook_endpoint`, or with a path.

    The server starts when the script has ended, or when the function's `launch()` is called.
    """
    if callable(path):
        return webhook_endpoint()(path)

    def register(function: _Function) -> _Function:
        script = _script()
        script.server.add_webhook(path)(function)
        function.launch = script.launch_now  # type: ignore[attr-defined]  # as the public library
        return function

    return register


class _Script:
    """Serves when the main thread has ended, unless the script launched the server itself.

    All threads start now: after the end of the main thread, newer Pythons start none.
    """

    def __init__(self) -> None:
        self.server = WebhooksServer()
        self._threads = Threads()
        self._serves_at_the_end = True
        self._launch: Launch | None = None
        # No daemon: Python waits for this thread before the process ends.
        threading.Thread(target=self._serve_at_the_end, name="webhooks").start()
        if threading.current_thread() is threading.main_thread():
            self._handle(signal.SIGINT)
            self._handle(signal.SIGTERM)

    def launch_now(self) -> None:
        self._serves_at_the_end = False
        self.server.launch()

    def _serve_at_the_end(self) -> None:
        threading.main_thread().join()
        # A script that failed ends, and does not serve half of its webhooks.
        if self._serves_at_the_end and not hasattr(sys, "last_value"):
            self._launch = self.server.prepare_launch({}, threads=self._threads)
            self._launch.serve()

    def _handle(self, number: signal.Signals) -> None:
        """Stop the server at a signal while it serves; before that, call the previous handler."""
        previous = signal.getsignal(number)

        def handle(_number: int, frame: FrameType | None) -> None:
            if self._launch is not None:
                self._launch.ask_to_stop()
            elif callable(previous):
                previous(number, frame)
            else:
                signal.signal(number, previous)
                signal.raise_signal(number)

        signal.signal(number, handle)


@cache
def _script() -> _Script:
    return _Script()
