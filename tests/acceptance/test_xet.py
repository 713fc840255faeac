"""The public client's own engine of Xet, unmodified, against the CAS of a real hub."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hublet.testing import Hub
from hublet.testing import User as HubUser
from processes import clean_environment
from repos.content import sha256

PROGRAM = Path(__file__).parent / "xet_transfer.py"


class XetEngine:
    """Runs the engine in a process of its own, with a cache of its own."""

    def __init__(self, hub: Hub, user: HubUser, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.headers = {"Authorization": f"Bearer {user.token}"}

    def upload(self, token_path: str, *files: Path) -> list[dict[str, Any]]:
        uploaded: list[dict[str, Any]] = self._run("upload", token_path, [str(f) for f in files])
        return uploaded

    def download(self, token_path: str, *files: dict[str, Any]) -> list[bytes]:
        paths = [self.folder / each["hash"] for each in files]
        wanted = [
            [each["hash"], each["size"], str(path)] for each, path in zip(files, paths, strict=True)
        ]
        self._run("download", token_path, wanted)
        return [path.read_bytes() for path in paths]

    def _run(self, act: str, token_path: str, files: list[Any]) -> Any:
        self.folder.mkdir(exist_ok=True)
        request = json.dumps([self.hub.url + token_path, self.headers, files])
        ended = subprocess.run(
            [sys.executable, PROGRAM, act, request],
            env=clean_environment({"HF_HOME": str(self.folder / "cache")}),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return json.loads(ended.stdout)


def mixed_content() -> bytes:
    """Return content that is stored with all three schemes: as it is, compressed, regrouped."""
    source = random.Random(17)
    numbers = b"".join(source.uniform(0, 1).hex().encode() for _ in range(20_000))
    floats = bytes(byte for _ in range(200_000) for byte in (*source.randbytes(2), 0, 63))
    return source.randbytes(3_000_000) + numbers + floats


@pytest.mark.parametrize("kind", ["model", "bucket"])
def test_a_file_arrives_is_found_again_in_parts_and_comes_back(
    hub: Hub, tmp_path: Path, kind: str
) -> None:
    ada = hub.user("ada")
    created = httpx2.post(
        f"{hub.url}/api/repos/create",
        headers={"Authorization": f"Bearer {ada.token}"},
        json={"name": "ada/engine", "type": kind},
    )
    assert created.status_code == 200, created.text
    path = f"/api/{kind}s/ada/engine/xet-{{}}-token" + ("/main" if kind == "model" else "")
    content = mixed_content()
    changed = content[:1_000_000] + b"inserted" + content[1_000_000:]
    first, small, second = (tmp_path / name for name in ("first", "small", "second"))
    first.write_bytes(content)
    small.write_bytes(b"hello\n")
    second.write_bytes(changed)

    engine = XetEngine(hub, ada, tmp_path / "one")
    uploaded = engine.upload(path.format("write"), first, small)
    assert [each["sha256"] for each in uploaded] == [sha256(content), sha256(b"hello\n")]
    # Another machine, which knows nothing of the first upload.
    other = XetEngine(hub, ada, tmp_path / "two")
    [again] = other.upload(path.format("write"), second)
    assert again["new_bytes"] < len(changed) / 10

    assert other.download(path.format("read"), *uploaded, again) == [content, b"hello\n", changed]
