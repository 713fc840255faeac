"""The command on a hub of each kind."""

import gc
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.hublet_command import Hublet, Outcome, location_flags
from hublet.cli import main
from hublet.core.config import Settings
from people import WEAK_HASHER
from processes import Place, Server, serving


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Hublet:
    """Runs the command in this process, with exactly these arguments."""
    for name in [name for name in os.environ if name.startswith(("HUBLET_", "HF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("hublet.accounts.passwords._hasher", WEAK_HASHER)

    def run(*arguments: str, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["hublet", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as stopped:
            main()
        # This process goes on, and what is frozen would never go.
        gc.unfreeze()
        captured = capsys.readouterr()
        return Outcome(code=int(stopped.value.code or 0), out=captured.out, err=captured.err)

    return run


@pytest.fixture
def hublet(settings: Settings, run: Hublet) -> Hublet:
    """Runs the command in this process on the hub of the settings."""

    def on_the_hub(*arguments: str, stdin: str = "") -> Outcome:
        return run(*arguments, *location_flags(settings), stdin=stdin)

    return on_the_hub


@pytest.fixture(scope="module")
def server(shared_place: Place) -> Iterator[Server]:
    """A hub that runs for all tests of a module, and may call this machine."""
    with serving(shared_place, "--test-mode") as started:
        yield started


@pytest.fixture
def ask(server: Server, run: Hublet, monkeypatch: pytest.MonkeyPatch) -> Hublet:
    """Runs the command in this process as its administrator asks the running hub."""
    monkeypatch.setenv("HUBLET_ENDPOINT", server.address)
    monkeypatch.setenv("HUBLET_TOKEN", server.token or "")
    return run
