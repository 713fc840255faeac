"""A receiver's surroundings, the same on every machine."""

import pytest

_VARIABLES = [
    "WEBHOOK_SECRET",
    *("SPACE_ID", "SPACE_HOST", "ACCELERATOR", "CPU_CORES", "MEMORY"),
    *("GRADIO_SERVER_NAME", "GRADIO_SERVER_PORT", "GRADIO_NUM_PORTS"),
]


@pytest.fixture(autouse=True)
def bare_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
