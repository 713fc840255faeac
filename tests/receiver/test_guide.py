"""Every piece of the guide runs, and what it says of limits and answers is so."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from hublet.receiver import server as receiver_server
from hublet.receiver.signatures import TOLERANCE_SECONDS
from hublet.receiver.spool_store import GIVEN_UP_SECONDS, KEPT_SECONDS, WAITS
from receiver.deliveries import BODY, ID, JSON, get, post, signed
from receiver.scripts import running_script

PAGE = (Path(__file__).parents[2] / "docs" / "receiving.md").read_text(encoding="utf-8")
SECRET = JSON | {"x-webhook-secret": "coal"}
HEAD = "359d420fdc59764d9148b9191bef8f025f9cecd2"


def blocks() -> dict[str, str]:
    """Return the pieces of Python by the names under which they are to be saved."""
    found = re.findall(r"```python\n(# (\w+)\.py\n.*?)```", PAGE, re.DOTALL)
    assert len(found) == PAGE.count("```python")
    return {name: text for text, name in found}


@pytest.fixture
def snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Every piece but the one that serves when it ends, saved as the guide says and imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names = [name for name in blocks() if name != "hello"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(blocks()[name], encoding="utf-8")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


def test_the_first_script_serves_and_says_what_the_guide_shows(tmp_path: Path) -> None:
    [shown] = re.findall(r"python hello.py\n(.*?)```", PAGE, re.DOTALL)
    with running_script(blocks()["hello"], tmp_path) as script:
        answer = script.post("/webhooks/trigger_training", SECRET)
        page = httpx2.get(script.url, trust_env=False)
        assert script.stop() == 0
        assert script.said == shown.replace("http://127.0.0.1:7860", script.url)

    assert answer.json() == {"trained": "ada/engine", "at": HEAD}
    assert "/webhooks/trigger_training" in page.text


@pytest.mark.parametrize(
    ("module", "attribute", "path", "headers", "answer"),
    [
        ("server", "app", "/webhooks/on_change", SECRET, (200, {"scope": "repo.content"})),
        ("server", "app", "/webhooks/ci/start", SECRET, (200, None)),
        (
            "handlers",
            "app",
            "/webhooks/everything",
            SECRET | {"webhook-id": ID},
            (200, {"delivery": ID}),
        ),
        (
            "handlers",
            "app",
            "/webhooks/raw?dry_run=true",
            SECRET,
            (200, {"keys": ["event", "repo", "updatedRefs", "webhook"], "dry_run": True}),
        ),
        (
            "rotating",
            "app",
            "/webhooks/on_change",
            JSON | {"x-webhook-secret": "old"},
            (401, {"error": "webhook-signature header not set."}),
        ),
        ("mounted", "app", "/hub/webhooks/on_change", SECRET, (200, {"repo": "ada/engine"})),
        ("page", "app", "/webhooks/on_change", SECRET, (200, None)),
        (
            "server",
            "app",
            "/webhooks/on_change",
            JSON,
            (401, {"error": "x-webhook-secret header not set."}),
        ),
        (
            "server",
            "app",
            "/webhooks/on_change",
            JSON | {"x-webhook-secret": "soot"},
            (403, {"error": "Invalid webhook secret."}),
        ),
    ],
)
async def test_a_piece_answers_as_the_guide_says(
    snippets: dict[str, ModuleType],
    module: str,
    attribute: str,
    path: str,
    headers: dict[str, str],
    answer: tuple[int, Any],
) -> None:
    told = await post(getattr(snippets[module], attribute), path, headers=headers)

    assert (told.status_code, told.json()) == answer


@pytest.mark.parametrize("secret", ["new", "old"])
async def test_the_piece_on_rotation_takes_what_either_secret_signs(
    snippets: dict[str, ModuleType], secret: str
) -> None:
    told = await post(snippets["rotating"].app, "/webhooks/on_change", headers=signed(secret))

    assert (told.status_code, told.json()) == (200, "heard")


def test_the_piece_on_verifying_tells_what_is_genuine(
    snippets: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    is_genuine = snippets["verifying"].is_genuine

    assert is_genuine(signed("old"), BODY)
    assert not is_genuine(signed("soot"), BODY)
    assert not is_genuine({}, BODY)
    assert capsys.readouterr().out == (
        "403 Invalid webhook secret.\n401 x-webhook-secret header not set.\n"
    )


def test_the_piece_with_a_spool_answers_first(tmp_path: Path) -> None:
    # Any free port: the guide's own may be taken here.
    text = blocks()["spooled"].replace("app.launch()", "app.launch(server_port=0)")
    with running_script(text, tmp_path) as script:
        answers = [script.post("/webhooks/train", signed("coal")) for _ in range(2)]
        script.wait_for("training ada/engine")
        assert script.stop() == 0

    assert [answer.status_code for answer in answers] == [202, 202]
    assert [answer.json()["duplicate"] for answer in answers] == [False, True]
    assert script.said.count("training") == 1


async def test_the_piece_with_a_page_shows_it(snippets: dict[str, ModuleType]) -> None:
    assert (await get(snippets["page"].app, "/")).text == "<h1>Nothing to see here</h1>"
    assert (await get(snippets["mounted"].app, "/hub/")).status_code == 200


def test_the_limits_are_those_of_the_receiver() -> None:
    words = PAGE.replace("\n", " ")
    units = {"s": 1, "min": 60, "h": 3600}
    [waits] = re.findall(r"tried again after (.*?);", words)

    assert [int(n) * units[unit] for n, unit in re.findall(r"(\d+) (\w+)", waits)] == list(WAITS)
    assert f"What failed {len(WAITS) + 1} times is given up".replace(" ", "") in words.replace(
        " ", ""
    )
    assert f"ids are kept for {KEPT_SECONDS / 86400:.0f} days" in words
    assert f"{GIVEN_UP_SECONDS / 86400:.0f} days later it is deleted" in words
    timeout = receiver_server._TIMEOUT_SECONDS  # noqa: SLF001 - the default is what is documented
    size = receiver_server._MAX_BODY_BYTES  # noqa: SLF001
    assert words.count(f"longer than {timeout:g} seconds (`timeout_seconds`") == 2
    assert f"larger than {size / 2**20:g} MiB (`max_body_bytes`)" in words
    assert f"more than {TOLERANCE_SECONDS:g} seconds away" in words
