"""Pytest plugin: its options, hooks and fixtures."""

from collections.abc import Generator, Iterator, Mapping

import pytest

from hublet.testing import environment
from hublet.testing.hub import Hub
from hublet.testing.process import HubProcess
from hublet.testing.session import Session
from hublet.testing.webhooks import Receiver, receiving

_SESSION = pytest.StashKey[Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "hublet_env",
        "Point huggingface_hub to the tests' hub before it is imported (HF_ENDPOINT and others).",
        type="bool",
        default=True,
    )
    parser.addini(
        "hublet_settings",
        "Settings of the tests' hub, one `key = value` on each line, as in its settings file.",
        type="linelist",
        default=[],
    )
    parser.addini(
        "hublet_database_url",
        "A PostgreSQL server, by any database on it; without one the tests' hub uses SQLite.",
        default="",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # A conftest.py may import the public client, which reads its environment once.
    _session_of(early_config)


def pytest_configure(config: pytest.Config) -> None:
    # For a plugin that was not loaded early.
    _session_of(config)


def _session_of(config: pytest.Config) -> Session:
    if _SESSION not in config.stash:
        config.stash[_SESSION] = session = Session(config)
        # A cleanup runs also when a conftest.py fails, unlike `pytest_unconfigure`.
        config.add_cleanup(session.end)
    return config.stash[_SESSION]


def pytest_itemcollected(item: pytest.Item) -> None:
    if "hub" in getattr(item, "fixturenames", ()):
        _session_of(item.config).expect_hub()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    uses_hub = "hub" in getattr(item, "fixturenames", ())
    if report.failed and call.when == "call" and uses_hub:
        report.sections.append(("Log of the hub", _session_of(item.config).log_of_this_test()))
    return report


@pytest.fixture(scope="session")
def hub_settings(pytestconfig: pytest.Config) -> Mapping[str, object]:
    """Settings of the hub by their keys in its settings file; override it for your project."""
    pairs = (line.partition("=") for line in pytestconfig.getini("hublet_settings"))
    return {key.strip(): value.strip() for key, _, value in pairs}


@pytest.fixture(scope="session")
def hub_database_url(pytestconfig: pytest.Config) -> str | None:
    """A PostgreSQL server, by any database on it; None is SQLite in a temporary folder."""
    return environment.database_url() or pytestconfig.getini("hublet_database_url") or None


@pytest.fixture(scope="session")
def hub_process(
    pytestconfig: pytest.Config,
    hub_settings: Mapping[str, object],
    hub_database_url: str | None,
) -> Iterator[HubProcess]:
    """The process in which the hub of all tests runs."""
    with _session_of(pytestconfig).running(hub_settings, hub_database_url) as process:
        yield process


@pytest.fixture
def hub(pytestconfig: pytest.Config, hub_process: HubProcess) -> Iterator[Hub]:
    """A real hub that no other test has used."""
    _session_of(pytestconfig).renew(hub_process)
    hub = Hub(hub_process)
    yield hub
    hub.logout()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint for webhooks that records its requests."""
    with receiving() as receiver:
        yield receiver
