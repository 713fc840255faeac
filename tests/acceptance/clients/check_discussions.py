"""Discussions and pull requests through the public client."""

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError


def test_a_discussion_from_its_opening_to_its_end(api: HfApi, stranger: HfApi, repo: str) -> None:
    opened = stranger.create_discussion(repo, "It does not turn", description="Help, @ada!")

    comment = api.comment_discussion(repo, opened.num, "Have you tried steam?")
    edited = api.edit_discussion_comment(repo, opened.num, comment.id, "Have you tried coal?")
    api.rename_discussion(repo, opened.num, "It does not turn at all")
    closed = api.change_discussion_status(repo, opened.num, "closed", comment="Solved.")

    assert (opened.author, opened.status, comment.content) == (
        "grace",
        "open",
        "Have you tried steam?",
    )
    assert (edited.content, edited.edited, closed.new_status) == (
        "Have you tried coal?",
        True,
        "closed",
    )
    details = api.get_discussion_details(repo, opened.num)
    assert (details.title, details.status) == ("It does not turn at all", "closed")
    assert [event.type for event in details.events] == [
        "comment",
        "comment",
        "title-change",
        "comment",
        "status-change",
    ]
    api.change_discussion_status(repo, opened.num, "open")
    assert api.get_discussion_details(repo, opened.num).status == "open"


def test_a_hidden_comment_shows_nothing(api: HfApi, repo: str) -> None:
    opened = api.create_discussion(repo, "Secrets")
    comment = api.comment_discussion(repo, opened.num, "the password is 1234")

    hidden = api.hide_discussion_comment(repo, opened.num, comment.id)

    assert hidden.hidden
    assert "1234" not in str(api.get_discussion_details(repo, opened.num))


def test_others_cannot_moderate(api: HfApi, stranger: HfApi, repo: str) -> None:
    opened = api.create_discussion(repo, "Mine")
    comment = api.comment_discussion(repo, opened.num, "My words")

    for forbidden in (
        lambda: stranger.edit_discussion_comment(repo, opened.num, comment.id, "Yours"),
        lambda: stranger.hide_discussion_comment(repo, opened.num, comment.id),
        lambda: stranger.rename_discussion(repo, opened.num, "Yours"),
        lambda: stranger.change_discussion_status(repo, opened.num, "closed"),
    ):
        with pytest.raises(HfHubHTTPError) as refused:
            forbidden()
        assert refused.value.response.status_code == 403


def test_a_pull_request_is_merged(api: HfApi, stranger: HfApi, repo: str) -> None:
    opened = stranger.create_pull_request(repo, "Add coal")
    with pytest.raises(HfHubHTTPError):
        stranger.merge_pull_request(repo, opened.num)
    api.upload_file(
        path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id=repo, revision="refs/pr/1"
    )

    api.merge_pull_request(repo, opened.num, comment="Thanks!")

    details = api.get_discussion_details(repo, opened.num)
    assert (opened.is_pull_request, opened.status, details.status) == (True, "draft", "merged")
    assert details.merge_commit_oid == api.model_info(repo).sha
    assert "coal.txt" in api.list_repo_files(repo)


def test_a_conflict_is_told_and_nothing_is_merged(api: HfApi, repo: str) -> None:
    api.upload_file(path_or_fileobj=b"1", path_in_repo="a.txt", repo_id=repo)
    commit = api.upload_file(
        path_or_fileobj=b"2", path_in_repo="a.txt", repo_id=repo, create_pr=True
    )
    api.upload_file(path_or_fileobj=b"3", path_in_repo="a.txt", repo_id=repo)
    before = api.model_info(repo).sha
    assert commit.pr_num is not None

    details = api.get_discussion_details(repo, commit.pr_num)
    with pytest.raises(HfHubHTTPError):
        api.merge_pull_request(repo, commit.pr_num)

    assert details.conflicting_files == ["a.txt"]
    assert details.diff is not None
    assert api.model_info(repo).sha == before


def test_a_list_of_many_discussions(api: HfApi, stranger: HfApi, repo: str) -> None:
    for number in range(60):
        (stranger if number % 2 else api).create_discussion(repo, f"Number {number}")
    api.change_discussion_status(repo, 1, "closed")
    api.create_pull_request(repo, "A pull request")

    every = list(api.get_repo_discussions(repo))
    assert sorted(found.num for found in every) == list(range(1, 62))
    closed = list(api.get_repo_discussions(repo, discussion_status="closed"))
    assert [found.num for found in closed] == [1]
    requests = list(api.get_repo_discussions(repo, discussion_type="pull_request"))
    assert [found.num for found in requests] == [61]
    assert len(list(api.get_repo_discussions(repo, author="grace"))) == 30
