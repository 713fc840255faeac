"""Repositories as such: created, found, changed, moved, deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
)

NewName = Callable[[], str]


@pytest.mark.parametrize("repo_type", ["model", "dataset", "space", "kernel"])
def test_a_repository_is_created_found_and_deleted(
    api: HfApi, new_name: NewName, repo_type: str
) -> None:
    name = new_name()
    sdk = "static" if repo_type == "space" else None

    url = api.create_repo(name, repo_type=repo_type, space_sdk=sdk)

    assert (url.repo_id, url.repo_type) == (name, repo_type)
    assert url.url.endswith(name)
    assert api.repo_exists(name, repo_type=repo_type)
    api.delete_repo(name, repo_type=repo_type)
    assert not api.repo_exists(name, repo_type=repo_type)


def test_a_second_repository_of_the_same_name_is_a_conflict(api: HfApi, repo: str) -> None:
    with pytest.raises(HfHubHTTPError) as refused:
        api.create_repo(repo)

    assert refused.value.response.status_code == 409
    assert api.create_repo(repo, exist_ok=True).repo_id == repo


def test_deleting_what_does_not_exist(api: HfApi) -> None:
    with pytest.raises(RepositoryNotFoundError):
        api.delete_repo("ada/nothing")
    api.delete_repo("ada/nothing", missing_ok=True)


def test_the_hub_refuses_the_names_that_the_client_refuses(api: HfApi) -> None:
    for name in ("ada/a--b", "ada/a..b", "ada/.a", "ada/a-", "ada/a.git", "ada/" + "a" * 97):
        with pytest.raises(HFValidationError):
            api.repo_info(name)


def test_an_organizations_repository(api: HfApi, stranger: HfApi) -> None:
    api.create_repo("analytical/engine", repo_type="dataset", private=True)

    assert api.dataset_info("analytical/engine").author == "analytical"
    assert not stranger.repo_exists("analytical/engine", repo_type="dataset")
    with pytest.raises(HfHubHTTPError) as refused:
        stranger.create_repo("analytical/other")
    assert refused.value.response.status_code == 403
    api.delete_repo("analytical/engine", repo_type="dataset")


def test_a_private_repository_does_not_exist_for_others(
    api: HfApi, stranger: HfApi, anonymous: HfApi, new_name: NewName
) -> None:
    name = new_name()
    api.create_repo(name, private=True)

    assert api.model_info(name).private is True
    for other in (stranger, anonymous):
        assert not other.repo_exists(name)
        with pytest.raises(RepositoryNotFoundError):
            other.model_info(name)
        with pytest.raises(RepositoryNotFoundError):
            other.auth_check(name)
    api.auth_check(name, write=True)


def test_settings_change_visibility_and_gate(api: HfApi, stranger: HfApi, repo: str) -> None:
    api.update_repo_settings(repo, gated="manual")
    assert api.model_info(repo).gated == "manual"
    with pytest.raises(GatedRepoError):
        stranger.auth_check(repo)

    api.grant_access(repo, "grace")
    stranger.auth_check(repo)
    assert [request.username for request in api.list_accepted_access_requests(repo)] == ["grace"]

    api.update_repo_settings(repo, gated=False, private=True)
    assert api.model_info(repo).private is True
    assert not stranger.repo_exists(repo)


def test_a_moved_repository_answers_to_its_old_name(
    api: HfApi, repo: str, new_name: NewName
) -> None:
    new = new_name()
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x.txt", repo_id=repo)

    api.move_repo(repo, new)

    assert api.model_info(repo).id == new
    assert api.list_repo_files(repo) == [".gitattributes", "x.txt"]
    assert Path(api.hf_hub_download(repo, "x.txt")).read_text() == "x"
    api.delete_repo(new)


@pytest.mark.parametrize("repo_type", ["model", "dataset", "space"])
def test_a_repository_is_duplicated(
    api: HfApi, stranger: HfApi, new_name: NewName, repo_type: str
) -> None:
    name = new_name()
    sdk = "static" if repo_type == "space" else None
    api.create_repo(name, repo_type=repo_type, space_sdk=sdk)
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x.txt", repo_id=name, repo_type=repo_type)

    copy = stranger.duplicate_repo(name, repo_type=repo_type, private=True)

    assert copy.repo_id == name.replace("ada", "grace")
    mine, theirs = [
        caller.list_repo_files(repo_id, repo_type=repo_type)
        for caller, repo_id in ((api, name), (stranger, copy.repo_id))
    ]
    assert mine == theirs
    assert not api.repo_exists(copy.repo_id, repo_type=repo_type)
    assert stranger.duplicate_repo(name, repo_type=repo_type, exist_ok=True) == copy
    with pytest.raises(RepositoryNotFoundError):
        stranger.duplicate_repo("ada/nothing", repo_type=repo_type)
    stranger.delete_repo(copy.repo_id, repo_type=repo_type)
    api.delete_repo(name, repo_type=repo_type)


def test_the_words_of_the_public_service(
    api: HfApi, stranger: HfApi, repo: str, new_name: NewName
) -> None:
    other = new_name()
    api.create_repo(other)
    api.create_branch(repo, branch="dev")

    with pytest.raises(HfHubHTTPError, match=r"A model repository called .* already exists"):
        api.move_repo(other, repo)
    with pytest.raises(HfHubHTTPError, match="Reference refs/heads/dev already exists"):
        api.create_branch(repo, branch="dev")
    with pytest.raises(HfHubHTTPError, match="Cannot delete refs/heads/main"):
        api.delete_branch(repo, branch="main")
    with pytest.raises(HfHubHTTPError, match="Invalid rev id"):
        api.delete_branch(repo, branch="nothing")
    api.update_repo_settings(repo, gated="auto")
    sentence = "Access to model .* is restricted and you are not in the authorized list"
    with pytest.raises(GatedRepoError, match=sentence):
        stranger.hf_hub_download(repo, ".gitattributes")
    api.delete_repo(other)


def test_a_missing_repository_without_an_owner(api: HfApi) -> None:
    for ask in (api.model_info, api.list_repo_commits, api.unlike, api.list_repo_refs):
        with pytest.raises(RepositoryNotFoundError):
            ask("nothing")
    with pytest.raises(RepositoryNotFoundError):
        api.hf_hub_download("nothing", "x.txt")
    with pytest.raises(HfHubHTTPError) as refused:
        api.delete_bucket("nothing")
    assert refused.value.response.status_code == 404
    api.delete_bucket("nothing", missing_ok=True)


def test_a_list_goes_over_several_pages(api: HfApi, anonymous: HfApi) -> None:
    names = [f"ada/listed-{number:02}" for number in range(12)]
    for name in names:
        api.create_repo(name, repo_type="dataset", private=name.endswith("11"))

    mine = [found.id for found in api.list_datasets(author="ada", search="listed-", limit=100)]
    paged = [found.id for found in api.list_datasets(author="ada", search="listed-")]
    seen = [found.id for found in anonymous.list_datasets(author="ada", search="listed-")]

    assert sorted(mine) == sorted(paged) == names
    assert sorted(seen) == names[:11]
    own = {found.id for found in api.list_user_repos()}
    assert set(names) <= own
    for name in names:
        api.delete_repo(name, repo_type="dataset")


def test_buckets_exist(api: HfApi, stranger: HfApi) -> None:
    api.create_bucket("ada/store", private=True)

    info = api.bucket_info("ada/store")
    assert (info.id, info.private, info.total_files) == ("ada/store", True, 0)
    # Others of this user have buckets too: a job that runs a script has one for it.
    assert "ada/store" in [bucket.id for bucket in api.list_buckets("ada")]
    assert list(api.list_bucket_tree("ada/store")) == []
    with pytest.raises(HfHubHTTPError):
        stranger.bucket_info("ada/store")
    api.delete_bucket("ada/store")
