"""Telling a revision from a path where both meet in an address."""

from urllib.parse import unquote

import pytest

from hublet.repos.browse.revisions import split_revision_and_path


@pytest.mark.parametrize(
    ("raw", "revision", "path"),
    [
        pytest.param("main", "main", "", id="a revision alone"),
        pytest.param("main/a.txt", "main", "a.txt", id="a file"),
        pytest.param("main/", "main", "", id="a slash and nothing behind it"),
        pytest.param("main/a/b/", "main", "a/b", id="a folder with a slash at its end"),
        pytest.param("main/a%2Fb", "main", "a/b", id="an encoded path"),
        pytest.param("feat%2Fx/a/b", "feat/x", "a/b", id="an encoded revision"),
        pytest.param("feat%2fx", "feat/x", "", id="lower-case digits"),
        pytest.param("refs%2Fpr%2F1/a", "refs/pr/1", "a", id="a pull request"),
        pytest.param("refs/pr/1/a/b", "refs/pr/1", "a/b", id="a plain pull request"),
        pytest.param("refs/convert/parquet/a", "refs/convert/parquet", "a", id="a conversion"),
        pytest.param("refs/other/a", "refs", "other/a", id="a branch that is called refs"),
        pytest.param("main/tree/main/x", "main", "tree/main/x", id="words of the address again"),
        pytest.param("main/100%25.txt", "main", "100%.txt", id="a percent sign"),
        pytest.param("main/%C3%BC%20x", "main", "ü x", id="other letters and blanks"),
    ],
)
@pytest.mark.parametrize(
    "start", ["/api/models/ada/engine/tree/", "/ada/engine/resolve/", "/ada%2Fengine/raw/"]
)
def test_revision_and_path(start: str, raw: str, revision: str, path: str) -> None:
    assert split_revision_and_path(start + raw, unquote(raw)) == (revision, path)


def test_an_address_in_another_form_is_split_as_it_is() -> None:
    assert split_revision_and_path("/elsewhere", "main/a.txt") == ("main", "a.txt")
