"""Content on its way in: files, folders, commits, and what is refused."""

import os
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

CARD = b"---\nlicense: apache-2.0\ntags:\n- engine\n---\n# Engine\n"


def _content(api: HfApi, repo: str, path: str, *, revision: str = "main") -> bytes:
    return Path(api.hf_hub_download(repo, path, revision=revision)).read_bytes()


def test_a_file_is_uploaded_and_read_back(api: HfApi, repo: str) -> None:
    commit = api.upload_file(path_or_fileobj=b"hello", path_in_repo="a/b.txt", repo_id=repo)

    assert len(commit.oid) == 40
    assert commit.commit_url.endswith(f"{repo}/commit/{commit.oid}")
    assert api.model_info(repo).sha == commit.oid
    assert _content(api, repo, "a/b.txt") == b"hello"
    assert api.list_repo_files(repo) == [".gitattributes", "a/b.txt"]


def test_a_card_becomes_metadata(api: HfApi, repo: str) -> None:
    api.upload_file(path_or_fileobj=CARD, path_in_repo="README.md", repo_id=repo)

    info = api.model_info(repo)

    assert info.card_data is not None
    assert info.card_data.license == "apache-2.0"
    assert {"engine", "license:apache-2.0"} <= set(info.tags or ())
    assert [found.id for found in api.list_models(author="ada", filter="engine")] == [repo]


def test_a_broken_card_is_refused(api: HfApi, repo: str) -> None:
    before = api.model_info(repo).sha

    with pytest.raises(ValueError, match=r"(?i)yaml|metadata|README"):
        api.upload_file(
            path_or_fileobj=b"---\ntags: [a\n---\n", path_in_repo="README.md", repo_id=repo
        )

    assert api.model_info(repo).sha == before


def test_unchanged_content_makes_no_commit(api: HfApi, repo: str) -> None:
    first = api.upload_file(path_or_fileobj=b"same", path_in_repo="a.txt", repo_id=repo)

    again = api.upload_file(path_or_fileobj=b"same", path_in_repo="a.txt", repo_id=repo)

    assert again.oid == first.oid
    assert len(api.list_repo_commits(repo)) == 2


def test_thirty_megabytes_come_back_byte_for_byte(api: HfApi, repo: str, tmp_path: Path) -> None:
    large = tmp_path / "large.dat"
    large.write_bytes(os.urandom(30 * 1024 * 1024 + 7))
    first = api.upload_file(path_or_fileobj=large, path_in_repo="large.dat", repo_id=repo)

    again = api.upload_file(path_or_fileobj=large, path_in_repo="large.dat", repo_id=repo)

    assert _content(api, repo, "large.dat") == large.read_bytes()
    assert again.oid == first.oid


def _folder(at: Path) -> Path:
    files = {
        "README.md": CARD,
        ".gitignore": b"*.log\nbuild/\n",
        "a.txt": b"a",
        "sub/b.bin": bytes(range(256)),
        "sub/deep/c.txt": b"c",
        "run.log": b"ignored",
        "build/x": b"ignored",
        "skip.me": b"left out by a pattern",
    }
    for name, content in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(content)
    return at


FOLDER = [".gitattributes", ".gitignore", "README.md", "a.txt", "sub/b.bin", "sub/deep/c.txt"]


def test_a_folder_is_uploaded_without_what_is_ignored(
    api: HfApi, repo: str, tmp_path: Path
) -> None:
    api.upload_folder(repo_id=repo, folder_path=_folder(tmp_path), ignore_patterns=["skip.*"])

    assert sorted(api.list_repo_files(repo)) == FOLDER
    assert _content(api, repo, "sub/b.bin") == bytes(range(256))


def test_a_folder_replaces_what_matches_the_delete_patterns(
    api: HfApi, repo: str, tmp_path: Path
) -> None:
    api.upload_file(path_or_fileobj=b"old", path_in_repo="sub/old.txt", repo_id=repo)

    api.upload_folder(
        repo_id=repo,
        folder_path=_folder(tmp_path),
        ignore_patterns=["skip.*"],
        delete_patterns="sub/*.txt",
    )

    assert sorted(api.list_repo_files(repo)) == FOLDER


