"""The cache of rendered READMEs: what it keeps, what it drops, and what it never mixes."""

import sys

from markupsafe import Markup

from hublet.web.readme_cache import MarkupCache, render_readme
from hublet.web.rendering.links import MarkdownPlace, place_in_repo


def test_what_was_not_used_for_longest_goes_first() -> None:
    values = [Markup(f"{number}" * 1000) for number in range(4)]
    cache = MarkupCache(3 * sys.getsizeof(values[0]))

    for number, value in enumerate(values[:3]):
        cache.keep(number, value)
    cache.find(0)
    cache.keep(3, values[3])

    assert [cache.find(number) for number in range(4)] == [values[0], None, values[2], values[3]]
    assert cache.held_bytes == 3 * sys.getsizeof(values[0])


def test_a_value_beyond_the_limit_is_not_kept() -> None:
    cache = MarkupCache(1000)

    cache.keep("long", Markup("x" * 2000))

    assert (cache.find("long"), cache.held_bytes) == (None, 0)


def test_to_keep_a_value_twice_counts_it_once() -> None:
    cache = MarkupCache(10_000)

    for _ in range(3):
        cache.keep("one", Markup("x"))

    assert cache.held_bytes == sys.getsizeof(Markup("x"))


async def test_the_same_content_is_read_once_and_rendered_for_each_place() -> None:
    readings = []

    async def read() -> str:
        readings.append(1)
        return "![wheel](w.png)"

    async def shown(place: MarkdownPlace) -> str:
        return str(await render_readme(place, "b" * 40, read))

    first = [await shown(place_in_repo("/ada/cached")) for _ in range(2)]
    other = await shown(place_in_repo("/bob/cached"))

    assert len(readings) == 2
    assert "/ada/cached/resolve/main/w.png" in first[0] == first[1]
    assert "/bob/cached/resolve/main/w.png" in other
