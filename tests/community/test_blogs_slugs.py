"""What a blog is called in its address."""

from itertools import islice

import pytest

from hublet.community.blogs import counted_slugs, slug_of


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        pytest.param("Notes on the Engine", "notes-on-the-engine", id="words with hyphens"),
        pytest.param("  100 % sure -- really?! ", "100-sure-really", id="signs part words"),
        pytest.param("Ada's notes", "adas-notes", id="an apostrophe does not"),
        pytest.param("Über die Maschine № 1", "uber-die-maschine-no-1", id="accents go"),
        pytest.param("機械について", "blog", id="nothing is left of other scripts"),
        pytest.param("機械 and engine", "and-engine", id="or only what is ASCII"),
        pytest.param("???", "blog", id="signs alone"),
        pytest.param("x" * 79 + " y", "x" * 79, id="no hyphen where it is cut"),
        pytest.param("x" * 200, "x" * 80, id="at most 80 characters"),
    ],
)
def test_a_title_becomes_a_slug(title: str, slug: str) -> None:
    assert slug_of(title) == slug


def test_the_next_of_the_same_title_are_counted() -> None:
    assert list(islice(counted_slugs("Notes"), 3)) == ["notes", "notes-2", "notes-3"]
    assert list(counted_slugs("Notes"))[-1] == "notes-9"