def test_a_pull_request_is_opened_with_a_file(api: HfApi, stranger: HfApi, repo: str) -> None:
    commit = stranger.upload_file(
        path_or_fileobj=b"better", path_in_repo="a.txt", repo_id=repo, create_pr=True
    )

    assert (commit.pr_num, commit.pr_revision) == (1, "refs/pr/1")
    assert api.list_repo_files(repo) == [".gitattributes"]
    assert "a.txt" in api.list_repo_files(repo, revision="refs/pr/1")
    details = api.get_discussion_details(repo, 1)
    assert (details.author, details.is_pull_request) == ("grace", True)


def test_a_pull_request_is_opened_with_a_folder(api: HfApi, repo: str, tmp_path: Path) -> None:
    commit = api.upload_folder(
        repo_id=repo, folder_path=_folder(tmp_path), ignore_patterns=["skip.*"], create_pr=True
    )

    assert sorted(api.list_repo_files(repo, revision=commit.pr_revision)) == FOLDER


def test_operations_of_one_commit(api: HfApi, repo: str) -> None:
    api.upload_file(path_or_fileobj=b"a", path_in_repo="a.txt", repo_id=repo)
    api.upload_file(path_or_fileobj=b"b", path_in_repo="old/b.txt", repo_id=repo)

    api.create_commit(
        repo,
        [
            CommitOperationAdd("c.txt", b"c"),
            CommitOperationDelete("old/"),
            CommitOperationCopy("a.txt", "copy/a.txt"),
        ],
        commit_message="Three things",
        commit_description="at once",
    )

    assert api.list_repo_files(repo) == [".gitattributes", "a.txt", "c.txt", "copy/a.txt"]
    newest = api.list_repo_commits(repo)[0]
    assert (newest.title, newest.message, newest.authors) == ("Three things", "at once", ["ada"])


def test_a_wrong_parent_is_refused(api: HfApi, repo: str) -> None:
    parent = api.model_info(repo).sha
    api.upload_file(path_or_fileobj=b"a", path_in_repo="a.txt", repo_id=repo)
    after = api.model_info(repo).sha

    with pytest.raises(HfHubHTTPError) as refused:
        api.upload_file(
            path_or_fileobj=b"b", path_in_repo="b.txt", repo_id=repo, parent_commit=parent
        )

    assert refused.value.response.status_code == 412
    assert "The branch was updated since you opened this page." in str(refused.value)
    assert api.model_info(repo).sha == after


def test_who_cannot_write_is_refused(api: HfApi, stranger: HfApi, repo: str) -> None:
    with pytest.raises(HfHubHTTPError) as refused:
        stranger.upload_file(path_or_fileobj=b"a", path_in_repo="a.txt", repo_id=repo)
    assert refused.value.response.status_code == 403
    with pytest.raises(RepositoryNotFoundError):
        api.upload_file(path_or_fileobj=b"a", path_in_repo="a.txt", repo_id="ada/nothing")
    with pytest.raises(RevisionNotFoundError):
        api.upload_file(
            path_or_fileobj=b"a", path_in_repo="a.txt", repo_id=repo, revision="nothing"
        )


def test_a_branch_with_a_slash(api: HfApi, repo: str) -> None:
    api.create_branch(repo, branch="feat/x")
    api.upload_file(path_or_fileobj=b"a", path_in_repo="a b/ü.txt", repo_id=repo, revision="feat/x")

    assert api.list_repo_files(repo) == [".gitattributes"]
    assert api.list_repo_files(repo, revision="feat/x") == [".gitattributes", "a b/ü.txt"]
    assert _content(api, repo, "a b/ü.txt", revision="feat/x") == b"a"


def test_files_are_deleted(api: HfApi, repo: str) -> None:
    for path in ("a.txt", "b.txt", "c/d.txt"):
        api.upload_file(path_or_fileobj=b"x", path_in_repo=path, repo_id=repo)

    api.upload_file(path_or_fileobj=b"x", path_in_repo="d/e.txt", repo_id=repo)

    api.delete_file("a.txt", repo)
    api.delete_folder("c", repo)
    # Without a slash at its end.
    api.create_commit(repo, [CommitOperationDelete("d")], commit_message="Delete a folder")

    assert api.list_repo_files(repo) == [".gitattributes", "b.txt"]
    api.delete_files(repo, ["b*"])
    assert api.list_repo_files(repo) == [".gitattributes"]
