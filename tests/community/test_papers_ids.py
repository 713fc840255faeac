"""What a paper can be called."""

import pytest

from hublet.community.errors import InvalidPaper
from hublet.community.papers.service import check_id


@pytest.mark.parametrize(
    "paper_id",
    ["2401.12345", "0704.0001", "notes-on-the-engine", "abc", "a" * 64, "a1-2b"],
)
def test_arxiv_ids_and_plain_words_name_papers(paper_id: str) -> None:
    check_id(paper_id)


@pytest.mark.parametrize(
    "paper_id",
    [
        pytest.param("2401.123", id="too few digits"),
        pytest.param("2401.123456", id="too many digits"),
        pytest.param("2401.12345v2", id="a version"),
        pytest.param("hep-th/9901001", id="an old id has a slash"),
        pytest.param("Notes", id="capital letters"),
        pytest.param("1-notes", id="a digit first"),
        pytest.param("notes--two", id="two hyphens"),
        pytest.param("notes-", id="a hyphen at the end"),
        pytest.param("ab", id="too short"),
        pytest.param("a" * 65, id="too long"),
        pytest.param("notes.md", id="a dot"),
        pytest.param("notes\n", id="a line break"),
        pytest.param("\uff12401.12345", id="a digit of another script"),
    ],
)
def test_other_ids_are_refused_with_the_rule(paper_id: str) -> None:
    with pytest.raises(InvalidPaper) as refused:
        check_id(paper_id)

    assert refused.value.message == (
        "A paper's id is an arXiv id such as 2401.12345, without its version, or 3 to 64 "
        "lower-case letters, digits and single hyphens that start with a letter."
    )


@pytest.mark.parametrize("word", ["search", "index", "daily"])
def test_words_of_addresses_are_reserved(word: str) -> None:
    with pytest.raises(InvalidPaper) as refused:
        check_id(word)

    assert refused.value.message == f"The id {word} is reserved."
