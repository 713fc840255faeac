"""Session: one run of pytest and its hub."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from hublet.testing import environment
from hublet.testing.environment import Environment
from hublet.testing.errors import CannotStart
from hublet.testing.process import HubProcess, Port

# Whether the last run had tests with a hub: then this one begins with it, beside the collecting.
_USED = "hublet/used"
_LOG_SECONDS = 0.4


class Session:
    """Knows the hub's address from the start; has a process for it as soon as one is expected."""

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
            self._make_a_spare()

    def _was_used_last_time(self) -> bool:
        # Pytest's cache opens only after the conftest files, whose imports take so long.
        try:
            folder = self._config.rootpath / self._config.getini("cache_dir")
            return bool((folder / "v" / _USED).read_text() == "true")
        except (OSError, ValueError):
            return False

    def expect_a_hub(self) -> None:
        """A test will want a hub: begin with what takes longest, beside the rest."""
        if self._runs_tests and not self._selects:
            self._make_a_spare()

    def _make_a_spare(self) -> None:
        if self._spare is None and self._running is None:
            self._spare = HubProcess(self._port)

    @property
    def _runs_tests(self) -> bool:
        option = self._config.option
        # The one that hands out tests to others runs none by itself.
        hands_out = bool(getattr(option, "numprocesses", None)) and not hasattr(
            self._config, "workerinput"
        )
        return not (option.collectonly or hands_out)

    @property
    def _selects(self) -> bool:
        """Tell whether what is collected may still be left out."""
        option = self._config.option
        return bool(option.keyword or option.markexpr)

    @contextmanager
    def running(
        self, settings: Mapping[str, object], database_url: str | None
    ) -> Iterator[HubProcess]:
        self._check_the_client()
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
        """Make it a hub that no test has used."""
        if not self._is_fresh:
            process.reset()
        self._is_fresh = False
        self._log_start = process.log_size()

    def log_of_this_test(self) -> str:
        # The hub writes down its requests several at a time.
        threading.Event().wait(_LOG_SECONDS)
        return "" if self._running is None else self._running.log(self._log_start)

    def end(self) -> None:
        if self._spare is not None:
            self._spare.stop()
            self._spare = None
        self._port.release()
        if self._environment is not None:
            self._environment.put_back()
        # Some projects do without pytest's cache.
        cache = getattr(self._config, "cache", None)
        if self._runs_tests and cache is not None:
            cache.set(_USED, self._was_used)

    def _check_the_client(self) -> None:
        endpoint = environment.clients_endpoint()
        if self._environment is not None and endpoint not in {None, self._port.url}:
            raise CannotStart(
                f"huggingface_hub was imported before the tests' hub had an address, so it would "
                f"talk to {endpoint} and not to {self._port.url}. A plugin or `python -c` imported "
                "it: load hublet's plugin first (-p hublet.testing.plugin), or set hublet_env = "
                "false in pytest's settings and pass endpoint=hub.url yourself."
            )
