"""A reader of a guide notices when it does not show what happens."""

from pathlib import Path

import pytest

from acceptance import guide_runner
from acceptance.guide_runner import a_guide_runner


def page(*blocks: str) -> str:
    return "".join(f"{block.replace('|', chr(10))}\n" for block in blocks)


FIRST = "```console|{}|```"
OTHER = "<!-- terminal: other -->|```console|{}|```"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(page(FIRST.format("$ echo so|so")), id="what is shown"),
        pytest.param(page(FIRST.format("$ A=so|$ cd /"), FIRST.format("$ echo $A $PWD|so /")),
                     id="variables and folders that are kept"),
        pytest.param(page(FIRST.format("$ echo so")), id="a command of which nothing is shown"),
        pytest.param(page(FIRST.format("$ echo no >&2; false|no")), id="a failure that is shown"),
        pytest.param(page(OTHER.format("$ echo so; sleep 99|so"), FIRST.format("$ echo on|on")),
                     id="a command that goes on"),
        pytest.param(page(FIRST.format("$ mkfifo pipe"), OTHER.format("$ cat pipe; sleep 99"),
                          FIRST.format("$ echo so > pipe"), OTHER.format("so")),
                     id="what a running command shows later"),
        pytest.param(page(FIRST.format("$ echo so; sleep 99|so|^C|$ echo on|on")), id="an interrupt"),
        pytest.param(page("```python|# a.py|print(9000)|```",
                          FIRST.format("$ python a.py|9000")), id="a file to save"),
        pytest.param(page(FIRST.format("$ cat|$ echo on|on")), id="a command that asks"),
        pytest.param(page("<!-- not run: it fails -->", FIRST.format("$ false")), id="not run"),
    ],
)  # fmt: skip
def test_a_page_that_shows_what_happens_is_followed(text: str, tmp_path: Path) -> None:
    with a_guide_runner(tmp_path) as reader:
        reader.follow(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(page(FIRST.format("$ echo no|so")), id="something else is shown"),
        pytest.param(page(FIRST.format("$ echo so; echo no|so")), id="more is shown"),
        pytest.param(page(FIRST.format("$ true|so")), id="nothing is shown"),
        pytest.param(page(FIRST.format("$ echo no; false")), id="it fails, and the page is silent"),
        pytest.param(page(OTHER.format("$ echo no; sleep 99|so")), id="it goes on otherwise"),
        pytest.param(page(OTHER.format("$ echo so; sleep 99|so"), OTHER.format("no")),
                     id="it shows something else later"),
        pytest.param(page(OTHER.format("$ echo so; sleep 99|so"), OTHER.format("so")),
                     id="it shows once what the page shows twice"),
        pytest.param(page(OTHER.format("$ echo so; sleep 0.2; echo no|so|$ sleep 99")),
                     id="it shows more before the next command"),
        pytest.param(page(FIRST.format("$ sleep 99")), id="it does not end"),
    ],
)  # fmt: skip
def test_a_page_that_shows_something_else_is_noticed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide_runner, "SOON_SECONDS", 0.5)

    with pytest.raises(AssertionError, match="the page shows"), a_guide_runner(tmp_path) as reader:
        reader.follow(text)
