"""The receiver is light: it brings no hub, no FastAPI and no HTTP server along until it launches."""

import subprocess
import sys

_FORBIDDEN = ("fastapi", "gradio", "uvicorn", "msgspec", "aiohttp", "structlog", "asyncpg")


def modules_after(code: str) -> set[str]:
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(told.stdout.split())


def test_importing_it_loads_nothing_of_the_hub() -> None:
    modules = modules_after("import hublet.receiver")

    assert modules & set(_FORBIDDEN) == set()
    ours = {name for name in modules if name.startswith("hublet.")}
    assert {name for name in ours if not name.startswith("hublet.receiver")} == {
        "hublet.webhooks",
        "hublet.webhooks.delivery",
        "hublet.webhooks.delivery.signing",
    }


def test_a_mounted_one_needs_no_server_either() -> None:
    modules = modules_after(
        "from hublet.receiver import WebhooksServer\nWebhooksServer(webhook_secret='coal')"
    )

    assert modules & set(_FORBIDDEN) == set()
