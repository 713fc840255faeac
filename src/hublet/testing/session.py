"""Session: the hub of one run of pytest, and its log lines for people: as many as can be read."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from hublet.testing import environment
from hublet.testing.environment import Environment
from hublet.testing.errors import CannotStart
from hublet.testing.process import HubProcess, Port

# In the report of a test that failed; `hub.log` has all of it.
MAX_LINES = 100
MAX_LINE_CHARACTERS = 400
_HEAD = ("timestamp", "level", "logger", "event", "exception")


def readable_log(log: str) -> str:
    """Return the last lines of a log, each as `time level event key=value …`."""
    lines = log.splitlines()
    left_out = len(lines) - MAX_LINES
    readable = [_readable_line(line) for line in lines[-MAX_LINES:]]
    if left_out > 0:
        readable.insert(0, f"({left_out} earlier lines are left out; hub.log has them)")
    return "\n".join(readable)


def _readable_line(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return _cut(line)
    if not isinstance(record, dict) or "event" not in record:
        return _cut(line)
    # A traceback is worth its lines.
    exception = record.get("exception")
    return _cut(_fields(record)) + (f"\n{exception}" if exception else "")


def _fields(record: dict[str, Any]) -> str:
    # Of the time without the day: a test does not last longer.
    time = str(record.get("timestamp", "")).partition("T")[2].removesuffix("Z")[:12]
    pairs = (f"{key}={_value(record[key])}" for key in record if key not in _HEAD)
    return " ".join([time, str(record.get("level", "")), str(record["event"]), *pairs])


def _value(value: object) -> str:
    """Return a word as it is, and anything else as JSON."""
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _cut(line: str) -> str:
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}…"


# Whether the last run had tests with a hub: then the hub starts while pytest still collects.
_USED = "hublet/used"
_LOG_SECONDS = 0.4


class Session:
    """Reserves the hub's address at once, and starts its process as soon as a test needs one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._port = Port()
        self._environment: Environment | None = None
        self._spare: HubProcess | None = None
        self._running: HubProcess | None = None
        self._is_fresh = False
        self._log_start = 0
        self._was_used = False
        if config.getini("hublet_env"):
            self._environment = Environment(self._port.url)
            self._environment.set()
        if self._runs_tests and self._was_used_last_time():
            self._create_spare()

    def _was_used_last_time(self) -> bool:
        # Pytest's own cache is available only after the conftest files are imported.
        try:
            folder = self._config.rootpath / self._config.getini("cache_dir")
            return bool((folder / "v" / _USED).read_text() == "true")
        except (OSError, ValueError):
            return False

    def expect_hub(self) -> None:
        """Start the process early: a collected test uses a hub."""
        if self._runs_tests and not self._may_deselect:
            self._create_spare()

    def _create_spare(self) -> None:
        if self._spare is None and self._running is None:
            self._spare = HubProcess(self._port)

    @property
    def _runs_tests(self) -> bool:
        option = self._config.option
        # The controller of pytest-xdist runs no tests itself.
        is_controller = bool(getattr(option, "numprocesses", None)) and not hasattr(
            self._config, "workerinput"
        )
        return not (option.collectonly or is_controller)

    @property
    def _may_deselect(self) -> bool:
        """Return whether collected tests may still be deselected."""
        option = self._config.option
        return bool(option.keyword or option.markexpr)

    @contextmanager
    def running(
        self, settings: Mapping[str, object], database_url: str | None
    ) -> Iterator[HubProcess]:
        self._check_client()
        process, self._spare = self._spare or HubProcess(self._port), None
        self._running, self._was_used = process, True
        try:
            process.start(settings, database_url=database_url)
            self._is_fresh = True
            yield process
        finally:
            self._running = None
            process.stop()

    def renew(self, process: HubProcess) -> None:
        """Reset the hub, unless no test has used it yet."""
        if not self._is_fresh:
            process.reset()
        self._is_fresh = False
        self._log_start = process.log_size()

    def log_of_this_test(self) -> str:
        # The hub writes its log in batches.
        threading.Event().wait(_LOG_SECONDS)
        return "" if self._running is None else readable_log(self._running.log(self._log_start))

    def end(self) -> None:
        if self._spare is not None:
            self._spare.stop()
            self._spare = None
        self._port.release()
        if self._environment is not None:
            self._environment.restore()
        # Some projects disable pytest's cache.
        cache = getattr(self._config, "cache", None)
        if self._runs_tests and cache is not None:
            cache.set(_USED, self._was_used)

    def _check_client(self) -> None:
        endpoint = environment.clients_endpoint()
        if self._environment is not None and endpoint not in {None, self._port.url}:
            raise CannotStart(
                f"huggingface_hub was imported before the tests' hub had an address, so it would "
                f"talk to {endpoint} and not to {self._port.url}. A plugin or `python -c` imported "
                "it: load hublet's plugin first (-p hublet.testing.plugin), or set hublet_env = "
                "false in pytest's settings and pass endpoint=hub.url yourself."
            )
