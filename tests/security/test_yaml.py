"""Hostile YAML costs little: 800 kB of `1:1:…` once took two minutes, anonymously."""

import time
from contextlib import suppress

import httpx2
import pytest
from benchmarks.subjects.attacks import yaml_bombs

from hublet.core.yaml_loader import LARGEST_TEXT, InvalidYaml, load

# 50 ms is proven in `benchmarks/`; what these texts did before took from 1 s to minutes.
FAR_TOO_LONG_SECONDS = 1.0

BOMBS = yaml_bombs()


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_no_megabyte_of_yaml_takes_long(text: str) -> None:
    assert len(text) <= LARGEST_TEXT
    start = time.thread_time()

    with suppress(InvalidYaml):
        load(text)

    assert time.thread_time() - start < FAR_TOO_LONG_SECONDS


async def test_a_card_of_colons_is_read_as_text(client: httpx2.AsyncClient) -> None:
    content = "---\na: " + "1:" * 400_000 + "1\n---\n"

    response = await client.post("/api/validate-yaml", json={"content": content})

    assert (response.status_code, response.json()) == (200, {"errors": [], "warnings": []})


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(LAUGHS, "It must not use aliases (*name) in line 3 of README.md.", id="laughs"),
        pytest.param(
            "a: !!python/object/apply:os.system [id]",
            "The tag !!python/object/apply:os.system is unknown, or does not fit its value"
            " in line 2 of README.md.",
            id="code",
        ),
        pytest.param("[" * 1000, "It is nested more than 20 times in line 2 of README.md.", id="deep"),
    ],
)  # fmt: skip
async def test_bombs_in_a_card_are_refused(
    client: httpx2.AsyncClient, text: str, problem: str
) -> None:
    response = await client.post("/api/validate-yaml", json={"content": f"---\n{text}\n---\n"})

    assert response.status_code == 400
    assert response.json()["errors"] == [{"message": problem}]
