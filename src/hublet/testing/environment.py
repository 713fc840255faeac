"""Environment variables of a test run: set before the public client is imported, restored at its end."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

DATABASE_VARIABLE = "HUBLET_TEST_DATABASE_URL"
_LOOPBACK = ("127.0.0.1", "localhost")
# The client still reads some variables under older names, and one of another library.
_CLIENT_PREFIXES = ("HF_", "HUGGING_FACE_", "HUGGINGFACE_", "TRANSFORMERS_OFFLINE")


class Variables:
    """Environment variables that are set for a while, and restored after it."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def put(self, name: str, value: str | None) -> None:
        """Set a variable, or unset it with None."""
        self._before.setdefault(name, os.environ.get(name))
        _set_variable(name, value)

    def restore(self) -> None:
        for name, value in self._before.items():
            _set_variable(name, value)
        self._before.clear()


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


class Environment:
    """Variables of the public client, which reads most of them once, when it is imported."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._folder = tempfile.mkdtemp(prefix="hublet-client-")
        self._variables = Variables()

    def set(self) -> None:
        for name in [name for name in os.environ if name.startswith(_CLIENT_PREFIXES)]:
            self._variables.put(name, None)
        for name, value in self._client_variables().items():
            self._variables.put(name, value)

    def restore(self) -> None:
        self._variables.restore()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _client_variables(self) -> dict[str, str]:
        return {
            "HF_ENDPOINT": self._endpoint,
            "HF_HOME": self._folder,
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            # A proxy could not reach the ports of this machine.
            "NO_PROXY": _without_proxy("NO_PROXY"),
            "no_proxy": _without_proxy("no_proxy"),
        }


def _without_proxy(name: str) -> str:
    hosts = [host for host in os.environ.get(name, "").split(",") if host]
    return ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])


def clients_endpoint() -> str | None:
    """Return the endpoint of the public client in this process; None: it was not imported yet."""
    constants: Any = sys.modules.get("huggingface_hub.constants")
    return None if constants is None else str(constants.ENDPOINT)


def database_url() -> str | None:
    return os.environ.get(DATABASE_VARIABLE) or None


def child_variables() -> Mapping[str, str]:
    """Return the variables of the child process, without the settings of a developer's own hub."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HUBLET_")}
