"""Content on its way out: trees, single files, whole snapshots, and what is missing."""

import os
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import (
    EntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile, RepoFolder


@pytest.fixture
def filled(api: HfApi, repo: str, tmp_path: Path) -> str:
    for number in range(6):
        (tmp_path / f"d{number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"d{number % 3}" / f"f{number}.bin").write_bytes(os.urandom(1000 + number))
    api.upload_folder(repo_id=repo, folder_path=tmp_path)
    return repo


def test_a_snapshot_is_byte_identical(
    api: HfApi, filled: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("snapshot")

    cached = Path(api.snapshot_download(filled))
    api.snapshot_download(filled, local_dir=target, allow_patterns="d*/*")

    originals = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.bin"))
    assert len(originals) == 6
    for folder in (cached, target):
        for path in originals:
            assert (folder / path).read_bytes() == (tmp_path / path).read_bytes()


def test_a_cached_file_is_not_read_again(api: HfApi, filled: str) -> None:
    first = api.hf_hub_download(filled, "d0/f0.bin")

    assert api.hf_hub_download(filled, "d0/f0.bin") == first
    assert api.hf_hub_download(filled, "d0/f0.bin", local_files_only=True) == first


def test_what_is_missing_is_named(api: HfApi, filled: str) -> None:
    with pytest.raises(EntryNotFoundError):
        api.hf_hub_download(filled, "nothing.txt")
    with pytest.raises(RevisionNotFoundError):
        api.hf_hub_download(filled, "d0/f0.bin", revision="nothing")
    with pytest.raises(RepositoryNotFoundError):
        api.hf_hub_download("ada/nothing", "d0/f0.bin")
    assert api.file_exists(filled, "d0/f0.bin")
    assert not api.file_exists(filled, "nothing.txt")
    assert not api.file_exists(filled, "d0/f0.bin", revision="nothing")
    assert api.revision_exists(filled, "main")
    assert not api.revision_exists(filled, "nothing")


def test_trees_and_paths(api: HfApi, filled: str) -> None:
    top = list(api.list_repo_tree(filled))
    below = list(api.list_repo_tree(filled, "d1", expand=True))
    known = api.get_paths_info(filled, ["d0/f0.bin", "d2", "nothing"])

    assert [type(entry) for entry in top] == [RepoFile, RepoFolder, RepoFolder, RepoFolder]
    assert [entry.path for entry in below] == ["d1/f1.bin", "d1/f4.bin"]
    assert all(isinstance(entry, RepoFile) and entry.last_commit for entry in below)
    assert {entry.path for entry in known} == {"d0/f0.bin", "d2"}
    with pytest.raises(EntryNotFoundError):
        list(api.list_repo_tree(filled, "nothing"))


def test_blobs_of_a_revision(api: HfApi, filled: str) -> None:
    info = api.model_info(filled, files_metadata=True)

    sizes = {file.rfilename: file.size for file in info.siblings or ()}
    assert sizes["d0/f0.bin"] == 1000
    assert sizes["d2/f5.bin"] == 1005


def test_branches_and_tags(api: HfApi, filled: str) -> None:
    sha = api.model_info(filled).sha
    api.create_branch(filled, branch="dev")
    api.create_branch(filled, branch="dev", exist_ok=True)
    api.create_tag(filled, tag="v1", tag_message="First")
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=filled)

    refs = api.list_repo_refs(filled, include_pull_requests=True)

    assert {branch.name: branch.ref for branch in refs.branches} == {
        "dev": "refs/heads/dev",
        "main": "refs/heads/main",
    }
    assert [(tag.name, tag.target_commit) for tag in refs.tags] == [("v1", sha)]
    assert refs.pull_requests == []
    assert "x" not in api.list_repo_files(filled, revision="v1")
    api.delete_branch(filled, branch="dev")
    api.delete_tag(filled, tag="v1")
    with pytest.raises(RevisionNotFoundError):
        api.delete_tag(filled, tag="v1")
    assert [branch.name for branch in api.list_repo_refs(filled).branches] == ["main"]


def test_a_squashed_branch_has_one_commit(api: HfApi, filled: str) -> None:
    files = api.list_repo_files(filled)

    api.super_squash_history(filled, commit_message="All in one")

    assert [commit.title for commit in api.list_repo_commits(filled)] == ["All in one"]
    assert api.list_repo_files(filled) == files
