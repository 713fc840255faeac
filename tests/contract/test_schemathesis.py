"""Requests nobody thought of: generated from the description, none may end in a 5xx."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import Place, Server, clean_environment, serving

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
_PATIENCE_SECONDS = 900
# Methods that no operation has are the gaps' business; those answer 501 on purpose.
_CONFIGURATION = "[phases.coverage]\nunexpected-methods = []\n"
_HOOKS = {
    "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
    "PYTHONPATH": str(Path(__file__).parent),
}
_LEFT_OUT = (
    "/api/test-mode/|/api/admin/users/|/api/settings/(tokens|password)/?|/api/notifications/stream"
)
# What is generated is the same in each run, so a failure can be looked at again.
_SEED = 20261115


# What the schema refuses never reaches a database: the second engine gets valid requests only, and
# fewer of them.
@pytest.mark.parametrize(
    ("engine", "mode", "examples"),
    [
        ("sqlite", "all", 2),
        ("postgresql", "positive", 2),
        pytest.param("sqlite", "all", 8, marks=pytest.mark.repeat),
        pytest.param("postgresql", "positive", 4, marks=pytest.mark.repeat),
    ],
)
def test_generated_requests_are_answered_as_described(
    engine: str, mode: str, examples: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None if engine == "sqlite" else request.getfixturevalue("fresh_url")()
    (tmp_path / "schemathesis.toml").write_text(_CONFIGURATION)
    with serving(Place(folder=tmp_path, database_url=url), "--test-mode") as server:
        _wait_for_the_description(server)
        _create_container(server)
        run = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "run",
                f"{server.address}/.well-known/openapi.json",
                f"--header=Authorization: Bearer {server.token}",
                f"--checks={','.join(_CHECKS)}",
                f"--max-examples={examples}",
                f"--seed={_SEED}",
                "--phases=examples,coverage,fuzzing",
                f"--mode={mode}",
                # Names that no path can have are thrown away, which is no fault of the description.
                "--suppress-health-check=filter_too_much",
                # These would end the test's own access, move its clock by years, or never end.
                f"--exclude-path-regex={_LEFT_OUT}",
                "--no-color",
            ],
            cwd=tmp_path,
            env=clean_environment(_HOOKS),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    failures = re.split("= (?:ERRORS|FAILURES) =", run.stdout, maxsplit=1)[-1]
    assert run.returncode == 0, failures[:8000] + run.stderr[-2000:]


def _wait_for_the_description(server: Server) -> None:
    """Let it be made before the tool asks, which waits for ten seconds only."""
    with server.client() as client:
        assert client.get("/.well-known/openapi.json").status_code == 200


def _create_container(server: Server) -> None:
    """Create the container that the hooks name; otherwise nearly all that is asked for is missing."""
    with server.client(server.token) as client:
        body = {"name": "tool", "type": "container"}
        assert client.post("/api/repos/create", json=body).status_code == 200
