"""A hub moves from its data folder to a shared store and back, with all that clients see of it."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from acceptance.test_large_files import git
from processes import Place, run_hublet, serving

pytestmark = pytest.mark.full

LARGE = os.urandom(11 * 1024 * 1024)
REPO = "engine"


def look_at(address: str, token: str, folder: Path) -> tuple[str, list[str]]:
    """Return the digest of the large file and what a clone has, and leave one commit more."""
    api = HfApi(endpoint=address, token=token)
    repo = f"{api.whoami()['name']}/{REPO}"
    url = address.replace("://", f"://git:{token}@")
    folder.mkdir()
    git("clone", "--quiet", f"{url}/{repo}", "work", folder=folder)
    git("-C", "work", "fsck", "--full", "--strict", folder=folder)
    names = sorted(path.name for path in (folder / "work").iterdir() if path.suffix == ".txt")
    large = api.hf_hub_download(repo, "weights.bin", local_dir=folder / "downloaded")
    api.upload_file(path_or_fileobj=b"more", path_in_repo=f"{folder.name}.txt", repo_id=repo)
    return hashlib.sha256(Path(large).read_bytes()).hexdigest(), names


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_hub_moves_to_a_shared_store_and_back(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "client"))
    shared, own = f"file://{tmp_path}/shared", f"file://{place.data_dir.absolute()}"
    digest = hashlib.sha256(LARGE).hexdigest()

    def move(**variables: str) -> dict[str, int]:
        given = {f"HUBLET_STORAGE_{name.upper()}": value for name, value in variables.items()}
        ended = run_hublet(
            "storage", "move", "--verify", "--json", *place.flags,
            folder=place.folder, variables=given,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        moved: dict[str, int] = json.loads(ended.stdout)
        return moved

    def visit(name: str, **variables: str) -> tuple[str, list[str]]:
        given = {f"HUBLET_STORAGE_{key.upper()}": value for key, value in variables.items()}
        # Alone: nodes with folders of their own have nothing that could be moved.
        with serving(place, variables=given, alone=True) as server:
            return look_at(server.address, token, tmp_path / name)

    with serving(place, alone=True) as server:
        assert server.token is not None
        token = server.token
        api = HfApi(endpoint=server.address, token=server.token)
        api.create_repo(REPO)
        (tmp_path / "weights").write_bytes(LARGE)
        api.upload_file(
            path_or_fileobj=tmp_path / "weights",
            path_in_repo="weights.bin",
            repo_id=f"{server.user}/{REPO}",
        )
        assert look_at(server.address, token, tmp_path / "first") == (digest, [])

    to_shared = {"url": shared, "previous_url": own}
    # Before and after the move: content comes from wherever it is.
    assert visit("second", **to_shared) == (digest, ["first.txt"])
    assert move(**to_shared)["repositories"] == 1
    assert move(**to_shared) == {"repositories": 0, "copied": 0, "copiedBytes": 0} | _rest(
        move(**to_shared)
    )
    assert visit("third", url=shared) == (digest, ["first.txt", "second.txt"])

    back = {"url": own, "previous_url": shared}
    assert visit("fourth", **back) == (digest, ["first.txt", "second.txt", "third.txt"])
    assert move(**back)["repositories"] == 1
    found = visit("fifth")
    assert found == (digest, ["first.txt", "fourth.txt", "second.txt", "third.txt"])


def _rest(moved: dict[str, int]) -> dict[str, int]:
    return {name: moved[name] for name in ("present", "damaged")}
