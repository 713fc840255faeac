"""Names of repositories."""

import pytest

from hublet.repos.errors import InvalidRepoName
from hublet.repos.names import check_repo_name, repo_name_key, split_name
from hublet.repos.records import RepoType


@pytest.mark.parametrize(
    "name",
    ["a", "engine", "Engine-7B_v1.5", "0", "_private", "a" * 96, "x.gitignore", "models-2"],
)
def test_a_good_name_is_taken(name: str) -> None:
    check_repo_name(name, RepoType.model)


LETTERS = "it has only the letters a to z, digits, '-', '_' and '.'"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        pytest.param("", "it has 1 to 96 characters", id="no name"),
        pytest.param("a" * 97, "it has 1 to 96 characters", id="too long"),
        pytest.param("a b", LETTERS, id="a blank"),
        pytest.param("a\n", LETTERS, id="a line end"),
        pytest.param("a/b", LETTERS, id="a slash"),
        pytest.param("é", LETTERS, id="a letter with an accent"),
        pytest.param("a--b", "it has no '--' and no '..'", id="two hyphens"),
        pytest.param("a..b", "it has no '--' and no '..'", id="two dots"),
        pytest.param("..", "it has no '--' and no '..'", id="the folder above"),
        pytest.param("-a", "it does not start or end with '-' or '.'", id="a hyphen first"),
        pytest.param(".a", "it does not start or end with '-' or '.'", id="a dot first"),
        pytest.param("a-", "it does not start or end with '-' or '.'", id="a hyphen last"),
        pytest.param("a.", "it does not start or end with '-' or '.'", id="a dot last"),
        pytest.param("a.git", "it does not end with '.git'", id="git"),
        pytest.param("a.GIT", "it does not end with '.git'", id="git in capitals"),
        pytest.param("Settings", "Settings is reserved for a page of its owner", id="a page"),
    ],
)
def test_a_bad_name_is_refused_with_the_rule(name: str, rule: str) -> None:
    with pytest.raises(InvalidRepoName) as refused:
        check_repo_name(name, RepoType.model)

    assert refused.value.message == f"This is no name for a repository: {rule}."


def test_only_models_stand_where_pages_are() -> None:
    check_repo_name("settings", RepoType.dataset)
    check_repo_name("settings")


def test_case_does_not_tell_names_apart() -> None:
    assert repo_name_key("Engine") == repo_name_key("eNGINE")


@pytest.mark.parametrize(
    ("name", "organization", "expected"),
    [
        pytest.param("engine", None, (None, "engine"), id="a bare name"),
        pytest.param("ada/engine", None, ("ada", "engine"), id="owner and name"),
        pytest.param("engine", "acme", ("acme", "engine"), id="the owner apart"),
        pytest.param("acme/engine", "Acme", ("Acme", "engine"), id="the owner twice"),
        pytest.param("engine", "", (None, "engine"), id="an empty owner"),
        pytest.param("/engine", None, (None, "engine"), id="nothing before the slash"),
    ],
)
def test_a_body_names_the_owner_in_either_of_two_ways(
    name: str, organization: str | None, expected: tuple[str | None, str]
) -> None:
    assert split_name(name, organization=organization) == expected


@pytest.mark.parametrize(("name", "organization"), [("a/b/c", None), ("ada/engine", "acme")])
def test_two_owners_are_refused(name: str, organization: str | None) -> None:
    with pytest.raises(InvalidRepoName):
        split_name(name, organization=organization)
