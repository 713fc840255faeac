"""What can be the path of a file."""

import pytest

from hublet.repos.errors import InvalidPath
from hublet.repos.names import check_path


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("a", id="one letter"),
        pytest.param("README.md", id="a file"),
        pytest.param("a/b/c.txt", id="a file in folders"),
        pytest.param(".gitattributes", id="a file that only begins like git's folder"),
        pytest.param(".github/workflows/ci.yml", id="a folder that only begins like git's"),
        pytest.param("a.git/config", id="a folder that only ends like git's"),
        pytest.param("git~x", id="no short name"),
        pytest.param("digit~1", id="a short name of something else"),
        pytest.param("...", id="three dots"),
        pytest.param(" a ", id="blanks around a name"),
        pytest.param("größe/数据.bin", id="letters of any language"),
        pytest.param("\U0001f468\u200d\U0001f469.png", id="a joined emoji"),
        pytest.param("a:b?c*.txt", id="marks that only Windows minds"),
        pytest.param("x" * 255, id="the longest part"),
        pytest.param("/".join(["x" * 255] * 16), id="the longest path but one byte"),
        pytest.param("/".join(["x" * 255] * 15 + ["x" * 253, "xx"]), id="the longest path"),
    ],
)
def test_a_path_that_is_safe_everywhere_is_taken(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param("", "it has 1 to 4096 bytes", id="nothing"),
        pytest.param("/".join(["x" * 255] * 16) + "/x", "it has 1 to 4096 bytes", id="too long"),
        pytest.param("é" * 2049, "it has 1 to 4096 bytes", id="bytes are counted, not letters"),
        pytest.param("\ud800", "it is valid Unicode text", id="half a character"),
        pytest.param(
            "a\\b", "its parts are separated by '/', and it has no backslash", id="a backslash"
        ),
        pytest.param("a\x00b", "it has no control characters", id="NUL"),
        pytest.param("a\nb", "it has no control characters", id="a new line"),
        pytest.param("a\x7f", "it has no control characters", id="DEL"),
        pytest.param("a\x85", "it has no control characters", id="a control character of Latin-1"),
        pytest.param("/a", "it neither begins nor ends with '/', and has no '//'", id="absolute"),
        pytest.param("a/", "it neither begins nor ends with '/', and has no '//'", id="a folder"),
        pytest.param("a//b", "it neither begins nor ends with '/', and has no '//'", id="a gap"),
        pytest.param("/", "it neither begins nor ends with '/', and has no '//'", id="a slash"),
        pytest.param(".", "none of its parts is '.' or '..'", id="here"),
        pytest.param("a/./b", "none of its parts is '.' or '..'", id="here, inside"),
        pytest.param("../a", "none of its parts is '.' or '..'", id="upwards"),
        pytest.param("a/../b", "none of its parts is '.' or '..'", id="upwards, inside"),
        pytest.param("a/..", "none of its parts is '.' or '..'", id="upwards, at the end"),
        pytest.param("a/" + "x" * 256, "each of its parts has at most 255 bytes", id="a long part"),
        pytest.param(
            "é" * 128, "each of its parts has at most 255 bytes", id="a long part in bytes"
        ),
    ],
)
def test_what_is_no_path_is_refused_with_the_rule(path: str, rule: str) -> None:
    with pytest.raises(InvalidPath) as refused:
        check_path(path)

    assert refused.value.message == f"This is no path of a file: {rule}."


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(".git", id="itself"),
        pytest.param(".git/config", id="a file in it"),
        pytest.param("a/.git/hooks/update", id="in another folder"),
        pytest.param(".GIT", id="capitals"),
        pytest.param("a/.Git", id="some capitals"),
        pytest.param("git~1", id="the short name on Windows"),
        pytest.param("GIT~2/config", id="another short name"),
        pytest.param(".git ", id="a blank that Windows drops"),
        pytest.param(".git...", id="dots that Windows drops"),
        pytest.param(".git . .", id="blanks and dots that Windows drops"),
        pytest.param("git~1. ", id="the short name and what Windows drops"),
        pytest.param(".git::$INDEX_ALLOCATION", id="a stream's name on Windows"),
        pytest.param(".git :x/config", id="a blank and a stream's name"),
        pytest.param(".g\u200cit", id="a character that macOS ignores"),
        pytest.param("\ufeff.git", id="a mark in front that macOS ignores"),
        pytest.param(".gi\u206ft\u202e", id="two characters that macOS ignores"),
    ],
)
def test_no_disguise_of_the_folder_of_git_gets_through(path: str) -> None:
    with pytest.raises(InvalidPath, match="git's own folder"):
        check_path(path)
