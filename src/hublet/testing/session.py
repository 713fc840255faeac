"""Session: the hub of one run of pytest."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from hublet.testing import environment
from hublet.testing.environment import Environment
from hublet.testing.errors import CannotStart
from hublet.testing.log_lines import readable_log
from hublet.testing.process import HubProcess, Port

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
