"""What the test of the guides takes for the same, and what it does not."""

import pytest

from acceptance.output_matching import OutputMatcher
from acceptance.transcripts import Step, Transcript, files_of, transcripts_of

A, B, C = "a" * 24, "b" * 24, "c" * 24


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param("It is genuine.", "It is genuine.\n", id="the same"),
        pytest.param(f"{A} is {A}.", f"{B} is {B}.\n", id="another id"),
        pytest.param("at 127.0.0.1:8000", "at 127.0.0.1:41234\n", id="the port of here"),
        pytest.param("token  hf_…", "token  hf_abc123\n", id="a token"),
        pytest.param("2026-11-15 01:44  12 ms", "2027-01-02 03:04  7 ms\n", id="times"),
        pytest.param("id  name\nab  c", "id    name\nab    c\n", id="wider columns"),
        pytest.param("a\n…\nd", "a\nb\nc\nd\n", id="lines left out"),
        pytest.param('{"a":1,…}', '{"a":1,"b":2}\n', id="a part left out"),
        pytest.param("Waiting…", "Waiting...\n", id="an end left out"),
    ],
)
def test_what_differs_from_run_to_run_is_alike(shown: str, real: str) -> None:
    assert OutputMatcher({"8000": "41234"}).match(shown, real, whole=True) == real.count("\n")


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        pytest.param("It is genuine.", "It is not to be trusted.\n", id="another sentence"),
        pytest.param("a", "a\nb\n", id="a line more"),
        pytest.param("a\nb", "a\n", id="a line less"),
        pytest.param(f"{A} is {A}.", f"{B} is {C}.\n", id="two ids where one is shown"),
        pytest.param("at 127.0.0.1:8000", "at 127.0.0.1:8000\n", id="not the port of here"),
        pytest.param("count 1", "count 2\n", id="another number"),
        pytest.param("ab", "a b\n", id="a space more"),
        pytest.param("a\n…\nd", "a\nb\nc\n", id="an end that does not come"),
        pytest.param("{…}", "{\n}\n", id="a part that goes over lines"),
    ],
)
def test_what_differs_otherwise_is_not_alike(shown: str, real: str) -> None:
    assert OutputMatcher({"8000": "41234"}).match(shown, real, whole=True) is None


def test_what_is_not_whole_yet_is_alike_as_soon_as_all_is_there() -> None:
    names = OutputMatcher({})

    assert names.match("a\nb", "a\n", whole=False) is None
    assert names.match("a\nb", "a\nb\nc\n", whole=False) == 2


def test_names_are_learned_and_used_from_then_on() -> None:
    names = OutputMatcher({"9000": "41234"})

    assert names.match(f"{A}\nhf_…", f"{B}\nhf_first\n", whole=True) == 2
    assert names.match("hf_…", "hf_second\n", whole=True) == 1

    assert names.translate(f"delete {A} --token hf_… --url :9000/ {C}") == (
        f"delete {B} --token hf_second --url :41234/ {C}"
    )
    assert names.match(A, f"{C}\n", whole=True) is None


PAGE = """
```console
$ one \\
    --two
$ three '{
  "four"}'   # five's
shown

shown too
```
<!-- terminal: other -->
```console
more
^C
```
<!-- not run: there is none -->
```console
$ six
```
```python
# seven.py
```
```python
eight = 8
```
"""


def test_a_page_is_read_as_people_read_it() -> None:
    typed = (
        Step(command="one \\\n    --two", shown="", interrupted=False),
        Step(
            command="three '{\n  \"four\"}'   # five's",
            shown="shown\n\nshown too",
            interrupted=False,
        ),
    )
    more = (Step(command=None, shown="more", interrupted=True),)
    six = (Step(command="six", shown="", interrupted=False),)

    assert transcripts_of(PAGE) == [
        Transcript(terminal="the first", steps=typed, reason=None),
        Transcript(terminal="other", steps=more, reason=None),
        Transcript(terminal="the first", steps=six, reason="there is none"),
    ]
    assert files_of(PAGE) == {"seven.py": "# seven.py\n"}
