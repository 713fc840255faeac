"""Help and version start fast: what they import is counted, because time on a busy machine lies."""

import json
import subprocess
import sys

import pytest

from cli.hublet_command import Hublet
from client.scripted_server import ScriptedResponse, scripted_server
from hublet import __version__

# Each takes longer to import than all of the command line.
HEAVY = {
    "argon2",
    "asyncio",
    "asyncpg",
    "cryptography",
    "fastapi",
    "json",
    "msgspec",
    "pydantic",
    "rich",
    "sqlite3",
    "starlette",
    "structlog",
    "uvicorn",
}
# Typer itself brings about 140.
MOST = 190

_SCRIPT = """
import sys
sys.argv = ["hublet", *sys.argv[1:]]
from hublet.cli import main
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
finally:
    modules = list(sys.modules)
    import json
    sys.stderr.write(json.dumps(modules))
"""


# What a command that asks a hub never needs; typer itself reads a value that is given with pydantic.
OF_A_HUB = HEAVY - {"json", "pydantic"}


def modules_of(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--help"], id="help"),
        pytest.param(["version"], id="version"),
        pytest.param(["org", "member", "add", "--help"], id="help of a command"),
        pytest.param(["webhooks", "list", "--help"], id="help of a command that asks a hub"),
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    modules = modules_of(*arguments)

    assert modules & HEAVY == set()
    assert {name for name in modules if name.startswith("hublet.") and ".cli" not in name} == set()
    assert len(modules) < MOST


def test_the_version_is_an_option_too(run: Hublet) -> None:
    shown = f"hublet {__version__}\n"

    assert (run("--version").out, run("version").out) == (shown, shown)


def test_a_command_loads_no_other() -> None:
    modules = modules_of("webhooks", "list", "--help")

    assert {
        name for name in modules if name.startswith(("hublet.cli.users", "hublet.cli.jobs"))
    } == set()


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_an_option_of_the_command_itself_loads_no_command(option: str) -> None:
    ours = {name for name in modules_of(option) if name.startswith("hublet.")}

    assert ours == {"hublet.cli", "hublet.cli.options", "hublet.cli.environment"}


def test_a_command_that_asks_a_hub_does_without_what_a_hub_is_made_of() -> None:
    with scripted_server(ScriptedResponse(body=b"[]")) as hub:
        modules = modules_of("webhooks", "list", "--endpoint", hub.address, "--token", "hf_x")

    assert modules & OF_A_HUB == set()
    ours = {name.split(".")[1] for name in modules if name.startswith("hublet.")}
    assert ours == {"cli", "client"}
