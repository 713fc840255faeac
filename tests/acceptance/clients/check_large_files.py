"""Large and binary files: through Xet, through LFS, and each read by the other way."""

import io
import os
from pathlib import Path

import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    HfApi,
    HfFileSystem,
    constants,
    get_hf_file_metadata,
    hf_hub_url,
)
from huggingface_hub.hf_api import RepoFile

LARGE = 11 * 1024 * 1024


@pytest.fixture
def without_xet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with HF_HUB_DISABLE_XET=1, which the client reads when it is imported."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)


def _file(api: HfApi, repo: str, path: str) -> RepoFile:
    [found] = api.get_paths_info(repo, path)
    assert isinstance(found, RepoFile)
    return found


def _download(api: HfApi, repo: str, path: str, folder: Path, **more: str) -> bytes:
    """Download without the cache, which knows files by their SHA-256."""
    return Path(api.hf_hub_download(repo, path, local_dir=folder, **more)).read_bytes()


def test_binary_and_large_files_go_through_xet_and_text_into_git(
    api: HfApi, repo: str, tmp_path: Path
) -> None:
    files = {
        "weights.safetensors": b"named by .gitattributes",
        "picture.png": b"\x89PNG\r\n" + os.urandom(100),
        "log.txt": b"a line of text\n" * (LARGE // 15),
        "small.txt": b"small text",
        "empty.bin": b"",
    }

    api.create_commit(
        repo,
        [CommitOperationAdd(path, content) for path, content in files.items()],
        commit_message="All kinds",
    )

    found = {path: _file(api, repo, path) for path in files}
    in_lfs = {path for path, file in found.items() if file.lfs is not None}
    assert in_lfs == {"weights.safetensors", "picture.png", "log.txt"}
    assert {path for path, file in found.items() if file.xet_hash} == in_lfs
    for path, content in files.items():
        assert _download(api, repo, path, tmp_path) == content


def test_a_file_of_xet_tells_so_before_it_is_downloaded(api: HfApi, repo: str) -> None:
    api.upload_file(path_or_fileobj=os.urandom(3000), path_in_repo="a.bin", repo_id=repo)

    metadata = get_hf_file_metadata(hf_hub_url(repo, "a.bin"))

    assert metadata.xet_file_data is not None
    assert metadata.xet_file_data.file_hash == _file(api, repo, "a.bin").xet_hash
    assert metadata.size == 3000


def test_unchanged_large_content_makes_no_commit(api: HfApi, repo: str, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(os.urandom(LARGE))
    first = api.upload_folder(repo_id=repo, folder_path=tmp_path)

    again = api.upload_folder(repo_id=repo, folder_path=tmp_path)

    assert again.oid == first.oid


def test_a_changed_copy_comes_back_byte_for_byte(api: HfApi, repo: str, tmp_path: Path) -> None:
    before = os.urandom(LARGE)
    after = before[:1_000_000] + b"inserted" + before[1_000_000:9_000_000] + before[9_005_000:]

    for content in (before, after):
        api.upload_file(path_or_fileobj=content, path_in_repo="a.bin", repo_id=repo)

    assert _download(api, repo, "a.bin", tmp_path) == after


@pytest.mark.usefixtures("without_xet")
@pytest.mark.parametrize("size", [3000, LARGE, 65 * 1024 * 1024 + 1])
def test_without_xet_files_go_through_lfs(api: HfApi, repo: str, tmp_path: Path, size: int) -> None:
    # Above 64 MiB in parts.
    content = os.urandom(3000) + bytes(size - 3000)

    api.upload_file(path_or_fileobj=content, path_in_repo="a.bin", repo_id=repo)

    lfs = _file(api, repo, "a.bin").lfs
    assert (lfs and lfs.size) == size
    assert _download(api, repo, "a.bin", tmp_path) == content


def test_what_came_through_lfs_is_read_by_all_clients(
    api: HfApi, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through_xet, through_lfs = os.urandom(LARGE), os.urandom(LARGE)
    api.upload_file(path_or_fileobj=through_xet, path_in_repo="xet.bin", repo_id=repo)
    with monkeypatch.context() as patched:
        patched.setattr(constants, "HF_HUB_DISABLE_XET", True)
        api.upload_file(path_or_fileobj=through_lfs, path_in_repo="lfs.bin", repo_id=repo)
        assert _download(api, repo, "xet.bin", tmp_path / "plain") == through_xet

    assert _download(api, repo, "lfs.bin", tmp_path / "xet") == through_lfs


def test_an_open_stream_is_uploaded(api: HfApi, repo: str, tmp_path: Path) -> None:
    content = os.urandom(LARGE)

    api.upload_file(path_or_fileobj=io.BytesIO(content), path_in_repo="a.bin", repo_id=repo)

    assert _download(api, repo, "a.bin", tmp_path) == content


def test_a_snapshot_takes_files_of_every_kind(api: HfApi, repo: str, tmp_path: Path) -> None:
    files = {"a.bin": os.urandom(LARGE), "b/c.bin": os.urandom(5000), "d.txt": b"text"}
    additions = [CommitOperationAdd(path, content) for path, content in files.items()]
    api.create_commit(repo, additions, commit_message="Files")

    api.snapshot_download(repo, local_dir=tmp_path)

    assert {path: (tmp_path / path).read_bytes() for path in files} == files


def test_a_part_of_a_file_is_read(api: HfApi, repo: str) -> None:
    content = os.urandom(LARGE)
    api.upload_file(path_or_fileobj=content, path_in_repo="a.bin", repo_id=repo)

    with HfFileSystem().open(f"{repo}/a.bin", "rb", block_size=100_000) as file:
        file.seek(5_000_000)
        assert file.read(300_000) == content[5_000_000:5_300_000]


def test_a_copy_points_to_the_same_content(api: HfApi, repo: str, tmp_path: Path) -> None:
    content = os.urandom(LARGE)
    api.upload_file(path_or_fileobj=content, path_in_repo="a.bin", repo_id=repo)

    copy = CommitOperationCopy("a.bin", "copy/a.bin")
    api.create_commit(repo, [copy], commit_message="Copy")

    assert _file(api, repo, "copy/a.bin").xet_hash == _file(api, repo, "a.bin").xet_hash
    assert _download(api, repo, "copy/a.bin", tmp_path) == content


def test_a_stranger_brings_a_large_file_with_a_pull_request(
    api: HfApi, stranger: HfApi, repo: str, tmp_path: Path
) -> None:
    content = os.urandom(LARGE)

    commit = stranger.upload_file(
        path_or_fileobj=content, path_in_repo="a.bin", repo_id=repo, create_pr=True
    )

    assert commit.pr_revision == "refs/pr/1"
    assert _download(api, repo, "a.bin", tmp_path, revision="refs/pr/1") == content
