"""The `hf` command."""

import json
import os
import subprocess
import sys
from pathlib import Path

from huggingface_hub import HfApi

HF = Path(sys.executable).parent / "hf"


def hf(*arguments: str, fails: bool = False) -> str:
    ended = subprocess.run(
        [HF, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode != 0) is fails, ended.stdout + ended.stderr
    return ended.stderr if fails else ended.stdout


def test_upload_and_download_are_byte_identical(api: HfApi, repo: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "sub").mkdir(parents=True)
    (source / "a.bin").write_bytes(os.urandom(100_000))
    (source / "sub" / "b.txt").write_text("b\r\n")

    hf("upload", repo, str(source), ".")
    hf("download", repo, "--local-dir", str(target))

    for path in ("a.bin", "sub/b.txt"):
        assert (target / path).read_bytes() == (source / path).read_bytes()


def test_repositories(api: HfApi) -> None:
    hf("repos", "create", "ada/by-command", "--type", "dataset")
    assert api.repo_exists("ada/by-command", repo_type="dataset")
    hf("repos", "move", "ada/by-command", "ada/moved-by-command", "--type", "dataset")
    hf("repos", "settings", "ada/moved-by-command", "--type", "dataset", "--private")
    assert api.dataset_info("ada/moved-by-command").private is True
    hf("repos", "delete", "ada/moved-by-command", "--type", "dataset", "-y")
    assert not api.repo_exists("ada/moved-by-command", repo_type="dataset")
    hf("repos", "delete", "ada/moved-by-command", "--type", "dataset", "-y", fails=True)


def test_discussions(repo: str) -> None:
    hf("discussions", "create", repo, "--title", "By command", "--body", "Hello")
    hf("discussions", "comment", repo, "1", "--body", "A comment")
    hf("discussions", "close", repo, "1", "-y")

    listed = json.loads(hf("discussions", "list", repo, "--status", "all", "--json"))

    assert [(found["num"], found["title"], found["status"]) for found in listed] == [
        (1, "By command", "closed")
    ]


def test_a_missing_repository_is_told() -> None:
    assert "ada/nothing" in hf("download", "ada/nothing", fails=True)
